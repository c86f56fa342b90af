"""Two sets of sessions: planted differences are found within tasks, and no others."""

from __future__ import annotations

import math
import random
from pathlib import Path

import msgspec
import pytest

from tests.knowledge.corpus import corpus_store
from tests.patterns.runs import noise, run
from tests.seeds import SEED
from wakelog.index.results import AsOf
from wakelog.patterns.cohorts import Cohort, CohortComparison, compare_cohorts
from wakelog.patterns.traces import TracedSession

NOW = AsOf("", 0, 0)
A, B = Cohort({"version": "1"}), Cohort({"version": "2"})


def versions(dice: random.Random, *, tasks: int, runs: int, effect: float, new_step: float) -> list[TracedSession]:
    """Two versions on the same tasks; the second is better by `effect` and checks its work more often."""
    out: list[TracedSession] = []
    for task in range(tasks):
        ease = dice.gauss(0, 1.5)
        for version in ("1", "2"):
            for _ in range(runs):
                better = effect * (version == "2")
                good = dice.random() < 1 / (1 + math.exp(-(ease + better)))
                labels = noise(dice) + (["verify"] if dice.random() < 0.2 + new_step * (version == "2") else [])
                made = run(len(out), labels, task=f"t{task}", good=good)
                out.append(msgspec.structs.replace(made, labels={**made.labels, "version": version}))
    return out


def told(found: CohortComparison) -> dict[str, str]:
    return {each.name: each.verdict for each in found.differences if each.verdict in ("more", "less")}


@pytest.mark.seeded
def test_what_a_version_changed_is_told_with_its_size() -> None:
    sessions = versions(random.Random(SEED), tasks=20, runs=4, effect=1.5, new_step=0.5)
    found = compare_cohorts(sessions, A, B, NOW)
    assert told(found).items() >= {"success": "more", "uses verify": "more"}.items()
    assert (found.a, found.b, found.tasks) == (80, 80, 20)
    verify = next(each for each in found.differences if each.name == "uses verify")
    assert verify.low < 0.5 < verify.high


@pytest.mark.seeded
def test_where_nothing_changed_nothing_is_told() -> None:
    dice = random.Random(SEED)
    claims = [told(compare_cohorts(versions(dice, tasks=8, runs=2, effect=0, new_step=0), A, B, NOW)) for _ in range(3)]
    assert sum(map(bool, claims)) <= 1


def test_sets_that_are_chosen_by_how_they_ended_are_not_compared_by_that() -> None:
    sessions = versions(random.Random(1), tasks=6, runs=6, effect=0, new_step=0)
    found = compare_cohorts(sessions, Cohort({"outcome": "completed"}), Cohort({"outcome": "failed"}), NOW)
    assert found.compared > 20
    assert "success" not in {each.name for each in found.differences}
    assert "calls" in {each.name for each in found.differences}


def test_few_sessions_are_too_few() -> None:
    sessions = versions(random.Random(1), tasks=2, runs=2, effect=9, new_step=0.8)
    found = compare_cohorts(sessions, A, B, NOW)
    assert told(found) == {}
    assert found.notes == ("too few: 4 and 4 sessions; each set needs 5",)
    assert {each.verdict for each in found.differences} == {"too few"}


def test_sets_without_a_common_task_say_so() -> None:
    sessions = [run(n, ["a"], task=f"t{n}", good=True) for n in range(20)]
    early, late = Cohort(until=10), Cohort(since=10)
    found = compare_cohorts(sessions, early, late, NOW)
    assert "the sets have no task in common: what differs may be the tasks" in found.notes


def test_a_session_in_both_sets_counts_in_neither() -> None:
    sessions = [run(n, ["a"], good=True) for n in range(20)]
    found = compare_cohorts(sessions, Cohort(), Cohort(since=10), NOW)
    assert (found.a, found.b) == (10, 0)
    assert found.notes[0] == "10 sessions are in both sets, and count in neither"


@pytest.mark.slow
def test_the_open_file_of_benchmark_runs_gives_no_finding_within_tasks(tmp_path: Path) -> None:
    with corpus_store(tmp_path, "tau-bench") as store:
        found = store.patterns.find(kinds=["chain"], limit=100)
        assert found.sessions == 100
        assert {p.verdict for p in found.patterns} <= {"too few", "no difference"}
        assert found.notes == ("too few runs of the same task to say which chains go with success",)
        pair = store.patterns.compare({"trial": "0"}, {"trial": "1"})
        assert [each for each in pair.differences if each.verdict in ("more", "less")] == []
