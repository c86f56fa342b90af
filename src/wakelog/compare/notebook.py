"""How a comparison looks in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakelog.model.html import box, table, text

if TYPE_CHECKING:
    from wakelog.compare.comparison import Comparison, Pair
    from wakelog.compare.steps import Step


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
