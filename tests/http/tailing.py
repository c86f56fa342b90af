"""A reader of server-sent events, written from the specification."""

import json
import socket
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.http.asking import TIMEOUT_S, Asker


class Event(NamedTuple):
    id: str
    name: str
    data: Any


class Tail:
    """One connection to a tail. Use it in a `with`."""

    def __init__(self, asker: Asker, path: str, last: str | None = None, **query: Any) -> None:
        self._socket = socket.create_connection(asker._place, timeout=TIMEOUT_S)
        text = urlencode({k: v for k, v in query.items() if v is not None}, doseq=True)
        headers = {**asker._headers, "Host": f"{asker._place[0]}:{asker._place[1]}", "Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = last
        lines = [
            f"GET {asker._base}{path}{'?' + text if text else ''} HTTP/1.1",
            *(f"{k}: {v}" for k, v in headers.items()),
        ]
        self._socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self._file = self._socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers: dict[str, str] = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(":")
            self.headers[name.lower()] = value.strip()
        self._rest = b""

    def rest(self) -> bytes:
        """The body of an answer that is not a stream."""
        return self._file.read(int(self.headers.get("content-length", "0")))

    def _chunk(self) -> bytes:
        """The next chunk; empty when the server has ended the stream."""
        size = self._file.readline()
        if not size:
            return b""
        data = self._file.read(int(size, 16))
        self._file.readline()
        return data

    def _block(self) -> str | None:
        """The text before the next empty line; None at the end."""
        while b"\n\n" not in self._rest:
            chunk = self._chunk()
            if not chunk:
                return None
            self._rest += chunk
        block, self._rest = self._rest.split(b"\n\n", 1)
        return block.decode()

    def next(self) -> Event | None:
        """The next event, skipping comments; None at the end."""
        while (block := self._block()) is not None:
            fields = dict(line.partition(": ")[::2] for line in block.split("\n") if not line.startswith(":"))
            if "data" in fields:
                return Event(fields.get("id", ""), fields.get("event", "message"), json.loads(fields["data"]))
        return None

    def take(self, count: int) -> list[Event]:
        found: list[Event] = []
        while len(found) < count:
            event = self.next()
            assert event is not None, f"the tail ended after {len(found)} events"
            found.append(event)
        return found

    def until_quiet(self) -> bytes:
        """Everything up to the first keep-alive comment."""
        seen = b""
        while (block := self._block()) is not None and not block.startswith(":"):
            seen += block.encode()
        return seen

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def __enter__(self) -> "Tail":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
