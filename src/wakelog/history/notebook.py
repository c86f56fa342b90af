"""How a diff and a comparison look in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakelog.model.html import box, table, text

if TYPE_CHECKING:
    from wakelog.history.compare import Comparison, Pair
    from wakelog.history.diff import Change, TurnDiff
    from wakelog.history.steps import Step

_SIGNS = {"added": "+", "changed": "~", "removed": "−"}


def diff_html(found: TurnDiff) -> str:
    """The changes, each with its event and reason."""
    (session_a, a), (session_b, b) = found.a, found.b
    other = "" if session_a == session_b else f"{session_b}"
    title = f"{len(found.changes)} changes, e{a} → {text(other)}e{b}"
    return box(title, [table([_change_row(c)]) for c in found.changes], f"wakelog diff {session_a}e{a} {other}e{b}")


def _change_row(change: Change) -> list[str]:
    writer = change.writer
    by = f"e{writer.seq} {text(writer.tool)}" if writer else ""
    why = text(writer.why, 120) if writer and writer.why else ""
    if writer and why and writer.known != "recorded":
        why += f" ({writer.known})"
    values = " → ".join(text(v, 80) for v in (change.before, change.after) if v is not None)
    return [_SIGNS[change.how], text(change.pointer, 120), values, by, why]


def comparison_html(found: Comparison) -> str:
    """Where the courses part, and their steps side by side."""
    inside: list[str] = []
    for pair, words in zip(found.pairs, str(found).splitlines(), strict=True):
        inside.append(f"<div>{text(words, 1000)}</div>")
        inside += _pair_rows(pair)
    names = " ".join(course.name for course in found.courses)
    return box(f"{len(found.courses)} courses", inside, f"wakelog compare {names}")


def _pair_rows(pair: Pair) -> list[str]:
    rows = []
    for row in pair.rows:
        a, b = pair.steps(row)
        what = ", ".join(row.what or row.minor)
        verdict = f"{row.verdict}: {what}" if what else row.verdict
        rows.append(table([[_step(a), _step(b), f'<span class="dim">{text(verdict)}</span>']]))
    return rows


def _step(step: Step | None) -> str:
    if step is None:
        return "·"
    said = "" if step.gone or step.input is None else text(step.input, 60)
    return f"e{step.seq} {text(step.kind)} {text(step.name, 40)} {text(step.gone or step.outcome)} {said}"
