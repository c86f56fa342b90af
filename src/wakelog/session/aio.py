"""`session.aio`: the verbs of a session as coroutines.

Each runs the plain method in a worker thread and keeps its signature for type checkers. Verbs that only append need no
thread if the engine can report an answer to a task (`TaskRecords`). `call`, `model` and `run_turn` take coroutine
functions and await them. For a turn, write `async with session.turn(…)`.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.ambient import runtime_for
from wakelog.runtime.bridge import in_thread, on_asyncio
from wakelog.runtime.driver import drive_async
from wakelog.runtime.models import model_call
from wakelog.runtime.outcome import Outcome
from wakelog.runtime.policy import Policy
from wakelog.runtime.resume import check_turn_id
from wakelog.runtime.streams import unwrap_outcome
from wakelog.runtime.task_append import append_in_task, record_in_task
from wakelog.runtime.values import revive, storable
from wakelog.session.base import Base
from wakelog.session.budget import Monitors, SessionBudget
from wakelog.session.calls import SessionCalls
from wakelog.session.context import SessionContext
from wakelog.session.files import Files
from wakelog.session.history import SessionHistory
from wakelog.session.life import SessionLife
from wakelog.session.records import Records
from wakelog.session.session import Session
from wakelog.session.trust import SessionTrust

if TYPE_CHECKING:
    from wakelog.session.turn import Turn


class TaskRecords(Records[Any]):
    """The verbs that only append. They end with what `_store` or `_store_one` returns: here a coroutine, so they return
    one too."""

    def __init__(self, session: Base[Any]) -> None:
        super().__init__(session.log, name=session.name)
        self._runtime = session._runtime

    def _store(
        self, events: Sequence[ev.Event | EventDraft], expect: Seq | None, commit_id: str, guard: int | None
    ) -> Any:
        if commit_id:  # which may have been used before, and that has to be asked
            return in_thread(self.log.append, *events, expect=expect, commit_id=commit_id, guard=guard)
        return append_in_task(self.log, events, expect, guard)

    def _store_one(self, draft: EventDraft, guard: int | None) -> Any:
        return record_in_task(self.log, draft, guard)


P = ParamSpec("P")
R = TypeVar("R")


class AsyncVerb(Generic[P, R]):
    """One verb as a coroutine, with the same signature."""

    def __init__(self, verb: Callable[Concatenate[Any, P], R]) -> None:
        self._verb = verb

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, verbs: AwaitedVerbs, owner: type | None = None) -> Callable[P, Coroutine[Any, Any, R]]:
        method: Callable[P, R] = getattr(verbs._target, self._name)

        @functools.wraps(self._verb)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> R:
            return await in_thread(method, *args, **kwargs)

        return awaited


class RecordingVerb(AsyncVerb[P, R]):
    """A verb that reads nothing before it appends. Where the engine can, it runs in the task itself."""

    def __get__(self, verbs: AwaitedVerbs, owner: type | None = None) -> Callable[P, Coroutine[Any, Any, R]]:
        session: Session[Any] = verbs._target
        if not (on_asyncio() and session.log.takes_tasks) or session._is_answering:
            return super().__get__(verbs, owner)
        return getattr(TaskRecords(session), self._name)  # type: ignore[no-any-return]


class AwaitedVerbs:
    """The verbs of one object, as coroutines."""

    def __init__(self, target: Any) -> None:
        self._target = target


class AwaitedCalls(AwaitedVerbs):
    pending = AsyncVerb(SessionCalls.pending)
    table = AsyncVerb(SessionCalls.table)
    approve = AsyncVerb(SessionCalls.approve)
    deny = AsyncVerb(SessionCalls.deny)
    reconcile = AsyncVerb(SessionCalls.reconcile)
    answer = AsyncVerb(SessionCalls.answer)
    abandon = AsyncVerb(SessionCalls.abandon)
    evidence = AsyncVerb(SessionCalls.evidence)
    recover = AsyncVerb(SessionCalls.recover)
    workflow = AsyncVerb(SessionCalls.workflow)
    spawned = AsyncVerb(SessionCalls.spawned)
    returned = AsyncVerb(SessionCalls.returned)


class AwaitedWindow(AwaitedVerbs):
    window = AsyncVerb(SessionContext.window)
    seen = AsyncVerb(SessionContext.seen)
    evict = AsyncVerb(SessionContext.evict)
    restore = AsyncVerb(SessionContext.restore)
    pin = AsyncVerb(SessionContext.pin)
    compact = AsyncVerb(SessionContext.compact)
    compactions = AsyncVerb(SessionContext.compactions)
    replaced = AsyncVerb(SessionContext.replaced)
    expand = AsyncVerb(SessionContext.expand)
    touch = AsyncVerb(SessionContext.touch)


class AwaitedFiles(AwaitedVerbs):
    capture = AsyncVerb(Files.capture)
    record = AsyncVerb(Files.record)
    modified = AsyncVerb(Files.modified)
    diff = AsyncVerb(Files.diff)
    change = AsyncVerb(Files.change)
    plan = AsyncVerb(Files.plan)
    plan_diff = AsyncVerb(Files.plan_diff)
    commits = AsyncVerb(Files.commits)
    link_commits = AsyncVerb(Files.link_commits)
    restore = AsyncVerb(Files.restore)
    checkout = AsyncVerb(Files.checkout)
    worktree = AsyncVerb(Files.worktree)


class AwaitedBudget(AwaitedVerbs):
    set = AsyncVerb(SessionBudget.set)
    spent = AsyncVerb(SessionBudget.spent)
    left = AsyncVerb(SessionBudget.left)
    cost = AsyncVerb(SessionBudget.cost)


class AwaitedMonitors(AwaitedVerbs):
    add = AsyncVerb(Monitors.add)
    flag = AsyncVerb(Monitors.flag)
    clear_flag = AsyncVerb(Monitors.clear_flag)


class AwaitedTrust(AwaitedVerbs):
    taint = AsyncVerb(SessionTrust.taint)
    picture = AsyncVerb(SessionTrust.picture)
    endorse = AsyncVerb(SessionTrust.endorse)
    invalidate = AsyncVerb(SessionTrust.invalidate)
    taint_across = AsyncVerb(SessionTrust.taint_across)
    why_across = AsyncVerb(SessionTrust.why_across)


class AwaitedLife(AwaitedVerbs):
    pause = AsyncVerb(SessionLife.pause)
    unpause = AsyncVerb(SessionLife.unpause)
    end = AsyncVerb(SessionLife.end)
    cancel = AsyncVerb(SessionLife.cancel)
    reopen = AsyncVerb(SessionLife.reopen)
    archive = AsyncVerb(SessionLife.archive)
    take_lease = AsyncVerb(SessionLife.take_lease)
    release_lease = AsyncVerb(SessionLife.release_lease)


class AwaitedHistory(AwaitedVerbs):
    blame = AsyncVerb(SessionHistory.blame)
    commit = AsyncVerb(SessionHistory.commit)
    tool_of = AsyncVerb(SessionHistory.tool_of)
    name_of = AsyncVerb(SessionHistory.name_of)
    attempts = AsyncVerb(SessionHistory.attempts)
    compare = AsyncVerb(SessionHistory.compare)
    bisect = AsyncVerb(SessionHistory.bisect)
    start_bisect = AsyncVerb(SessionHistory.start_bisect)
    end_bisect = AsyncVerb(SessionHistory.end_bisect)
    recording = AsyncVerb(SessionHistory.recording)
    preview_rewind = AsyncVerb(SessionHistory.preview_rewind)
    preview_adopt = AsyncVerb(SessionHistory.preview_adopt)


class Aio(AwaitedVerbs):
    """The verbs of a session, as coroutines."""

    _target: Session[Any]

    append = RecordingVerb(Session.append)
    seq = AsyncVerb(Session.seq)
    message = RecordingVerb(Session.message)
    decide = RecordingVerb(Session.decide)
    fact = RecordingVerb(Session.fact)
    retract = AsyncVerb(Session.retract)
    dead_end = RecordingVerb(Session.dead_end)
    artefact = RecordingVerb(Session.artefact)
    set_goal = RecordingVerb(Session.set_goal)
    label = RecordingVerb(Session.label)
    checkpoint = AsyncVerb(Session.checkpoint)
    note = AsyncVerb(Session.note)
    patch = AsyncVerb(Session.patch)
    state = AsyncVerb(Session.state)
    messages = AsyncVerb(Session.messages)
    diff = AsyncVerb(Session.diff)
    why = AsyncVerb(Session.why)
    brief = AsyncVerb(Session.brief)
    insight = AsyncVerb(Session.insight)
    accept = AsyncVerb(Session.accept)
    verify = AsyncVerb(Session.verify)
    anchor = AsyncVerb(Session.anchor)
    export_bundle = AsyncVerb(Session.export_bundle)
    rewind = AsyncVerb(Session.rewind)
    undo = AsyncVerb(Session.undo)
    redo = AsyncVerb(Session.redo)
    fork = AsyncVerb(Session.fork)
    adopt = AsyncVerb(Session.adopt)

    def __init__(self, session: Session[Any]) -> None:
        super().__init__(session)
        self.calls = AwaitedCalls(session.calls)
        self.context = AwaitedWindow(session.context)
        self.files = AwaitedFiles(session.files)
        self.budget = AwaitedBudget(session.budget)
        self.monitors = AwaitedMonitors(session.monitors)
        self.trust = AwaitedTrust(session.trust)
        self.life = AwaitedLife(session.life)
        self.history = AwaitedHistory(session.history)

    async def call(
        self, tool: str | Callable[..., Any], input: Mapping[str, Any] | None = None, *, id: str = ""
    ) -> Outcome:
        """Calls a tool, like `Session.call`. A plain function runs in a worker thread."""
        session = self._target
        outcome: Outcome = await drive_async(runtime_for(session).run_call(session._make_request(tool, input, id)))
        return outcome

    async def model(
        self,
        function: Callable[..., Any],
        /,
        *args: Any,
        context: Any = None,
        policy: Policy | None = None,
        **kwargs: Any,
    ) -> Any:
        """Calls an async model client, like `Session.model`."""
        runtime = runtime_for(self._target)
        request = model_call(runtime.flow, function, args, kwargs, context, policy, self._target._prices)
        return unwrap_outcome(await drive_async(runtime.run_call(request)), request.tool.policy.retry_on)

    async def run_turn(
        self, id: str, function: Callable[[Turn[Any]], Awaitable[R]], user: Value = None, **how: Any
    ) -> R:
        """Runs a coroutine function once, in a turn with this id, like `Session.run_turn`."""
        check_turn_id(id)
        async with self._target.turn(user, id=id, **how) as turn:
            if turn.is_done:
                return cast("R", revive(function, turn.result))
            result = await function(turn)
            turn.result = storable(result, f"the result of turn {id!r}")
            return result
