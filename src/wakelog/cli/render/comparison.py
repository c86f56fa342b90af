"""Comparisons: steps side by side, the first difference, and what may have caused it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from wakelog.cli.context import CommandContext
from wakelog.cli.render.changes import change_lines
from wakelog.cli.render.events import sign
from wakelog.cli.render.money import plain_cost
from wakelog.cli.render.results import plain, shape
from wakelog.cli.render.table import Cell, Column, Row, lay_out
from wakelog.cli.render.values import PEEK_BYTES, readable, text_of
from wakelog.cli.text import count, duration, fit, glyph, money, trust_mark
from wakelog.compare.alignment import AlignedStep as Pairing
from wakelog.compare.comparison import Pair
from wakelog.compare.divergence import Difference, Divergence, DivergenceFactor, Followed
from wakelog.compare.first_call import CallSide, FirstCall
from wakelog.compare.model_windows import WindowItem
from wakelog.compare.steps import Step, Try
from wakelog.compare.trajectory import Course
from wakelog.diff.turn_diff import TurnDiff
from wakelog.log import Log
from wakelog.model.payloads import without_bytes
from wakelog.model.short_text import pluralize
from wakelog.model.values import Value

_BAD = ("failed", "timed_out", "interrupted", "denied", "never_ran")
_ASIDE = {"sub-agent", "question", "dead end", "evicted", "restored", "retraction", "flag", "gap", "goal", "labels"}
MAX_ROWS, MAX_DETAILS = 24, 8
"""How many rows of steps, and lines of detail, are shown without --all."""
AROUND = 1
"""How many equal steps are shown before and after a different one."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOOKS = {"completed": "done", "submitted": "done", "failed": "failed", "interrupted": "failed", "open": "open"}
_COLORS = {"+": "green", "-": "red"}


def sign_of(step: Step) -> str:
    """The glyph of a step."""
    if step.gone:
        return "gone"
    if step.outcome in _BAD or step.kind == "gap":
        return "failed"
    if step.outcome in ("uncertain", "retried") or step.trust != "trusted":
        return "warn"
    if step.kind in ("tool", "model") and not step.outcome:
        return "open"
    return "done" if step.kind in ("tool", "model", "end") else "note"


def step_text(log: Log, step: Step) -> str:
    """What the step did, on one line; not yet inert."""
    if step.gone:
        return f"{step.kind} {step.name} ({step.gone})".replace("  ", " ")
    input_text = _peek(log, step.input)
    if step.kind == "tool":
        return f"{step.name} {input_text}".strip()
    if step.kind == "model":
        return f"model {step.model}".strip()
    if step.kind == "message":
        return f"{step.name}: {input_text}"
    if step.kind == "end":
        return f"turn {step.outcome}"
    if step.kind == "fact":
        return f"fact {step.name} = {input_text}"
    if step.kind == "file":
        change = step.input.get("change", "") if isinstance(step.input, dict) else ""
        return f"file {change} {step.name}"
    if step.kind == "data":
        ops = step.input if isinstance(step.input, list) else []
        return "data " + ", ".join(f"{op.get('op')} {op.get('path')}" for op in ops[:20] if isinstance(op, dict))
    name = f" {step.name}" if step.name else ""
    return f"{step.kind}{name} {input_text}".rstrip()


def result_text(log: Log, step: Step) -> str:
    """The result of the step, on one line; empty if it has none. Not yet inert."""
    if step.gone:
        return ""
    if isinstance(step.error, dict):
        return f"{text_of(step.error.get('type', 'error'))}: {text_of(step.error.get('message', ''))}"
    output = _peek(log, step.output) or (_peek(log, step.said[0]) if step.said else "")
    if step.kind in ("tool", "model"):
        if step.outcome == "succeeded" and output:
            return output
        return f"{step.outcome or 'no outcome yet'} {output}".strip()
    return output if step.kind in _ASIDE or step.kind == "decision" else ""


def _peek(log: Log, value: Value) -> str:
    """The start of a value, for one line."""
    return "" if value is None else readable(log.whole(value, PEEK_BYTES))[:2000]


def letter(place: int) -> str:
    """The letter of a course; all courses after the 26th share Z."""
    return LETTERS[min(place, len(LETTERS) - 1)]


def title_line(ctx: CommandContext, pair: Pair, names: str) -> str:
    """The two sides, and how they ended."""
    room = (ctx.columns - 30) // 2
    sides = [
        ctx.style(f"{name} {fit(course.name, room)}", bold=True)
        + f" {glyph(_look(course))} {course.outcome or 'no turn'}"
        for name, course in zip(names, (pair.a, pair.b), strict=True)
    ]
    return "   ".join(sides)


