"""Big messages that were read last, so that many reads inside one big commit fetch and unpack it once.

A stored message never changes; it can only be erased. Every read asks the leader where the session stands and which of
its commits were rewritten (reader.py), and uses nothing from here in their place. So nothing that was removed is told.
What is kept gets old after some seconds, so that damage on a disk is not hidden for longer."""

from __future__ import annotations

import bisect
import time
from collections import OrderedDict

from wakelog.engines.nats import messages
from wakelog.engines.nats.connection import StreamMessage
from wakelog.engines.nats.messages import StoredCommit
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit

BIG = 16 * 1024
KEPT_BYTES = 24 << 20
KEPT_S = 10.0


class KeptMessage:
    """A message of commits, and what was made of it."""

    def __init__(self, message: StreamMessage, commits: tuple[StoredCommit, ...]) -> None:
        self.message, self.commits = message, commits
        self.read_at = time.monotonic()
        self.whole: dict[Seq, StoredCommit] = {}
        """Commits with what is kept in parts, by their first event."""
        self._built: dict[tuple[int, bool], tuple[StoredCommit, Commit]] = {}

    def build(self, session: SessionId, stored: StoredCommit, *, payloads: bool) -> Commit:
        """The commit that a caller gets, unpacked once."""
        known = self._built.get((stored.first, payloads))
        if known is None or known[0] is not stored:
            known = (stored, messages.to_commit(session, stored, payloads=payloads))
            self._built[stored.first, payloads] = known
        return known[1]

    @property
    def size(self) -> int:
        return len(self.message.data) + sum(len(c.records) + len(c.payloads) for c in self.whole.values())


class MessageCache:
    """Kept messages by session, the one used last at the end. Lives on the loop."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[SessionId, dict[int, KeptMessage]] = OrderedDict()

    def keep(self, session: SessionId, message: StreamMessage, commits: tuple[StoredCommit, ...]) -> KeptMessage:
        """Keeps a message if it is worth it."""
        kept = KeptMessage(message, commits)
        if len(message.data) >= BIG or any(c.apart for c in commits):
            self._sessions.setdefault(session, {})[message.seq] = kept
            self._sessions.move_to_end(session)
            self._shrink()
        return kept

    def complete(self, kept: KeptMessage, whole: StoredCommit) -> None:
        """Keeps a commit with what was fetched of its parts."""
        kept.whole[whole.first] = whole
        self._shrink()

    def find(self, session: SessionId, wanted: Seq) -> KeptMessage | None:
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
        """Drops what was used least, whole sessions first."""
        size = sum(m.size for kept in self._sessions.values() for m in kept.values())
        while size > KEPT_BYTES:
            session, kept = next(iter(self._sessions.items()))
            oldest = next(iter(kept))
            size -= kept.pop(oldest).size
            if not kept:
                del self._sessions[session]
