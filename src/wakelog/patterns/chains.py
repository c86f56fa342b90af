"""Chains: steps that follow each other again and again, and whether they go with success.

A chain is contiguous, up to five steps long, within one turn; a repeated step counts once. Support is counted in fork
trees: a chain that one session repeats has a support of one. Only closed chains are returned: those not contained in a
longer chain with the same support. They are mined level by level, because a chain is never more frequent than its
parts.

Whether a chain goes with success is tested only within tasks (statistics.py), and corrected for multiple tests. If
there are too few runs, the answer says so.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from wakelog.model.ids import SessionId
from wakelog.patterns.statistics import (
    Counts,
    benjamini_hochberg,
    cochran_mantel_haenszel,
    common_odds,
    permutation_test,
    total_variance,
)
from wakelog.patterns.traces import TracedSession, TracedStep

STEPS_MAX = 5
ROOTS_MIN = 3
SHARE_MIN = 0.01
"""A chain must be in at least this many fork trees, and in at least this share of all."""
VARIANCE_MIN = 3.0
"""Below this total variance (statistics.py) there are too few runs to say anything."""
PERMUTE_BELOW = 5.0
"""Below this total variance the formula is inexact, so a permutation test decides."""
WORTH_PERMUTING = 0.1
"""Above this chance by the formula, the slow permutation test would change nothing."""

Verdict = str
"""`more` or `less`: with the chain, sessions of the same task succeed more or less often. `no difference`: none was
found. `too few`: there are too few runs. `no tasks`: no two sessions have the same task."""


class ChainEffect(msgspec.Struct, frozen=True):
    """How success depends on a chain, within tasks."""

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
    """Collects sessions and finds the chains in them. Steps are stored as small numbers."""

    def __init__(self) -> None:
        self._labels: dict[str, int] = {}
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
        # The root decides the outcome of a fork tree; a fork only if the root has none.
        known = self._runs.get(session.root)
        if known is None or known[1] is None or session.id == session.root:
            self._runs[session.root] = (session.task, session.success)

    def _number(self, label: str) -> int:
        return self._labels.setdefault(label, len(self._labels))

    @property
    def roots(self) -> int:
        return len(self._traces)

    def least(self) -> int:
        return max(ROOTS_MIN, math.ceil(SHARE_MIN * len(self._traces)))

    def chains(self, least: int = 0) -> list[Chain]:
        """The closed chains, most frequent first, with their effect on success."""
        results = self.closed(least or self.least())
        effects = self._effects(list(results))
        names = list(self._labels)
        chains = [Chain(tuple(names[n] for n in steps), count, effects[steps]) for steps, count in results.items()]
        return sorted(chains, key=lambda c: (-c.roots, -len(c.steps), c.steps))

    def closed(self, least: int) -> dict[tuple[int, ...], int]:
        """Each closed chain as numbers, and the number of fork trees that have it."""
        levels: list[dict[tuple[int, ...], int]] = []
        before: dict[tuple[int, ...], int] | None = None
        for length in range(2, STEPS_MAX + 1):
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

    def _effects(self, chains: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], ChainEffect]:
        strata = self._strata()
        if not any(len(runs) > 1 for runs in strata.values()):
            return dict.fromkeys(chains, ChainEffect("no tasks"))
        # Runs of tasks with both outcomes are ordered by task, successes first, with one byte per run and chain. So a
        # contingency table takes two counts, and a large store needs little memory.
        runs: list[str] = []
        bounds: list[tuple[int, int, int]] = []
        for stratum in strata.values():
            good = [root for root, is_good in stratum if is_good]
            bad = [root for root, is_good in stratum if not is_good]
            if good and bad:
                bounds.append((len(runs), len(runs) + len(good), len(runs) + len(stratum)))
                runs += [*good, *bad]
        has = {steps: bytearray(len(runs)) for steps in chains}
        for place, root in enumerate(runs):
            for length in range(2, STEPS_MAX + 1):
                for gram in _grams(self._traces[root], length, None):
                    if (row := has.get(gram)) is not None:
                        row[place] = 1
        out = dict.fromkeys(chains, ChainEffect("too few"))
        tested: list[tuple[tuple[int, ...], ChainEffect, float]] = []
        for steps in chains:
            tables = _tables(has.pop(steps), bounds)
            if total_variance(tables) >= VARIANCE_MIN:
                chance = _chance(tables)
                tested.append((steps, _effect(tables, chance), chance))
        kept = benjamini_hochberg([chance for _, _, chance in tested])
        for (steps, effect, _), is_kept in zip(tested, kept, strict=True):
            verdict = "more" if effect.odds > 1 else "less"
            out[steps] = msgspec.structs.replace(effect, verdict=verdict) if is_kept else effect
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
    """The chains of one length in these traces; with `parts`, only those whose parts are in it."""
    results: set[tuple[int, ...]] = set()
    for trace in traces:
        for at in range(len(trace) - length + 1):
            gram = trace[at : at + length]
            if parts is None or (gram[:-1] in parts and gram[1:] in parts):
                results.add(gram)
    return results


def _tables(has: bytearray, bounds: Sequence[tuple[int, int, int]]) -> list[Counts]:
    """The contingency table of each task in which the chain varies. `bounds` are, for each task, the start of its
    successes, the start of its failures, and its end."""
    out = []
    for first, middle, end in bounds:
        good, bad = has.count(1, first, middle), has.count(1, middle, end)
        if 0 < good + bad < end - first:
            out.append((good, bad, middle - first - good, end - middle - bad))
    return out


def _chance(strata: Sequence[Counts]) -> float:
    """By the formula; by permutation if the strata are small and the formula gives a low chance."""
    chance = cochran_mantel_haenszel(strata)
    if chance < WORTH_PERMUTING and total_variance(strata) < PERMUTE_BELOW:
        return permutation_test(strata)
    return chance


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


def first_place(session: TracedSession, steps: Sequence[str]) -> tuple[SessionId, int, int] | None:
    """Session, event and turn of the first occurrence of a chain in a session; None if there is none."""
    results = next((run for turn in session.turns() for run in matches(turn, steps)), None)
    return (session.id, results[0].asked, results[0].turn) if results else None


def matches(turn: Sequence[TracedStep], steps: Sequence[str]) -> Iterator[list[TracedStep]]:
    """The calls of each occurrence of a chain in a turn; a repeated step counts once."""
    starts = [at for at, step in enumerate(turn) if not at or turn[at - 1].label != step.label]
    labels = [turn[at].label for at in starts]
    for place in range(len(starts) - len(steps) + 1):
        if labels[place : place + len(steps)] == list(steps):
            end = starts[place + len(steps)] if place + len(steps) < len(starts) else len(turn)
            yield list(turn[starts[place] : end])
