"""Events of the session itself: its status, lease, turns and messages."""

from __future__ import annotations

from typing import Literal

from wakelog.model.events.base import Event, Failure, core
from wakelog.model.values import Value


@core("session.opened")
class SessionOpened(Event, frozen=True, gc=False):
    """Event 1. Its delta is the whole initial state."""

    name: str = ""
    goal: str | None = None
    labels: dict[str, str] = {}
    agent: str = ""
    limits: dict[str, int] = {}
    data: dict[str, Value] = {}
    data_schema: str = ""
    spawner: str = ""
    """For a sub-agent: `session@seq` of the event that spawned it."""


@core("session.paused")
class SessionPaused(Event, frozen=True, gc=False):
    pass


@core("session.resumed")
class SessionResumed(Event, frozen=True, gc=False):
    host: str = ""


@core("session.closed")
class SessionClosed(Event, frozen=True, gc=False):
    outcome: str = "completed"


@core("session.reopened")
class SessionReopened(Event, frozen=True, gc=False):
    pass


@core("session.archived")
class SessionArchived(Event, frozen=True, gc=False):
    pass


@core("session.deleted")
class SessionDeleted(Event, frozen=True, gc=False):
    """The session was deleted. `totals` and `call_totals` are set if its totals were kept: numbers only, no names or
    texts."""

    totals: tuple[int, ...] = ()
    call_totals: tuple[tuple[int, ...], ...] = ()


@core("session.forked")
class SessionForked(Event, frozen=True, gc=False):
    """The first event of a fork. Its seq is `at` + 1, and its chain continues from the parent's hash at `at`."""

    parent: str
    at: int
    hash: str
    name: str = ""


@core("lease.taken")
class LeaseTaken(Event, frozen=True, gc=False):
    """A writer claimed the session. From now on, commits with an older epoch are refused."""

    epoch: int
    holder: str
    ttl_us: int = 0


@core("lease.released")
class LeaseReleased(Event, frozen=True, gc=False):
    epoch: int


@core("goal.set")
class GoalSet(Event, frozen=True, gc=False):
    goal: str | None


@core("labels.set")
class LabelsSet(Event, frozen=True, gc=False):
    """Labels to set; a value of None removes one. `before` holds earlier values that no label had recorded."""

    labels: dict[str, str | None]
    before: dict[str, str] = {}


@core("turn.started", payloads=("input",))
class TurnStarted(Event, frozen=True, gc=False):
    """A new turn started; with `retry`, the next attempt of the same turn."""

    input: Value = None
    retry: bool = False
    resumes: int = 0
    """The first of the interrupted attempts that this one continues; their calls are not made again. 0 means a fresh
    start."""
    id: str = ""
    """The caller's id for the turn. A completed turn with that id is not done again."""
    holder: str = ""
    """The process that owns the turn while it is open (see holders of turns in the format)."""


@core("turn.ended", payloads=("output",))
class TurnEnded(Event, frozen=True, gc=False):
    outcome: Literal["completed", "failed", "interrupted"] = "completed"
    error: Failure | None = None
    output: Value = None
    """The turn's result."""


@core("message.added", payloads=("content",))
class MessageAdded(Event, frozen=True, gc=False):
    """One message of the conversation. Messages are read from the log; the state does not hold them."""

    role: str
    content: Value
    name: str = ""
    action: str = ""
    """For a tool's answer: the action that it answers."""
