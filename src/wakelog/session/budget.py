"""`session.budget`: limits and spending. `session.monitors`: rules that check recorded events, and flags.

They share a file because both can stop an agent that runs away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from wakelog.errors import NotFoundError
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.monitors.budgets import Amount, BudgetScope, LimitUse, left_of, limits_of, set_limits, uses
from wakelog.session.base import Base, Where, check_text

if TYPE_CHECKING:
    from wakelog.index.results import Costs
    from wakelog.monitors.monitor import Monitor
    from wakelog.monitors.rules import Given

LOOK_BACK = 10_000
"""How many past events a new monitor reads in a long session. `wakelog watch` reads all."""


class SessionBudget:
    """Sets limits in money, tokens and seconds, and shows what was spent."""

    def __init__(self, session: Base[Any]) -> None:
        self._session = session

    def set(self, /, *, why: str = "", **limits: Amount) -> Seq:
        """Sets limits for the session: `usd="1.00"`, `tokens=50_000`, `seconds=300`; None removes one. Past spending
        counts. Reaching a limit pauses the session."""
        return set_limits(self._session.log, limits_of(limits), why=why)

    def limit(self, **limits: Amount) -> BudgetScope:
        """Limits a part of the work, counted from the start of a `with`: `with session.budget.limit(usd="1.00"):`. When
        a limit is reached, the next call is refused with NotAllowedError, kind `budget-reached`."""
        return BudgetScope(self._session.log, limits_of(limits))

    def spent(self, at: Where = None) -> tuple[LimitUse, ...]:
        """Returns what the session had spent at a point, or until now, in usd, tokens and seconds, with the limit of
        each."""
        log = self._session.log
        return uses(log.part("budget") if at is None else log.state(self._session.seq(at))["budget"])

    def left(self) -> dict[str, int] | None:
        """Returns what is left of each limit, sub-agents included; None when there is no limit."""
        return left_of(self._session.log)

    def cost(
        self, by: str = "turn", *, turns: tuple[int, int] | None = None, since: int | None = None, utc: bool = True
    ) -> Costs:
        """Sums up what this session and its sub-agents cost, by turn, tool, model, session, agent, day or `label:NAME`.
        Each amount is counted once. A fork counts only its own spending; with `turns`, also the turns it shares."""
        session = self._session
        if session.store is not None:
            return session.store.index.costs(session.id, by=by, turns=turns, since=since, utc=utc)
        from wakelog.index.index import Index

        with Index(session.log.engine, None) as index:
            return index.costs(session.id, by=by, turns=turns, since=since, utc=utc)


class Monitors:
    """Runs rules over recorded events, and raises and clears flags."""

    def __init__(self, session: Base[Any]) -> None:
        self._session = session

    @property
    def guards(self) -> list[Callable[[], None]]:
        """Returns the functions called before each call with effects and after each outcome; one may raise, or pause
        the session."""
        return self._session._runtime.guards

    def add(self, *rules: Given, pause: bool | Collection[str] | None = None) -> Monitor:
        """Adds rules that check every new event, and the newest past ones; by default, all built-in rules. What they
        find is flagged in the log.

        `pause=True` allows every rule that asks for it to pause the session; then the next call with effects is
        refused. You can also name the rules that may pause. By default only budgets do. `guards.remove(monitor.guard)`
        removes the monitor.
        """
        from wakelog.monitors.monitor import Monitor, built_in, pausing_rules

        session = self._session
        on_effect = session.store.on_effect if session.store is not None else "flag"
        session._runtime.asks_untrusted = on_effect == "ask"
        monitor = Monitor(
            session.log,
            rules or built_in(on_effect=on_effect),
            pause=pausing_rules(on_effect) if pause is None else pause,
            after=max(0, session.head.seq - LOOK_BACK),
        )
        self.guards.append(monitor.guard)
        return monitor

    def flag(self, name: str, message: str = "", *, severity: ev.Severity = "warning", on: Where = None) -> Seq:
        """Raises a flag on the session, or on one event."""
        check_text(name, "a flag's name")
        targets = (self._session._existing(on),) if on is not None else ()
        event = ev.FlagRaised(flag=name, message=message, severity=severity, targets=targets)
        return self._session._record(event, actor="user")

    def clear_flag(self, name: str, *, why: str = "") -> Seq:
        """Clears a flag that was dealt with. The event that raised it stays in the log."""
        session, name_here = self._session, self._session.name or self._session.id
        flags = session.log.part("flags")
        if name not in flags:
            raised = f"raised are {', '.join(flags)}" if flags else "none is raised"
            raise NotFoundError(
                f"there is no flag {name!r} on {name_here}: {raised}",
                kind="flag-not-found",
                hint=f"wakelog flag ls {name_here}",
            )
        return session._record(ev.FlagCleared(flag=name, why=why), actor="user")
