"""A turn as a context manager: it starts with an input and ends when the agent stops.

A clean exit stores the draft's changes as one patch and ends the turn, in one durable commit. An exception ends the
turn as failed: the error is recorded, the draft is dropped, and the exception reaches the caller. Ctrl-C,
cancellation and other BaseExceptions end it as interrupted. So do stops that are not the agent's fault: a stop by the
runtime, a store that cannot be reached, a draft whose data another writer changed. If the process dies, the next turn
of the session first records that this one was interrupted. To continue an interrupted turn, run the same script again.

A turn is not a transaction: events recorded inside it are durable at once. Only the draft is written at the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from wakelog.errors import ConflictError, NotAllowedError, WakelogError
from wakelog.log.holder import TurnHold, end_of_holder
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft, Head
from wakelog.model.values import Value
from wakelog.runtime.ambient import current, enter_session
from wakelog.runtime.bridge import in_thread_to_the_end
from wakelog.runtime.outcome import failure_of, is_stop
from wakelog.runtime.resume import refuse_if_leased, settle_lost_calls, settle_pending
from wakelog.runtime.values import plain
from wakelog.session.notebook import turn_html
from wakelog.state.diff import diff
from wakelog.state.patch import copy, equal

if TYPE_CHECKING:
    from wakelog.runtime.resume import Resume
    from wakelog.session.session import Session

S = TypeVar("S")
R = TypeVar("R")
TurnOutcome = Literal["completed", "failed", "interrupted"]
LARGE_DRAFT_BYTES = 1 << 20


class Turn(Generic[S]):
    """One turn of a session. Use it in a `with` (or `async with`)."""

    def __init__(
        self, session: Session[S], started: ev.TurnStarted, first_events: list[EventDraft], *, resume: Resume
    ) -> None:
        self.session = session
        self._resume: Resume = resume
        self._outer: Any = None
        self.number = 0
        self.attempt = 1
        self._started = started
        self._first_events = first_events
        self._base: dict[str, Value] | None = None
        self._draft: Any = None
        self.is_over = False
        """Whether it has ended in this process."""
        self.is_done = False
        """Whether a turn with this id was completed before. Then nothing runs and nothing is recorded: calls are
        answered from the record, and a call that is not in the record is refused (`turn-done`)."""
        self.result: Any = None
        """The turn's result. Set it to have it recorded at the end. If the turn was done before, it is the recorded
        one."""

    @property
    def data(self) -> S:
        """Returns a draft of the session's own data. Its changes are stored as one patch when the turn completes;
        changes made after that are not stored."""
        if self._base is None:
            self._base = self.session.log.state()["data"]
            if len(msgspec.json.encode(self._base)) > LARGE_DRAFT_BYTES:
                warnings.warn("the data is over 1 MB, and a draft copies all of it; use session.patch()", stacklevel=2)
            self._draft = self.session._data_type.load(self._base)
        return self._draft  # type: ignore[no-any-return]

    @data.setter
    def data(self, value: S) -> None:
        if self.is_over:
            raise NotAllowedError(
                f"turn @{self.number} has ended, so its data can no longer be set",
                kind="turn-ended",
                hint="use session.patch(), or set it inside the turn",
            )
        if self._base is None:
            self._base = self.session.log.state()["data"]
        self._draft = value

    def _repr_html_(self) -> str:
        return turn_html(self)

    def __enter__(self) -> Turn[S]:
        self._outer = current()
        try:
            self.number, self.attempt = self.session._begin_turn(self, self._started, self._first_events, self._resume)
            enter_session(self.session)
            opened = self.session._runtime.turn
            if opened is not None and opened.record is not None:
                self.is_done, self.result = opened.is_done, opened.record.output
            return self
        except BaseException as error:
            # Python does not call __exit__ then, so an interrupted turn ends here.
            if self.number:
                self.__exit__(type(error), error, None)
            self.session._finish_turn(self)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.is_done:
                return
            if error is not None:
                self._fail(error)
                return
            try:
                self._commit()
            except BaseException as exc:
                self._fail(exc)
                raise
        finally:
            self.is_over = True
            self.session._finish_turn(self)
            enter_session(self._outer)

    async def __aenter__(self) -> Turn[S]:
        try:
            await in_thread_to_the_end(self.__enter__)
            # The worker thread that ran __enter__ has its own context variables; set them here too.
            self._outer = enter_session(self.session)
            return self
        except BaseException as error:
            # If it was cancelled while opening, Python does not call __aexit__, so end the turn here.
            if self.number and not self.is_over:
                await in_thread_to_the_end(self.__exit__, type(error), error, None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A cancelled turn is recorded as interrupted before the cancellation continues.
        try:
            await in_thread_to_the_end(self.__exit__, kind, error, trace)
        finally:
            enter_session(self._outer)

    def model(self, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
        """Calls a model and records it. See `Session.model`."""
        return self.session.model(function, *args, **kwargs)

    async def amodel(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Calls an async model client and records it. See `Session.model`."""
        return await self.session.aio.model(function, *args, **kwargs)

    def _fail(self, error: BaseException) -> None:
        """Records how the turn ended. If that fails, the original error still reaches the caller, with a note."""
        is_draft_lost = isinstance(error, ConflictError) and error.kind == "draft-conflict"
        if is_stop(error) or is_draft_lost or not isinstance(error, Exception):
            why = error.message if isinstance(error, WakelogError) else type(error).__name__
            failure = ev.Failure("draft-conflict", why) if is_draft_lost else None
            ended = ev.TurnEnded(outcome="interrupted", error=failure, why=why)
        else:
            ended = ev.TurnEnded(outcome="failed", error=failure_of(error))
        try:
            self._end(ended)
        except WakelogError as exc:
            error.add_note(f"the end of turn @{self.number} could not be recorded: {exc.message}")

    def _end(self, ended: ev.TurnEnded, *before: EventDraft, expect: Seq | None = None) -> None:
        """Ends the turn and settles calls whose outcome is lost, unless another process has taken the turn over."""
        runtime = self.session._runtime
        lost = settle_lost_calls(self.session.log, self.number, runtime.at_work, resumes=ended.outcome == "interrupted")
        draft = runtime.pin_to_turn(EventDraft(ended, actor="runtime"))
        self.session.append(*before, *lost, draft, expect=expect, guard=runtime.guard)

    def _commit(self) -> None:
        """Ends the turn and stores the draft's patch. The data must still be what the draft started from."""
        patch = diff(self._base, self.session._data_type.dump(self._draft), "/data") if self._base is not None else []
        ended = ev.TurnEnded(output=plain(self.result))
        if not patch:
            self._end(ended)
            return

        def attempt() -> None:
            seen = self.session.log.head().seq
            if not equal(self.session.log.state(seen)["data"], self._base):
                raise self._draft_conflict(seen)
            patched = self.session._runtime.flow.draft(ev.StatePatched(patch=copy(patch)))
            self._end(ended, patched, expect=seen)

        retry_on_moved_head(self.session.log.id, f"to end turn @{self.number} of", attempt)

    def _draft_conflict(self, seq: Seq) -> ConflictError:
        return ConflictError(
            f"the data of {self.session.id} was changed by another writer while turn @{self.number} worked on its"
            " draft. The turn is recorded as interrupted and its draft dropped.",
            kind="draft-conflict",
            hint="run it again: it continues, and no call is repeated; or use session.patch() for small changes",
            head_seq=seq,
        )


