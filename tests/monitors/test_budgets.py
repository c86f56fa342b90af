"""Budgets: exact amounts, checked before each call, and not reset by rewinds, resumes or forks."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wakelog
from tests.monitors.play import SECOND, Play
from tests.seeds import examples
from wakelog.errors import InvalidInputError, NotAllowedError, WakelogError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.monitors.budgets import (
    KEYS,
    BudgetScope,
    LimitUse,
    check_budget,
    limits_of,
    plain,
    reached_limits,
    set_limits,
    show,
    uses,
)
from wakelog.monitors.monitor import Monitor
from wakelog.monitors.session_rules import BudgetRule
from wakelog.session import Session
from wakelog.store import Store

# Amounts


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"usd": "1.00"}, {"usd_micros": 1_000_000}),
        ({"usd": Decimal("0.000001")}, {"usd_micros": 1}),
        ({"usd": 1.1}, {"usd_micros": 1_100_000}),
        ({"usd": "$2,500.50"}, {"usd_micros": 2_500_500_000}),
        ({"tokens": 50_000, "seconds": 300}, {"tokens": 50_000, "duration_us": 300 * SECOND}),
        ({"usd": None, "usd_micros": 7}, {"usd_micros": 7}),
        ({"seconds": None}, {"duration_us": None}),
    ],
)
def test_amounts_are_taken_as_people_write_them(given: dict[str, Any], wanted: dict[str, int | None]) -> None:
    assert limits_of(given) == wanted


@pytest.mark.parametrize(
    "given",
    [{"usd": x} for x in ("much", "-1", "0.0000001", True, "nan", "inf", 1e30, "")]
    + [{"tokens": 1.5}, {"tokens": "5k"}, {"euro": 1}],
)
def test_what_is_no_amount_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError) as refused:
        limits_of(given)
    assert refused.value.kind == "bad-budget"


@given(st.sampled_from(sorted(KEYS)), st.integers(0, 2**53 - 1))
def test_an_amount_that_is_shown_can_be_given_again(unit: str, amount: int) -> None:
    assert limits_of({unit: plain(unit, amount)}) == {KEYS[unit]: amount}
    if unit != "seconds":
        assert limits_of({unit: show(unit, amount).removesuffix(" tokens")}) == {KEYS[unit]: amount}


def test_what_is_left_is_never_negative_and_a_limit_of_nothing_is_reached() -> None:
    assert [(u.unit, u.left, u.percent, u.is_reached) for u in uses({"limits": {"tokens": 10}, "spent": {}})] == [
        ("usd", None, None, False),
        ("tokens", 10, 0, False),
        ("seconds", None, None, False),
    ]
    over = LimitUse("usd", 30, 20)
    assert (over.left, over.percent, over.is_reached) == (0, 150, True)
    assert reached_limits({"limits": {"tokens": 0}, "spent": {}})


# Before each call


def test_a_call_within_the_budget_is_let_through() -> None:
    play = Play(limits={"usd_micros": 100})
    play.spend(usd_micros=99)
    head = play.log.head()
    check_budget(play.log)
    assert play.log.head() == head


def test_reaching_a_limit_is_recorded_pauses_and_refuses() -> None:
    play = Play(limits={"usd_micros": 100, "tokens": 100})
    play.spend(usd_micros=100, tokens=100)
    with pytest.raises(NotAllowedError) as refused:
        check_budget(play.log)
    assert refused.value.kind == "budget-reached"
    assert refused.value.hint == f"wakelog budget {play.log.id} --usd 0.0002 --tokens 200"
    kinds = [e.kind for e in play.log.entries()][-3:]
    assert kinds == ["budget.reached", "budget.reached", "session.paused"]
    with pytest.raises(NotAllowedError, match="is reached"):
        check_budget(play.log)
    assert [e.kind for e in play.log.entries()][-3:] == kinds


def test_who_resumes_without_raising_the_limit_is_stopped_again_and_who_raises_it_is_not() -> None:
    play = Play(limits={"tokens": 100})
    play.spend(tokens=100)
    with contextlib.suppress(NotAllowedError):
        check_budget(play.log)
    play.add(ev.SessionResumed(), actor="user")
    with pytest.raises(NotAllowedError):
        check_budget(play.log)
    assert play.log.head().status == "paused"
    assert [e.kind for e in play.log.entries()].count("budget.reached") == 1
    set_limits(play.log, limits_of({"tokens": 200}))
    play.add(ev.SessionResumed(), actor="user")
    check_budget(play.log)
    play.spend(tokens=100)
    with pytest.raises(NotAllowedError):
        check_budget(play.log)
    assert [e.kind for e in play.log.entries()].count("budget.reached") == 2


def test_the_runtime_and_a_monitor_together_note_it_once() -> None:
    play = Play(limits={"tokens": 100})
    play.spend(tokens=100)
    Monitor(play.log, [BudgetRule]).catch_up()
    with contextlib.suppress(NotAllowedError):
        check_budget(play.log)
    kinds = [e.kind for e in play.log.entries()]
    assert (kinds.count("budget.reached"), kinds.count("session.paused")) == (1, 1)


def test_setting_a_limit_takes_down_the_flag_of_the_old_one() -> None:
    play = Play(limits={"tokens": 100})
    play.spend(tokens=100)
    monitor = Monitor(play.log, [BudgetRule])
    monitor.catch_up()
    set_limits(play.log, {"tokens": 1000})
    assert play.log.state()["flags"] == {}
    assert monitor.catch_up() == []
    set_limits(play.log, {"tokens": 120})
    monitor.catch_up()
    assert play.log.state()["flags"]["budget:tokens"]["severity"] == "warning"
    set_limits(play.log, {"tokens": 110})
    assert "budget:tokens" in play.log.state()["flags"], "it is still nearly spent"


# A part of the work


def test_a_scope_counts_from_its_beginning_and_does_not_pause() -> None:
    play = Play()
    play.spend(tokens=1000)
    with BudgetScope(play.log, limits_of({"tokens": 100})) as scope:
        check_budget(play.log)
        play.spend(tokens=99)
        check_budget(play.log)
        assert [(use.spent, use.left) for use in scope.uses] == [(99, 1)]
        play.spend(tokens=1)
        with pytest.raises(NotAllowedError) as refused:
            check_budget(play.log)
        assert refused.value.kind == "budget-reached"
    check_budget(play.log)
    assert play.log.head().status == "open"


def test_a_rewind_inside_a_scope_gives_nothing_back() -> None:
    play = Play()
    play.add(ev.FactRecorded(key="k", value=1))
    with BudgetScope(play.log, limits_of({"tokens": 100})):
        play.spend(tokens=100)
        play.log.rewind(2)
        with pytest.raises(NotAllowedError):
            check_budget(play.log)


def test_scopes_nest_and_belong_to_their_session() -> None:
    play, other = Play(), Play()
    with BudgetScope(play.log, limits_of({"tokens": 100})):
        with BudgetScope(play.log, limits_of({"tokens": 10})):
            play.spend(tokens=10)
            other.spend(tokens=1000)
            check_budget(other.log)
            with pytest.raises(NotAllowedError):
                check_budget(play.log)
        check_budget(play.log)


# Nothing resets what was spent


class _Twin:
    """A session, and what it must have spent."""

    def __init__(self, log: Log, spent: dict[str, int]) -> None:
        self.log = log
        self.spent = spent


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["spend", "spend", "call", "reuse", "rewind", "undo", "pause", "resume", "fork", "reopen"]),
            st.integers(0, 30),
            st.integers(0, 9),
        ),
        max_size=30,
    )
)
def test_no_rewind_resume_or_fork_makes_spent_less(plan: list[tuple[str, int, int]]) -> None:
    first = Play(limits={"tokens": 10**9})
    twins = [_Twin(first.log, dict.fromkeys(KEYS.values(), 0))]
    for number, (what, amount, which) in enumerate(plan):
        twin = twins[which % len(twins)]
        cost = ev.Cost(tokens_in=amount, tokens_out=1, usd_micros=3 * amount, duration_us=7)
        with contextlib.suppress(WakelogError):
            if what == "spend":
                twin.log.append(ev.BudgetSpent(cost=cost))
            elif what == "call":
                twin.log.append(ev.ActionRecorded(action=f"a{number}", tool="t", cost=cost))
            elif what == "reuse":
                twin.log.append(ev.ActionRecorded(action=f"a{number}", tool="t", cost=cost, reused=1))
            elif what in ("rewind", "undo"):
                twin.log.rewind(1 + amount % twin.log.head().seq, mode=what)
            elif what == "fork":
                at = 1 + amount % twin.log.head().seq
                twins.append(_Twin(twin.log.fork(at), _sum(twin.log, at)))
            else:
                events = {"pause": ev.SessionPaused(), "resume": ev.SessionResumed(), "reopen": ev.SessionReopened()}
                twin.log.append(EventDraft(events[what], actor="user"))
            if what in ("spend", "call"):
                added = {"tokens": amount + 1, "usd_micros": 3 * amount, "duration_us": 7}
                twin.spent = {key: twin.spent[key] + added[key] for key in added}
    for twin in twins:
        spent = Log(twin.log.engine, twin.log.id).state()["budget"]["spent"]
        assert {key: spent.get(key, 0) for key in KEYS.values()} == twin.spent


def _sum(log: Log, upto: int) -> dict[str, int]:
    total = dict.fromkeys(KEYS.values(), 0)
    for entry in log.entries(upto=upto):
        cost = entry.body.get("cost")
        if cost and not entry.body.get("reused"):
            total["tokens"] += cost.get("tokens_in", 0) + cost.get("tokens_out", 0)
            total["usd_micros"] += cost.get("usd_micros", 0)
            total["duration_us"] += cost.get("duration_us", 0)
    return total


# In a session


@pytest.fixture
def store() -> Store:
    return wakelog.open("memory:")


def costly(session: Session[Any], usd_micros: int) -> Any:
    @session.tool(effect="read", cost=lambda result: ev.Cost(usd_micros=usd_micros))
    def ask(question: str) -> str:
        return "42"

    return ask


def test_a_session_that_may_not_spend_more_refuses_the_next_call(store: Store) -> None:
    session = store.session("agent")
    session.budget.set(usd="0.01", why="a trial")
    ask = costly(session, 6000)
    with session.turn("work"):
        assert [ask("a"), ask("b")] == ["42", "42"]
        with pytest.raises(NotAllowedError) as refused:
            ask("c")
    assert refused.value.kind == "budget-reached"
    assert "wakelog budget agent --usd 0.024" in refused.value.hint
    assert session.status == "paused"
    session.budget.set(usd="1")
    session.life.unpause()
    with session.turn("go on"):
        assert ask("c") == "42"


def test_a_scope_of_a_session_stops_its_calls_and_only_them(store: Store) -> None:
    session = store.session("agent")
    ask = costly(session, 6000)
    with session.turn("work"):
        with session.budget.limit(usd="0.01"):
            ask("a")
            ask("b")
            with pytest.raises(NotAllowedError):
                ask("c")
        assert ask("c") == "42"


async def _in_a_task(session: Session[Any], ask: Any) -> None:
    async with session.budget.limit(usd="0.01"):
        ask("a")
        ask("b")
        with pytest.raises(NotAllowedError):
            ask("c")


def test_a_scope_can_be_awaited(store: Store) -> None:
    import asyncio

    session = store.session("agent")
    asyncio.run(_in_a_task(session, costly(session, 6000)))


def test_what_running_sub_agents_spend_counts_for_their_spawner(store: Store) -> None:
    boss = store.session("boss", limits={"tokens": 100})
    helper = store.spawn(boss, "helper", task="look it up")
    assert helper.state().budget.limits == {"tokens": 100}
    below = store.spawn(helper, "below")
    below.append(ev.BudgetSpent(cost=ev.Cost(tokens_in=60)))
    check_budget(boss.log)
    helper.append(ev.BudgetSpent(cost=ev.Cost(tokens_in=40)))
    with pytest.raises(NotAllowedError):
        check_budget(boss.log)
    with pytest.raises(NotAllowedError):
        check_budget(helper.log)


def test_a_sub_agent_that_returned_counts_by_what_it_returned(store: Store) -> None:
    boss = store.session("boss", limits={"tokens": 100})
    helper = store.spawn(boss, "helper")
    helper.append(ev.BudgetSpent(cost=ev.Cost(tokens_in=60)))
    boss.calls.returned(helper.id, cost=ev.Cost(tokens_in=60))
    check_budget(boss.log)
    second = store.spawn(boss, "second")
    assert second.state().budget.limits == {"tokens": 40}


def test_settings_give_new_sessions_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKELOG_BUDGET_USD", "2.50")
    monkeypatch.setenv("WAKELOG_BUDGET_TOKENS", "1000")
    store = wakelog.open("memory:")
    assert store.session("a").state().budget.limits == {"usd_micros": 2_500_000, "tokens": 1000}
    assert store.session("b", limits={"usd": "9"}).state().budget.limits == {"usd_micros": 9_000_000}
    assert store.session("c", limits={}).state().budget.limits == {}
    monkeypatch.setenv("WAKELOG_BUDGET_USD", "lots")
    with pytest.raises(InvalidInputError):
        wakelog.open("memory:").session("d")
