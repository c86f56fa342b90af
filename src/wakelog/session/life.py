"""`session.life`: the session's status, from open to archived, and the lease of its writer."""

from __future__ import annotations

from typing import Any

from wakelog.errors import InvalidInputError
from wakelog.model import events as ev
from wakelog.model.records import EventDraft, Head
from wakelog.runtime.resume import settle_pending
from wakelog.session.base import Base, check_text


class SessionLife:
    """Pauses, ends and reopens a session, and claims it for one writer."""

    def __init__(self, session: Base[Any]) -> None:
        self._session = session

    def pause(self, *, why: str = "") -> Head:
        """Pauses the session: nothing new takes effect until `unpause`. Outcomes of calls that already run are still
        recorded."""
        return self._session.append(EventDraft(ev.SessionPaused(why=why), actor="user"))

    def unpause(self, *, host: str = "", why: str = "") -> Head:
        """Continues a paused session."""
        return self._session.append(EventDraft(ev.SessionResumed(host=host, why=why), actor="user"))

    def end(self, outcome: str = "completed", *, why: str = "") -> Head:
        """Ends the session. Open calls are settled first: calls that never started are abandoned, the others become
        uncertain."""
        settled = settle_pending(self._session.log, "the session was closed", closes=True)
        return self._session.append(*settled, EventDraft(ev.SessionClosed(outcome=outcome, why=why), actor="user"))

    def cancel(self, *, why: str) -> Head:
        """Stops a session, for a reason: ends it with the outcome `cancelled`. The agent's next call is refused;
        running calls become uncertain."""
        if not why.strip():
            raise InvalidInputError("cancelling needs a reason", kind="no-reason", hint="say why it must not continue")
        return self.end("cancelled", why=why)

    def reopen(self, *, why: str = "") -> Head:
        """Reopens an ended or archived session."""
        return self._session.append(EventDraft(ev.SessionReopened(why=why), actor="user"))

    def archive(self, *, why: str = "") -> Head:
        """Archives an ended session; `reopen` brings it back."""
        return self._session.append(EventDraft(ev.SessionArchived(why=why), actor="user"))

    def take_lease(self, holder: str, *, ttl_s: float = 30.0, force: bool = False) -> int:
        """Claims the session for one writer and returns the lease's epoch. When someone else takes the lease, turns,
        calls and records through this object are refused. Pass the epoch as `guard` to `append`."""
        check_text(holder, "a lease's holder")
        if ttl_s <= 0:
            raise InvalidInputError(f"a lease needs a time above 0 seconds, not {ttl_s}", kind="bad-lease")
        self._session._runtime.guard = self._session.log.take_lease(holder, ttl_s=ttl_s, force=force)
        return self._session._runtime.guard

    def release_lease(self, epoch: int) -> Head:
        """Releases the lease of that epoch, so that another writer can take it."""
        if self._session._runtime.guard == epoch:
            self._session._runtime.guard = None
        return self._session.log.release_lease(epoch)
