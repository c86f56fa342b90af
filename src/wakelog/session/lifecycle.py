"""Verbs that move: the view back, the history into a fork, the session through its life."""

from __future__ import annotations

import functools

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.model import events as ev
from wakelog.model.records import EventDraft, Head
from wakelog.runtime.recovery import settling
from wakelog.session.base import Base, S, Where, check_text
from wakelog.session.undo import Project, Undone, project_of, redo, undo


class Moving(Base[S]):
    """Rewind, undo, and the lifecycle. `fork` is in session.py, since it makes a session."""

    def rewind(self, to: Where, *, why: str = "") -> Head:
        """Moves the view back by appending. Goal, decisions, facts, working set and data return to what they were;
        status, turn numbers, money, flags, dead ends and open calls do not. `undo` takes it back."""
        return self.log.rewind(self.seq(to), why=why)

    def undo(self, *, files: bool = True, force: bool = False) -> Undone:
        """Takes back the newest rewind that was not yet undone; repeated, walks further back. Where it brought files
        back, they go back as well, but for what somebody edited since (`force`: that too, with a copy kept)."""
        return undo(self.log, functools.partial(self._project, force) if files else None)

    def redo(self, *, files: bool = True, force: bool = False) -> Undone:
        """Takes back the newest undo, as long as nothing else was rewound since; repeated, walks forward."""
        return redo(self.log, functools.partial(self._project, force) if files else None)

    def _project(self, force: bool) -> Project:
        return msgspec.structs.replace(project_of(self.log, self.runtime.capture), force=force)

    def pause(self, *, why: str = "") -> Head:
        """Nothing new takes effect until `resume`; outcomes of what began before are still accepted."""
        return self.append(EventDraft(ev.SessionPaused(why=why), actor="user"))

    def resume(self, *, host: str = "", why: str = "") -> Head:
        """Continues a paused session."""
        return self.append(EventDraft(ev.SessionResumed(host=host, why=why), actor="user"))

    def close(self, outcome: str = "completed", *, why: str = "") -> Head:
        """Ends the session. Open calls are settled first: what never started is abandoned, the rest is uncertain."""
        settled = settling(self.log, "the session was closed", closes=True)
        return self.append(*settled, EventDraft(ev.SessionClosed(outcome=outcome, why=why), actor="user"))

    def reopen(self, *, why: str = "") -> Head:
        return self.append(EventDraft(ev.SessionReopened(why=why), actor="user"))

    def archive(self, *, why: str = "") -> Head:
        """Puts a closed session away; `reopen` brings it back."""
        return self.append(EventDraft(ev.SessionArchived(why=why), actor="user"))

    def take_lease(self, holder: str, *, ttl_s: float = 30.0, force: bool = False) -> int:
        """Claims the session for one writer. Turns, calls and what is recorded through this object then count only
        while nobody else has taken it over; to `append`, pass the epoch it returns as `guard`."""
        check_text(holder, "a lease's holder")
        if ttl_s <= 0:
            raise InvalidInputError(f"a lease holds for some seconds, not {ttl_s}", kind="bad-lease")
        self.runtime.guard = self.log.take_lease(holder, ttl_s=ttl_s, force=force)
        return self.runtime.guard

    def release_lease(self, epoch: int) -> Head:
        if self.runtime.guard == epoch:
            self.runtime.guard = None
        return self.log.release_lease(epoch)