# Turns without a `with`, for surfaces: one process may start a turn and another end it.


def start_turn(
    session: Session[Any],
    user: Value = None,
    *,
    source: str = "",
    trust: Trust = "trusted",
    role: str = "user",
    actor: str = "user",
    hold: TurnHold | None = None,
) -> int:
    """Starts a turn and returns its number. A turn that was left open is first recorded as interrupted; if its process
    is alive, the call is refused. With a `hold`, which the caller keeps until the turn ends, this process owns the
    turn. `actor` says who gave the input: an agent that repeats what it was asked is not the user."""
    log, runtime, settled = session.log, session._runtime, []
    started = ev.TurnStarted(input=user, holder=hold.text if hold is not None else "")
    if log.part("turn")["status"] == "open":
        refuse_if_leased(runtime)
        settled = settle_pending(log, end_of_holder(log))
    opening: list[ev.Event | EventDraft] = [EventDraft(started, source=source, trust=trust)]
    if user is not None:
        opening.append(EventDraft(ev.MessageAdded(role=role, content=user), actor=actor, source=source, trust=trust))
    runtime.flow.new_turn()
    session.append(*settled, *opening)
    number: int = log.part("turn")["number"]
    return number


def end_turn(session: Session[Any], outcome: TurnOutcome = "completed", *, why: str = "") -> Head:
    """Ends the turn that `start_turn` began."""
    return session.append(EventDraft(ev.TurnEnded(outcome=outcome, why=why), actor="runtime"))