def _look(course: Course) -> str:
    return _LOOKS.get(course.outcome, "note")


# The sums


def sum_lines(ctx: CommandContext, courses: Sequence[Course]) -> Iterator[str]:
    """The totals of each course, one column each; with two courses, also the difference."""
    names = [Cell(f"{letter(n)} {course.name}", {"bold": True}) for n, course in enumerate(courses)]
    rows: list[Row] = [("", *names, "")]
    rows.append(("outcome", *(_outcome(c) for c in courses), ""))
    rows.append(_sum("steps", [len(c.steps) for c in courses], str))
    rows.append(_sum("calls", [c.calls for c in courses], str))
    rows.append(_sum("time", [c.duration_us for c in courses], _reported(duration)))
    tokens = [c.cost.tokens_in + c.cost.tokens_out for c in courses]
    if any(tokens):
        rows.append(_sum("tokens", tokens, _reported(count)))
    if any(c.cost.usd_micros for c in courses):
        rows.append(_sum("cost", [c.cost.usd_micros for c in courses], _reported(money)))
    if any(c.untrusted for c in courses):
        cells = [Cell(", ".join(c.untrusted) or "none", {"fg": "yellow"} if c.untrusted else {}) for c in courses]
        rows.append(("untrusted", *cells, ""))
    if any(c.files for c in courses):
        rows.append(("files", *(", ".join(c.files) or "none" for c in courses), ""))
    columns = (Column(), *(Column(least=10) for _ in courses), Column())
    yield from lay_out(ctx, columns, rows, titles=False)


def _outcome(course: Course) -> Cell:
    look, text = _look(course), course.outcome or "no turn"
    return Cell(f"{glyph(look)} {text}", {"fg": "red"} if look == "failed" else {})


def _reported(show: Callable[[int], str]) -> Callable[[int], str]:
    """Shows a dash for zero, which means that nothing was reported."""
    return lambda amount: show(amount) if amount else glyph("dash")


def _sum(name: str, amounts: list[int], show: Any) -> Row:
    more = ""
    if len(amounts) == 2 and show(amounts[0]) != show(amounts[1]):
        difference = amounts[1] - amounts[0]
        more = f"+{show(difference)}" if difference > 0 else f"{glyph('minus')}{show(-difference)}"
    return (name, *(show(amount) for amount in amounts), more)


# The first difference


def divergence_lines(
    ctx: CommandContext, pair: Pair, logs: tuple[Log, Log], names: str, *, everything: bool
) -> Iterator[str]:
    """Where two courses first differ, and what is known about the cause. `names` are their letters."""
    divergence = pair.divergence
    if pair.shared:
        yield f"one history up to e{pair.shared}, not compared"
    if divergence is None:
        yield ctx.style("no difference", bold=True) + fit(f" in {pair.same} steps{_but(pair)}", ctx.columns - 13)
    else:
        yield ctx.style("first difference", bold=True)
        yield "  " + fit(f"{_place(divergence, names)}{_but(pair)}", ctx.columns - 2)
        yield from _both_sides(ctx, pair, logs, divergence, names)
        yield from _details(ctx, divergence, everything)
        yield from _behind(ctx, divergence, names, everything)
        yield from (fit(line, ctx.columns) for line in _consequences(divergence, names))
        if pair.first_call is not None and pair.first_call.row != divergence.row:
            yield from first_call_lines(ctx, pair, logs, names)
    for note in pair.notes:
        yield "  " + ctx.style(fit(f"{glyph('warn')} {note}", ctx.columns - 2), fg="yellow")


def first_call_lines(ctx: CommandContext, pair: Pair, logs: tuple[Log, Log], names: str) -> Iterator[str]:
    """The first call that differs, if the courses differ before it, and the words that led to it."""
    call = pair.first_call
    assert call is not None
    yield ctx.style("first different call", bold=True)
    for name, log, course, side in zip(names, logs, (pair.a, pair.b), (call.a, call.b), strict=True):
        if side.step is None:
            yield f"  {name}  {ctx.style('made no such call here', dim=True)}"
        else:
            yield _side_line(ctx, name, log, course.steps[side.step])
        if side.said:
            who = "said" if side.by == "model" else "asked"
            yield " " * 5 + ctx.style(fit(f"{who:<6} {side.said}", ctx.columns - 6), dim=True)


