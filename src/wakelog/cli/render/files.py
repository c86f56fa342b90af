"""Files: what a restore would do and did, and diffs of recorded changes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from wakelog.cli.context import CommandContext
from wakelog.cli.render.results import shape
from wakelog.cli.text import fit, glyph, inert_line, pad, width
from wakelog.files.file_diff import FileDiff
from wakelog.files.restore import FileResult, RestoredFiles
from wakelog.files.restore_plan import FileStep, RestorePlan
from wakelog.model.short_text import pluralize

MAX_RESTORED = 200
"""How many files that can be restored are listed; the others are counted. Files that cannot be are always listed."""
_COLORS = {"conflict": "yellow", "unknown": "yellow", "ignored": None, "restore": None, "delete": None, "already": None}


def plan_lines(ctx: CommandContext, plan: RestorePlan) -> Iterator[str]:
    """What would happen to each file, one line each."""
    steps = [*plan.steps]
    if not steps and not plan.unseen:
        yield "no change of a file was recorded after it"
        return
    yield ctx.style(f"in {inert_line(plan.folder)}", dim=True)
    column = min(max((width(inert_line(step.path)) for step in steps), default=0) + 2, 40)
    plain = [step for step in steps if step.do in ("restore", "delete", "already")]
    left_out = {step.path for step in plain[MAX_RESTORED:]}
    rescue = _short(plan.rescue)
    for step in steps:
        if step.path not in left_out:
            yield pad(step.path, column, middle=True) + ctx.style(inert_line(_words(step, rescue)), fg=_COLORS[step.do])
    if left_out:
        yield f"and {len(left_out):,} more to be restored (--json lists them)"
    yield from _unseen_lines(ctx, plan)


def _words(step: FileStep, rescue: str) -> str:
    """What would happen to one file. Never cut, because people decide by it."""
    if step.do == "conflict":
        return f"CONFLICT {step.why}  {glyph('arrow')} kept"
    if step.do in ("unknown", "ignored"):
        by = f" by {fit(step.by, 48)}" if step.by else ""
        return f"{step.do}: changed{by}{f' @{step.turn}' if step.turn else ''}, {step.why}"
    if step.do == "already":
        return "already as it was"
    copy = f"  {glyph('arrow')} a copy of what is there goes to {rescue}/{glyph('more')}" if step.rescue else ""
    if step.why and not step.why.startswith("created"):
        return f"CONFLICT {step.why}  {glyph('arrow')} replaced, yours goes to {rescue}/{glyph('more')}"
    if step.do == "restore":
        return f"restore  (+{step.added} {glyph('minus')}{step.removed}){copy}"
    return f"delete   ({step.why}){copy}" if step.why else f"delete{copy}"


def _unseen_lines(ctx: CommandContext, plan: RestorePlan) -> Iterator[str]:
    """The calls whose changes of files were not captured."""
    if not plan.unseen:
        return
    count = len(plan.unseen)
    calls = "1 call was" if count == 1 else f"{count} calls were"
    yield ctx.style(f"unknown: {calls} not captured, and may have changed files:", fg="yellow")
    for call in plan.unseen[:12]:
        where = f"@{call.turn}" if call.turn else "between turns"
        yield fit(f"  {plan.commands.get(call.action) or call.tool}  {where} e{call.seq}", ctx.columns - 16)
    if count > 12:
        yield f"  and {count - 12} more"


def result_lines(ctx: CommandContext, restored: RestoredFiles) -> Iterator[str]:
    """What was done."""
    by = {did: [r for r in restored.results if r.did == did] for did in ("restored", "deleted", "already", "kept")}
    counts = [f"{len(by[did])} {did}" for did in ("restored", "deleted") if by[did]]
    if by["already"]:
        counts.append(f"{len(by['already'])} already as they were")
    if counts:
        yield f"Files: {', '.join(counts)}."
    for result in restored.results:
        if result.saved:
            copy = inert_line(_short(result.saved))
            yield f"  {inert_line(result.path)}: a copy of what was there is kept in {copy}"
    for result in by["kept"]:
        yield ctx.style(f"  not touched: {inert_line(f'{result.path}: {result.why}')}", fg="yellow")
    if count := len(restored.plan.unseen):
        calls = "a call that was" if count == 1 else f"{count} calls that were"
        yield ctx.style(f"  not known: what {calls} not captured did to files", fg="yellow")


def _short(path: str) -> str:
    """The path relative to the current folder, if it is below it."""
    here = os.getcwd().rstrip("/") + "/"
    return path.removeprefix(here)


shape(
    RestorePlan,
    "folder roots git_head=git? files=steps not_captured partial=is_partial",
    not_captured=lambda plan: [
        {"seq": c.seq, "turn": c.turn or None, "tool": c.tool, "call": plan.commands.get(c.action) or None}
        for c in plan.unseen
    ],
)
shape(FileStep, "path do why? added removed turn? by? rescue")
shape(FileResult, "path did why? saved?")
shape(FileDiff, "path change added removed before_mode? after_mode? diff=text? note?")


# Diffs


def diff_lines(ctx: CommandContext, diff: FileDiff, *, indent: str = "", names: bool = True) -> Iterator[str]:
    """The diff of one file, coloured and inert."""
    room = ctx.columns - len(indent)
    if names:
        counts = f"+{diff.added} {glyph('minus')}{diff.removed}" if diff.text else ""
        yield indent + ctx.style(fit(f"{diff.change} {diff.path}  {counts}", room), bold=True)
    if diff.before_mode and diff.after_mode and diff.before_mode != diff.after_mode:
        yield (indent + f"mode {inert_line(diff.before_mode)} {glyph('arrow')} {inert_line(diff.after_mode)}")
    if diff.note:
        yield indent + ctx.style(fit(f"no diff: {diff.note}", room), fg="yellow")
    for line in diff.text.split("\n") if diff.text else ():
        yield indent + ctx.style(inert_line(line).rstrip("\n"), **_style(line))


def _style(line: str) -> dict[str, Any]:
    if line.startswith("@@"):
        return {"fg": "cyan"}
    return {"fg": "green"} if line.startswith("+") else {"fg": "red"} if line.startswith("-") else {}


def stat_lines(ctx: CommandContext, diffs: list[FileDiff]) -> Iterator[str]:
    """One line a file, then the total."""
    column = min(max((width(inert_line(d.path)) for d in diffs), default=0) + 2, ctx.columns - 40)
    for diff in diffs:
        what = diff.note or f"+{diff.added} {glyph('minus')}{diff.removed}"
        yield f"  {pad(diff.path, column, middle=True)}{diff.change:<9} {fit(what, 28)}"
    added, removed = sum(d.added for d in diffs), sum(d.removed for d in diffs)
    yield f"{pluralize(len(diffs), 'file')}, +{added} {glyph('minus')}{removed}"
