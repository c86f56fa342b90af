"""Retention: planning changes nothing; applying does what was planned, and no more."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import wakelog
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from wakelog.config.retention_policy import RetentionPolicy
from wakelog.errors import InvalidInputError
from wakelog.maintenance.holds import place_hold
from wakelog.maintenance.retention import Planned, apply, plan
from wakelog.model import events as ev
from wakelog.session import Session
from wakelog.store import Store

DAY = 86_400_000_000
NOW = 1000 * DAY
OLD = RetentionPolicy(keep_us=90 * DAY, action="delete")


class Clock:
    now = NOW

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", ON_POSTGRES])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Store]:
    url = postgres_url(request, tmp_path) if request.param == "postgres" else "memory:"
    with wakelog.open(url, clock=clock) as opened:
        yield opened


@pytest.fixture
def make(store: Store, clock: Clock) -> Callable[..., Session]:
    def make(name: str, *, age_days: int = 100, closed: bool = True, events: int = 3) -> Session:
        clock.now = NOW - age_days * DAY
        session = store.session(name)
        for n in range(events):
            session.fact(f"f{n}", "x" * 100)
        if closed:
            session.life.end()
        clock.now = NOW
        return session

    return make


def _plan(store: Store, policy: RetentionPolicy) -> dict[str, tuple[str, str]]:
    return {p.name: (p.action, p.reason) for p in plan(store, policy, NOW)}


def test_default_policy_keeps_everything_for_ever(store: Store, make: Callable[..., Session]) -> None:
    make("old", age_days=900)
    assert plan(store, RetentionPolicy(), NOW) == []
    assert str(RetentionPolicy()) == "everything is kept"


def test_only_ended_sessions_past_their_time_go(store: Store, make: Callable[..., Session]) -> None:
    make("old")
    make("fresh", age_days=10)
    make("running", closed=False)
    assert _plan(store, OLD) == {"old": ("delete", "untouched for 100d"), "running": ("skip", "it is open")}


def test_exactly_the_age_stays(store: Store, make: Callable[..., Session]) -> None:
    make("edge", age_days=90)
    assert plan(store, OLD, NOW) == []
    assert plan(store, OLD, NOW + 1)[0].action == "delete"


def test_planning_changes_nothing(store: Store, make: Callable[..., Session]) -> None:
    make("old")
    before = list(store.sessions())
    for action in ("archive", "prune", "delete"):
        plan(store, RetentionPolicy(keep_us=0, action=action), NOW)
    assert list(store.sessions()) == before


def test_newest_ones_are_kept(store: Store, make: Callable[..., Session]) -> None:
    for n in range(5):
        make(f"s{n}", age_days=200 - n)
    found = _plan(store, RetentionPolicy(keep_us=90 * DAY, keep_last=2, action="delete"))
    assert [name for name, (action, _) in found.items() if action == "skip"] == ["s3", "s4"]


def test_size_takes_the_oldest_first_and_stops_in_time(store: Store, make: Callable[..., Session]) -> None:
    for n in range(6):
        make(f"s{n}", age_days=200 - n)
    sizes = {p.name: p.bytes for p in plan(store, RetentionPolicy(max_bytes=0, action="delete"), NOW)}
    limit = sum(sizes.values()) - sizes["s0"] - 1
    assert _plan(store, RetentionPolicy(max_bytes=limit, action="delete")).keys() == {"s0", "s1"}


def test_archive_cannot_serve_a_size(store: Store) -> None:
    with pytest.raises(InvalidInputError):
        plan(store, RetentionPolicy(max_bytes=1, action="archive"), NOW)


def test_held_sessions_are_shown_as_skipped(store: Store, make: Callable[..., Session], clock: Clock) -> None:
    session = make("held")
    clock.now = NOW - 99 * DAY
    place_hold(session, "case 17")
    clock.now = NOW
    action, reason = _plan(store, OLD)["held"]
    assert action == "skip"
    assert "case 17" in reason


def test_what_a_live_fork_reads_through_stays(store: Store, make: Callable[..., Session], clock: Clock) -> None:
    parent = make("parent")
    clock.now = NOW - 95 * DAY
    fork = parent.fork(2, name="child")
    clock.now = NOW
    for action in ("delete", "prune"):
        found = _plan(store, RetentionPolicy(keep_us=90 * DAY, action=action))
        assert found["parent"] == ("skip", "its fork child reads through it")
    clock.now = NOW - 95 * DAY
    fork.life.end()
    clock.now = NOW
    planned = plan(store, OLD, NOW)
    assert [(p.name, p.action) for p in planned] == [("child", "delete"), ("parent", "delete")]
    assert all(a.done for a in apply(store, planned))
    assert list(store.sessions()) == []


def test_a_leased_session_stays(store: Store, make: Callable[..., Session], clock: Clock) -> None:
    session = make("busy", closed=False)
    session.life.take_lease("worker", ttl_s=1e9)
    clock.now = NOW + 200 * DAY
    policy = RetentionPolicy(keep_us=90 * DAY, statuses=("open", "active"), action="delete")
    [planned] = plan(store, policy, clock.now)
    assert (planned.action, planned.reason) == ("skip", "it is being written by worker")


@pytest.mark.parametrize("action", ["archive", "prune", "delete"])
def test_apply_does_what_was_planned(store: Store, make: Callable[..., Session], action: str) -> None:
    session = make("old")
    state = session.log.state_hash()
    policy = RetentionPolicy(keep_us=90 * DAY, action=action)  # type: ignore[arg-type]
    [applied] = apply(store, plan(store, policy, NOW))
    assert applied.done
    if action == "delete":
        assert list(store.sessions()) == []
    else:
        assert session.verify().ok
        assert (session.status == "archived") == (action == "archive")
        if action == "prune":
            assert session.log.state_hash() == state
    assert [p for p in plan(store, policy, NOW + 1) if p.action != "skip"] == []


def test_what_changed_since_is_left_alone(store: Store, make: Callable[..., Session]) -> None:
    session = make("old")
    planned = plan(store, OLD, NOW)
    session.note("wait")
    [applied] = apply(store, planned)
    assert not applied.done
    assert "since this was planned" in applied.problem
    assert session.status == "closed"


def test_a_hold_set_after_planning_still_counts(store: Store, make: Callable[..., Session]) -> None:
    session = make("old")
    [planned] = plan(store, OLD, NOW)
    place_hold(session, "late")
    later = Planned(planned.session, planned.name, "delete", "x", 0, session.head.seq, 0)
    [applied] = apply(store, [later])
    assert not applied.done
    assert "hold" in applied.problem


def test_one_that_fails_does_not_stop_the_others(store: Store, make: Callable[..., Session]) -> None:
    first, _ = make("a", age_days=200), make("b")
    planned = plan(store, OLD, NOW)
    store.delete(first)
    assert [a.done for a in apply(store, planned)] == [False, True]


def test_open_calls_do_not_matter_once_closed(store: Store, make: Callable[..., Session], clock: Clock) -> None:
    clock.now = NOW - 100 * DAY
    session = store.session("crashed")
    session.append(ev.TurnStarted(), ev.ActionRequested(action="a", tool="t"), ev.ActionStarted(action="a"))
    session.life.end()
    clock.now = NOW
    assert _plan(store, OLD)["crashed"][0] == "delete"


def test_a_quiet_session_of_a_framework_is_not_taken_for_a_transcript_left_behind(
    store: Store, make: Callable[..., Session]
) -> None:
    make("imported", closed=False).label({"origin": "0a1b"})
    make("live", closed=False).label({"origin": "0a1b", "framework": "openai-agents"})
    store_plan = {p.name: (p.action, p.reason) for p in plan(store, OLD, NOW + 100 * DAY)}
    assert store_plan["imported"][0] == "delete"
    assert store_plan["live"] == ("skip", "it is open")