def _place(divergence: Divergence, names: str) -> str:
    before = f"after {pluralize(divergence.same_before, 'same step')}"
    if divergence.same_before == 0:
        before = "at the very beginning"
    sides = zip(names, (divergence.a, divergence.b), strict=True)
    places = [f"step {place + 1} of {name}" for name, place in sides if place is not None]
    return f"{before}: {' and '.join(places)}"


def _but(pair: Pair) -> str:
    parts = []
    if pair.minor:
        parts.append(f"{pair.minor} differ only in ids, times or tries")
    if pair.unknown:
        parts.append(f"{pair.unknown} unknown")
    return f"  ({'; '.join(parts)})" if parts else ""


def _side_line(ctx: CommandContext, name: str, log: Log, step: Step) -> str:
    event = f"e{step.seq}".ljust(6)
    front = f"  {name}  {ctx.style(event, fg='cyan')} {sign(ctx, sign_of(step))} "
    return front + fit(step_text(log, step), ctx.columns - len(f"  {name}  {event} * "))


def _both_sides(
    ctx: CommandContext, pair: Pair, logs: tuple[Log, Log], divergence: Divergence, names: str
) -> Iterator[str]:
    for name, log, course, place in zip(names, logs, (pair.a, pair.b), (divergence.a, divergence.b), strict=True):
        if place is None:
            yield f"  {name}  {ctx.style('had ended', dim=True)}"
            continue
        step = course.steps[place]
        yield _side_line(ctx, name, log, step)
        if (result := result_text(log, step)) and step.kind in ("tool", "model"):
            yield " " * 7 + ctx.style(fit(f"{glyph('arrow')} {result}", ctx.columns - 8), dim=True)


def _details(ctx: CommandContext, divergence: Divergence, everything: bool) -> Iterator[str]:
    if divergence.what == ("step",):
        yield f"  {'differs':<11}they did different things"
    yield from _cut(list(difference_lines(ctx, divergence.differences)), MAX_DETAILS, everything)


def _cut(lines: list[str], most: int, everything: bool, more: str = f"  {'':<11}{{}} more") -> Iterator[str]:
    shown = lines if everything or len(lines) <= most + 1 else lines[:most]
    yield from shown
    if len(shown) < len(lines):
        yield f"{more.format(len(lines) - len(shown))} (--all shows them)"


def difference_lines(ctx: CommandContext, differences: Sequence[Difference]) -> Iterator[str]:
    """Each difference with both values; a long text is shown from where it starts to differ."""
    for difference in differences:
        name = f"  {difference.what:<11}"
        where = f"{difference.pointer}  " if difference.pointer else ""
        room = ctx.columns - len(name)
        if difference.by_hash:
            yield name + fit(f"{where}large values with other content (wakelog show has them)", room)
        elif difference.a is None or difference.b is None:
            mark, value = ("+", difference.b) if difference.a is None else ("-", difference.a)
            yield name + ctx.style(fit(f"{mark} {where}{text_of(without_bytes(value))}", room), fg=_COLORS[mark])
        else:
            before, after = (text_of(without_bytes(value)) for value in (difference.a, difference.b))
            a, b, note = _difference(before, after, room - 4)
            if len(where + a + b) + 6 < room and "\n" not in a + b:
                yield name + ctx.style(fit(f"~ {where}{a} {glyph('arrow')} {b}", room), fg="yellow")
                continue
            if where or note:
                yield name + fit(f"~ {where}{note}".rstrip(), room)
                name = " " * len(name)
            yield name + ctx.style(fit(f"- {a}", room), fg="red")
            yield " " * len(name) + ctx.style(fit(f"+ {b}", room), fg="green")


