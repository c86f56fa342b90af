"""Facts across sessions: what replaces what, what contradicts, and what was known when."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.knowledge.past import SHOP, worked
from tests.seeds import SEED
from wakelog.knowledge.facts import FactEvent, facts_that_hold
from wakelog.model import events as ev
from wakelog.model.ids import SessionId
from wakelog.model.records import EventDraft
from wakelog.store import Store


def said(
    root: str, seq: int, value: str | None, *, at: int, valid: int = 0, distrust: int = 0, **more: Any
) -> FactEvent:
    return FactEvent(
        session=SessionId(root),
        name=root,
        root=root,
        project="p",
        seq=seq,
        turn=1,
        key="k",
        value=value,
        retracted=value is None,
        valid=valid or at,
        stored=at,
        distrust=distrust,
        **more,
    )


def held(*events: FactEvent) -> set[str | None]:
    return {fact.value for fact in facts_that_hold(events)}


Scenario = Callable[[random.Random], tuple[list[FactEvent], set[str | None]]]


def last_write(dice: random.Random) -> tuple[list[FactEvent], set[str | None]]:
    values = [f'"{dice.randint(0, 4)}"' for _ in range(dice.randint(2, 6))]
    return [said("a", i, v, at=i) for i, v in enumerate(values, 1)], {values[-1]}


def concurrent(dice: random.Random) -> tuple[list[FactEvent], set[str | None]]:
    roots = [chr(97 + i) for i in range(dice.randint(2, 5))]
    return [said(r, 1, f'"{r}"', at=dice.randint(1, 9)) for r in roots], {f'"{r}"' for r in roots}


def late(dice: random.Random) -> tuple[list[FactEvent], set[str | None]]:
    """Stored last, but about an earlier time."""
    now = dice.randint(50, 90)
    return [said("a", 1, '"now"', at=now), said("a", 2, '"then"', at=now + 5, valid=dice.randint(1, 40))], {'"now"'}


def retracted(dice: random.Random) -> tuple[list[FactEvent], set[str | None]]:
    other = said("b", 1, '"other"', at=dice.randint(1, 9))
    return [said("a", 1, '"x"', at=1), said("a", 2, None, at=10), other], {'"other"'}


def untrusted(dice: random.Random) -> tuple[list[FactEvent], set[str | None]]:
    below = dice.randint(0, 1)
    worse = said("a", 2, '"bad"', at=10, distrust=dice.randint(below + 1, 2))
    return [said("a", 1, '"good"', at=1, distrust=below), worse], {'"good"', '"bad"'}


def shown(dice: random.Random) -> tuple[list[FactEvent], set[str | None]]:
    """Another session replaces only values that it was shown."""
    first, unseen = said("a", 1, '"old"', at=1), said("c", 1, '"unseen"', at=2)
    new = said("b", dice.randint(3, 9), '"new"', at=10, shown=frozenset({first.source}))
    return [first, unseen, new], {'"new"', '"unseen"'}


@pytest.mark.seeded
@pytest.mark.parametrize("scenario", [last_write, concurrent, late, retracted, untrusted, shown])
def test_generated_histories_hold_what_they_were_made_to_hold(scenario: Scenario) -> None:
    dice = random.Random(f"{SEED}{scenario.__name__}")
    for _ in range(100):
        events, wanted = scenario(dice)
        dice.shuffle(events)
        assert held(*events) == wanted


def test_sessions_that_say_the_same_confirm_each_other() -> None:
    [fact] = facts_that_hold([said("a", 1, '"x"', at=1), said("b", 1, '"x"', at=2), said("b", 2, '"x"', at=3)])
    assert (fact.roots, len(fact.said)) == (2, 3)


def test_a_session_that_was_shown_a_fact_does_not_confirm_it() -> None:
    first = said("a", 1, '"x"', at=1)
    [fact] = facts_that_hold([first, said("b", 5, '"x"', at=2, shown=frozenset({first.source}))])
    assert fact.roots == 1


def fact(key: str, value: Any, trust: ev.Trust = "trusted") -> EventDraft:
    return EventDraft(ev.FactRecorded(key=key, value=value), trust=trust, source="" if trust == "trusted" else "web")


def texts(store: Store, key: str | None = "db", **how: Any) -> list[str]:
    return sorted(line.text for line in store.known.facts(key, **how).lines)


def test_two_sessions_contradict_each_other_and_both_are_told(store: Store) -> None:
    worked(store, "one", events=[fact("db", "mysql")])
    worked(store, "two", events=[fact("db", "postgres")])
    lines = store.known.facts("db").lines
    assert [(line.text, line.conflicts) for line in lines] == [("db = postgres", True), ("db = mysql", True)]
    assert texts(store, None, conflicts=True) == ["db = mysql", "db = postgres"]


def test_projects_do_not_contradict_each_other(store: Store) -> None:
    worked(store, "one", events=[fact("db", "mysql")])
    worked(store, "two", events=[fact("db", "postgres")], labels={"repo": "/code/other"})
    assert store.known.facts(None, conflicts=True).lines == ()
    assert texts(store, project="/code/other") == ["db = postgres"]


def test_a_rewound_fact_does_not_count_but_did_before(store: Store) -> None:
    session = worked(store, "one", events=[fact("db", "mysql")])
    before = session.head
    with session.turn("again"):
        session.fact("db", "postgres")
    then = store.clock()
    session.rewind(before.seq)
    assert texts(store) == ["db = mysql"]
    assert texts(store, known_at=then) == ["db = postgres"]


def test_a_fork_keeps_what_its_parent_rewound(store: Store) -> None:
    session = worked(store, "one", events=[fact("db", "mysql")])
    session.fork(name="two")
    session.rewind(1)
    assert texts(store) == ["db = mysql"]


def test_what_held_at_a_time_is_told(store: Store) -> None:
    session = store.session("one", labels=SHOP, folder="")
    session.append(ev.FactRecorded(key="db", value="mysql", occurred_at=1_000_000))
    session.append(ev.FactRecorded(key="db", value="postgres", occurred_at=2_000_000))
    assert texts(store, as_of=1_500_000) == ["db = mysql"]
    assert texts(store) == ["db = postgres"]


def test_a_value_that_replaces_what_recall_had_shown_stands_alone(store: Store) -> None:
    worked(store, "one", events=[fact("db", "mysql")])
    second = store.session("two", labels=SHOP, folder="")
    [line] = store.known.recall(goal="move the db", session=second).lines
    assert line.text == "db = mysql"
    second.append(fact("db", "postgres"))
    assert texts(store) == ["db = postgres"]


def test_a_line_is_as_trusted_as_its_least_trusted_source(store: Store) -> None:
    worked(store, "one", events=[fact("db", "mysql")])
    worked(store, "two", events=[fact("db", "mysql", "untrusted")])
    [line] = store.known.facts("db").lines
    assert (line.trust, line.roots) == ("untrusted", 2)
