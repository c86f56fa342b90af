"""Chains: planted ones are found, and claims about success are made only if the data allow it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest

from tests.patterns.runs import NOISE, confounded, noise, run
from tests.seeds import SEED, examples
from wakelog.patterns.chains import Chain, ChainMine
from wakelog.patterns.traces import TracedSession

HELPS = ("plan", "probe", "verify")
IDLE = [("alpha", "beta"), ("gamma", "delta", "epsilon"), ("zeta", "eta")]


def mine(sessions: Iterable[TracedSession]) -> ChainMine:
    made = ChainMine()
    for session in sessions:
        made.take(session)
    return made


def told(chains: Sequence[Chain]) -> list[Chain]:
    return [chain for chain in chains if chain.effect.verdict in ("more", "less")]


@pytest.mark.seeded
def test_planted_chains_are_found() -> None:
    dice = random.Random(SEED)
    planted = [tuple(f"p{n}.{at}" for at in range(4)) for n in range(40)]
    sessions = []
    for number in range(1000):
        labels = noise(dice, 25)
        for chain in planted:
            if dice.random() < 0.02:
                labels += [*chain, dice.choice(NOISE)]
        sessions.append(run(number, labels))
    found = {chain.steps for chain in mine(sessions).chains()}
    hit = sum(any(_inside(chain, steps) for steps in found) for chain in planted)
    assert hit / len(planted) >= 0.99


def _inside(part: Sequence[str], whole: Sequence[str]) -> bool:
    return any(tuple(whole[at : at + len(part)]) == tuple(part) for at in range(len(whole)))


@pytest.mark.seeded
def test_within_tasks_what_helps_is_found_and_what_only_goes_with_easy_tasks_is_not() -> None:
    dice = random.Random(SEED)
    found = wrong = right = 0
    rounds = examples(9)
    for _ in range(rounds):
        chains = mine(confounded(dice, tasks=50, runs=8, helps=HELPS, idle=IDLE, strength=1.5)).chains()
        claims = told(chains)
        found += any(chain.steps == HELPS and chain.effect.verdict == "more" for chain in claims)
        wrong += sum(not set(chain.steps) & set(HELPS) for chain in claims)
        right += sum(bool(set(chain.steps) & set(HELPS)) for chain in claims)
    assert found / rounds >= 0.90
    assert wrong / max(1, wrong + right) <= 0.05


@pytest.mark.slow
@pytest.mark.seeded
def test_with_outcomes_shuffled_within_tasks_almost_nothing_is_claimed() -> None:
    dice = random.Random(SEED)
    rounds, claims = 1000, 0
    sessions = confounded(dice, tasks=20, runs=8, helps=HELPS, idle=IDLE, strength=0)
    for _ in range(rounds):
        by_task: dict[str, list[TracedSession]] = {}
        for session in sessions:
            by_task.setdefault(session.labels["task"], []).append(session)
        shuffled: list[TracedSession] = []
        for runs in by_task.values():
            outcomes = [session.outcome == "completed" for session in runs]
            dice.shuffle(outcomes)
            labels = [[step.label for step in session.steps] for session in runs]
            for each, good in zip(labels, outcomes, strict=True):
                shuffled.append(run(len(shuffled), each, task=runs[0].labels["task"], good=good))
        claims += bool(told(mine(shuffled).chains()))
    assert claims / rounds <= 0.06


def test_few_runs_are_too_few() -> None:
    dice = random.Random(1)
    sessions = confounded(dice, tasks=5, runs=2, helps=HELPS, idle=IDLE, strength=3)
    assert {chain.effect.verdict for chain in mine(sessions).chains()} <= {"too few"}


def test_without_tasks_nothing_is_said_about_success() -> None:
    sessions = [run(n, ["a", "b", "c"], good=n % 2 == 0) for n in range(40)]
    assert {chain.effect.verdict for chain in mine(sessions).chains()} == {"no tasks"}


def test_forks_and_repeats_do_not_raise_the_support() -> None:
    sessions = [run(n, ["a", "b"] * 9, root="same") for n in range(9)] + [run(n, ["a", "b"]) for n in (20, 21)]
    [chain] = [c for c in mine(sessions).chains(least=1) if c.steps == ("a", "b")]
    assert chain.roots == 3


def test_a_run_of_one_step_counts_once_and_only_closed_chains_are_told() -> None:
    sessions = [run(n, ["a", "a", "b", "b", "c"]) for n in range(5)]
    assert [(c.steps, c.roots) for c in mine(sessions).chains()] == [(("a", "b", "c"), 5)]
