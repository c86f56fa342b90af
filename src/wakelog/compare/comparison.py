"""Compares attempts, forks and sessions step by step.

The first course is the baseline. Each other course is aligned with it (alignment.py). The first difference is found and
explained (divergence.py), and the two ends are compared: outcome, money, time, state, files. Courses of one fork tree
share the history up to the fork; that part is named, not read again.

Nothing is left out silently: `notes` says what was limited.
"""

from __future__ import annotations

import msgspec

from wakelog.compare.alignment import AlignedStep, align
from wakelog.compare.divergence import Divergence, Pairing, state_changes
from wakelog.compare.first_call import FirstCall, first_call
from wakelog.compare.steps import Step
from wakelog.compare.trajectory import Course, Extent, read_course
from wakelog.diff.turn_diff import Change
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.log import Log
from wakelog.model.html import box, table, text
from wakelog.model.ids import Seq
from wakelog.model.short_text import pluralize

WINDOWS_MAX = 100
"""How many steps that differ only in the hash of the model's window are compared item by item."""


class Pair(msgspec.Struct, frozen=True):
    """A course beside the baseline."""

    a: Course
    b: Course
    rows: tuple[AlignedStep, ...]
    divergence: Divergence | None
    """None if they did the same."""
    ends: tuple[Change, ...]
    """What differs between the states at the ends of `a` and `b`."""
    shared: Seq
    """The last event of the history they share, which was not compared; 0 when they share nothing, or are in one
    session."""
    notes: tuple[str, ...]
    """What could not be compared, or was limited."""
    first_call: FirstCall | None = None
    """The first call that differs, which may come after the divergence; None if they made the same calls."""

    @property
    def same(self) -> int:
        return sum(row.verdict == "same" for row in self.rows)

    @property
    def unknown(self) -> int:
        """Steps that cannot be compared: their content is gone."""
        return sum(row.verdict == "unknown" for row in self.rows)

    @property
    def minor(self) -> int:
        return sum(row.verdict == "same" and bool(row.minor) for row in self.rows)

    def steps(self, row: AlignedStep) -> tuple[Step | None, Step | None]:
        """The two steps of a row."""
        return (
            self.a.steps[row.a] if row.a is not None else None,
            self.b.steps[row.b] if row.b is not None else None,
        )


class Comparison(msgspec.Struct, frozen=True):
    """Two or more courses; the first is the baseline."""

    courses: tuple[Course, ...]
    pairs: tuple[Pair, ...]
    """Each of the others beside the baseline."""

    @property
    def divergence(self) -> Divergence | None:
        """Where the second course leaves the first."""
        return self.pairs[0].divergence

    def _repr_html_(self) -> str:
        return _html(self)

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return any(pair.divergence is not None for pair in self.pairs)

    def __str__(self) -> str:
        return "\n".join(map(_sentence, self.pairs))


def _sentence(pair: Pair) -> str:
    divergence = pair.divergence
    names = f"{pair.a.name} and {pair.b.name}"
    if divergence is None:
        return f"{names}: the same, in {pluralize(pair.same, 'step')}"
    a, b = (_words(course, place) for course, place in ((pair.a, divergence.a), (pair.b, divergence.b)))
    what = "" if divergence.what == ("step",) else f" ({', '.join(divergence.what)} differs)"
    behind = [finding.what for finding in divergence.behind if finding.verdict == "differs"]
    because = f"; before it, {' and '.join(behind)} differed" if behind else ""
    return f"{names}: the same for {pluralize(divergence.same_before, 'step')}, then {a} and {b}{what}{because}"


def _words(course: Course, place: int | None) -> str:
    if place is None:
        return "nothing more"
    step = course.steps[place]
    return f"{step.kind} {step.name}".strip() + f" e{step.seq}"


def compare(*extents: Extent) -> Comparison:
    """Reads courses and compares them with the first of them."""
    if len(extents) < 2:
        raise InvalidInputError(
            "a comparison needs two sides", kind="nothing-to-compare", hint='session.history.compare("@5.1", "@5.2")'
        )
    pairs = tuple(_pair(extents[0], other) for other in extents[1:])
    return Comparison((pairs[0].a, *(pair.b for pair in pairs)), pairs)


