"""A turn as a context manager: from an input to the agent's rest.

A clean exit makes the draft's changes one patch and ends the turn, in one durable commit. An exception ends it as
failed, with the error recorded and the draft dropped, and goes on unchanged. Ctrl-C, cancellation and other
BaseExceptions end it as interrupted. If the process dies, the next turn of the session first records that this one
was interrupted.

A turn is not a transaction: what is recorded inside it is durable at once. Only the draft waits for the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from wakelog.errors import ConflictError, WakelogError
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import Draft
from wakelog.model.values import Value
from wakelog.runtime.ambient import enter_session
from wakelog.runtime.outcome import STOPS
from wakelog.session.notebook import turn_html
from wakelog.state.diff import diff
from wakelog.state.patch import copy, equal

if TYPE_CHECKING:
    from wakelog.session.session import Resume, Session

S = TypeVar("S")
R = TypeVar("R")
LARGE_DRAFT_BYTES = 1 << 20
_COMMIT_TRIES = 50


class Turn(Generic[S]):
    """One turn of a session. Use it in a `with` (or `async with`)."""

    def __init__(self, session: Session[S], opening: list[ev.Event | Draft], *, resume: Resume = "never") -> None:
        self.session = session
        self._resume: Resume = resume
        self._outer: Any = None
        self.number = 0
        self.attempt = 1
        self._opening = opening
        self._base: dict[str, Value] | None = None
        self._draft: Any = None

    @property
    def data(self) -> S:
        """A draft of the session's own data. Its changes become one patch when the turn ends well."""
        if self._base is None:
            self._base = self.session.log.state()["data"]
            if len(msgspec.json.encode(self._base)) > LARGE_DRAFT_BYTES:
                warnings.warn("the data is over 1 MB and a draft costs all of it; use session.patch()", stacklevel=2)
            self._draft = self.session.data_type.load(self._base)
        return self._draft  # type: ignore[no-any-return]

    @data.setter
    def data(self, value: S) -> None:
        if self._base is None:
            self._base = self.session.log.state()["data"]
        self._draft = value

    def _repr_html_(self) -> str:
        return turn_html(self)

    def __enter__(self) -> Turn[S]:
        self.number, self.attempt = self.session.begin_turn(self, self._opening, self._resume)
        self._outer = enter_session(self.session)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._commit()
            elif isinstance(error, WakelogError) and error.kind in STOPS:
                self._end(ev.TurnEnded(outcome="interrupted", why=error.message))
            elif isinstance(error, Exception):
                failure = ev.Failure(type(error).__name__, str(error)[:2000])
                self._end(ev.TurnEnded(outcome="failed", error=failure))
            else:
                self._end(ev.TurnEnded(outcome="interrupted", why=type(error).__name__))
        finally:
            self.session.finish_turn(self)
            enter_session(self._outer)

    async def __aenter__(self) -> Turn[S]:
        try:
            await self.session.aio.call_to_the_end(self.__enter__)
            # Entering took place in a worker thread, which has its own idea of what is around it.
            self._outer = enter_session(self.session)
            return self
        except BaseException as error:
            # Cancelled while it began: Python will not call __aexit__, and the turn must not stay open.
            if self.number:
                await self.session.aio.call_to_the_end(self.__exit__, type(error), error, None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # To the end: a cancelled turn is recorded as such before the cancellation goes on.
        try:
            await self.session.aio.call_to_the_end(self.__exit__, kind, error, trace)
        finally:
            enter_session(self._outer)

    def model(self, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
        """Calls a model and records it. See `Session.model`."""
        return self.session.model(function, *args, **kwargs)

    async def amodel(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """The same for a client that is awaited."""
        return await self.session.amodel(function, *args, **kwargs)

    def _end(self, ended: ev.TurnEnded) -> None:
        self.session.append(Draft(ended, actor="runtime"))

    def _commit(self) -> None:
        """Ends the turn with the draft's patch on the head it belongs to: the data must be what the draft started
        from."""
        ended = Draft(ev.TurnEnded(), actor="runtime")
        if self._base is None:
            self.session.append(ended)
            return
        patch = diff(self._base, self.session.data_type.dump(self._draft), "/data")
        if not patch:
            self.session.append(ended)
            return
        for _ in range(_COMMIT_TRIES):
            seen = self.session.log.head().seq
            if not equal(self.session.log.state(seen)["data"], self._base):
                break
            try:
                self.session.append(ev.StatePatched(patch=copy(patch)), ended, expect=seen)
                return
            except ConflictError as exc:
                if exc.kind != "head-moved":
                    raise
        raise self._lost(seen)

    def _lost(self, seq: Seq) -> ConflictError:
        error = ConflictError(
            f"the data of {self.session.id} was changed by another writer while turn @{self.number} worked on its"
            " draft. The turn is recorded as failed and its draft dropped.",
            kind="draft-conflict",
            hint="run the turn again, or use session.patch() for small changes",
            head_seq=seq,
        )
        failure = ev.Failure("draft-conflict", error.message)
        self._end(ev.TurnEnded(outcome="failed", error=failure))
        return error
