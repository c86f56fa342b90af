"""What came of a call, typed, so that the next step can branch on it instead of parsing prose."""

from __future__ import annotations

import builtins
import contextlib
from typing import Any, Literal

import msgspec

from wakelog.errors import CallFailedError, NotAllowedError, UnavailableError, WakelogError
from wakelog.model.events import Failure
from wakelog.model.ids import Seq
from wakelog.runtime.unknown_outcome import is_unsure

Status = Literal["succeeded", "failed", "timed_out", "denied", "uncertain"]


class Outcome(msgspec.Struct, frozen=True):
    """One call's result or error. `result` is None unless it succeeded, `error` is None if it did."""

    action: str
    tool: str
    status: Status
    result: Any = None
    error: Failure | None = None
    seq: Seq = 0
    """The event that holds the outcome."""
    reused: bool = False
    """It was recorded before, and nothing was run."""
    attempts: int = 1
    exception: BaseException | None = None
    """What the tool raised, when it ran here."""

    @property
    def ok(self) -> bool:
        return self.status == "succeeded"

    def unwrap(self, raises: tuple[type[BaseException], ...] = ()) -> Any:
        """The result, or the tool's own exception. One that was recorded earlier is raised as the same builtin
        exception, or as one of `raises`, if its name says so; else as CallFailedError."""
        if self.error is None:
            return self.result
        if self.exception is not None:
            raise self.exception
        text = self.error.message or f"{self.tool}: {self.error.type}"
        known = {c.__name__: c for c in raises}
        found = known.get(self.error.type) or getattr(builtins, self.error.type, None)
        if self.status in ("timed_out", "uncertain"):
            found = TimeoutError if self.error.type == "timeout" else None
        error: Exception = CallFailedError(f"{self.tool} {self.status}: {text}", failure=self.error)
        if isinstance(found, type) and issubclass(found, Exception):
            with contextlib.suppress(Exception):  # one that is not made from a message alone
                error = found(text)
        if self.reused:
            error.add_note(f"recorded as event {self.seq}; the call was not run again")
        raise error


def uncertain_error(session: str, action: str, tool: str) -> NotAllowedError:
    """The call may or may not have happened: somebody must say."""
    return NotAllowedError(
        f"{tool} was cut off, and nobody knows whether its effect happened ({action} of {session})",
        kind="uncertain-call",
        hint=f"find out, then: wakelog reconcile {session} {action} --succeeded | --failed | --never-ran",
        legal=("action.reconciled", "action.succeeded", "action.failed"),
    )


def approval_error(session: str, action: str, tool: str) -> NotAllowedError:
    return NotAllowedError(
        f"{tool} waits for approval ({action} of {session})",
        kind="approval-needed",
        hint=f"wakelog approve {session} {action} | wakelog deny {session} {action}; then run this again",
        legal=("action.approved", "action.denied"),
    )


def running_error(session: str, action: str, tool: str) -> NotAllowedError:
    return NotAllowedError(
        f"{tool} is running already, or its process died ({action} of {session})",
        kind="call-running",
        hint=f"wait for it; if its process is dead: wakelog reconcile {session} {action} --never-ran | --succeeded",
        legal=("action.succeeded", "action.failed", "action.uncertain"),
    )


STOPS = frozenset(
    {
        *("uncertain-call", "approval-needed", "call-running", "budget-reached", "session-paused"),
        *("turn-taken-over", "fenced", "price-unknown"),
    }
)
"""Errors by which the runtime stops a turn for somebody to look: it is interrupted, not failed, and the same script run
again goes on with it."""


def is_stop(error: BaseException | None) -> bool:
    """Whether an error says that a turn was stopped, by the runtime, because the store could not be reached or because
    nobody knows what became of a call, and not that the agent failed."""
    if isinstance(error, UnavailableError) or (isinstance(error, WakelogError) and error.kind in STOPS):
        return True
    return is_unsure(error)
