"""Recipes: planted ones are found, and little else. Other repeated patterns are found with their places."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.knowledge.past import Calendar, Step, edit, look, sh, worked
from tests.seeds import SEED
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.model import events as ev
from wakelog.patterns.recipes import WINDOW
from wakelog.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(MemoryEngine(), clock=Calendar()) as made:
        yield made


@pytest.mark.seeded
def test_planted_recipes_are_found_and_little_else(store: Store) -> None:
    """Twenty errors end after a step that is specific to them; ten others end at random."""
    dice = random.Random(SEED)
    words = [f"{a}{b}" for a in ("al", "be", "ga", "de", "ep", "ze") for b in ("pha", "ta", "mma", "lta", "psi")]
    planted = {f"the {word} is broken": f"mend-{word}" for word in words[:20]}
    others = [f"the {word} is broken" for word in words[20:]]
    looks = [sh(f"tool{n}") for n in range(8)]
    for number in range(60):
        steps: list[Step] = []
        for error in dice.sample([*planted, *others], 3):
            between = dice.sample(looks, dice.randint(0, 3))
            if error in planted:
                between.insert(dice.randint(0, len(between)), sh(planted[error]))
            task = f"build-{error.split()[1]}"
            steps += [sh(task, error), *between, *([sh(task)] if dice.random() < 0.9 else [])]
        worked(store, f"s{number}", steps)
    found = store.patterns.find(kinds=["recipe"], limit=100).patterns
    told = {(p.text.split("“")[1].partition("”")[0], step) for p in found for step in p.steps}
    wanted = set(planted.items())
    assert len(told & wanted) / len(wanted) >= 0.95
    assert len(told & wanted) / len(told) >= 0.90


def test_an_error_must_end_in_its_turn_and_soon(store: Store) -> None:
    far = [sh(f"x{n}") for n in range(WINDOW)]
    for name in ("one", "two"):
        worked(store, name, [sh("make a", "it broke"), *far, sh("make a")])
    assert store.patterns.find(kinds=["recipe"]).patterns == ()


def test_a_failure_that_repeats_is_one_episode(store: Store) -> None:
    for name in ("one", "two", "three"):
        worked(store, name, [sh("make a", "it broke"), sh("make a", "it broke"), edit("Makefile"), sh("make a")])
    [recipe] = store.patterns.find(kinds=["recipe"]).patterns
    assert (recipe.times, recipe.roots, recipe.steps) == (3, 3, ("Edit",))
    assert "worked again 3 of 3 times (at least 44%)" in recipe.text


def test_a_file_that_could_not_be_edited_and_was_then_written_is_done(store: Store) -> None:
    for name in ("one", "two", "three"):
        written = Step("Write", {"file_path": "a.py"}, effect="write")
        worked(store, name, [edit("a.py", "read it first"), look("a.py"), written])
    [recipe] = store.patterns.find(kinds=["recipe"]).patterns
    assert recipe.steps == ("Read",)


def test_loops_and_flaky_tools_are_told(store: Store) -> None:
    for name in ("one", "two"):
        worked(store, name, [sh("poll x")] * 4 + [sh("ping h", "no route"), look("a"), sh("ping h")])
    found = {p.kind: p for p in store.patterns.find(kinds=["loop", "flaky"]).patterns}
    assert found["loop"].text.startswith("poll is called again")
    assert found["flaky"].text.startswith("ping gave another outcome")
    assert found["flaky"].seen[0].note == "failed, then worked"


def test_a_check_that_works_after_an_edit_is_not_flaky(store: Store) -> None:
    for name in ("one", "two"):
        worked(store, name, [sh("pytest", "1 failed"), edit("a.py"), sh("pytest")])
    assert store.patterns.find(kinds=["flaky"]).patterns == ()


def test_files_that_change_together_are_told(store: Store) -> None:
    for number in range(4):
        worked(store, f"s{number}", [edit("a.py"), edit("test_a.py"), edit(f"o{number}.py")])
    [pattern] = store.patterns.find(kinds=["together"]).patterns
    assert pattern.text == "a.py and test_a.py change together: in 4 of 4 sessions that changed the rarer one"


def test_a_call_far_slower_than_usual_is_told(store: Store) -> None:
    worked(store, "one", [sh("curl a", ms=100 + n) for n in range(30)] + [sh("curl b", ms=9000)])
    [pattern] = store.patterns.find(kinds=["slow"]).patterns
    assert pattern.text == "curl took 9.0 s; 0.1 s is usual"
    assert len(pattern.seen) == 1


def test_what_was_given_up_twice_is_told_once(store: Store) -> None:
    for name in ("one", "two"):
        worked(store, name, events=[ev.DeadEndNoted(tried="A lock on table 7", learned="it deadlocks")])
    [pattern] = store.patterns.find(kinds=["dead_end"]).patterns
    assert pattern.text == "given up again: A lock on table 7 (it deadlocks)"
    assert [place.name for place in pattern.seen] == ["two", "one"]


def test_a_pattern_is_shown_with_every_place(store: Store) -> None:
    for number in range(4):
        worked(store, f"s{number}", [sh("a"), sh("b"), sh("c")])
    [chain] = store.patterns.find(kinds=["chain"]).patterns
    shown = store.patterns.show(chain.id)
    assert [place.name for place in shown.seen] == ["s3", "s2", "s1", "s0"]
    for place in shown.seen:
        assert store.resume(place.session).log.entry(place.seq).body["tool"] == "Bash"


def test_an_unknown_pattern_or_kind_is_an_error(store: Store) -> None:
    worked(store, "one")
    with pytest.raises(NotFoundError, match="there is no pattern c0"):
        store.patterns.show("c0")
    with pytest.raises(InvalidInputError, match="no patterns of the kind 'x'"):
        store.patterns.find(kinds=["x"])


def test_the_map_says_what_follows_what(store: Store) -> None:
    worked(store, "one", [sh("a"), sh('b "<x>"', "broke"), sh("a")])
    found = store.patterns.map()
    assert {(arrow.a, arrow.b): arrow.times for arrow in found.arrows} == {
        ("start", "a"): 1,
        ("a", "b"): 1,
        ("b", "a"): 1,
        ("a", "end"): 1,
    }
    assert '"a" -> "b" [label="1"];' in found.dot()
    assert found.svg().count("<path") == 4
