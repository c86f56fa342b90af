"""Patterns other than chains: loops, flaky tools, files that change together, calls that take far longer than usual,
and repeated dead ends.

Each is collected in one pass over the sessions and counted in fork trees.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import msgspec

from wakelog.index.connection import Connection
from wakelog.model.ids import Seq, SessionId
from wakelog.patterns.statistics import deviation, median
from wakelog.patterns.traces import TracedSession, TracedStep

LOOP = 3
"""The same call with the same input this many times in a row is a loop."""
FILES_MAX = 30
"""A turn that changes more files than this says nothing about which belong together."""
PAIRS_MAX = 50_000
FAR = 6.0
"""A call is slow if it takes this many deviations more than the median."""
PLACES_MAX = 20
DURATIONS_MIN = 20
DURATIONS_MAX = 2000
"""How many durations of a step are needed for a verdict, and how many are kept."""

_DEAD_ENDS = """
select s.id, s.name, s.root, s.project, d.seq, d.tried, d.learned, e.occurred, e.trust, e.turn from wl_dead_end d
join wl_session s on s.no = d.session and s.hidden = 0
join wl_event e on e.session = d.session and e.seq = d.seq
where (:project is null or s.project = :project) order by s.id, d.seq
"""


class Sighting(msgspec.Struct, frozen=True):
    """One place where a pattern was seen."""

    session: SessionId
    name: str
    root: str
    seq: Seq
    turn: int
    at: int
    distrust: int
    note: str = ""


class Sightings(msgspec.Struct):
    """How often something was seen, in how many fork trees, and the last places. Sessions must be added one fork tree
    after another."""

    times: int = 0
    roots: int = 0
    distrust: int = 0
    places: list[Sighting] = []
    last_root: str = ""

    def add(self, session: TracedSession, step: TracedStep, note: str = "", *, most: int = PLACES_MAX) -> None:
        self.times += 1
        self.distrust = max(self.distrust, step.distrust)
        if session.root != self.last_root:
            self.roots += 1
            self.last_root = session.root
        self.places.append(_sighting(session, step, note))
        if len(self.places) > most:
            del self.places[0]


class Habits:
    """Collects sessions. `loops` and `flaky` are by label, `together` by project and two paths."""

    def __init__(self) -> None:
        self.loops: dict[str, Sightings] = {}
        self.flaky: dict[str, Sightings] = {}
        self.together: dict[tuple[str, str, str], Sightings] = {}
        self._changes: dict[tuple[str, str], Sightings] = {}
        self._durations: dict[str, list[int]] = {}
        self._longest: dict[str, list[tuple[int, Sighting]]] = {}

    def take(self, session: TracedSession) -> None:
        for turn in session.turns():
            self._take_loops(session, turn)
            self._take_flaky(session, turn)
            self._take_files(session, turn)
            for step in turn:
                self._take_duration(session, step)

    def _take_loops(self, session: TracedSession, turn: Sequence[TracedStep]) -> None:
        for (label, input), group in itertools.groupby(turn, key=lambda step: (step.label, step.input)):
            steps = list(group)
            if input and len(steps) >= LOOP:
                self.loops.setdefault(label, Sightings()).add(session, steps[-1], f"{len(steps)} times")

    def _take_flaky(self, session: TracedSession, turn: Sequence[TracedStep]) -> None:
        """Finds a call that was repeated with the same input, with only reads in between, and another outcome."""
        last: dict[tuple[str, str], TracedStep] = {}
        for step in turn:
            if step.act not in ("look", "plan") and (step.label, step.input) not in last:
                last.clear()
            before = last.get((step.label, step.input)) if step.input else None
            if before is not None and before.has_failed != step.has_failed:
                note = "failed, then worked" if before.has_failed else "worked, then failed"
                self.flaky.setdefault(step.label, Sightings()).add(session, step, note)
            if step.input and step.outcome in ("succeeded", "failed", "timed_out"):
                last[step.label, step.input] = step

    def _take_files(self, session: TracedSession, turn: Sequence[TracedStep]) -> None:
        changed = {s.target: s for s in turn if s.act == "write" and s.outcome == "succeeded" and s.target}
        if not session.project or len(changed) > FILES_MAX:
            return
        for path, step in changed.items():
            self._changes.setdefault((session.project, path), Sightings()).add(session, step, most=0)
        for a, b in itertools.combinations(sorted(changed), 2):
            key = (session.project, a, b)
            if key in self.together or len(self.together) < PAIRS_MAX:
                self.together.setdefault(key, Sightings()).add(session, changed[b], most=2)

    def _take_duration(self, session: TracedSession, step: TracedStep) -> None:
        if step.duration_us <= 0:
            return
        kept = self._durations.setdefault(step.label, [])
        if len(kept) < DURATIONS_MAX:
            kept.append(step.duration_us)
        longest = self._longest.setdefault(step.label, [])
        if len(longest) < 5 or step.duration_us > longest[-1][0]:
            longest.append((step.duration_us, _sighting(session, step)))
            longest.sort(key=lambda pair: -pair[0])
            del longest[5:]

    def slow(self) -> list[tuple[str, float, list[tuple[int, Sighting]]]]:
        """Steps with calls that took far longer than usual: the label, the median, and those calls."""
        out = []
        for label, longest in self._longest.items():
            durations = self._durations[label]
            if len(durations) < DURATIONS_MIN:
                continue
            usual = median(durations)
            limit = usual + FAR * max(deviation(durations), 0.1 * usual)
            if far := [pair for pair in longest if pair[0] > limit]:
                out.append((label, usual, far))
        return sorted(out, key=lambda found: (-found[2][0][0] / max(1.0, found[1]), found[0]))

    def change_roots(self, project: str, path: str) -> int:
        """How many fork trees changed a file."""
        sightings = self._changes.get((project, path))
        return sightings.roots if sightings else 0


def repeated_dead_ends(db: Connection, project: str | None) -> list[tuple[str, list[Sighting]]]:
    """Dead ends noted in more than one fork tree, in the same words apart from numbers and case."""
    results: dict[tuple[str, str], list[Sighting]] = {}
    words: dict[tuple[str, str], str] = {}
    for id_, name, root, place, seq, tried, learned, at, distrust, turn in db.execute(
        _DEAD_ENDS, {"project": project}
    ).fetchall():
        key = (place, " ".join(re.findall(r"[^\W\d_]+", str(tried).lower())))
        if key[1]:
            words[key] = tried
            results.setdefault(key, []).append(Sighting(id_, name, root, seq, turn, at, distrust, learned))
    return [(words[key], sightings) for key, sightings in results.items() if len({s.root for s in sightings}) > 1]


def _sighting(session: TracedSession, step: TracedStep, note: str = "") -> Sighting:
    return Sighting(session.id, session.name, session.root, step.seq, step.turn, step.at, step.distrust, note)
