"""Finds all patterns and describes each in a sentence, with the places where it was seen.

A pattern claims no more than its text says: a chain goes with success or not, an error ended so often, two files
changed together so often.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, Literal, get_args

import msgspec

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.index.connection import Connection
from wakelog.index.questions import IndexQuestion, Number
from wakelog.index.results import AsOf
from wakelog.index.scope import check_limit
from wakelog.index.statements import IndexMoment
from wakelog.model.ids import Seq, SessionId
from wakelog.model.trust import TRUSTS, Trust
from wakelog.patterns.chains import Chain, ChainMine, chain_id, first_place
from wakelog.patterns.habits import Habits, Sighting, Sightings, repeated_dead_ends
from wakelog.patterns.recipes import Recipe, RecipeBook
from wakelog.patterns.traces import traced_sessions

PatternKind = Literal["chain", "recipe", "dead_end", "loop", "flaky", "together", "slow"]
KINDS: Final[tuple[PatternKind, ...]] = get_args(PatternKind)
PER_KIND: Final = 5
SEEN_MAX: Final = 20
TOGETHER_ROOTS: Final = 3
TOGETHER_SHARE: Final = 0.6
"""Two files change together if this share of the sessions that changed the rarer one changed both."""
CHAIN_STEPS: Final = 3
"""Shorter chains are shown only if they go with success or failure."""


class PatternPlace(msgspec.Struct, frozen=True):
    """Where a pattern was seen."""

    session: SessionId
    name: str
    seq: Seq
    turn: int
    at: int
    note: str = ""


class WorkPattern(msgspec.Struct, frozen=True):
    """Something that sessions do again and again."""

    id: str
    kind: PatternKind
    text: str
    roots: int
    """In how many independent sessions it was seen; a session and its forks count as one."""
    times: int
    trust: Trust
    steps: tuple[str, ...] = ()
    verdict: str = ""
    """For a chain: `more`, `less`, `no difference`, `too few` or `no tasks` (chains.py)."""
    odds: float = 1.0
    chance: float = 1.0
    seen: tuple[PatternPlace, ...] = ()


class FoundPatterns(msgspec.Struct, frozen=True):
    """The patterns of a project, and how many sessions were read."""

    patterns: tuple[WorkPattern, ...]
    sessions: int
    roots: int
    hidden: int
    """How many more there are of the kinds shown."""
    notes: tuple[str, ...]
    as_of: AsOf


class AskPatterns(IndexQuestion, frozen=True):
    """What sessions do again and again: chains of steps, recipes after errors, repeated dead ends, loops, flaky tools,
    files that change together, slow calls. Returns the best `limit` of each kind; a pattern must be in at least `least`
    independent sessions."""

    project: str | None = None
    kinds: tuple[str, ...] = ()
    since: Number | None = None
    until: Number | None = None
    least: Number = 0
    limit: Number = PER_KIND

    def __call__(self, reading: IndexMoment) -> FoundPatterns:
        check_limit(self.limit)
        if unknown := [kind for kind in self.kinds if kind not in KINDS]:
            raise InvalidInputError(
                f"there are no patterns of the kind {unknown[0]!r}", kind="bad-kind", hint=f"use {', '.join(KINDS)}"
            )
        results, sessions, roots, notes = _find_patterns(
            reading.db, self.project, self.kinds or KINDS, self.since, self.until, self.least
        )
        patterns = tuple(pattern for of_kind in results for pattern in of_kind[: self.limit])
        hidden = sum(map(len, results)) - len(patterns)
        return FoundPatterns(patterns, sessions, roots, hidden, tuple(notes), reading.as_of)


class AskPattern(IndexQuestion, frozen=True):
    """One pattern by its id, with the places where it was seen."""

    id: str
    project: str | None = None

    def __call__(self, reading: IndexMoment) -> WorkPattern:
        results, *_ = _find_patterns(reading.db, self.project)
        pattern = next((p for of_kind in results for p in of_kind if p.id == self.id), None)
        if pattern is None:
            raise NotFoundError(
                f"there is no pattern {self.id}", kind="pattern-not-found", hint="wakelog patterns lists what there is"
            )
        if pattern.kind == "chain":
            places = _pattern_places(reading.db, pattern, self.project)
            return msgspec.structs.replace(pattern, times=len(places), seen=tuple(places[:SEEN_MAX]))
        return pattern


def _find_patterns(
    db: Connection,
    project: str | None,
    kinds: Sequence[str] = KINDS,
    since: int | None = None,
    until: int | None = None,
    least: int = 0,
) -> tuple[list[list[WorkPattern]], int, int, list[str]]:
    """All patterns by kind, the best first; the numbers of sessions and of fork trees; and notes."""
    mine, book, habits, sessions = ChainMine(), RecipeBook(), Habits(), 0
    for session in traced_sessions(db, project, since=since, until=until):
        sessions += 1
        mine.take(session)
        book.take(session.id, session.name, session.root, session.project, session.steps)
        habits.take(session)
    notes: list[str] = []
    out: list[list[WorkPattern]] = []
    support = max(2, least)
    if "chain" in kinds:
        chains = mine.chains(least)
        out.append([_chain(chain) for chain in _choose_chains(chains)])
        notes += _outcome_notes(chains)
    if "recipe" in kinds:
        out.append([_recipe(recipe) for recipe in book.recipes(least_roots=support)])
    if "dead_end" in kinds:
        out.append([_dead_end(words, sightings) for words, sightings in repeated_dead_ends(db, project)])
    if "loop" in kinds:
        out.append(_by_label("loop", habits.loops, "is called again and again with the same input", support))
    if "flaky" in kinds:
        claim = "gave another outcome for the same input, with nothing changed in between"
        out.append(_by_label("flaky", habits.flaky, claim, support))
    if "together" in kinds:
        out.append(list(_together(habits)))
    if "slow" in kinds:
        out.append([_slow(*found) for found in habits.slow()])
    if sessions < 2 * support:
        notes.append(f"too few: {sessions} sessions are not enough to tell what repeats")
    return out, sessions, mine.roots, notes


def _pattern_places(db: Connection, pattern: WorkPattern, project: str | None) -> list[PatternPlace]:
    """Where a chain was seen, one place per session, the newest first. Other patterns have their places already."""
    places = []
    for session in traced_sessions(db, project):
        if (found := first_place(session, pattern.steps)) is not None:
            id_, seq, turn = found
            places.append(PatternPlace(id_, session.name, seq, turn, session.last_at))
    return sorted(places, key=lambda place: (-place.at, place.session))


def _choose_chains(chains: Sequence[Chain]) -> list[Chain]:
    """The chains to show: those with an effect on success first, then by how much they cover; none that shares most of
    its steps with an earlier one."""
    ranked = [c for c in chains if len(c.steps) >= CHAIN_STEPS or c.effect.verdict in ("more", "less")]
    ranked.sort(key=lambda c: (c.effect.verdict not in ("more", "less"), -c.roots * (len(c.steps) - 1), c.steps))
    kept: list[Chain] = []
    seen: set[tuple[str, ...]] = set()
    for chain in ranked:
        parts = {chain.steps[at : at + 2] for at in range(len(chain.steps) - 1)}
        if len(parts & seen) * 2 <= len(parts):
            kept.append(chain)
            seen |= parts
    return kept


def _outcome_notes(chains: Sequence[Chain]) -> list[str]:
    verdicts = {chain.effect.verdict for chain in chains}
    if "too few" in verdicts and not verdicts & {"more", "less", "no difference"}:
        return ["too few runs of the same task to say which chains go with success"]
    if verdicts == {"no tasks"}:
        return ["no two sessions have the same task (label `task`, or the goal), so nothing is said about success"]
    return []


_CLAIMS = {
    "more": "; within tasks it goes with success (odds ×{odds:g}, {tasks} tasks)",
    "less": "; within tasks it goes with failure (odds ×{odds:g}, {tasks} tasks)",
}


def _chain(chain: Chain) -> WorkPattern:
    effect = chain.effect
    claim = _CLAIMS.get(effect.verdict, "").format(odds=effect.odds, tasks=effect.tasks)
    return WorkPattern(
        id=chain_id(chain.steps),
        kind="chain",
        text=f"{' → '.join(chain.steps)}{claim}",
        roots=chain.roots,
        times=chain.roots,
        trust="unverified",
        steps=chain.steps,
        verdict=effect.verdict,
        odds=effect.odds,
        chance=effect.chance,
    )


def _recipe(recipe: Recipe) -> WorkPattern:
    after = f", mostly after {' → '.join(recipe.steps)}" if recipe.steps else ""
    rate = f"{recipe.ended} of {recipe.of} times (at least {recipe.at_least:.0%})"
    places = [PatternPlace(i.session, i.name, i.ended or i.failed, i.turn, i.at) for i in recipe.instances]
    return WorkPattern(
        id=recipe.id,
        kind="recipe",
        text=f"{recipe.label} fails with “{recipe.signature}”; worked again {rate}{after}",
        roots=recipe.roots,
        times=recipe.of,
        trust=recipe.trust,
        steps=recipe.steps,
        seen=tuple(places[:SEEN_MAX]),
    )


def _dead_end(words: str, sightings: Sequence[Sighting]) -> WorkPattern:
    learned = next((sighting.note for sighting in reversed(sightings) if sighting.note), "")
    text = f"given up again: {words}" + (f" ({learned})" if learned else "")
    return _pattern("dead_end", words, text, _sightings(sightings))


def _by_label(kind: PatternKind, results: dict[str, Sightings], claim: str, support: int) -> list[WorkPattern]:
    patterns = [_pattern(kind, label, f"{label} {claim}", sightings) for label, sightings in results.items()]
    kept = [pattern for pattern in patterns if pattern.roots >= support]
    return sorted(kept, key=lambda p: (-p.roots, -p.times, p.id))


def _together(habits: Habits) -> Iterable[WorkPattern]:
    results = []
    for (project, a, b), sightings in habits.together.items():
        roots = sightings.roots
        rarer = min(habits.change_roots(project, a), habits.change_roots(project, b))
        if roots >= TOGETHER_ROOTS and roots >= TOGETHER_SHARE * rarer:
            text = f"{a} and {b} change together: in {roots} of {rarer} sessions that changed the rarer one"
            results.append((roots / rarer, _pattern("together", f"{project}\0{a}\0{b}", text, sightings)))
    return [pattern for _, pattern in sorted(results, key=lambda pair: (-pair[1].roots, -pair[0], pair[1].id))]


def _slow(label: str, usual: float, far: Sequence[tuple[int, Sighting]]) -> WorkPattern:
    longest = far[0][0]
    text = f"{label} took {longest / 1e6:.1f} s; {usual / 1e6:.1f} s is usual"
    return _pattern("slow", label, text, _sightings([sighting for _, sighting in far]))


def _sightings(sightings: Sequence[Sighting]) -> Sightings:
    return Sightings(
        len(sightings), len({s.root for s in sightings}), max(s.distrust for s in sightings), list(sightings)
    )


def _pattern(kind: PatternKind, key: str, text: str, sightings: Sightings) -> WorkPattern:
    newest = sorted(sightings.places, key=lambda s: (-s.at, s.session, s.seq))
    places = [PatternPlace(s.session, s.name, s.seq, s.turn, s.at, s.note) for s in newest[:SEEN_MAX]]
    return WorkPattern(
        id=kind[0] + hashlib.sha256(f"{kind}\0{key}".encode()).hexdigest()[:8],
        kind=kind,
        text=" ".join(text.split())[:300],
        roots=sightings.roots,
        times=sightings.times,
        trust=TRUSTS[min(2, sightings.distrust)],
        seen=tuple(places),
    )
