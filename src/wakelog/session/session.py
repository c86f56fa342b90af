"""A session: the public verbs over one log.

Each verb makes one durable commit or one read. This file holds turns, calls, the session's data, going back and
forks. Verbs that record one event are in records.py; verbs that only read are in reads.py. Related verbs share a
namespace: `session.calls`, `.context`, `.files`, `.budget`, `.monitors`, `.trust`, `.life` and `.history`. How bytes
are stored is known only to the rooms below.

Verbs import what they need when they are called. Most programs use a few verbs, and commands that only read start
faster.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, get_args, overload

import msgspec

from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError
from wakelog.model import events as ev
from wakelog.model.ids import Seq, fork_id
from wakelog.model.late_value import LateValue
from wakelog.model.names import check_name
from wakelog.model.records import EventDraft, Head
from wakelog.model.values import Value
from wakelog.runtime.ambient import current_replay, runtime_for
from wakelog.session.base import Base, S, Where, check_session, check_text
from wakelog.session.data import DataType
from wakelog.session.reads import SessionReads
from wakelog.session.records import Records
from wakelog.state.patch import resolve

if TYPE_CHECKING:
    from typing import Unpack

    from wakelog.log import Log
    from wakelog.model.events import Trust
    from wakelog.runtime.outcome import Outcome
    from wakelog.runtime.policy import Policy
    from wakelog.runtime.resume import Resume
    from wakelog.runtime.tools import CallRequest, Policies
    from wakelog.session.aio import Aio
    from wakelog.session.attempt import Attempt, Errors
    from wakelog.session.budget import Monitors, SessionBudget
    from wakelog.session.calls import SessionCalls
    from wakelog.session.context import SessionContext
    from wakelog.session.files import Files
    from wakelog.session.history import SessionHistory
    from wakelog.session.life import SessionLife
    from wakelog.session.trust import SessionTrust
    from wakelog.session.turn import Turn
    from wakelog.session.undo import Project, Undone

P = ParamSpec("P")
R = TypeVar("R")


class Session(Records[S], SessionReads[S]):
    """One append-only history with its state. Get one from a store."""

    def __init__(self, log: Log, *, name: str = "", data_type: DataType[S] | None = None) -> None:
        super().__init__(log, name=name, data_type=data_type)
        self._turn: Turn[S] | None = None
        self._turn_lock = threading.Lock()

    def __repr__(self) -> str:
        head = self.head
        return f"<session {self} at event {head.seq}, turn @{head.turn}, {head.status}>"

    def _repr_html_(self) -> str:
        from wakelog.session.notebook import session_html

        return session_html(self)

    @LateValue
    def aio(self) -> Aio:
        """The same verbs as coroutines: `await session.aio.diff("@2")`."""
        from wakelog.session.aio import Aio

        return Aio(self)

    @LateValue
    def calls(self) -> SessionCalls:
        """Lists and settles calls: table, approve, deny, reconcile, answer, abandon, recover."""
        from wakelog.session.calls import SessionCalls

        return SessionCalls(self)

    @LateValue
    def context(self) -> SessionContext:
        """Manages the model's window: window, evict, restore, pin, compact, expand."""
        from wakelog.session.context import SessionContext

        return SessionContext(self)

    @LateValue
    def files(self) -> Files:
        """Records and restores files on disk: capture, modified, diff, restore."""
        from wakelog.session.files import Files

        return Files(self)

    @LateValue
    def budget(self) -> SessionBudget:
        """Sets limits and shows what was spent: set, limit, spent, left, cost."""
        from wakelog.session.budget import SessionBudget

        return SessionBudget(self)

    @LateValue
    def monitors(self) -> Monitors:
        """Runs rules over recorded events and raises flags: add, flag, clear_flag."""
        from wakelog.session.budget import Monitors

        return Monitors(self)

    @LateValue
    def life(self) -> SessionLife:
        """Changes the status, and claims the session for one writer: pause, unpause, end, cancel, reopen, archive,
        take_lease."""
        from wakelog.session.life import SessionLife

        return SessionLife(self)

    @LateValue
    def history(self) -> SessionHistory:
        """Examines what was recorded: blame, attempts, compare, bisect, recording, preview_rewind."""
        from wakelog.session.history import SessionHistory

        return SessionHistory(self)

    @LateValue
    def trust(self) -> SessionTrust:
        """Traces what each source influenced: taint, picture, endorse, invalidate."""
        from wakelog.session.trust import SessionTrust

        return SessionTrust(self)

    # Turns

    def turn(
        self,
        user: Value = None,
        *,
        source: str = "",
        trust: Trust = "trusted",
        retry: bool = False,
        resume: Resume = "auto",
        role: str = "user",
        id: str = "",
    ) -> Turn[S]:
        """Opens a turn: `with session.turn("fix the login") as turn:`. `user` is its input and becomes the first
        message.

        If the last turn was interrupted (a crash, Ctrl-C, a stop by the runtime) and had the same input, this continues
        it as its next attempt: calls that were already made are answered from the record. `resume="always"` continues
        it even if the input differs; `"never"` starts a new turn. With `retry`, the last turn runs again from its
        start, and all its calls are made again.

        With an `id`, the turn is done once. If a turn with that id is completed, nothing runs again: `turn.is_done` is
        true, and calls are answered from the record. If it was interrupted or failed, this continues it, even if the
        input differs.
        """
        from wakelog.runtime.resume import Resume, check_turn_id
        from wakelog.session.turn import Turn

        check_text(role, "a message's role")
        if resume not in get_args(Resume):
            raise InvalidInputError(
                f"{resume!r} is not a value of `resume`",
                kind="bad-resume",
                hint=f"one of {', '.join(get_args(Resume))}",
            )
        first_events = []
        if id:
            check_turn_id(id)
            if retry or resume == "never":
                raise InvalidInputError(
                    "a turn with an id is always continued, never started again",
                    kind="bad-turn-id",
                    hint="give it a new id; or leave the id out to try the last turn again",
                )
        if user is not None:
            message = ev.MessageAdded(role=role, content=user)
            first_events = [EventDraft(message, actor="user", source=source, trust=trust)]
        started = ev.TurnStarted(input=user, retry=retry, id=id)
        return Turn(self, started, first_events, resume="never" if retry else resume)

    def run_turn(self, id: str, function: Callable[[Turn[S]], R], user: Value = None, **how: Any) -> R:
        """Runs `function(turn)` once, in a turn with this id. If that turn is already completed, the function is not
        called, and its recorded result is returned. The other keywords are those of `turn`."""
        from wakelog.runtime.resume import check_turn_id
        from wakelog.runtime.values import storable

        check_turn_id(id)
        if inspect.iscoroutinefunction(function):
            name = getattr(function, "__name__", "it")
            raise InvalidInputError(
                f"{name} is a coroutine function", kind="async-tool", hint="await session.aio.run_turn(…)"
            )
        with self.turn(user, id=id, **how) as turn:
            if turn.is_done:
                from wakelog.runtime.values import revive

                return cast("R", revive(function, turn.result))
            result = function(turn)
            turn.result = storable(result, f"the result of turn {id!r}")
            return result

    def attempts(
        self,
        times: int = 3,
        *,
        on: Errors = Exception,
        user: Value = None,
        source: str = "",
        trust: Trust = "trusted",
        role: str = "user",
    ) -> Iterator[Attempt[S]]:
        """Tries a turn up to `times` times: `for attempt in session.attempts(3, on=TimeoutError): with attempt as turn:
        …`. Each try is recorded as an attempt: @5.1, @5.2. If the last one fails, its error is raised.

        Each try makes all its calls again. To avoid that for calls with effects, give them a key: then they are
        answered from the record. There is no pause between tries; sleep in the loop if you need one.
        """
        from wakelog.session.attempt import attempts

        return attempts(lambda again: self.turn(user, source=source, trust=trust, role=role, retry=again), times, on)

    def _begin_turn(
        self, turn: Turn[S], started: ev.TurnStarted, first_events: list[EventDraft], resume: Resume
    ) -> tuple[int, int]:
        """Starts a turn and returns its number and attempt. A turn that a dead process left open is first recorded as
        interrupted."""
        with self.log.one_look():
            return self._open_turn(turn, started, first_events, resume)

    def _open_turn(
        self, turn: Turn[S], started: ev.TurnStarted, first_events: list[EventDraft], resume: Resume
    ) -> tuple[int, int]:
        from wakelog.runtime.resume import open_turn

        replay = current_replay()
        if replay is not None and replay is not self._runtime:
            replay.meets(self)
        if replay is None and self._git_place.folder and (new := self._git_place.changes(self.log.part("labels"))):
            first_events = [*first_events, EventDraft(ev.LabelsSet(labels=new), actor="runtime")]
        with self._turn_lock:
            if self._turn is not None and not self._turn.is_over:
                number = self._turn.number
                what = f"turn @{number} of {self} is still open" if number else f"a turn of {self} is just being opened"
                raise NotAllowedError(
                    f"{what} in this process",
                    kind="turn-open",
                    hint="end it first, or fork the session to work in parallel",
                )
            self._turn = turn
        try:
            self._runtime.turn = open_turn(self._runtime, started, first_events, resume)
        except BaseException:
            self._finish_turn(turn)
            raise
        return self._runtime.turn.within

    def _finish_turn(self, turn: Turn[S]) -> None:
        with self._turn_lock:
            if self._turn is turn:
                self._turn = None
                if self._runtime.turn is not None and self._runtime.turn.hold is not None:
                    self._runtime.turn.hold.release()
                self._runtime.turn = None

    # Calls

    @overload
    def tool(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def tool(self, /, *, name: str = "", **policy: Unpack[Policies]) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
    def tool(self, function: Any = None, /, *, name: str = "", **policy: Any) -> Any:
        """Decorates a function, sync or async, so that its calls are recorded in this session. A call that was already
        made is answered from the record. Without an `effect` the tool counts as external: it is never repeated without
        asking.

        The keywords are those of `Policy`: effect, timeout_s, retry, retry_on, backoff_s, key, uncertain, probe,
        approval, trust, source, redact, summary, cost.
        """
        from wakelog.runtime.policy import Policy
        from wakelog.runtime.tools import Tool, record_calls

        def decorate(target: Callable[P, R]) -> Callable[P, R]:
            tool = Tool(target, Policy(**policy), name)
            self._runtime.tools[tool.name] = tool
            return cast("Callable[P, R]", record_calls(tool, lambda: runtime_for(self)))

        return decorate if function is None else decorate(function)

    def call(self, tool: str | Callable[..., Any], input: Mapping[str, Any] | None = None, *, id: str = "") -> Outcome:
        """Calls a tool by name, for loops that run the calls a model asked for. Errors are not raised: they are in the
        outcome, typed. That includes an unknown tool (`unknown-tool`) and wrong input (`bad-arguments`); both are
        recorded as failed calls. `id`, such as the model's tool-call id, identifies the call: when it is made again
        with the same id, it is answered from the record."""
        from wakelog.runtime.driver import drive

        request = self._make_request(tool, input, id)
        if request.tool.is_async:
            raise InvalidInputError(
                f"{request.tool.name} is a coroutine function", kind="async-tool", hint="await session.aio.call(…)"
            )
        outcome: Outcome = drive(runtime_for(self).run_call(request))
        return outcome

    def _make_request(self, tool: str | Callable[..., Any], input: Mapping[str, Any] | None, id: str) -> CallRequest:
        from wakelog.runtime.policy import Policy
        from wakelog.runtime.tools import CallRequest, Tool, bad_arguments, refused_call, unknown_tool

        if isinstance(tool, str):
            found = self._runtime.tools.get(tool)
            if found is None:
                return refused_call(tool, input, id, unknown_tool(tool, self._runtime.tools))
        elif callable(tool):
            found = getattr(tool, "tool", None) or Tool(tool, Policy())
        else:
            raise InvalidInputError(
                f"a tool is called by its name or passed as a function, not as {type(tool).__name__}", kind="bad-tool"
            )
        if not isinstance(id, str):
            raise InvalidInputError(
                f"the id of a call is a text, not {id!r}"[:200], kind="bad-event", hint="pass str(…), or leave it out"
            )
        try:
            if input and not isinstance(input, Mapping):
                raise TypeError(f"its arguments are {type(input).__name__}, not an object of names and values")
            arguments = dict(input or {})
            named = found.arguments((), arguments)
        except (TypeError, ValueError) as exc:
            return refused_call(found.name, input, id, bad_arguments(found, exc))
        try:
            key = None if id else found.key_of(named)
        except InvalidInputError:
            raise
        except Exception as exc:  # the key function takes other types of arguments than the model gave
            return refused_call(found.name, input, id, bad_arguments(found, exc))
        return CallRequest(found, named, functools.partial(found.function, **arguments), action=id, key=key)

    def model(
        self,
        function: Callable[..., R],
        /,
        *args: Any,
        context: Any = None,
        policy: Policy | None = None,
        **kwargs: Any,
    ) -> R:
        """Calls a model client's function and records model, parameters, usage and a hash of what the model was shown.
        After a crash the recorded answer is returned, so you do not pay twice.

        A stream (`stream=True`, a generator) is passed on as it arrives and recorded when it ends. If it was read to
        its end, the call succeeded. If it broke, or was not read to its end, the call failed, and the parts that
        arrived are recorded. Answered from the record, it is a stream again.

        `context` is the result of `session.context.window()`. Without it, the model counts as having seen everything in
        view.
        """
        from wakelog.runtime.driver import drive
        from wakelog.runtime.models import model_call
        from wakelog.runtime.streams import unwrap_outcome

        runtime = runtime_for(self)
        request = model_call(runtime.flow, function, args, kwargs, context, policy, self._prices)
        return cast("R", unwrap_outcome(drive(runtime.run_call(request)), request.tool.policy.retry_on))

    # Data

    @property
    def data(self) -> S:
        """Returns a typed copy of the session's own data. To change the data, use a turn's draft or `patch`."""
        return self._data_type.load(self.log.state()["data"])

    def patch(self, patch: list[dict[str, Value]], *, why: str = "", expect: Seq | None = None) -> Seq:
        """Changes `data` with a JSON Patch (RFC 6902, paths below /data) and checks it against its type. Only the patch
        is stored.

        Raises ConflictError if another writer changed the session since the state that the patch was made for.
        """
        seen = self.head.seq if expect is None else expect
        held, delta = resolve({"data": self.log.state(seen)["data"]}, patch)
        if not isinstance(held["data"], dict):
            raise InvalidInputError("data must stay an object", kind="bad-data")
        self._data_type.load(held["data"])
        return self.append(self._runtime.flow.draft(ev.StatePatched(patch=delta, why=why)), expect=seen).seq

    # Going back

    def rewind(self, to: Where, *, why: str = "") -> Head:
        """Goes back to an earlier point. The rewind is an event, so no history is lost. Goal, decisions, facts, working
        set and data return to what they were. Status, turn numbers, spending, flags, dead ends and open calls do not.
        `undo` reverts it."""
        return self.log.rewind(self.seq(to), why=why)

    def undo(self, *, files: bool = True, force: bool = False, roots: Sequence[str] = ()) -> Undone:
        """Reverts the newest rewind that was not undone yet; repeated, it goes further back. Files that the rewind
        restored are reverted too, except those that somebody edited since (`force` reverts those too, and keeps a
        copy). `roots` are the folders to work in, the project's first; by default, where files were captured."""
        from wakelog.session.undo import undo

        return undo(self.log, functools.partial(self._project, force, roots) if files else None)

    def redo(self, *, files: bool = True, force: bool = False, roots: Sequence[str] = ()) -> Undone:
        """Reverts the newest undo, unless something was rewound since; repeated, it goes further forward."""
        from wakelog.session.undo import redo

        return redo(self.log, functools.partial(self._project, force, roots) if files else None)

    def _project(self, force: bool, roots: Sequence[str]) -> Project:
        from wakelog.session.undo import project_of

        return msgspec.structs.replace(project_of(self.log, self._runtime.capture, roots), force=force)

    # Forks

    def fork(self, at: Where = None, *, name: str = "", why: str = "") -> Session[S]:
        """Creates a new session that shares the history up to a point. `name` must not be in use."""
        engine = self.log.engine
        if name and engine.find(check_name(name)) is not None:
            raise _name_taken(name)
        session = fork_id(self.id, os.urandom(5))
        log = self.log.fork(self.seq(at), name=name, why=why, session=session)
        if name and engine.claim(name, session) != session:
            from wakelog.log.removal import delete

            delete(log, why=f"the name {name} was taken meanwhile")
            raise _name_taken(name)
        child: Session[S] = Session(log, name=name, data_type=self._data_type)
        child.store, child._git_place = self.store, self._git_place
        return child

    def adopt(self, fork: Base[Any], at: Where = None, *, why: str = "", force: bool = False) -> Head:
        """Takes over a fork's state, as it is now or `at` a point of it, in one commit.

        The view goes back to the fork point. Goal, facts, decisions, working set, artefacts and data become the fork's,
        and its messages follow. The fork itself does not change and may be deleted. Raises ConflictError if this
        session has new events since the fork point, unless `force` is given. Nothing is lost: `undo` reverts it.
        """
        check_session(fork)
        return self.log.adopt(fork.log, None if at is None else fork.seq(at), why=why, force=force)


def _name_taken(name: str) -> ConflictError:
    return ConflictError(f"the name {name!r} is taken", kind="name-taken", hint="choose another name")
