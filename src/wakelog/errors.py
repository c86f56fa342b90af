"""One error tree, grouped by what the caller does next.

    WakelogError
    ├── NotFoundError       the name is wrong          fix the name
    ├── ConflictError       someone wrote first        read on and retry, or fork (also: fenced by a newer epoch)
    ├── NotAllowedError     the machine says no        wait, resume, reopen, approve, raise the budget
    ├── InvalidInputError   the call is wrong          fix the call (also a ValueError)
    ├── UnsupportedError    ability or extra missing   other engine, or install the extra
    ├── CorruptLogError     bytes and hash disagree    stop; run `wakelog verify`
    ├── DivergenceError     a replay went elsewhere    look at the step it names
    ├── CallFailedError     a recorded call failed     branch on its `failure`
    ├── NotSentError        raised by a tool: its effect did not happen, and it may be called again
    ├── UncertainError      raised by a tool: nobody can tell whether its effect happened
    └── UnavailableError    engine not reachable, or the answer is unknown: ask again with the same id

Each instance carries a stable `kind` ("session-not-found") for machines; kinds are added, never renamed.
A message says what happened, to which one, and what to do; `hint`, when there is one, is an exact command or call.
"""

from __future__ import annotations


class WakelogError(Exception):
    """The root: everything wakelog raises on purpose."""

    kind = "error"

    def __init__(self, message: str, *, kind: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind or type(self).kind
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")


class NotFoundError(WakelogError):
    """Nothing of that name is here."""

    kind = "not-found"


class ConflictError(WakelogError):
    """Someone wrote first. Nothing was written by this call; `head_seq` is where the session is now."""

    kind = "conflict"

    def __init__(self, message: str, *, kind: str = "", hint: str = "", head_seq: int = 0) -> None:
        super().__init__(message, kind=kind, hint=hint)
        self.head_seq = head_seq


class NotAllowedError(WakelogError):
    """A state machine says no; `legal` names the moves it would allow."""

    kind = "not-allowed"

    def __init__(self, message: str, *, kind: str = "", hint: str = "", legal: tuple[str, ...] = ()) -> None:
        super().__init__(message, kind=kind, hint=hint)
        self.legal = legal


class InvalidInputError(WakelogError, ValueError):
    """The call itself is wrong; repeating it unchanged will fail again."""

    kind = "invalid-input"


class UnsupportedError(WakelogError):
    """This engine, platform or installation cannot do that."""

    kind = "unsupported"


class CorruptLogError(WakelogError):
    """Stored bytes disagree with their hash or their form. Nothing is served from them; `seq` is the first bad
    event and `upto` the last one that went with it, `session` whose they are; 0 and empty where that is not known."""

    kind = "corrupt-log"

    def __init__(
        self, message: str, *, kind: str = "", hint: str = "", seq: int = 0, upto: int = 0, session: str = ""
    ) -> None:
        super().__init__(message, kind=kind, hint=hint)
        self.seq = seq
        self.upto = upto
        self.session = session


class DivergenceError(WakelogError):
    """A replay asked for something the recording does not have, or not there: `step` is the recorded step, from 1, and
    `seq` its event."""

    kind = "divergence"

    def __init__(self, message: str, *, kind: str = "", hint: str = "", step: int = 0, seq: int = 0) -> None:
        super().__init__(message, kind=kind, hint=hint)
        self.step = step
        self.seq = seq


class CallFailedError(WakelogError):
    """A call that was recorded as failed; `failure` (an `events.Failure`) is its typed error."""

    kind = "call-failed"

    def __init__(self, message: str, *, kind: str = "", hint: str = "", failure: object = None) -> None:
        super().__init__(message, kind=kind, hint=hint)
        self.failure = failure


class UnavailableError(WakelogError):
    """The engine could not be reached or its answer was lost. Asking again with the same commit id is safe."""

    kind = "unavailable"


class NotSentError(WakelogError):
    """Raised by a tool that knows that its effect did not happen: the call failed, and may be sent again."""

    kind = "not-sent"

    def __init__(self, message: str = "", *, kind: str = "", hint: str = "") -> None:
        super().__init__(message, kind=kind, hint=hint)


class UncertainError(WakelogError):
    """Raised by a tool that cannot tell whether its effect happened: the call becomes uncertain, not failed."""

    kind = "uncertain"

    def __init__(self, message: str = "", *, kind: str = "", hint: str = "") -> None:
        super().__init__(message, kind=kind, hint=hint)
