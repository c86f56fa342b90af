"""A session: the public verbs over one log.

Each verb is one durable commit, or one read. Nothing here knows how bytes are stored; nothing below knows what people
want to do. Here are turns, calls, the typed part, and the session's life. What records one event is in records.py, what
only reads in reads.py. What belongs together has a namespace: `session.calls`, `session.context`, `session.files`,
`session.budget`, `session.monitors`, `session.trust`.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, cast, get_args, overload

import msgspec

from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError
from wakelog.log import Log
from wakelog.log.removal import delete
from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.ids import Seq, fork_id
from wakelog.model.names import check_name
from wakelog.model.records import EventDraft, Head
from wakelog.model.values import Value
from wakelog.runtime.ambient import answering, replaying
from wakelog.runtime.models import model_call, usage_cost
from wakelog.runtime.outcome import Outcome
from wakelog.runtime.policy import Policy
from wakelog.runtime.resume import Resume, check_turn_id, open_turn, settle_pending
from wakelog.runtime.streams import unwrapped
from wakelog.runtime.tools import CallRequest, Policies, Tool, bad_arguments, bound, drive, refused, unknown_tool
from wakelog.runtime.values import revive
from wakelog.session.base import Base, S, Where, check_text
from wakelog.session.budget import Monitors, SessionBudget
from wakelog.session.calls import SessionCalls
from wakelog.session.context import SessionContext
from wakelog.session.data import DataType
from wakelog.session.files import Files
from wakelog.session.notebook import session_html
from wakelog.session.reads import SessionReads
from wakelog.session.records import Records
from wakelog.session.trust import SessionTrust
from wakelog.session.turn import Turn
from wakelog.session.undo import Project, Undone, project_of, redo, undo
from wakelog.state.patch import resolve

if TYPE_CHECKING:
    from wakelog.compare.adoption_preview import AdoptionPreview
    from wakelog.diff.rewind_preview import RewindPreview
    from wakelog.session.aio import Aio
    from wakelog.session.attempt import Attempt, Errors

P = ParamSpec("P")
R = TypeVar("R")
MODEL = Policy(effect="model", cost=usage_cost)


class Session(Records[S], SessionReads[S]):
    """One append-only history with its state. Get one from a store."""

    def __init__(self, log: Log, *, name: str = "", data_type: DataType[S] | None = None) -> None:
        super().__init__(log, name=name, data_type=data_type)
        self._turn: Turn[S] | None = None
        self._turn_lock = threading.Lock()

    def __repr__(self) -> str:
        head = self.head
        return f"<session {self.name or self.id} at event {head.seq}, turn @{head.turn}, {head.status}>"

    def _repr_html_(self) -> str:
        return session_html(self)

    @functools.cached_property
    def aio(self) -> Aio:
        """The same verbs, to be awaited."""
        from wakelog.session.aio import Aio

        return Aio(self)

    @functools.cached_property
    def calls(self) -> SessionCalls:
        """Pending calls: approve, deny, reconcile, answer, abandon, recover."""
        return SessionCalls(self)

    @functools.cached_property
    def context(self) -> SessionContext:
        """The model's window: window, evict, restore, pin, compact, expand."""
        return SessionContext(self)

    @functools.cached_property
    def files(self) -> Files:
        """Files on disk: capture, modified, diff, restore."""
        return Files(self)

    @functools.cached_property
    def budget(self) -> SessionBudget:
        """Limits and spending: set, limit, spent, left, cost."""
        return SessionBudget(self)

    @functools.cached_property
    def monitors(self) -> Monitors:
        """Rules over what is recorded, and flags: add, flag, clear_flag."""
        return Monitors(self)

    @functools.cached_property
    def trust(self) -> SessionTrust:
        """What rests on what: taint, resting_on, endorse, invalidate."""
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
        """A turn, to be used in a `with`. `user` is its input and becomes the first message.

        If the last turn was cut (a crash, Ctrl-C, a stop by the runtime) and had the same input, this continues it as
        its next attempt: calls that were made are answered from the record. `resume="always"` does so whatever the
        input, `"never"` begins a new turn. With `retry`, the last turn is tried again from its start, calling
        everything anew.

        With an `id`, the turn is done once. If it is completed, nothing runs again: `turn.is_done` says so, and calls
        are answered from the record. If it was cut or failed, this continues it, whatever its input.
        """
        check_text(role, "a message's role")
        if resume not in get_args(Resume):
            raise InvalidInputError(
                f"{resume!r} is not a way to resume", kind="bad-resume", hint=f"one of {', '.join(get_args(Resume))}"
            )
        said = []
        if id:
            check_turn_id(id)
            if retry or resume == "never":
                raise InvalidInputError(
                    "a turn with an id is continued, not begun anew",
                    kind="bad-turn-id",
                    hint="give it a new id; or leave the id out to try the last turn again",
                )
        if user is not None:
            said = [EventDraft(ev.MessageAdded(role=role, content=user), actor="user", source=source, trust=trust)]
        started = ev.TurnStarted(input=user, retry=retry, id=id)
        return Turn(self, started, said, resume="never" if retry else resume)

    def run_turn(self, id: str, function: Callable[[Turn[S]], R], user: Value = None, **how: Any) -> R:
        """Runs `function(turn)` in a turn of this id, once: when the turn is completed, the function is not called, and
        what it returned is given from the record. The other keywords are those of `turn`."""
        check_turn_id(id)
        with self.turn(user, id=id, **how) as turn:
            if turn.is_done:
                return cast("R", revive(function, turn.result))
            turn.result = result = function(turn)
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
        """Tries a turn up to `times` times: `for attempt in session.attempts(3, on=TimeoutError): with attempt as
        turn: …`. Each try is an attempt of its own, @5.1, @5.2; the last one's error is raised.

        A try calls everything anew: give calls with effects a key, and they are answered from the record. There is no
        pause between tries: sleep in the loop if the other side needs one.
        """
        from wakelog.session.attempt import attempts

        return attempts(lambda again: self.turn(user, source=source, trust=trust, role=role, retry=again), times, on)

    def _begin_turn(
        self, turn: Turn[S], started: ev.TurnStarted, said: list[EventDraft], resume: Resume = "never"
    ) -> tuple[int, int]:
        """Starts a turn; one that a dead process left open is first recorded as interrupted."""
        started, resume = self._opening(started, resume)
        replay = replaying()
        if replay is not None and replay is not self._runtime:
            replay.meets(self)
        with self._turn_lock:
            if self._turn is not None:
                raise NotAllowedError(
                    f"turn @{self._turn.number} of {self.name or self.id} is still open in this process",
                    kind="turn-open",
                    hint="end it first, or fork the session to work in parallel",
                )
            self._turn = turn
        try:
            self._runtime.turn = open_turn(self._runtime, started, said, resume)
        except BaseException:
            self._finish_turn(turn)
            raise
        return self._runtime.turn.within

    def _opening(self, started: ev.TurnStarted, resume: Resume) -> tuple[ev.TurnStarted, Resume]:
        """What a turn begins with; a replay has the recorded turns begin."""
        return started, resume

    def _finish_turn(self, turn: Turn[S]) -> None:
        with self._turn_lock:
            if self._turn is turn:
                self._turn = None
                if self._runtime.turn is not None and self._runtime.turn.hold is not None:
                    self._runtime.turn.hold.let_go()
                self._runtime.turn = None

    # Calls

    @overload
    def tool(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def tool(self, /, *, name: str = "", **policy: Unpack[Policies]) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
    def tool(self, function: Any = None, /, *, name: str = "", **policy: Any) -> Any:
        """Decorates a function, sync or async: each call of it is recorded here, and answered from the record where it
        was made before. Without an `effect` it is taken to be external: never repeated without asking.

        The keywords are those of `Policy`: effect, timeout_s, retry, retry_on, backoff_s, key, uncertain, probe,
        approval, trust, source, redact, summary, cost.
        """

        def decorate(target: Callable[P, R]) -> Callable[P, R]:
            tool = Tool(target, Policy(**policy), name)
            self._runtime.tools[tool.name] = tool
            return cast("Callable[P, R]", bound(tool, lambda: answering(self)))

        return decorate if function is None else decorate(function)

    def call(self, tool: str | Callable[..., Any], input: Mapping[str, Any] | None = None, *, id: str = "") -> Outcome:
        """Calls a tool by name, for loops that dispatch what a model asked for. A tool's error is in the outcome,
        typed, not raised; so is a tool that does not exist (`unknown-tool`), or does not take that input
        (`bad-arguments`), which are recorded as failed calls. `id`, such as the model's tool-call id, makes it the same
        call whenever it is asked for again."""
        given = self._given(tool, input, id)
        if given.tool.is_async:
            raise InvalidInputError(
                f"{given.tool.name} is a coroutine function", kind="async-tool", hint="await session.aio.call(…)"
            )
        outcome: Outcome = drive(answering(self).conduct(given))
        return outcome

    def _given(self, tool: str | Callable[..., Any], input: Mapping[str, Any] | None, id: str) -> CallRequest:
        if isinstance(tool, str):
            found = self._runtime.tools.get(tool)
            if found is None:
                return refused(tool, input, id, unknown_tool(tool, self._runtime.tools))
        elif callable(tool):
            found = getattr(tool, "tool", None) or Tool(tool, Policy())
        else:
            raise InvalidInputError(
                f"a tool is called by its name or passed as a function, not as {type(tool).__name__}", kind="bad-tool"
            )
        try:
            arguments = dict(input or {})
            named = found.arguments((), arguments)
        except (TypeError, ValueError) as exc:
            return refused(found.name, input, id, bad_arguments(found, exc))
        return CallRequest(found, named, functools.partial(found.function, **arguments), action=id)

    def model(
        self, function: Callable[..., R], /, *args: Any, context: Any = None, policy: Policy = MODEL, **kwargs: Any
    ) -> R:
        """Calls a model client's function and records it: model, parameters, hash of what it was shown, usage. After a
        crash the recorded answer is given, and nothing is paid twice.

        A stream (`stream=True`, a generator) is passed on as it comes and recorded when it ends: as succeeded when it
        was read to its end, as failed, with what had come, when it broke or was left. Given again it is a stream again.

        `context` is what `session.context.window()` gave; without it the model is taken to have seen all in view.
        """
        runtime = answering(self)
        given = model_call(runtime.flow, function, args, kwargs, context, policy, self._prices)
        return cast("R", unwrapped(drive(runtime.conduct(given)), policy.retry_on))

    # The typed part

    @property
    def data(self) -> S:
        """The session's own data now, typed; a copy. Change it in a turn's draft or with `patch`."""
        return self._data_type.load(self.log.state()["data"])

    def patch(self, patch: list[dict[str, Value]], *, why: str = "", expect: Seq | None = None) -> Seq:
        """Changes `data` by a JSON Patch (RFC 6902, paths below /data), checked against its type. O(patch) to store.

        The patch is meant for the state it was made on: another writer in between is a ConflictError.
        """
        seen = self.head.seq if expect is None else expect
        held, delta = resolve({"data": self.log.state(seen)["data"]}, patch)
        if not isinstance(held["data"], dict):
            raise InvalidInputError("data must stay an object", kind="bad-data")
        self._data_type.load(held["data"])
        return self.append(self._runtime.flow.draft(ev.StatePatched(patch=delta, why=why)), expect=seen).seq

    # Its life

    def rewind(self, to: Where, *, why: str = "") -> Head:
        """Moves the view back by appending. Goal, decisions, facts, working set and data return to what they were;
        status, turn numbers, money, flags, dead ends and open calls do not. `undo` takes it back."""
        return self.log.rewind(self.seq(to), why=why)

    def preview_rewind(self, to: Where) -> RewindPreview:
        """What `rewind` would do, without doing it: what returns, what stays, and which effects cannot be undone.
        Raises as the rewind would."""
        from wakelog.diff.rewind_preview import preview_rewind

        return preview_rewind(self.log, self.seq(to))

    def undo(self, *, files: bool = True, force: bool = False, roots: Sequence[str] = ()) -> Undone:
        """Takes back the newest rewind that was not yet undone; repeated, walks further back. Where it brought files
        back, they go back as well, but for what somebody edited since (`force`: that too, with a copy kept). `roots`
        are the folders to do it in, the project's first; by default where files were captured."""
        return undo(self.log, functools.partial(self._project, force, roots) if files else None)

    def redo(self, *, files: bool = True, force: bool = False, roots: Sequence[str] = ()) -> Undone:
        """Takes back the newest undo, as long as nothing else was rewound since; repeated, walks forward."""
        return redo(self.log, functools.partial(self._project, force, roots) if files else None)

    def _project(self, force: bool, roots: Sequence[str]) -> Project:
        return msgspec.structs.replace(project_of(self.log, self._runtime.capture, roots), force=force)

    def pause(self, *, why: str = "") -> Head:
        """Nothing new takes effect until `unpause`; outcomes of what began before are still accepted."""
        return self.append(EventDraft(ev.SessionPaused(why=why), actor="user"))

    def unpause(self, *, host: str = "", why: str = "") -> Head:
        """Continues a paused session."""
        return self.append(EventDraft(ev.SessionResumed(host=host, why=why), actor="user"))

    def end(self, outcome: str = "completed", *, why: str = "") -> Head:
        """Ends the session. Open calls are settled first: what never started is abandoned, the rest is uncertain."""
        settled = settle_pending(self.log, "the session was closed", closes=True)
        return self.append(*settled, EventDraft(ev.SessionClosed(outcome=outcome, why=why), actor="user"))

    def reopen(self, *, why: str = "") -> Head:
        return self.append(EventDraft(ev.SessionReopened(why=why), actor="user"))

    def archive(self, *, why: str = "") -> Head:
        """Puts an ended session away; `reopen` brings it back."""
        return self.append(EventDraft(ev.SessionArchived(why=why), actor="user"))

    def take_lease(self, holder: str, *, ttl_s: float = 30.0, force: bool = False) -> int:
        """Claims the session for one writer. Turns, calls and what is recorded through this object then count only
        while nobody else has taken it over; to `append`, pass the epoch it returns as `guard`."""
        check_text(holder, "a lease's holder")
        if ttl_s <= 0:
            raise InvalidInputError(f"a lease holds for some seconds, not {ttl_s}", kind="bad-lease")
        self._runtime.guard = self.log.take_lease(holder, ttl_s=ttl_s, force=force)
        return self._runtime.guard

    def release_lease(self, epoch: int) -> Head:
        if self._runtime.guard == epoch:
            self._runtime.guard = None
        return self.log.release_lease(epoch)

    # Forks

    def fork(self, at: Where = None, *, name: str = "", why: str = "") -> Session[S]:
        """A new session sharing the history up to a point. A name is bound to it, and must be free."""
        engine = self.log.engine
        if name and engine.find(check_name(name)) is not None:
            raise _name_taken(name)
        session = fork_id(self.id, os.urandom(5))
        log = self.log.fork(self.seq(at), name=name, why=why, session=session)
        if name and engine.claim(name, session) != session:
            delete(log, why=f"the name {name} was taken meanwhile")
            raise _name_taken(name)
        child: Session[S] = Session(log, name=name, data_type=self._data_type)
        child.store = self.store
        return child

    def adopt(self, fork: Base[Any], at: Where = None, *, why: str = "", force: bool = False) -> Head:
        """Takes a fork's result, as it is or was `at` a point of it, back into this session, in one commit.

        The view goes back to the fork point; goal, facts, decisions, working set, artefacts and data become the
        fork's, and its messages follow. The fork stays as it is and may be deleted. ConflictError when this session has
        gone on since, unless forced: nothing is lost, and `undo` takes it back.
        """
        return self.log.adopt(fork.log, None if at is None else fork.seq(at), why=why, force=force)

    def preview_adopt(self, fork: Base[Any], at: Where = None, *, force: bool = False) -> AdoptionPreview:
        """What `adopt` would do, without doing it: what is copied, what changes, what leaves the view. Raises as the
        adoption would."""
        from wakelog.compare.adoption_preview import preview_adoption

        return preview_adoption(self.log, fork.log, None if at is None else fork.seq(at), force=force)


def _name_taken(name: str) -> ConflictError:
    return ConflictError(f"the name {name!r} is taken", kind="name-taken", hint="choose another name")
