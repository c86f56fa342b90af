"""A map of which step follows which, as a graph to be drawn.

An arrow counts how often one step came right after another in a turn. Only the most frequent steps and arrows are kept,
so that the picture stays readable.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from wakelog.index.questions import IndexQuestion, Number
from wakelog.index.results import AsOf
from wakelog.index.statements import IndexMoment
from wakelog.patterns.traces import traced_sessions

START, END = "start", "end"
STEPS_MAX = 20
ARROWS_MAX = 40


class MapStep(msgspec.Struct, frozen=True):
    """A step: how often it was made, and how often it failed."""

    label: str
    times: int
    failed: int


class MapArrow(msgspec.Struct, frozen=True):
    """How often one step came right after another."""

    a: str
    b: str
    times: int


class FollowsMap(msgspec.Struct, frozen=True):
    """The steps of some sessions, and what follows what."""

    steps: tuple[MapStep, ...]
    arrows: tuple[MapArrow, ...]
    turns: int
    as_of: AsOf

    def dot(self) -> str:
        """The map in the DOT language of Graphviz."""
        out = ["digraph steps {", "  rankdir=LR; node [shape=box];"]
        for step in self.steps:
            failed = f"\\n{step.failed} failed" if step.failed else ""
            out.append(f'  "{_quote(step.label)}" [label="{_quote(step.label)}\\n{step.times}{failed}"];')
        for arrow in self.arrows:
            out.append(f'  "{_quote(arrow.a)}" -> "{_quote(arrow.b)}" [label="{arrow.times}"];')
        return "\n".join([*out, "}"]) + "\n"

    def svg(self) -> str:
        """The map as a picture: steps from top to bottom by frequency, arrows beside them."""
        places = {name: at for at, name in enumerate([START, *(s.label for s in self.steps), END])}
        counts = {
            step.label: f"{step.times}" + (f", {step.failed} failed" if step.failed else "") for step in self.steps
        }
        height = 40 * len(places) + 20
        most = max((arrow.times for arrow in self.arrows), default=1)
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{height}" font-family="sans-serif"'
            ' font-size="12">'
        ]
        for arrow in self.arrows:
            a, b = 40 * places[arrow.a] + 30, 40 * places[arrow.b] + 30
            bend = 330 + 12 * abs(places[arrow.a] - places[arrow.b])
            wide = 0.5 + 3.5 * arrow.times / most
            colour = "#2b6cb0" if b > a else "#b7791f"
            out.append(
                f'<path d="M300 {a} C{bend} {a} {bend} {b} 300 {b}" fill="none" stroke="{colour}"'
                f' stroke-width="{wide:.1f}"><title>{_escape(arrow.a)} to {_escape(arrow.b)}:'
                f" {arrow.times}</title></path>"
            )
        for name, at in places.items():
            y = 40 * at + 15
            title = f"{name}  {counts.get(name, '')}".strip()
            out.append(f'<rect x="10" y="{y}" width="290" height="30" rx="4" fill="#edf2f7" stroke="#a0aec0"/>')
            out.append(f'<text x="20" y="{y + 19}">{_escape(title[:48])}</text>')
        return "\n".join([*out, "</svg>"]) + "\n"


class AskMap(IndexQuestion, frozen=True):
    """What follows what: the steps of sessions as a graph."""

    project: str | None = None
    since: Number | None = None
    until: Number | None = None

    def __call__(self, reading: IndexMoment) -> FollowsMap:
        times: Counter[str] = Counter()
        failed: Counter[str] = Counter()
        arrows: Counter[tuple[str, str]] = Counter()
        turns = 0
        for session in traced_sessions(reading.db, self.project, since=self.since, until=self.until):
            for turn in session.turns():
                turns += 1
                before = START
                for step in turn:
                    times[step.label] += 1
                    failed[step.label] += step.has_failed
                    if step.label != before:
                        arrows[before, step.label] += 1
                    before = step.label
                arrows[before, END] += 1
        labels = sorted(times, key=lambda label: (-times[label], label))[:STEPS_MAX]
        kept = {START, END, *labels}
        drawn = [MapArrow(a, b, count) for (a, b), count in arrows.items() if a in kept and b in kept]
        drawn.sort(key=lambda arrow: (-arrow.times, arrow.a, arrow.b))
        steps = [MapStep(label, times[label], failed[label]) for label in labels]
        return FollowsMap(tuple(steps), tuple(drawn[:ARROWS_MAX]), turns, reading.as_of)


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
