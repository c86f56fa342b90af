"""`wakelog attempts`: the tries of a turn side by side, what made them differ, and which of them counts."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.render.comparison import plain_divergence
from wakelog.cli.render.places import place
from wakelog.cli.render.sessions import handle, title
from wakelog.cli.render.steps import plain_course, words_of
from wakelog.cli.render.table import Cell, Column, Row, lay_out
from wakelog.cli.render.values import text_of
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import count, duration, fit, glyph, inert, money, width
from wakelog.compare.comparison import Pair, compare
from wakelog.compare.step_values import whole
from wakelog.compare.trajectory import Course, Extent, attempts, read_course, tried_again
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.session import Session
from wakelog.timeline.points import attempts_of

_LOOKS = {"completed": ("done", "green"), "failed": ("failed", "red"), "open": ("open", "blue")}
_COLUMNS = (
    Column(),
    Column(),
    Column(right=True, drop=3),
    Column(right=True, drop=4),
    Column(right=True, drop=1),
    Column(right=True, drop=5),
    Column(right=True, drop=2),
    Column(),
)


@click.command("attempts")
@click.argument("words", nargs=-1, metavar="[diff|pick] [SEL]", shell_complete=complete_selector)
@click.option("-a", "--all", "everything", is_flag=True, help="With diff: every step and every difference.")
@click.option("-y", "--yes", is_flag=True, help="With pick: do not ask.")
@common
def attempts_command(ctx: Context, words: tuple[str, ...], everything: bool, yes: bool) -> int:
    """The tries of a turn, in the session and in forks that left it just before: how each ended, what it cost, and
    where it first differs from the first of them. Without SEL: the newest turn that was tried more than once.

    diff compares them step by step. pick makes another attempt the one that counts: the view goes to its end, by a
    rewind that `wakelog undo` takes back; a fork's result is taken with `wakelog adopt`.

    \b
    Examples:
      wakelog attempts fix-bug@6
      wakelog attempts diff fix-bug@6
      wakelog attempts pick fix-bug@6.1
    """
    verbs = [word for word in words if word in ("diff", "pick")]
    places = [word for word in words if word not in ("diff", "pick")]
    if len(verbs) > 1 or len(places) > 1:
        raise click.UsageError("attempts takes one turn, and diff or pick: wakelog attempts diff fix-bug@6")
    session, selector = ctx.select(places[0] if places else "")
    if verbs == ["pick"]:
        return _pick(ctx, session, selector.first, yes)
    turn = _turn(ctx, session, selector.first)
    try:
        found = attempts(session.log, turn, session.name, forks=True)
    except NotFoundError:
        place(ctx, session, f"@{turn}")  # its error names what is near
        raise
    if verbs == ["diff"]:
        return _diff(ctx, session, turn, found, everything)
    return _list(ctx, session, turn, found)


def _turn(ctx: Context, session: Session[Any], spot: str) -> int:
    if not spot:
        return tried_again(session.log)
    if spot.startswith("@") and spot[1:].isdigit():
        return int(spot[1:])  # also one that only forks have
    return session.log.entry(place(ctx, session, spot).last).header.turn


def _diff(ctx: Context, session: Session[Any], turn: int, found: list[Extent], everything: bool) -> int:
    from wakelog.cli.commands.compare import show_comparison

    if len(found) < 2:
        raise InvalidInputError(
            f"@{turn} of {session.name or session.id} was tried once: there is nothing to compare",
            kind="nothing-to-compare",
            hint=f"wakelog show {handle(session)}@{turn}",
        )
    return show_comparison(ctx, compare(*found), found, everything=everything, exit_code=False)


# The list


def _list(ctx: Context, session: Session[Any], turn: int, found: list[Extent]) -> int:
    pairs = compare(*found).pairs if len(found) > 1 else ()
    courses = [read_course(found[0]), *(pair.b for pair in pairs)]
    compared: list[Pair | None] = [None, *pairs]
    tried = [_plain(course, pair) for course, pair in zip(courses, compared, strict=True)]
    if ctx.ndjson:
        for each in tried:
            ctx.record("attempts", each)
        return 0
    data = {"session": session.id, "name": session.name or None, "turn": turn, "attempts": tried}
    ctx.answer("attempts", data, lambda: _show(ctx, session, turn, found, courses, compared))
    if len(found) > 1:
        ctx.suggest(f"wakelog attempts diff {handle(session)}@{turn}")
    return 0


def _plain(course: Course, pair: Pair | None) -> dict[str, Any]:
    found = pair.divergence if pair else None
    return {**plain_course(course, steps=False), "divergence": plain_divergence(found) if found else None}


def _show(
    ctx: Context,
    session: Session[Any],
    turn: int,
    found: list[Extent],
    courses: list[Course],
    compared: list[Pair | None],
) -> None:
    count_ = f"{len(courses)} attempt{'s' if len(courses) != 1 else ''}"
    asked = _input(courses[0], found[0])
    front = f"{title(ctx, session)} @{turn}"
    room = max(8, ctx.columns - width(click.unstyle(front)) - width(count_) - 4)
    ctx.say(f"{front}  {fit(asked, min(room, ctx.columns // 2))}  {ctx.style(count_, dim=True)}")
    rows = [_row(session, course) for course in courses]
    for line, extent, course, pair in zip(
        lay_out(ctx, _COLUMNS, rows, titles=False), found, courses, compared, strict=True
    ):
        ctx.say(line)
        if pair is not None:
            ctx.say("   " + ctx.style(fit(_difference(extent, course, pair), ctx.columns - 3), dim=True))


def _input(course: Course, extent: Extent) -> str:
    first = next((step for step in course.steps if step.kind == "input"), None)
    return text_of(whole(extent.log, first.input, 4096)) if first is not None and first.input is not None else ""


def _row(session: Session[Any], course: Course) -> Row:
    sign, color = _LOOKS.get(course.outcome, ("failed", "yellow"))
    tokens = course.cost.tokens_in + course.cost.tokens_out
    remark = "in a fork" if course.session != session.id else "in view" if course.in_view else "given up"
    return (
        Cell(f" {course.name}", {"fg": "cyan"}),
        Cell(f"{glyph(sign)} {course.outcome}", {"fg": color}),
        f"{len(course.steps)} steps",
        f"{course.calls} call{'s' if course.calls != 1 else ''}",
        duration(course.duration_us),
        f"{count(tokens)} tokens" if tokens else "",
        money(course.cost.usd_micros) if course.cost.usd_micros else "",
        Cell(remark, {"bold": True} if remark == "in view" else {}),
    )


def _difference(extent: Extent, course: Course, pair: Pair) -> str:
    """Where an attempt first differs from the first one."""
    found = pair.divergence
    if found is None:
        return "the same, step by step"
    if found.b is None:
        return f"ended after {found.same_before} same steps"
    what = "" if found.what == ("step",) else f" ({', '.join(found.what)})"
    return f"differs from step {found.b + 1} on{what}: {words_of(extent.log, course.steps[found.b])}"


# Choosing


def _pick(ctx: Context, session: Session[Any], spot: str, yes: bool) -> int:
    from wakelog.cli.commands.rewind import show_preview
    from wakelog.diff.rewind_preview import preview_rewind

    name = handle(session)
    turn, _, number = spot.removeprefix("@").partition(".")
    if not spot.startswith("@") or not turn.isdigit() or not number.isdigit():
        raise click.UsageError(f"pick names one attempt: wakelog attempts pick {name}@6.1")
    place(ctx, session, spot)
    span = next(s for s in attempts_of(session.log, int(turn)) if s.attempt == int(number))
    preview = preview_rewind(session.log, span.last)
    if not ctx.json and not ctx.ndjson:
        show_preview(ctx, session, preview)
    ctx.confirm("Pick it?", yes=yes)
    head = session.rewind(span.last, why=f"picked {spot}")
    undo = f"wakelog undo {name}"
    data = {**msgspec.to_builtins(preview), "name": session.name, "picked": spot, "operation": head.seq, "undo": undo}
    ctx.answer(
        "attempts-pick",
        data,
        lambda: ctx.say(f"{spot} ({span.outcome}) is in view. To take it back: {inert(undo, lines=False)}"),
    )
    return 0
