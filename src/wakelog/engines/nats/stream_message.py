"""Messages of streams, and the answers of servers to requests about them."""

from __future__ import annotations

from typing import Any

import msgspec
import nats.errors

from wakelog.engines.nats.client import Answer
from wakelog.engines.nats.errors import JetStreamRefusal

_EXPECTED = "Nats-Expected-Last-Subject-Sequence"
_EXPECTED_OF = "Nats-Expected-Last-Subject-Sequence-Subject"
_NEWLINES = str.maketrans("\r\n", "  ")


class StreamMessage(msgspec.Struct, frozen=True, gc=False):
    """A stored message."""

    seq: int
    subject: str
    data: bytes


class NewMessage(msgspec.Struct, frozen=True, gc=False):
    """A message to store if the last one of its subject, or of `behind`, is `expected`."""

    subject: str
    data: bytes
    expected: int | None = None
    behind: str = ""
    message_id: str = ""

    @property
    def lines(self) -> str:
        """The lines of its headers."""
        found = "" if self.expected is None else f"{_EXPECTED}: {self.expected}\r\n"
        if self.behind:
            found += header_line(_EXPECTED_OF, self.behind)
        if self.message_id:
            found += header_line("Nats-Msg-Id", self.message_id)
        return found


def header_line(name: str, value: str) -> str:
    return f"{name}: {value.translate(_NEWLINES)}\r\n"


class _StoredError(msgspec.Struct, frozen=True, gc=False):
    code: int = 0
    err_code: int = 0
    description: str = ""


class StoredAnswer(msgspec.Struct, frozen=True, gc=False):
    """A server's answer to a message to store."""

    seq: int = 0
    duplicate: bool = False
    error: _StoredError | None = None


_decode = msgspec.json.Decoder().decode
_decode_stored = msgspec.json.Decoder(StoredAnswer).decode


def delivered(answer: Answer | Exception) -> Answer:
    """The answer; raises if there is none."""
    if isinstance(answer, Exception):
        raise answer
    if answer.status == "503":
        raise nats.errors.NoRespondersError
    return answer


def decode_answer(answer: Answer) -> dict[str, Any]:
    """An answer of JetStream's API. JetStreamRefusal if it is an error."""
    try:
        found: dict[str, Any] = _decode(answer.data)
    except msgspec.DecodeError as exc:
        raise OSError(f"the server answered with {answer.data[:40]!r}") from exc
    if (error := found.get("error")) is not None:
        raise JetStreamRefusal(error.get("code", 0), error.get("err_code", 0), error.get("description", ""))
    return found


def decode_stored(answer: Answer) -> StoredAnswer:
    """The answer to a message to store. JetStreamRefusal if it was not stored."""
    try:
        stored = _decode_stored(answer.data)
    except msgspec.DecodeError as exc:
        raise OSError(f"the server answered with {answer.data[:40]!r}") from exc
    if stored.error is not None:
        raise JetStreamRefusal(stored.error.code, stored.error.err_code, stored.error.description)
    return stored
