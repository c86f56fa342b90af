"""A diff for people: state, then decisions, then files, each change with its event, tool, turn and reason."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from wakelog.cli.context import CommandContext
from wakelog.cli.render.results import shape
from wakelog.cli.render.table import Cell, Row, lay_out
from wakelog.cli.render.values import scalar, text_of
from wakelog.cli.text import (
    count,
    duration,
    fit,
    glyph,
    inert_line,
    join_facts,
    money,
    place_of_turn,
    trust_mark,
    width,
)
from wakelog.diff.turn_diff import Change, TurnDiff
from wakelog.diff.writers import Writer
from wakelog.model.document import decision_words
from wakelog.model.short_text import pluralize
from wakelog.model.values import Value

FileLines = dict[str, tuple[int, int]]
_SIGNS = {"added": "+", "changed": "~", "removed": "-"}
_COLORS = {"added": "green", "changed": "yellow", "removed": "red"}

# These parts have sections of their own.
_APART = ("decisions", "files", "budget", "tools", "resources", "trust")

_COLUMNS = " | 16 | 20 |  | 8 |  | 6"
_FILE_COLUMNS = " | 16~ |  | > |  | 8 |  | 6"


def writer_name(writer: Writer) -> str:
    """The tool that made a change, else the actor."""
    return f"tool:{writer.tool}" if writer.tool else writer.actor


def change_lines(
    ctx: CommandContext, diff: TurnDiff, files: FileLines, indent: str = "", *, is_move: bool = False
) -> Iterator[str]:
    """All changes, section by section, each line cut to the terminal. Between two sessions, what the second one lacks
    was never taken back, unless this `is_move` of one session to the other's state."""
    room = ctx.columns - len(indent)
    is_one_session = is_move or diff.a[0] == diff.b[0]
    state = [c for c in diff.changes if c.part not in _APART]
    if state:
        yield indent + _section(ctx, "state", count_by_sign(state))
        yield from _rows(ctx, _COLUMNS, [(_state_row(c), c) for c in state], indent, room)
    for change in diff.of("decisions"):
        yield from _decision(ctx, change, indent, room, gone="taken back" if is_one_session else "only in A")
    changed = diff.of("files")
    if changed:
        added = sum(a for a, _ in files.values())
        removed = sum(r for _, r in files.values())
        lines = f", +{added} {glyph('minus')}{removed}" if files else ""
        yield indent + _section(ctx, "files", f"{pluralize(len(changed), 'file')}{lines}")
        gone = "no longer changed" if is_one_session else "changed only in A"
        yield from _rows(ctx, _FILE_COLUMNS, [(_file_row(c, files, gone), c) for c in changed], indent, room)
    if sources := [f"{c.key} {_trust(c, 'no longer' if is_one_session else 'only in A')}" for c in diff.of("trust")]:
        listed = textwrap.wrap(inert_line(f"{glyph('warn')} {', '.join(sources)}"), room - 10, subsequent_indent="  ")
        for number, line in enumerate(listed):
            yield indent + _section(ctx, "" if number else "trust", ctx.style(line, fg="yellow"))
    for name, text in _summaries(diff):
        yield indent + _section(ctx, name, fit(text, room - 10))


def _section(ctx: CommandContext, name: str, text: str) -> str:
    return f"{ctx.style(f'{name:<9}', bold=True)} {text}"


def count_by_sign(changes: Iterable[Change]) -> str:
    """`2 changed, 1 added`."""
    counts = Counter(c.how for c in changes)
    return ", ".join(f"{counts[how]} {how}" for how in ("changed", "added", "removed") if counts[how])


def _rows(ctx: CommandContext, heading: str, rows: list[tuple[Row, Change]], indent: str, room: int) -> Iterator[str]:
    """Each row, followed by the reason if one is known."""
    lines = lay_out(ctx, heading, [row for row, _ in rows], titles=False, limit=room)
    for line, (_, change) in zip(lines, rows, strict=True):
        yield indent + line
        if change.writer and change.writer.why:
            known = "" if change.writer.known == "recorded" else f" ({change.writer.known})"
            yield indent + ctx.style(fit(f"      because {change.writer.why}{known}", room), dim=True)


def _state_row(change: Change) -> Row:
    sign = Cell(f"  {_SIGNS[change.how]}", {"fg": _COLORS[change.how]})
    place = f"sub-agent {change.key[:12]}" if change.part == "sub-agents" else change.pointer
    return (sign, place, _values(change), *_origin(change))


def _values(change: Change) -> str:
    if change.part == "sub-agents" and isinstance(change.after, dict):
        return fit(f"{text_of(change.after.get('status', ''))}: {text_of(change.after.get('task', ''))}", 60)
    before, after = _core(change.before), _core(change.after)
    if change.how == "added":
        return scalar(after, 60)
    if change.how == "removed":
        return scalar(before, 60)
    if before == after:
        return f"{scalar(after, 40)}  (recorded again)"
    text = f"{scalar(before, 40)} {glyph('arrow')} {scalar(after, 40)}"
    if _is_number(before) and _is_number(after):
        text += f"  ({after - before:+.6g})"
    return text


