"""Recipes: what ended an error before.

An episode begins when a step fails with some signature, and ends when the same step, at the same target, succeeds
within 15 calls of the same turn; repeats of the failure in between belong to it. Two tools that write the same file are
the same step here: whoever could not edit it, and then wrote it, got it done. A recipe is all episodes of one error
at one step: how many ended, out of how many, and which steps most of those had in between. That something ended after
some steps does not say that they ended it.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from wakelog.index.connection import Connection, as_key
from wakelog.model.ids import Seq, SessionId
from wakelog.model.trust import TRUSTS, Trust
from wakelog.patterns.statistics import wilson
from wakelog.patterns.traces import TracedStep, steps_of

WINDOW = 15
"""Within so many calls an error must have ended."""
SHARED = 2 / 3
"""A step that so many of the ended episodes have in between may belong to the recipe."""
BY_CHANCE = 0.01
"""It does when it would not be there so often by chance: as often as after other errors."""
PRIOR, PRIOR_WEIGHT = 0.1, 10
"""How often a step is in between before anything was seen, and how many episodes that is worth."""
SESSIONS_MAX = 60
"""For one error the newest so many sessions that met it are looked at."""
SHOWN_MAX = 20

_MET = """
select s.no, s.id, s.name, s.root, s.project from wl_touch t join wl_session s on s.no = t.session and s.hidden = 0
where t.key = :key and t.kind = 'error' and (:project is null or s.project = :project)
order by t.at desc, s.id limit :limit
"""


class RecipeInstance(msgspec.Struct, frozen=True):
    """One time that an error was met: where, whether it ended, and what was done in between."""

    session: SessionId
    name: str
    root: str
    failed: Seq
    ended: Seq
    """The event of the success; 0 when it did not end."""
    turn: int
    at: int
    steps: tuple[str, ...]
    distrust: int


class Recipe(msgspec.Struct, frozen=True):
    """An error at a step, and how it ended before."""

    id: str
    signature: str
    label: str
    project: str
    ended: int
    of: int
    at_least: float
    """The lower bound of the rate at which it ended (Wilson, 95 %)."""
    steps: tuple[str, ...]
    """What most of the ended ones had in between, in order; empty when they have nothing in common."""
    roots: int
    """How many independent sessions met it."""
    trust: Trust
    at: int
    instances: tuple[RecipeInstance, ...]
    """The newest first."""


class _Open(msgspec.Struct):
    """An episode that has not ended yet."""

    first: TracedStep
    signature: str
    place: int
    between: list[str]
    distrust: int


def episodes(turn: Sequence[TracedStep]) -> Iterator[tuple[TracedStep, TracedStep | None, tuple[str, ...], int]]:
    """The episodes of one turn: the failure, the success or None, the steps in between, and the worst distrust."""
    running: dict[tuple[str, str], _Open] = {}
    for place, step in enumerate(turn):
        key = ("" if step.act == "write" and step.target else step.label, step.target)
        for other_key, other in list(running.items()):
            if place - other.place > WINDOW:
                yield other.first, None, (), other.distrust
                del running[other_key]
        mine = running.get(key)
        if mine is not None and step.outcome == "succeeded":
            yield mine.first, step, tuple(mine.between), max(mine.distrust, step.distrust)
            del running[key]
        elif step.has_failed and step.signature and mine is None:
            running[key] = _Open(step, step.signature, place, [], step.distrust)
        for other_key, other in running.items():
            if (
                other_key != key
                and step.outcome == "succeeded"
                and (not other.between or other.between[-1] != step.label)
            ):
                other.between.append(step.label)
    for other in running.values():
        yield other.first, None, (), other.distrust


def recipe_id(signature: str, label: str, project: str) -> str:
    return "r" + hashlib.sha256(f"{signature}\0{label}\0{project}".encode()).hexdigest()[:8]


def recipes_for(db: Connection, signature: str, project: str | None, *, besides: str = "") -> list[Recipe]:
    """The recipes for one error, the surest first. `besides` is a fork tree that does not count."""
    values = {"key": as_key(signature), "project": project, "limit": SESSIONS_MAX}
    met = [row for row in db.execute(_MET, values).fetchall() if row[3] != besides]
    steps = steps_of(db, [row[0] for row in met])
    book = RecipeBook(only=signature)
    for no, id_, name, root, place in met:
        book.take(id_, name, root, place, steps.get(no, []))
    return book.recipes(least_roots=1)


class RecipeBook:
    """Collects episodes from sessions."""

    def __init__(self, only: str = "") -> None:
        self._only = only
        self._found: dict[tuple[str, str, str], list[RecipeInstance]] = {}
        self._ended = 0
        self._between: Counter[str] = Counter()

    def take(self, session: SessionId, name: str, root: str, project: str, steps: Iterable[TracedStep]) -> None:
        turns: dict[tuple[int, int], list[TracedStep]] = {}
        for step in steps:
            turns.setdefault((step.turn, step.attempt), []).append(step)
        for turn in turns.values():
            if not any(step.signature for step in turn):
                continue
            for failed, ended, between, distrust in episodes(turn):
                if ended is not None:
                    self._ended += 1
                    self._between.update(set(between))
                if self._only and failed.signature != self._only:
                    continue
                instance = RecipeInstance(
                    session=session,
                    name=name,
                    root=root,
                    failed=failed.seq,
                    ended=ended.seq if ended else 0,
                    turn=failed.turn,
                    at=(ended or failed).at,
                    steps=between,
                    distrust=distrust,
                )
                self._found.setdefault((failed.signature, failed.label, project), []).append(instance)

    def recipes(self, *, least_roots: int = 2) -> list[Recipe]:
        """What ended at least once, met by so many independent sessions; the surest first."""
        out = []
        for (signature, label, project), instances in self._found.items():
            ended = [i for i in instances if i.ended]
            roots = len({i.root for i in instances})
            if not ended or roots < least_roots:
                continue
            newest = sorted(instances, key=lambda i: (-i.at, i.session, i.failed))
            out.append(
                Recipe(
                    id=recipe_id(signature, label, project),
                    signature=signature,
                    label=label,
                    project=project,
                    ended=len(ended),
                    of=len(instances),
                    at_least=round(wilson(len(ended), len(instances))[0], 3),
                    steps=self._telling([i.steps for i in ended]),
                    roots=roots,
                    trust=TRUSTS[min(2, max(i.distrust for i in instances))],
                    at=newest[0].at,
                    instances=tuple(newest[:SHOWN_MAX]),
                )
            )
        return sorted(out, key=lambda r: (-r.at_least, -r.roots, -r.at, r.id))

    def _telling(self, between: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        """The steps that most of the ended episodes have in between, and others have not."""
        counts = Counter(label for steps in between for label in set(steps))
        others = self._ended - len(between)
        kept = []
        for label, count in counts.items():
            usual = (self._between[label] - count + PRIOR * PRIOR_WEIGHT) / (others + PRIOR_WEIGHT)
            if count >= SHARED * len(between) and _at_least(count, len(between), usual) <= BY_CHANCE:
                kept.append(label)
        return in_usual_order(kept, between)


def _at_least(count: int, trials: int, rate: float) -> float:
    """The chance of so many or more."""
    return sum(math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(count, trials + 1))


def in_usual_order(kept: Sequence[str], between: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Steps in the order in which they mostly come."""
    places: dict[str, list[float]] = {label: [] for label in kept}
    for steps in between:
        for label in kept:
            if label in steps:
                places[label].append(steps.index(label) / len(steps))
    return tuple(sorted(kept, key=lambda label: (sum(places[label]) / len(places[label]), label)))
