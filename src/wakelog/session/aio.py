"""`session.aio`: the verbs of a session as coroutines.

Each runs the same method in a worker thread and keeps its signature, so that type checkers know it. `call`, `model` and
`run_turn` take coroutine functions and await them. Turns need no bridge: write `async with session.turn(…)`.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from wakelog.model.values import Value
from wakelog.runtime.ambient import answering
from wakelog.runtime.bridge import in_thread
from wakelog.runtime.models import model_call
from wakelog.runtime.outcome import Outcome
from wakelog.runtime.policy import Policy
from wakelog.runtime.resume import check_turn_id
from wakelog.runtime.streams import unwrapped
from wakelog.runtime.tools import drive_async
from wakelog.runtime.values import revive
from wakelog.session.budget import Monitors, SessionBudget
from wakelog.session.calls import SessionCalls
from wakelog.session.context import SessionContext
from wakelog.session.files import Files
from wakelog.session.history import SessionHistory
from wakelog.session.life import SessionLife
from wakelog.session.session import MODEL, Session
from wakelog.session.trust import SessionTrust

if TYPE_CHECKING:
    from wakelog.session.turn import Turn

P = ParamSpec("P")
R = TypeVar("R")


class Awaited(Generic[P, R]):
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


class AwaitedVerbs:
    """The verbs of one object, as coroutines."""

    def __init__(self, target: Any) -> None:
        self._target = target


class AwaitedCalls(AwaitedVerbs):
    pending = Awaited(SessionCalls.pending)
    table = Awaited(SessionCalls.table)
    approve = Awaited(SessionCalls.approve)
    deny = Awaited(SessionCalls.deny)
    reconcile = Awaited(SessionCalls.reconcile)
    answer = Awaited(SessionCalls.answer)
    abandon = Awaited(SessionCalls.abandon)
    evidence = Awaited(SessionCalls.evidence)
    recover = Awaited(SessionCalls.recover)
    workflow = Awaited(SessionCalls.workflow)
    spawned = Awaited(SessionCalls.spawned)
    returned = Awaited(SessionCalls.returned)


class AwaitedWindow(AwaitedVerbs):
    window = Awaited(SessionContext.window)
    seen = Awaited(SessionContext.seen)
    evict = Awaited(SessionContext.evict)
    restore = Awaited(SessionContext.restore)
    pin = Awaited(SessionContext.pin)
    compact = Awaited(SessionContext.compact)
    compactions = Awaited(SessionContext.compactions)
    replaced = Awaited(SessionContext.replaced)
    expand = Awaited(SessionContext.expand)
    touch = Awaited(SessionContext.touch)


class AwaitedFiles(AwaitedVerbs):
    capture = Awaited(Files.capture)
    record = Awaited(Files.record)
    modified = Awaited(Files.modified)
    diff = Awaited(Files.diff)
    change = Awaited(Files.change)
    plan = Awaited(Files.plan)
    plan_diff = Awaited(Files.plan_diff)
    commits = Awaited(Files.commits)
    link_commits = Awaited(Files.link_commits)
    restore = Awaited(Files.restore)
    checkout = Awaited(Files.checkout)
    worktree = Awaited(Files.worktree)


class AwaitedBudget(AwaitedVerbs):
    set = Awaited(SessionBudget.set)
    spent = Awaited(SessionBudget.spent)
    left = Awaited(SessionBudget.left)
    cost = Awaited(SessionBudget.cost)


class AwaitedMonitors(AwaitedVerbs):
    add = Awaited(Monitors.add)
    flag = Awaited(Monitors.flag)
    clear_flag = Awaited(Monitors.clear_flag)


class AwaitedTrust(AwaitedVerbs):
    taint = Awaited(SessionTrust.taint)
    picture = Awaited(SessionTrust.picture)
    endorse = Awaited(SessionTrust.endorse)
    invalidate = Awaited(SessionTrust.invalidate)
    taint_across = Awaited(SessionTrust.taint_across)
    why_across = Awaited(SessionTrust.why_across)


class AwaitedLife(AwaitedVerbs):
    pause = Awaited(SessionLife.pause)
    unpause = Awaited(SessionLife.unpause)
    end = Awaited(SessionLife.end)
    cancel = Awaited(SessionLife.cancel)
    reopen = Awaited(SessionLife.reopen)
    archive = Awaited(SessionLife.archive)
    take_lease = Awaited(SessionLife.take_lease)
    release_lease = Awaited(SessionLife.release_lease)


class AwaitedHistory(AwaitedVerbs):
    blame = Awaited(SessionHistory.blame)
    commit = Awaited(SessionHistory.commit)
    tool_of = Awaited(SessionHistory.tool_of)
    attempts = Awaited(SessionHistory.attempts)
    compare = Awaited(SessionHistory.compare)
    bisect = Awaited(SessionHistory.bisect)
    start_bisect = Awaited(SessionHistory.start_bisect)
    end_bisect = Awaited(SessionHistory.end_bisect)
    recording = Awaited(SessionHistory.recording)
    preview_rewind = Awaited(SessionHistory.preview_rewind)
    preview_adopt = Awaited(SessionHistory.preview_adopt)


class Aio(AwaitedVerbs):
    """The verbs of a session, as coroutines."""

    _target: Session[Any]

    append = Awaited(Session.append)
    seq = Awaited(Session.seq)
    message = Awaited(Session.message)
    decide = Awaited(Session.decide)
    fact = Awaited(Session.fact)
    retract = Awaited(Session.retract)
    dead_end = Awaited(Session.dead_end)
    artefact = Awaited(Session.artefact)
    set_goal = Awaited(Session.set_goal)
    label = Awaited(Session.label)
    checkpoint = Awaited(Session.checkpoint)
    note = Awaited(Session.note)
    patch = Awaited(Session.patch)
    state = Awaited(Session.state)
    messages = Awaited(Session.messages)
    diff = Awaited(Session.diff)
    why = Awaited(Session.why)
    brief = Awaited(Session.brief)
    insight = Awaited(Session.insight)
    accept = Awaited(Session.accept)
    verify = Awaited(Session.verify)
    anchor = Awaited(Session.anchor)
    export_bundle = Awaited(Session.export_bundle)
    rewind = Awaited(Session.rewind)
    undo = Awaited(Session.undo)
    redo = Awaited(Session.redo)
    fork = Awaited(Session.fork)
    adopt = Awaited(Session.adopt)

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
        """Calls a tool, as `Session.call`; a plain function runs in a worker thread."""
        session = self._target
        outcome: Outcome = await drive_async(answering(session).conduct(session._given(tool, input, id)))
        return outcome

    async def model(
        self, function: Callable[..., Any], /, *args: Any, context: Any = None, policy: Policy = MODEL, **kwargs: Any
    ) -> Any:
        """Calls an async model client, as `Session.model`."""
        runtime = answering(self._target)
        given = model_call(runtime.flow, function, args, kwargs, context, policy, self._target._prices)
        return unwrapped(await drive_async(runtime.conduct(given)), policy.retry_on)

    async def run_turn(
        self, id: str, function: Callable[[Turn[Any]], Awaitable[R]], user: Value = None, **how: Any
    ) -> R:
        """Runs a coroutine function in a turn of this id, as `Session.run_turn`."""
        check_turn_id(id)
        async with self._target.turn(user, id=id, **how) as turn:
            if turn.is_done:
                return cast("R", revive(function, turn.result))
            turn.result = result = await function(turn)
            return result
