"""What things cost, each amount once: held against a sum over distinct events that is made the slow way."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.seeds import examples
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import InvalidInputError, NotFoundError, WakelogError
from wakelog.index import Costs, Index
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.log.removal import delete, prune
from wakelog.model import events as ev
from wakelog.model.events import Cost
from wakelog.testing.builders import START_US, new_session

DAY_US = 86_400_000_000
Amounts = tuple[int, int, int, int]


def open_log(engine: Engine, **opening: Any) -> Log:
    return Log.create(engine, new_session(), ev.SessionOpened(**opening))


def call(
    log: Log, cost: Cost, tool: str = "model", *, action: str = "", reused: int = 0, at: int = 0, model: str = "m1"
) -> None:
    log.append(
        ev.ActionRecorded(
            action=action or f"a{log.head().seq}",
            tool=tool,
            effect="model" if tool == "model" else "read",
            params={"model": model} if tool == "model" else {},
            cost=cost,
            reused=reused,
            occurred_at=at,
        )
    )


def amounts(costs: Costs) -> Amounts:
    total = costs.total
    return total.tokens_in, total.tokens_out, total.usd_micros, total.duration_us


def by_key(costs: Costs) -> dict[str, Amounts]:
    return {row.key: (row.tokens_in, row.tokens_out, row.usd_micros, row.duration_us) for row in costs.rows}


def test_costs_by_everything(engine: Engine, index: Index) -> None:
    a, b = open_log(engine, agent="coder", labels={"repo": "shop"}), open_log(engine, agent="tester")
    a.append(ev.TurnStarted())
    call(a, Cost(100, 10, 1000, 5), at=START_US)
    call(a, Cost(duration_us=70), "shell", at=START_US + DAY_US)
    a.append(ev.TurnEnded())
    call(b, Cost(200, 20, 3000, 5), model="m2", at=START_US + DAY_US)
    assert amounts(index.costs()) == (300, 30, 4000, 80)
    assert by_key(index.costs()) == {b.id: (200, 20, 3000, 5), a.id: (100, 10, 1000, 75)}
    assert list(by_key(index.costs(by="model"))) == ["m2", "m1", ""]
    assert by_key(index.costs(by="tool")) == {"model": (300, 30, 4000, 10), "shell": (0, 0, 0, 70)}
    assert by_key(index.costs(by="agent"))["tester"] == (200, 20, 3000, 5)
    assert list(by_key(index.costs(by="day"))) == ["2023-11-14", "2023-11-15"]
    assert by_key(index.costs(by="label:repo")) == {"": (200, 20, 3000, 5), "shop": (100, 10, 1000, 75)}
    assert by_key(index.costs(a.id, by="turn")) == {f"{a.id}@1": (100, 10, 1000, 75)}
    assert amounts(index.costs(since=START_US + DAY_US)) == (200, 20, 3000, 75)
    assert amounts(index.costs(until=START_US + DAY_US)) == (100, 10, 1000, 5)
    assert amounts(index.costs([a.id, b.id], by="tool")) == amounts(index.costs())


def test_costs_by_repository_join_its_worktrees_and_fall_back_to_the_folder(engine: Engine, index: Index) -> None:
    for labels in (
        {"repo": "/shop", "project": "/shop"},
        {"repo": "/shop", "project": "/trees/feature"},
        {"project": "/notes"},
        {},
    ):
        call(open_log(engine, labels=labels), Cost(usd_micros=1))
    found = {key: row[2] for key, row in by_key(index.costs(by="repo")).items()}
    assert found == {"/shop": 2, "/notes": 1, "": 1}


def test_an_outcome_of_a_requested_call_is_its_tools_and_a_failed_try_is_paid_too(engine: Engine, index: Index) -> None:
    log = open_log(engine)
    log.append(ev.ActionRequested(action="x", tool="shell", effect="read"))
    log.append(ev.ActionFailed(action="x", error=ev.Failure("io"), retry=True, cost=Cost(duration_us=5)))
    log.append(ev.ActionSucceeded(action="x", cost=Cost(usd_micros=7)))
    assert by_key(index.costs(by="tool")) == {"shell": (0, 0, 7, 5)}


def test_rewound_work_was_paid_for(engine: Engine, index: Index) -> None:
    log = open_log(engine)
    call(log, Cost(usd_micros=7))
    log.rewind(1)
    call(log, Cost(usd_micros=7))
    assert amounts(index.costs(log.id))[2] == 14


def test_a_fork_counts_what_it_did_itself(engine: Engine, index: Index) -> None:
    log = open_log(engine)
    log.append(ev.TurnStarted())
    call(log, Cost(usd_micros=100))
    log.append(ev.TurnEnded())
    fork = log.fork()
    fork.append(ev.TurnStarted())
    call(fork, Cost(usd_micros=1))
    assert amounts(index.costs(fork.id))[2] == 1
    assert amounts(index.costs())[2] == 101
    assert by_key(index.costs(fork.id, by="turn", turns=(1, 2))) == {
        f"{fork.id}@1": (0, 0, 100, 0),
        f"{fork.id}@2": (0, 0, 1, 0),
    }


def test_what_an_adopted_fork_spent_counts_for_its_adopter_and_once_for_all(engine: Engine, index: Index) -> None:
    log = open_log(engine)
    log.append(ev.TurnStarted())
    call(log, Cost(usd_micros=100))
    log.append(ev.TurnEnded())
    fork = log.fork()
    call(fork, Cost(4, 2, 7, 3))
    log.adopt(fork)
    for _ in range(2):
        assert log.state()["budget"]["spent"]["usd_micros"] == 107
        assert by_key(index.costs()) == {log.id: (0, 0, 100, 0), fork.id: (4, 2, 7, 3)}
        assert amounts(index.costs(log.id)) == amounts(index.costs([fork.id, log.id])) == (4, 2, 107, 3)
        assert by_key(index.costs(log.id, by="turn")) == {
            f"{log.id}@0": (4, 2, 7, 3),  # it was adopted outside of a turn
            f"{log.id}@1": (0, 0, 100, 0),
        }
        log.adopt(fork, force=True)
    delete(fork)
    assert amounts(index.costs(log.id)) == amounts(index.costs()) == (6, 0, 107, 3), "the adopter still knows it"


def test_a_result_that_is_used_again_is_paid_once(engine: Engine, index: Index) -> None:
    log = open_log(engine)
    call(log, Cost(10, 5, 100, 3))
    call(log, Cost(10, 5, 100, 3), reused=2)
    assert amounts(index.costs()) == (10, 5, 100, 3)
    assert sum(event.tokens_out for event in index.events(log.id)) == 5


def test_a_sub_agent_counts_by_its_own_session_under_the_turn_that_started_it(engine: Engine, index: Index) -> None:
    boss, helper, below = open_log(engine), open_log(engine), open_log(engine)
    boss.append(ev.TurnStarted(), ev.TurnEnded(), ev.TurnStarted(), ev.SubagentSpawned(session=helper.id))
    helper.append(ev.TurnStarted(), ev.SubagentSpawned(session=below.id))
    call(helper, Cost(usd_micros=10))
    call(below, Cost(usd_micros=5))
    helper.append(ev.SubagentReturned(session=below.id, cost=Cost(usd_micros=5)))
    boss.append(ev.SubagentReturned(session=helper.id, cost=Cost(usd_micros=15)))
    call(boss, Cost(usd_micros=1))
    assert amounts(index.costs())[2] == 16
    assert amounts(index.costs(boss.id))[2] == 16
    assert by_key(index.costs(boss.id, by="turn")) == {f"{boss.id}@2": (0, 0, 16, 0)}
    assert by_key(index.costs(boss.id, by="session")) == {
        helper.id: (0, 0, 10, 0),
        below.id: (0, 0, 5, 0),
        boss.id: (0, 0, 1, 0),
    }
    assert amounts(index.costs(boss.id, turns=(1, 1)))[2] == 0


def test_what_a_sub_agent_returned_counts_where_it_says_nothing_itself(engine: Engine, index: Index) -> None:
    boss, silent, brief = open_log(engine), open_log(engine), open_log(engine)
    call(brief, Cost(duration_us=9))
    for session in (silent.id, brief.id, new_session()):
        boss.append(ev.SubagentSpawned(session=session), ev.SubagentReturned(session=session, cost=Cost(3, 1, 100, 9)))
    assert amounts(index.costs()) == (9, 3, 300, 27)
    assert by_key(index.costs(by="tool")) == {"sub-agent": (9, 3, 300, 18), "model": (0, 0, 0, 9)}


def test_a_sub_agent_of_two_spawners_is_counted_once(engine: Engine, index: Index) -> None:
    a, b, shared = open_log(engine), open_log(engine), open_log(engine)
    call(shared, Cost(usd_micros=7))
    for log in (a, b):
        log.append(ev.SubagentSpawned(session=shared.id), ev.SubagentReturned(session=shared.id, cost=Cost(0, 0, 7)))
    assert amounts(index.costs())[2] == 7
    assert amounts(index.costs([a.id, b.id]))[2] == 7
    assert amounts(index.costs(a.id))[2] == amounts(index.costs(b.id))[2] == 7


def test_a_deleted_sub_agent_counts_by_what_it_returned(engine: Engine, index: Index) -> None:
    boss, helper = open_log(engine), open_log(engine)
    call(helper, Cost(usd_micros=7))
    boss.append(ev.SubagentSpawned(session=helper.id), ev.SubagentReturned(session=helper.id, cost=Cost(0, 0, 7)))
    assert amounts(index.costs())[2] == 7
    delete(helper)
    assert amounts(index.costs())[2] == 7


def test_a_call_that_was_imported_twice_is_one_call(engine: Engine, index: Index) -> None:
    a, b = open_log(engine), open_log(engine)
    for log in (a, b):
        call(log, Cost(10, 5, 100, 3), action="msg_01", at=START_US)
        call(log, Cost(10, 5, 100, 3), action="msg_02", at=START_US + 5)
    assert amounts(index.costs())[2] == 200
    assert amounts(index.costs(b.id))[2] == 200
    call(b, Cost(10, 5, 100, 3), action="msg_02", at=START_US + 6)
    call(b, Cost(10, 5, 101, 3), action="msg_01", at=START_US)
    assert amounts(index.costs())[2] == 401, "another time, or another amount, is another call"


def test_an_answer_that_came_in_parts_is_one_with_its_copy(engine: Engine, index: Index) -> None:
    grown, copied, longer = open_log(engine), open_log(engine), open_log(engine)
    call(grown, Cost(10, 3, 13), action="msg_01", at=START_US)
    call(grown, Cost(0, 97, 97), action="msg_01/2", at=START_US + 1)
    call(copied, Cost(10, 100, 110), action="msg_01", at=START_US)
    assert amounts(index.costs())[2] == 110
    assert amounts(index.costs(grown.id))[2] == amounts(index.costs(copied.id))[2] == 110
    call(copied, Cost(10, 3, 13), action="msg_02", at=START_US + 9)
    call(longer, Cost(10, 3, 13), action="msg_01/2", at=START_US + 1)
    assert amounts(index.costs())[2] == 136, "another answer, or another amount in all, is another call"


def test_calls_of_our_own_with_the_same_name_are_not_taken_for_one(engine: Engine, index: Index) -> None:
    for _ in range(2):
        call(open_log(engine), Cost(usd_micros=7), action="model-1")
    assert amounts(index.costs())[2] == 14


def test_what_was_pruned_still_counts(engine: Engine, index: Index) -> None:
    boss, helper = open_log(engine), open_log(engine)
    boss.append(ev.SubagentSpawned(session=helper.id))
    call(helper, Cost(usd_micros=1000))
    for _ in range(4):
        call(boss, Cost(10, 5, 100, 3))
    before = amounts(index.costs(boss.id))
    prune(boss, boss.head().seq - 1)
    call(boss, Cost(usd_micros=1))
    after = amounts(index.costs(boss.id))
    assert (after[0] + after[1], after[2] - 1, after[3]) == (before[0] + before[1], before[2], before[3])
    assert before[2] == 1400


def test_what_cannot_be_asked_is_refused(engine: Engine, index: Index) -> None:
    for by in ("euro", "label:", "label", ""):
        with pytest.raises(InvalidInputError) as refused:
            index.costs(by=by)
        assert refused.value.kind == "bad-grouping"
    with pytest.raises(NotFoundError):
        index.costs("s_nobody")


# Against the logs

_cost = st.builds(
    Cost,
    tokens_in=st.integers(0, 9),
    tokens_out=st.integers(0, 9),
    usd_micros=st.sampled_from([0, 3, 50]),
    duration_us=st.sampled_from([0, 0, 7]),
)
_WHAT = ["open", "spend", "reuse", "import", "fork", "rewind", "turn", "delete"]
_WHAT += ["delegate", "share", "return"] * 2 + ["spawn", "call", "call"]
_steps = st.lists(
    st.tuples(
        st.sampled_from(_WHAT),
        st.integers(0, 30),
        st.integers(0, 30),
        _cost,
    ),
    min_size=5,
    max_size=30,
)


class World:
    """Sessions, forks and sub-agents; a sub-agent is always younger than its spawner."""

    def __init__(self) -> None:
        self.engine = MemoryEngine()
        self.logs = [open_log(self.engine)]
        self.children: dict[str, list[str]] = defaultdict(list)

    def step(self, what: str, who: int, n: int, cost: Cost) -> None:
        log = self.logs[who % len(self.logs)]
        if what == "open":
            self.logs.append(open_log(self.engine))
        elif what == "spawn":
            child = open_log(self.engine)
            self.logs.append(child)
            self.children[log.id].append(child.id)
            log.append(ev.SubagentSpawned(session=child.id))
        elif what == "delegate":
            self.step("spawn", who, n, cost)
            call(self.logs[-1], cost)
            log.append(ev.SubagentReturned(session=self.logs[-1].id, cost=cost))
        elif what == "share":
            younger = [each for each in self.logs[self.logs.index(log) + 1 :] if "." not in each.id]
            if younger:
                child_id = younger[n % len(younger)].id
                self.children[log.id].append(child_id)
                log.append(ev.SubagentSpawned(session=child_id))
        elif what == "return" and self.children[log.id]:
            known = self.children[log.id]
            log.append(ev.SubagentReturned(session=known[n % len(known)], cost=cost))
        elif what == "call":
            call(log, cost, ("model", "shell")[n % 2])
        elif what == "spend":
            log.append(ev.BudgetSpent(cost=cost))
        elif what == "reuse":
            call(log, cost, reused=1)
        elif what == "import":
            call(log, Cost(5, n % 3, 9), action=f"msg_{n % 4}", at=START_US + n % 4)
        elif what == "fork":
            self.logs.append(log.fork(1 + n % log.head().seq))
        elif what == "rewind":
            log.rewind(1 + n % log.head().seq)
        elif what == "turn":
            is_open = log.state()["turn"]["status"] == "open"
            log.append(ev.TurnEnded() if is_open else ev.TurnStarted())
        elif what == "delete" and len(self.logs) > 1:
            delete(log)
            self.logs.remove(log)


def paid(log: Log) -> Iterator[tuple[Entry, dict[str, int]]]:
    """A session's own events that cost something."""
    for entry in log.entries(after=log.segments[-1].first - 1):
        cost = entry.body.get("cost")
        if cost and any(cost.values()) and not entry.body.get("reused"):
            yield entry, cost


