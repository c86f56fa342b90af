"""Chains: steps that follow each other again and again, and whether they go with success.

A chain is contiguous, up to five steps long, within one turn, with runs of one step counted once. Support is counted in
fork trees: a chain that one session repeats has a support of one. Only closed chains are told: those that no longer
chain of the same support contains. They are found level by level, because a chain is never more frequent than its
parts.

Whether a chain goes with success is asked within tasks only (statistics.py), and corrected for how many chains were
asked about. Where runs are too few, that is the answer.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from wakelog.model.ids import SessionId
from wakelog.patterns.outcomes import success_of, task_of
from wakelog.patterns.statistics import (
    Counts,
    benjamini_hochberg,
    cochran_mantel_haenszel,
    common_odds,
    permuted,
    telling_size,
)
from wakelog.patterns.traces import TracedSession, TracedStep

LONGEST = 5
LEAST_ROOTS = 3
LEAST_SHARE = 0.01
"""A chain must be in so many fork trees, and in this part of all."""
TOO_FEW = 3.0
"""Below this sum of variances (statistics.py) runs are too few to say anything."""
SHUFFLED_BELOW = 5.0
WORTH_SHUFFLING = 0.1

Verdict = str
"""`more` or `less`: with the chain, sessions of the same task succeed more or less often. `no difference`: none was
found. `too few`: it cannot be told. `no tasks`: no two sessions are of one task."""


class ChainEffect(msgspec.Struct, frozen=True):
    """How success and a chain go together, within tasks."""

    verdict: Verdict
    odds: float = 1.0
    """By how much the odds of success differ (Mantel–Haenszel)."""
    chance: float = 1.0
    with_rate: float = 0.0
    without_rate: float = 0.0
    tasks: int = 0
    """In how many tasks both the chain and the outcome vary."""


class Chain(msgspec.Struct, frozen=True):
    """Steps that follow each other."""

    steps: tuple[str, ...]
    roots: int
    effect: ChainEffect


def chain_id(steps: Sequence[str]) -> str:
    return "c" + hashlib.sha256("\0".join(steps).encode()).hexdigest()[:8]


class ChainMine:
    """Takes in sessions, and finds the chains among them. Steps are kept as small numbers."""

    def __init__(self) -> None:
        self._labels: dict[str, int] = {}
        self._names: list[str] = []
        self._traces: dict[str, list[tuple[int, ...]]] = {}
        self._runs: dict[str, tuple[str, bool | None]] = {}

    def take(self, session: TracedSession) -> None:
        traces = self._traces.setdefault(session.root, [])
        for turn in session.turns():
            numbers: list[int] = []
            for step in turn:
                number = self._number(step.label)
                if not numbers or numbers[-1] != number:
                    numbers.append(number)
            if len(numbers) > 1:
                traces.append(tuple(numbers))
        # Of a fork tree the root says how it ended, unless it does not.
        known = self._runs.get(session.root)
        if known is None or known[1] is None or session.id == session.root:
            self._runs[session.root] = (task_of(session), success_of(session))

    def _number(self, label: str) -> int:
        number = self._labels.get(label)
        if number is None:
            number = self._labels[label] = len(self._names)
            self._names.append(label)
        return number

    @property
    def roots(self) -> int:
        return len(self._traces)

    def least(self) -> int:
        return max(LEAST_ROOTS, math.ceil(LEAST_SHARE * len(self._traces)))

    def chains(self, least: int = 0) -> list[Chain]:
        """The closed chains, most frequent first, with what they go with."""
        found = self.closed(least or self.least())
        effects = self._effects(list(found))
        chains = [Chain(tuple(self._names[n] for n in steps), count, effects[steps]) for steps, count in found.items()]
        return sorted(chains, key=lambda c: (-c.roots, -len(c.steps), c.steps))

    def closed(self, least: int) -> dict[tuple[int, ...], int]:
        """Each closed chain as numbers, and in how many fork trees it is."""
        levels: list[dict[tuple[int, ...], int]] = []
        before: dict[tuple[int, ...], int] | None = None
        for length in range(2, LONGEST + 1):
            counts: Counter[tuple[int, ...]] = Counter()
            for traces in self._traces.values():
                counts.update(_grams(traces, length, before))
            before = {steps: count for steps, count in counts.items() if count >= least}
            if not before:
                break
            levels.append(before)
        out: dict[tuple[int, ...], int] = {}
        for place, level in enumerate(levels):
            longer = levels[place + 1] if place + 1 < len(levels) else {}
            covered: dict[tuple[int, ...], int] = {}
            for steps, count in longer.items():
                for part in (steps[:-1], steps[1:]):
                    covered[part] = max(covered.get(part, 0), count)
            out |= {steps: count for steps, count in level.items() if covered.get(steps) != count}
        return out

    def having(self, steps: Sequence[str]) -> set[str]:
        """The fork trees that have a chain."""
        if any(step not in self._labels for step in steps):
            return set()
        wanted = tuple(self._labels[step] for step in steps)
        return {root for root, traces in self._traces.items() if wanted in _grams(traces, len(wanted), None)}

    # Outcomes

    def _effects(self, chains: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], ChainEffect]:
        strata = self._strata()
        if not any(len(runs) > 1 for runs in strata.values()):
            return dict.fromkeys(chains, ChainEffect("no tasks"))
        # The runs of tasks with both outcomes stand task by task, the good ones first, with one byte a run and chain:
        # so a table is two counts, and a large store fits into little memory.
        runs: list[str] = []
        bounds: list[tuple[int, int, int]] = []
        for each in strata.values():
            good = [root for root, is_good in each if is_good]
            bad = [root for root, is_good in each if not is_good]
            if good and bad:
                bounds.append((len(runs), len(runs) + len(good), len(runs) + len(each)))
                runs += [*good, *bad]
        has = {steps: bytearray(len(runs)) for steps in chains}
        for place, root in enumerate(runs):
            for length in range(2, LONGEST + 1):
                for gram in _grams(self._traces[root], length, None):
                    if (row := has.get(gram)) is not None:
                        row[place] = 1
        out = dict.fromkeys(chains, ChainEffect("too few"))
        asked: list[tuple[tuple[int, ...], ChainEffect, float]] = []
        for steps in chains:
            table = _tables(has.pop(steps), bounds)
            if telling_size(table) >= TOO_FEW:
                chance = _chance(table)
                asked.append((steps, _effect(table, chance), chance))
        kept = benjamini_hochberg([chance for _, _, chance in asked])
        for (steps, effect, _), is_kept in zip(asked, kept, strict=True):
            told = "more" if effect.odds > 1 else "less"
            out[steps] = msgspec.structs.replace(effect, verdict=told) if is_kept else effect
        return out

    def _strata(self) -> dict[str, list[tuple[str, bool]]]:
        out: dict[str, list[tuple[str, bool]]] = {}
        for root, (task, good) in sorted(self._runs.items()):
            if task and good is not None:
                out.setdefault(task, []).append((root, good))
        return out


def _grams(
    traces: Iterable[tuple[int, ...]], length: int, parts: dict[tuple[int, ...], int] | None
) -> set[tuple[int, ...]]:
    """The chains of a length in some traces; only those whose parts are among `parts`, if given."""
    found: set[tuple[int, ...]] = set()
    for trace in traces:
        for at in range(len(trace) - length + 1):
            gram = trace[at : at + length]
            if parts is None or (gram[:-1] in parts and gram[1:] in parts):
                found.add(gram)
    return found


def _tables(has: bytearray, bounds: Sequence[tuple[int, int, int]]) -> list[Counts]:
    """The table of each task in which the chain varies; `bounds` are where its good runs begin, its bad ones begin, and
    it ends."""
    out = []
    for first, middle, end in bounds:
        good, bad = has.count(1, first, middle), has.count(1, middle, end)
        if 0 < good + bad < end - first:
            out.append((good, bad, middle - first - good, end - middle - bad))
    return out


def _chance(strata: Sequence[Counts]) -> float:
    """By the formula; where strata are small and it would be a finding, by shuffling."""
    chance = cochran_mantel_haenszel(strata)
    return permuted(strata) if chance < WORTH_SHUFFLING and telling_size(strata) < SHUFFLED_BELOW else chance


def _effect(strata: Sequence[Counts], chance: float) -> ChainEffect:
    a, b, c, d = (sum(column) for column in zip(*strata, strict=True))
    return ChainEffect(
        verdict="no difference",
        odds=round(common_odds(strata), 2),
        chance=round(chance, 5),
        with_rate=round(a / (a + b), 3),
        without_rate=round(c / (c + d), 3),
        tasks=len(strata),
    )


def first_places(session: TracedSession, steps: Sequence[str]) -> tuple[SessionId, int, int] | None:
    """Session, event and turn where a chain first stands in a session; None where it does not."""
    found = next((run for turn in session.turns() for run in matches(turn, steps)), None)
    return (session.id, found[0].asked, found[0].turn) if found else None


def matches(turn: Sequence[TracedStep], steps: Sequence[str]) -> Iterator[list[TracedStep]]:
    """The calls of each place in a turn where a chain stands; runs of one step count once."""
    starts = [at for at, step in enumerate(turn) if not at or turn[at - 1].label != step.label]
    labels = [turn[at].label for at in starts]
    for place in range(len(starts) - len(steps) + 1):
        if labels[place : place + len(steps)] == list(steps):
            end = starts[place + len(steps)] if place + len(steps) < len(starts) else len(turn)
            yield list(turn[starts[place] : end])
