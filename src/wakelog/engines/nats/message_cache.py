"""A cache of big messages, so that many reads inside one big commit fetch and unpack it once.

A stored message never changes; it can only be erased. Every read asks the leader for the session's head and its
rewritten commits (reader.py), and does not use the cache for those. So removed content is never returned. Entries
expire after some seconds, so that the cache does not hide damage on a disk for long.
"""

from __future__ import annotations

import bisect
import time
from collections import OrderedDict

from wakelog.engines.nats import messages
from wakelog.engines.nats.messages import StoredCommit
from wakelog.engines.nats.stream_message import StreamMessage
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit

BIG = 16 * 1024
KEPT_BYTES = 24 << 20
KEPT_S = 10.0


class CachedMessage:
    """A message of commits, with the commits built from it."""

    def __init__(self, message: StreamMessage, commits: tuple[StoredCommit, ...]) -> None:
        self.message, self.commits = message, commits
        self.read_at = time.monotonic()
        self.whole: dict[Seq, StoredCommit] = {}
        """Commits completed with their parts, by their first event."""
        self._built: dict[tuple[int, bool], tuple[StoredCommit, Commit]] = {}

    def build(self, session: SessionId, stored: StoredCommit, *, payloads: bool) -> Commit:
        """The commit for a caller, unpacked once."""
        known = self._built.get((stored.first, payloads))
        if known is None or known[0] is not stored:
            known = (stored, messages.to_commit(session, stored, payloads=payloads))
            self._built[stored.first, payloads] = known
        return known[1]

    @property
    def size(self) -> int:
        return len(self.message.data) + sum(len(c.records) + len(c.payloads) for c in self.whole.values())


class MessageCache:
    """Messages by session, the most recently used last. Runs on the loop."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[SessionId, dict[int, CachedMessage]] = OrderedDict()

    def keep(self, session: SessionId, message: StreamMessage, commits: tuple[StoredCommit, ...]) -> CachedMessage:
        """Caches the message if it is big."""
        kept = CachedMessage(message, commits)
        if len(message.data) >= BIG or any(c.apart for c in commits):
            self._sessions.setdefault(session, {})[message.seq] = kept
            self._sessions.move_to_end(session)
            self._shrink()
        return kept

    def complete(self, kept: CachedMessage, whole: StoredCommit) -> None:
        """Caches a commit that was completed with its parts."""
        kept.whole[whole.first] = whole
        self._shrink()

    def find(self, session: SessionId, wanted: Seq) -> CachedMessage | None:
        """The message that holds an event."""
        kept = self._sessions.get(session)
        if not kept:
            return None
        self._sessions.move_to_end(session)
        places = sorted(kept)
        at = bisect.bisect_left(places, wanted, key=lambda seq: kept[seq].commits[-1].last)
        found = kept[places[at]] if at < len(places) else None
        if found is None or found.commits[0].first > wanted or time.monotonic() > found.read_at + KEPT_S:
            return None
        return found

    def forget(self, session: SessionId) -> None:
        self._sessions.pop(session, None)

    def _shrink(self) -> None:
        """Drops the oldest messages of the least recently used sessions."""
        size = sum(m.size for kept in self._sessions.values() for m in kept.values())
        while size > KEPT_BYTES:
            session, kept = next(iter(self._sessions.items()))
            oldest = next(iter(kept))
            size -= kept.pop(oldest).size
            if not kept:
                del self._sessions[session]
