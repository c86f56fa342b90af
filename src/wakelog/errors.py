"""The errors of wakelog, grouped by what the caller does next.

    WakelogError
    ├── NotFoundError       the name is wrong          fix the name
    ├── ConflictError       someone wrote first        read on and retry, or fork (also: fenced by a newer epoch)
    ├── NotAllowedError     not allowed in this state  wait, resume, reopen, approve, raise the budget
    ├── InvalidInputError   the call is wrong          fix the call (also a ValueError)
    ├── UnsupportedError    ability or extra missing   other engine, or install the extra
    ├── CorruptLogError     bytes and hash disagree    stop; run `wakelog verify`
    ├── DivergenceError     a replay differs           look at the step it names
    ├── CallFailedError     a recorded call failed     branch on its `failure`
    ├── NotSentError        raised by a tool: its effect did not happen, and it may be called again
    ├── UncertainError      raised by a tool: it cannot tell whether its effect happened
    └── UnavailableError    engine not reachable, or the answer is unknown: ask again with the same id

Each error has a stable `kind` ("session-not-found") for programs; kinds are added, never renamed. A message says what
happened, to which one, and what to do; a `hint` is an exact command or call.
"""

from __future__ import annotations


class WakelogError(Exception):
    """The base class of every error that wakelog raises on purpose."""

    kind = "error"

    def __init__(self, message: str, *, kind: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind or type(self).kind
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")


class NotFoundError(WakelogError):
    """The named session, event or other thing does not exist."""

    kind = "not-found"


class ConflictError(WakelogError):
    """Another writer was first. This call wrote nothing; `head_seq` is where the session is now."""

    kind = "conflict"

    def __init__(self, message: str, *, kind: str = "", hint: str = "", head_seq: int = 0) -> None:
        super().__init__(message, kind=kind, hint=hint)
        self.head_seq = head_seq


class NotAllowedError(WakelogError):
    """The call is not allowed in the current state; `legal` lists what is allowed."""

    kind = "not-allowed"

    def __init__(self, message: str, *, kind: str = "", hint: str = "", legal: tuple[str, ...] = ()) -> None:
        super().__init__(message, kind=kind, hint=hint)
        self.legal = legal


class InvalidInputError(WakelogError, ValueError):
    """The call itself is wrong; it will fail again if repeated unchanged."""

    kind = "invalid-input"


class UnsupportedError(WakelogError):
    """This engine, platform or installation cannot do that."""

    kind = "unsupported"


def missing_extra(message: str, extra: str) -> UnsupportedError:
    """An optional package is not installed; the hint names the extra that brings it."""
    hint = f"pip install 'wakelog[{extra}]', or in a clone: pip install '.[{extra}]'"
    return UnsupportedError(message, kind="missing-extra", hint=hint)


class CorruptLogError(WakelogError):
    """Stored bytes do not match their hash or their format. They are never returned. `session` is the session they
    belong to, `seq` the first bad event and `upto` the last; empty and 0 when that is not known."""

    kind = "corrupt-log"

    def __init__(
        self, message: str, *, kind: str = "", hint: str = "", seq: int = 0, upto: int = 0, session: str = ""
    ) -> None:
        super().__init__(message, kind=kind, hint=hint)
        self.seq = seq
        self.upto = upto
        self.session = session


class DivergenceError(WakelogError):
    """A replay asked for something that the recording does not have at this point. `step` is the recorded step, from 1,
    and `seq` its event."""

    kind = "divergence"

    def __init__(self, message: str, *, kind: str = "", hint: str = "", step: int = 0, seq: int = 0) -> None:
        super().__init__(message, kind=kind, hint=hint)
        self.step = step
        self.seq = seq


class CallFailedError(WakelogError):
    """The call was recorded as failed; `failure` (an `events.Failure`) is its typed error."""

    kind = "call-failed"

    def __init__(self, message: str, *, kind: str = "", hint: str = "", failure: object = None) -> None:
        super().__init__(message, kind=kind, hint=hint)
        self.failure = failure


class UnavailableError(WakelogError):
    """The engine could not be reached, or its answer was lost. It is safe to ask again with the same commit id."""

    kind = "unavailable"


class NotSentError(WakelogError):
    """Raise this in a tool if its effect certainly did not happen: the call fails, and may be sent again."""

    kind = "not-sent"

    def __init__(self, message: str = "", *, kind: str = "", hint: str = "") -> None:
        super().__init__(message, kind=kind, hint=hint)


class UncertainError(WakelogError):
    """Raise this in a tool if it does not know whether its effect happened: the call becomes uncertain, not failed."""

    kind = "uncertain"

    def __init__(self, message: str = "", *, kind: str = "", hint: str = "") -> None:
        super().__init__(message, kind=kind, hint=hint)
