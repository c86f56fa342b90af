"""Recipes: what was done before an error went away.

An episode begins when a step fails with some signature, and ends when the same step with the same target succeeds
within 15 calls of the same turn. Repeats of the failure in between belong to the episode. Tools that write the same
file count as the same step: if an edit failed and a plain write then succeeded, the error ended. A recipe combines all
episodes of one error at one step: how many there were, how many ended, and which steps most of those had in between. It
does not claim that these steps ended the error.
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
from wakelog.patterns.traces import TracedStep, by_turn, steps_of

WINDOW = 15
"""An error must end within this many calls."""
SHARED = 2 / 3
"""A step may belong to the recipe if this share of the ended episodes has it."""
BY_CHANCE = 0.01
"""It does belong if the chance of seeing it that often, at its rate after other errors, is below this."""
PRIOR, PRIOR_WEIGHT = 0.1, 10
"""The assumed rate of a step before anything was seen, and how many episodes that assumption is worth."""
EXACT_MAX = 200
"""With more episodes, the chance is approximated by the normal distribution."""
SESSIONS_MAX = 60
"""For one error, how many of the newest sessions that met it to read."""
SHOWN_MAX = 20

_MET = """
select s.no, s.id, s.name, s.root, s.project from wl_touch t join wl_session s on s.no = t.session and s.hidden = 0
where t.key = :key and t.kind = 'error' and (:project is null or s.project = :project)
order by t.at desc, s.id limit :limit
"""


class RecipeInstance(msgspec.Struct, frozen=True):
    """One occurrence of an error: where, whether it ended, and what was done in between."""

    session: SessionId
    name: str
    root: str
    failed: Seq
    ended: Seq
    """The event of the success; 0 if it did not end."""
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
    """The steps that most of the ended ones had in between, in order; empty if they have nothing in common."""
    roots: int
    """How many independent sessions met it."""
    trust: Trust
    at: int
    instances: tuple[RecipeInstance, ...]
    """The newest first."""


class _OpenEpisode(msgspec.Struct):
    """An episode that has not ended yet."""

    first: TracedStep
    place: int
    between: list[str]
    distrust: int


def episodes(turn: Sequence[TracedStep]) -> Iterator[tuple[TracedStep, TracedStep | None, tuple[str, ...], int]]:
    """The episodes of one turn: the failure, the success or None, the steps in between, and the worst distrust."""
    running: dict[tuple[str, str], _OpenEpisode] = {}
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
            running[key] = _OpenEpisode(step, place, [], step.distrust)
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
    """The recipes for one error, the most reliable first. `besides` is a fork tree to leave out."""
    values = {"key": as_key(signature), "project": project, "limit": SESSIONS_MAX}
    met = sorted((row for row in db.execute(_MET, values).fetchall() if row[3] != besides), key=lambda row: row[3])
    steps = steps_of(db, [row[0] for row in met])
    book = RecipeBook(only=signature)
    for no, id_, name, root, place in met:
        book.take(id_, name, root, place, steps.get(no, []))
    return book.recipes(least_roots=1)


class _Tally(msgspec.Struct):
    """The totals of the episodes of one error at one step."""

    of: int = 0
    ended: int = 0
    roots: int = 0
    distrust: int = 0
    last_root: str = ""
    newest: list[RecipeInstance] = []
    between: dict[str, int] = {}
    """For each step, how many ended episodes have it in between."""
    places: dict[str, float] = {}
    """For each step, the sum of its relative positions there, from 0 to 1."""

    def add(self, instance: RecipeInstance) -> None:
        self.of += 1
        self.distrust = max(self.distrust, instance.distrust)
        if instance.root != self.last_root:
            self.roots += 1
            self.last_root = instance.root
        if instance.ended:
            self.ended += 1
            for at, label in enumerate(dict.fromkeys(instance.steps)):
                self.between[label] = self.between.get(label, 0) + 1
                self.places[label] = self.places.get(label, 0.0) + at / len(instance.steps)
        self.newest.append(instance)
        if len(self.newest) > 4 * SHOWN_MAX:
            self.keep_newest()

    def keep_newest(self) -> None:
        self.newest.sort(key=lambda i: (-i.at, i.session, i.failed))
        del self.newest[SHOWN_MAX:]


class RecipeBook:
    """Collects episodes from sessions. Sessions must be added one fork tree after another. For each error only totals
    and the newest places are kept."""

    def __init__(self, only: str = "") -> None:
        self._only = only
        self._found: dict[tuple[str, str, str], _Tally] = {}
        self._ended = 0
        self._between: Counter[str] = Counter()

    def take(self, session: SessionId, name: str, root: str, project: str, steps: Iterable[TracedStep]) -> None:
        for turn in by_turn(steps):
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
                self._found.setdefault((failed.signature, failed.label, project), _Tally()).add(instance)

    def recipes(self, *, least_roots: int = 2) -> list[Recipe]:
        """Errors that ended at least once, in at least `least_roots` independent sessions; the most reliable first."""
        out = []
        for (signature, label, project), tally in self._found.items():
            if not tally.ended or tally.roots < least_roots:
                continue
            tally.keep_newest()
            out.append(
                Recipe(
                    id=recipe_id(signature, label, project),
                    signature=signature,
                    label=label,
                    project=project,
                    ended=tally.ended,
                    of=tally.of,
                    at_least=round(wilson(tally.ended, tally.of)[0], 3),
                    steps=self._typical_steps(tally),
                    roots=tally.roots,
                    trust=TRUSTS[min(2, tally.distrust)],
                    at=tally.newest[0].at,
                    instances=tuple(tally.newest),
                )
            )
        return sorted(out, key=lambda r: (-r.at_least, -r.roots, -r.at, r.id))

    def _typical_steps(self, tally: _Tally) -> tuple[str, ...]:
        """The steps that most ended episodes have and episodes of other errors do not, in their usual order."""
        others = self._ended - tally.ended
        kept = []
        for label, count in tally.between.items():
            usual = (self._between[label] - count + PRIOR * PRIOR_WEIGHT) / (others + PRIOR_WEIGHT)
            if count >= SHARED * tally.ended and _binomial_tail(count, tally.ended, usual) <= BY_CHANCE:
                kept.append(label)
        return tuple(sorted(kept, key=lambda label: (tally.places[label] / tally.between[label], label)))


def _binomial_tail(count: int, trials: int, rate: float) -> float:
    """The chance of `count` or more successes."""
    if trials > EXACT_MAX:
        middle, spread = trials * rate, math.sqrt(trials * rate * (1 - rate)) or 1.0
        return math.erfc((count - 0.5 - middle) / spread / math.sqrt(2)) / 2
    return sum(math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(count, trials + 1))