def _core(value: Value) -> Value:
    """The value itself: a fact without its bookkeeping."""
    return value["value"] if isinstance(value, dict) and "value" in value and "seq" in value else value


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _origin(change: Change) -> tuple[Cell | str, ...]:
    """Turn, tool, event and trust mark of the event that made the change."""
    writer = change.writer
    if writer is None:
        return ("", "", "", "")
    turn, mark = place_of_turn(writer.turn, writer.attempt), trust_mark(writer.trust, writer.source)
    return (turn, writer_name(writer), Cell(f"e{writer.seq}", {"fg": "cyan"}), Cell(mark, {"fg": "yellow"}))


def _decision(ctx: CommandContext, change: Change, indent: str, room: int, *, gone: str) -> Iterator[str]:
    value = change.after if change.how != "removed" else change.before
    writer = change.writer
    turn = value.get("turn") if isinstance(value, dict) else 0
    place = f"@{turn}" if turn else ""
    event = f"e{writer.seq}" if writer else ""
    prefix = f"{gone}: " if change.how == "removed" else ""
    mark = trust_mark(writer.trust, writer.source) if writer else ""
    front = f"{'decision':<9} {place:<5} "
    tail = f"  {event}" + (f"  {mark}" if mark else "")
    lines = _wrap(f"{prefix}{decision_words(value)}", max(20, room - len(front) - len(tail)))
    for number, line in enumerate(lines):
        start = ctx.style(front, bold=True) if number == 0 else " " * len(front)
        yield indent + start + line + (ctx.style(fit(tail, 30), fg="cyan") if number == len(lines) - 1 else "")


def _wrap(text: str, columns: int) -> list[str]:
    """The text on at most about six lines, broken between words; inert."""
    lines, words = [""], fit(text, columns * 6).split(" ")
    for word in words:
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if width(longer) <= columns:
            lines[-1] = longer
        else:
            lines.append(fit(word, columns))
    return [line for line in lines if line] or [""]


def _file_row(change: Change, files: FileLines, gone: str) -> Row:
    value = change.after if change.how != "removed" else change.before
    path = change.key
    word = text_of(value.get("change", "")) if isinstance(value, dict) else ""
    added, removed = files.get(path, (0, 0))
    lines = f"+{added} {glyph('minus')}{removed}" if path in files else ""
    # A file that is new to the session was not always new: the sign says what happened to the file.
    how = {"created": "added", "deleted": "removed"}.get(word, "changed")
    if change.how == "removed":
        word, how = gone, "removed"
    return (Cell(f"  {_SIGNS[how]}", {"fg": _COLORS[how]}), path, word, lines, *_origin(change))


def _trust(change: Change, gone: str) -> str:
    value = change.after
    return f"{text_of(value.get('trust', ''))} (e{value.get('seq')})" if isinstance(value, dict) else gone


def _summaries(diff: TurnDiff) -> Iterator[tuple[str, str]]:
    """One line each for budget, tools and resources."""
    spent = []
    shows = {"usd_micros": money, "tokens": lambda n: f"{count(n)} tokens", "duration_us": duration}
    for change in diff.of("budget"):
        show: Any = shows.get(change.key, str)
        if change.pointer.startswith("/budget/limits/"):
            spent.append(f"limit {show(change.after) if change.after is not None else 'lifted'}")
        else:
            more = (change.after or 0) - (change.before or 0)
            spent.append(f"+{show(more)}" if more >= 0 else f"{glyph('minus')}{show(-more)}")
    if spent:
        yield "budget", join_facts(spent)
    tools = [f"{c.key} {_times(_increase(c, 'calls'))}{_errors(c)}" for c in diff.of("tools")]
    if tools:
        yield "tools", ", ".join(tools)
    # Files have their own section.
    others = [c for c in diff.of("resources") if not c.pointer.startswith("/working_set/files/")]
    touched = [c.key if c.how != "removed" else f"{glyph('minus')}{c.key}" for c in others]
    if touched:
        yield "resources", ", ".join(touched)


def _times(more: int) -> str:
    return f"{glyph('times')}{more}" if more >= 0 else f"{glyph('minus')}{-more}"


def _increase(change: Change, field: str) -> int:
    before = change.before.get(field, 0) if isinstance(change.before, dict) else 0
    after = change.after.get(field, 0) if isinstance(change.after, dict) else 0
    return int(after - before)


def _errors(change: Change) -> str:
    errors = _increase(change, "errors")
    return f" ({errors} failed)" if errors > 0 else ""


shape(Change, "part pointer how before after writer")
shape(
    Writer,
    "seq timestamp=at:iso stored_at:iso kind turn? attempt actor tool? why? known source? trust",
    attempt=lambda writer: writer.attempt if writer.turn else None,
)