def _difference(a: str, b: str, room: int) -> tuple[str, str, str]:
    """Both texts from shortly before the first difference, and a note that says where it is."""
    same = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    if max(len(a), len(b)) <= room or same < room // 2:
        return a, b, f"{len(a):,} and {len(b):,} characters" if max(len(a), len(b)) > room else ""
    start = max(0, same - room // 4)
    more = glyph("more")
    return more + a[start:], more + b[start:], f"from character {same + 1:,} on, of {len(a):,} and {len(b):,}"


def _behind(ctx: CommandContext, divergence: Divergence, names: str, everything: bool) -> Iterator[str]:
    """What may have caused the difference: what else differs, what is equal, and what is unknown."""
    shown = {difference.what for difference in divergence.differences}
    for finding in divergence.behind:
        if finding.verdict == "differs" and finding.what not in shown:
            yield from _cut(list(_finding(ctx, finding)), MAX_DETAILS, everything)
        yield from _cut(list(_held_back(ctx, finding, names)), MAX_DETAILS, everything)
    same = [f.what + (f" ({f.note})" if f.note else "") for f in divergence.behind if f.verdict == "same"]
    if same:
        yield "  " + fit(f"{'same':<11}{', '.join(same)}", ctx.columns - 2)
    notes: dict[str, list[str]] = {}
    for finding in divergence.behind if divergence.what != ("prompt",) else ():
        if finding.verdict == "unknown" and not finding.held_back_a and not finding.held_back_b:
            notes.setdefault(finding.note, []).append(finding.what)
    for note, what in notes.items():
        yield "  " + ctx.style(fit(f"{'unknown':<11}{', '.join(what)}: {note}", ctx.columns - 2), dim=True)
    if len(same) == len(divergence.behind) and divergence.what != ("prompt",):
        yield f"  {'':<11}everything that went into it is the same: it was answered differently"


def _finding(ctx: CommandContext, finding: DivergenceFactor) -> Iterator[str]:
    name = f"  {finding.what:<11}"
    if finding.note:
        yield name + fit(finding.note, ctx.columns - len(name))
    yield from difference_lines(ctx, finding.differences)
    for mark, items in (("-", finding.only_a), ("+", finding.only_b)):
        for item in items:
            yield name + ctx.style(fit(f"{mark} {_item(item)}", ctx.columns - len(name)), fg=_COLORS[mark])
    for change in finding.changes:
        values = [text_of(_without_place(v)) for v in (change.before, change.after) if v is not None]
        mark = {"added": "+", "removed": "-"}.get(change.how, "~")
        text = f"{mark} {change.pointer}  " + f" {glyph('arrow')} ".join(values)
        yield name + ctx.style(fit(text, ctx.columns - len(name)), fg=_COLORS.get(mark, "yellow"))


def _held_back(ctx: CommandContext, finding: DivergenceFactor, names: str) -> Iterator[str]:
    """What a limit on the history kept from a model."""
    for side, items in zip(names, (finding.held_back_a, finding.held_back_b), strict=True):
        if items:
            title = f"  {finding.what:<11}"
            yield title + fit(
                f"{side}'s model was given only the end of its history, without", ctx.columns - len(title)
            )
        for item in items:
            yield " " * 13 + ctx.style(fit(f"- {_item(item)}", ctx.columns - 13), fg=_COLORS["-"])


def _without_place(value: Value) -> Value:
    """An entry of the state without its position in the log."""
    if not isinstance(value, dict) or "$erased" in value:
        return value
    bare = {name: field for name, field in value.items() if name not in ("seq", "last", "handle")}
    return bare["value"] if set(bare) == {"value"} else bare


def _item(item: WindowItem) -> str:
    content = "(no longer there)" if item.gone else text_of(item.content)
    return f"e{item.seq} {item.name or item.kind}: {content[:500]}  {trust_mark(item.trust, item.source)}".rstrip()


def _consequences(divergence: Divergence, names: str) -> Iterator[str]:
    for name, followed in zip(names, (divergence.followed_a, divergence.followed_b), strict=True):
        if followed:
            caused = sum(f.rests == "cause" for f in followed)
            derived = sum(f.rests == "derived" for f in followed)
            after = len(followed) - caused - derived
            parts = [f"{caused} caused by it"] if caused else []
            parts += [f"{derived} had it in view"] if derived else []
            parts += [f"{after} with no recorded link to it"] if after else []
            title = f"then in {name}"
            yield f"  {title:<11}{pluralize(len(followed), 'other step')}: {', '.join(parts)}"


# Side by side


def step_lines(
    ctx: CommandContext, pair: Pair, logs: tuple[Log, Log], names: str, *, everything: bool
) -> Iterator[str]:
    """The rows of both courses; runs of equal steps are folded unless `everything`."""
    yield ctx.style("steps", bold=True)
    folded = list(_fold_equal(pair.rows, everything))
    shown = folded if everything or len(folded) <= MAX_ROWS + 1 else folded[:MAX_ROWS]
    mark = pair.divergence.row if pair.divergence else -1
    rows = [_cells(pair, logs, names, row, at == mark) for at, row in shown]
    yield from lay_out(ctx, "> | 18 | > | 18 | 6", [(" ", names[0], "", names[1], ""), *rows], titles=False)
    if len(shown) < len(folded):
        yield f"   {len(folded) - len(shown)} more rows (--all shows them)"


def _fold_equal(rows: Sequence[Pairing], everything: bool) -> Iterator[tuple[int, Pairing | int]]:
    """Rows with their position; a number replaces that many equal rows."""
    near = {at + n for at, row in enumerate(rows) if row.verdict != "same" for n in range(-AROUND, AROUND + 1)}
    run = 0
    for at, row in enumerate(rows):
        if everything or at in near:
            if run:
                yield at, run
            run = 0
            yield at, row
        else:
            run += 1
    if run:
        yield len(rows), run


def _cells(pair: Pair, logs: tuple[Log, Log], names: str, row: Pairing | int, is_first: bool) -> Row:
    if isinstance(row, int):
        return (glyph("more"), Cell(pluralize(row, "same step"), {"dim": True}), "", "", "")
    a, b = pair.steps(row)
    words = {"only a": f"only {names[0]}", "only b": f"only {names[1]}", "unknown": "unknown"}
    verdict: str = words.get(row.verdict, row.verdict)
    if row.verdict == "differs":
        verdict = f"{', '.join(row.what)} differ{'s' if len(row.what) == 1 else ''}"
    elif row.minor:
        verdict = f"same but {', '.join(row.minor)}"
    looks: dict[str, Any] = {"dim": True} if row.verdict == "same" else {"fg": "yellow"}
    if is_first:
        verdict, looks = f"{verdict}  {glyph('first')}", {"fg": "yellow", "bold": True}
    place_a, cell_a = _cell(logs[0], row.a, a)
    place_b, cell_b = _cell(logs[1], row.b, b)
    return (place_a, cell_a, place_b, cell_b, Cell(verdict, looks))


def _cell(log: Log, place: int | None, step: Step | None) -> tuple[str, Cell]:
    if place is None or step is None:
        return "", Cell(glyph("dot"), {"dim": True})
    look = sign_of(step)
    style = {"fg": "red"} if look == "failed" else {"fg": "yellow"} if look == "warn" else {}
    words = step_text(log, step)
    if step.kind == "model" and (result := result_text(log, step)):
        words = f"{words}: {result}"
    return str(place + 1), Cell(f"{glyph(look)} {words}", style)


# The ends


def end_lines(ctx: CommandContext, pair: Pair, *, everything: bool) -> Iterator[str]:
    """How the states at the end of the two courses differ."""
    if not pair.ends:
        return
    yield ctx.style("at the end", bold=True)
    diff = TurnDiff((pair.a.session, pair.a.last), (pair.b.session, pair.b.last), pair.ends, [])
    lines = list(change_lines(ctx, diff, {}, indent="  "))
    yield from _cut(lines, MAX_ROWS, everything, "  {} more lines")


# JSON


def _number(place: int | None) -> int | None:
    """People count from 1."""
    return None if place is None else place + 1


shape(Try, "try=number outcome? error duration_us", duration_us=lambda run: max(0, run.ended_at - run.at))
shape(
    Step,
    "kind name? seq events=seqs turn? attempt input outcome? output said error params? tries reused? cause? cost"
    " duration_us trust source? why? gone?",
    attempt=lambda step: step.attempt if step.turn else None,
    cost=lambda step: plain_cost(msgspec.to_builtins(step.cost)),
)
shape(
    Course,
    "name session turn? attempt? first last outcome? in_view step_count calls cost duration_us untrusted files gone"
    " steps",
    step_count=lambda course: len(course.steps),
    cost=lambda course: plain_cost(msgspec.to_builtins(course.cost)),
    steps=lambda course: [{"step": number, **plain(step)} for number, step in enumerate(course.steps, 1)],
)
shape(Pair, "a b shared? same unknown divergence first_call? rows ends notes")
shape(FirstCall, "row a b", row=lambda found: found.row + 1)
shape(CallSide, "step said? by?", step=lambda side: _number(side.step))
shape(Pairing, "a b verdict what minor", a=lambda row: _number(row.a), b=lambda row: _number(row.b))
shape(
    Divergence,
    "row same_before what a b differences behind followed_a followed_b",
    row=lambda found: found.row + 1,
    a=lambda found: _number(found.a),
    b=lambda found: _number(found.b),
)
shape(Followed, "step rests", step=lambda followed: followed.step + 1)
shape(
    Difference,
    "what pointer a b by_hash",
    a=lambda difference: without_bytes(difference.a),
    b=lambda difference: without_bytes(difference.b),
)
shape(DivergenceFactor, "what verdict note? differences only_a only_b changes held_back_a held_back_b")
