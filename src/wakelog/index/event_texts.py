"""Reads the texts of events from the log: the word index (words.py) keeps no copy of most of them.

A text is a pure function of an event's kind and body (facets.py). So what is read here is what the words were made
from, unless it was erased since.
"""

from __future__ import annotations

import hashlib

import msgspec

from wakelog.codec.records import decode_body
from wakelog.engine import Engine
from wakelog.errors import CorruptLogError, NotFoundError, UnsupportedError
from wakelog.index.facets import TEXT_MAX, facets_of
from wakelog.log.reader import Segment, check_commit, fetch, lineage
from wakelog.model.ids import Seq, SessionId
from wakelog.model.payloads import as_ref, decode_payload
from wakelog.model.values import Value

PAYLOAD_MAX = 1 << 20
"""Only the beginning of larger JSON payloads is searched, as raw text."""
UNREADABLE = (CorruptLogError, UnsupportedError, NotFoundError)
"""Errors that mean that a session, or a part of it, cannot be read."""


class PayloadReader:
    """Reads the payloads that events of one session mention."""

    def __init__(self, engine: Engine, session: SessionId) -> None:
        self._engine = engine
        self._session = session
        self._segments: list[Segment] = []
        self.at_hand: dict[bytes, bytes] = {}
        """The payloads of the commit that is being read."""

    @property
    def segments(self) -> list[Segment]:
        if not self._segments:
            self._segments = lineage(self._engine, self._session)
        return self._segments

    def fetch(self, seq: Seq, mention: dict[str, Value]) -> Value:
        """The payload as text or a JSON value; None if it holds other bytes or is gone."""
        try:
            ref = as_ref(mention)
            assert ref is not None
            if ref.media == "bytes":
                return None
            digest = bytes.fromhex(ref.hash)
            content = self.at_hand.get(digest)
            if content is None:
                content = fetch(self._engine, self.segments, ref.at or seq, digest)
            elif hashlib.sha256(content).digest() != digest:
                return None
            if ref.media == "text" or len(content) > PAYLOAD_MAX:
                return content[: 4 * TEXT_MAX].decode(errors="ignore")
            return decode_payload(content, ref.media)
        except (NotFoundError, CorruptLogError, msgspec.MsgspecError, ValueError):
            return None


def read_text(engine: Engine, session: SessionId, seq: Seq) -> str:
    """The text of one of a session's own events; empty if it cannot be read."""
    payloads = PayloadReader(engine, session)
    try:
        for commit in engine.read(session, after=seq - 1, upto=seq, payloads=True):
            place = seq - commit.first
            header = check_commit(commit)[0][place]
            payloads.at_hand = dict(commit.payloads)
            body = decode_body(commit.records[place].body)
            return facets_of(header.kind, body, lambda mention: payloads.fetch(seq, mention)).text
    except UNREADABLE:
        pass
    return ""