def _pair(one: Extent, other: Extent) -> Pair:
    shared = _shared_start(one, other)
    if shared >= max(one.last, other.last):
        shared = 0  # they are the same events; comparing them says so
    a, b = (
        read_course(msgspec.structs.replace(extent, first=shared + 1) if shared else extent) for extent in (one, other)
    )
    rows = list(align(one.log, a.steps, other.log, b.steps))
    pairing = Pairing(one.log, a, other.log, b, _shared_history(one.log, other.log))
    notes: list[str] = []
    at = _find_divergence(pairing, rows, notes)
    ends: tuple[Change, ...] = ()
    try:
        ends = state_changes(one.log, a.last, other.log, b.last)
    except NotFoundError as exc:
        notes.append(f"the states at the ends cannot be compared: {exc.message}")
    gone = a.gone + b.gone
    if gone:
        notes.append(f"{gone} {'steps were' if gone > 1 else 'step was'} erased or pruned, and may differ unseen")
    divergence = pairing.explain(rows, at) if at is not None else None
    call = first_call(one.log, a, other.log, b, rows) if divergence is not None else None
    return Pair(a, b, tuple(rows), divergence, ends, shared, tuple(notes), call)


def _find_divergence(pairing: Pairing, rows: list[AlignedStep], notes: list[str]) -> int | None:
    """The first row that differs. Where only the hash of a model's window differs, its items are compared; if they are
    the same under other ids, the row becomes `same`."""
    windows = 0
    for at, row in enumerate(rows):
        if row.verdict in ("same", "unknown"):
            continue
        if row.what != ("context",) or row.a is None or row.b is None:
            return at
        if windows == WINDOWS_MAX:
            notes.append(
                f"more than {WINDOWS_MAX} model calls differ only in the hash of what they were shown;"
                " from there on they are taken to differ"
            )
            return at
        windows += 1
        factor = pairing.context(pairing.a.steps[row.a], pairing.b.steps[row.b])
        if factor.verdict == "differs":
            return at
        rows[at] = msgspec.structs.replace(row, verdict="same", what=(), minor=(*row.minor, "ids or times"))
    return None


def _shared_history(log_a: Log, log_b: Log) -> Seq:
    """The last event that both logs share: up to here, the same seq is the same event."""
    last = 0
    if log_a.engine is log_b.engine:
        for one, two in zip(log_a.segments, log_b.segments, strict=False):
            if one.session != two.session:
                break
            ends = [segment.last for segment in (one, two) if segment.last is not None]
            last = min(ends) if ends else log_a.head().seq
    return last


def _shared_start(a: Extent, b: Extent) -> Seq:
    """The last event of the part that both courses start with; 0 if there is none."""
    shared = _shared_history(a.log, b.log)
    if a.first != b.first or a.first > shared:
        return 0
    last = 0
    for (low_a, high_a), (low_b, high_b) in zip(a.log.view(a.last), b.log.view(b.last), strict=False):
        if low_a != low_b or low_a > shared:
            break
        last = min(high_a, high_b, shared)
    return last if last >= a.first else 0


def _html(comparison: Comparison) -> str:
    """Where the courses part, and their steps side by side."""
    inside: list[str] = []
    for pair, words in zip(comparison.pairs, str(comparison).splitlines(), strict=True):
        inside.append(f"<div>{text(words, 1000)}</div>")
        inside += _pair_rows(pair)
    names = " ".join(course.name for course in comparison.courses)
    return box(f"{len(comparison.courses)} courses", inside, f"wakelog compare {names}")


def _pair_rows(pair: Pair) -> list[str]:
    rows = []
    for row in pair.rows:
        a, b = pair.steps(row)
        what = ", ".join(row.what or row.minor)
        verdict = f"{row.verdict}: {what}" if what else row.verdict
        rows.append(table([[_cell(a), _cell(b), f'<span class="dim">{text(verdict)}</span>']]))
    return rows


def _cell(step: Step | None) -> str:
    if step is None:
        return "·"
    said = "" if step.gone or step.input is None else text(step.input, 60)
    return f"e{step.seq} {text(step.kind)} {text(step.name, 40)} {text(step.gone or step.outcome)} {said}"
