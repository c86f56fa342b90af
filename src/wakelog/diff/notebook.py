"""How a diff looks in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakelog.model.html import box, table, text

if TYPE_CHECKING:
    from wakelog.diff.turn_diff import Change, TurnDiff

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
