"""`session.calls`: lists calls, settles pending ones, recovers after a crash; plans and sub-agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from wakelog.log.holder import end_of_holder, refuse_if_held
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.runtime import operator
from wakelog.runtime.ambient import carry, enter_session
from wakelog.runtime.resume import settle_pending
from wakelog.session.base import Base, Where, check_text

if TYPE_CHECKING:
    from wakelog.replay.plan import Plan
    from wakelog.timeline.call_table import CallRow

P = ParamSpec("P")
R = TypeVar("R")


class SessionCalls:
    """Lists and settles a session's calls."""

    def __init__(self, session: Base[Any]) -> None:
        self._session = session

    def pending(self) -> dict[str, dict[str, Value]]:
        """Lists open calls and questions by action id, with status, tool, effect, turn and seq."""
        return dict(self._session.log.part("pending_actions"))

    def table(self, where: Where = None) -> list[CallRow]:
        """Lists calls, one row each, oldest first: time, tool, input hash, outcome, duration, cost, and what it changed
        in the state. `where` is a turn or a range; by default, the whole session."""
        from wakelog.timeline.call_table import call_table
        from wakelog.timeline.selectors import resolve_range

        log = self._session.log
        if where is None:
            return call_table(log, log.entries())
        span = resolve_range(log, f"e{where}" if isinstance(where, int) else where)
        return call_table(log, log.entries(after=span.first - 1, upto=span.last))

    def approve(self, action: str, *, by: str = "", why: str = "") -> Seq:
        """Approves a call that waits for approval. The waiting agent continues; if it has stopped, run its script
        again."""
        return operator.decide_approval(self._session.log, action, True, by=by, why=why)

    def deny(self, action: str, *, by: str = "", why: str = "") -> Seq:
        """Refuses a call that waits for approval; its caller gets an error of type `denied`."""
        return operator.decide_approval(self._session.log, action, False, by=by, why=why)

    def reconcile(self, action: str, outcome: str = "", *, output: Any = None, by: str = "", why: str = "") -> Seq:
        """Settles a call whose outcome is unknown: `succeeded`, `failed` or `never_ran`. Without an outcome, the report
        of a late worker decides."""
        return operator.reconcile(self._session.log, action, outcome, output=output, by=by, why=why)

    def answer(self, request: str, given: Any, *, by: str = "", why: str = "") -> Seq:
        """Answers a question of the agent (`input.requested`), with one of its options if it has any."""
        return operator.answer(self._session.log, request, given, by=by, why=why)

    def abandon(self, action: str, *, why: str = "") -> Seq:
        """Abandons a pending call."""
        return operator.abandon(self._session.log, action, why=why)

    def evidence(self, action: str) -> list[Entry]:
        """Returns what late or fenced workers reported about a pending call."""
        return operator.evidence(self._session.log, action)

    def recover(self, *, why: str = "", force: bool = False) -> list[str]:
        """Settles the calls that a dead process left open, by each call's own policy, and returns the actions that are
        now uncertain. A new turn does this automatically. It is refused while the process of the open turn is alive,
        unless forced."""
        log = self._session.log
        if not force:
            refuse_if_held(log)
        events = settle_pending(log, why or end_of_holder(log), at_work=self._session._runtime.at_work)
        if events:
            self._session.append(*events)
        return [a for a, p in log.part("pending_actions").items() if p["status"] == "uncertain"]

    def bind(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wraps `function` for another thread or an executor, where this session then is the current one."""
        before = enter_session(self._session)
        try:
            return carry(function)
        finally:
            enter_session(before)

    def workflow(self, where: Where = None) -> Plan:
        """Turns recorded tool calls into a plan that you can read, change, and run on new inputs."""
        from wakelog.replay.plan_from_recording import read_plan

        return read_plan(self._session.log, where)

    def spawned(self, session: str, task: str = "") -> Seq:
        """Records that a sub-agent's session was started. `Store.spawn` opens one and records it."""
        check_text(session, "a sub-agent's session")
        return self._session._record(ev.SubagentSpawned(session=session, task=task))

    def returned(
        self, session: str, outcome: str = "completed", *, output: Value = None, cost: ev.Cost | None = None
    ) -> Seq:
        """Records a sub-agent's result and what it cost."""
        check_text(session, "a sub-agent's session")
        return self._session._record(
            ev.SubagentReturned(session=session, outcome=outcome, output=output, cost=cost or ev.Cost())
        )