def below(world: World, session: str) -> list[Log]:
    """A session and its sub-agents, as far as they are here, found from the events of each."""
    there: dict[str, Log] = {log.id: log for log in world.logs}
    todo, found = [session], dict[str, Log]()
    while todo:
        at = todo.pop()
        if at in there and at not in found:
            log = found[at] = there[at]
            own = log.entries(after=log.segments[-1].first - 1)
            todo += [e.body["session"] for e in own if e.kind.startswith("subagent.")]
    return list(found.values())


def brute(world: World, logs: list[Log]) -> Amounts:
    """The sum over distinct events, and over distinct calls of those that were imported."""
    total, imported = [0, 0, 0, 0], set()
    for log in sorted(logs, key=lambda each: each.id):
        for entry, cost in paid(log):
            parts = [cost.get(name, 0) for name in ("tokens_in", "tokens_out", "usd_micros", "duration_us")]
            if at := entry.body.get("occurred_at"):
                name = (entry.body["action"], at, *parts)
                if name in imported:
                    continue
                imported.add(name)
            if entry.kind == "subagent.returned":
                own = [c for each in below(world, entry.body["session"]) for _, c in paid(each)]
                if any(c.get("tokens_in", 0) + c.get("tokens_out", 0) for c in own):
                    parts[0] = parts[1] = 0
                if any(c.get("usd_micros") for c in own):
                    parts[2] = 0
                if any(c.get("duration_us") for c in own):
                    parts[3] = 0
            total = [a + b for a, b in zip(total, parts, strict=True)]
    return (total[0], total[1], total[2], total[3])


@settings(max_examples=examples(120))
@given(_steps)
def test_costs_are_the_sum_over_distinct_events(steps: list[tuple[str, int, int, Cost]]) -> None:
    world = World()
    for step in steps:
        with contextlib.suppress(WakelogError):
            world.step(*step)
    with Index(world.engine, None) as index:
        wanted = brute(world, world.logs)
        for by in ("session", "turn", "tool", "model", "agent", "day", "label:x"):
            costs = index.costs(by=by)
            assert amounts(costs) == wanted, by
            assert amounts(costs) == tuple(map(sum, zip(*by_key(costs).values(), strict=True))) or not costs.rows
        for log in world.logs:
            assert amounts(index.costs(log.id)) == brute(world, below(world, log.id))
