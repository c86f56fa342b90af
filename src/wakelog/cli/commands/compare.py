"""`wakelog compare` and `attempts`: attempts, forks or sessions side by side, and where they part."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.places import span_of
from wakelog.cli.render.comparison import (
    divergence_lines,
    end_lines,
    letter,
    step_lines,
    sum_lines,
    title_line,
    words_of,
)
from wakelog.cli.render.results import plain
from wakelog.cli.render.sessions import handle, harmless, identity, title
from wakelog.cli.render.table import Cell, Column, Row, lay_out
from wakelog.cli.render.values import text_of
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import count, duration, fit, glyph, inert, money, width
from wakelog.compare.comparison import Comparison, Pair, compare
from wakelog.compare.step_values import whole
from wakelog.compare.trajectory import Course, Extent, attempts, read_course, select_extent, tried_again
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.session import Session
from wakelog.store import Store
from wakelog.store import open as open_store
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


@click.command("compare")
@click.argument("sides", nargs=-1, metavar="A [B] [C …]", shell_complete=complete_selector)
@click.option("--other", "other", metavar="PATH", help="Look for all but the first side in this store.")
@click.option("-a", "--all", "everything", is_flag=True, help="Show every step and every difference.")
@click.option("--exit-code", "exit_code", is_flag=True, help="Exit with 1 when something differs.")
@common
def compare_command(ctx: CommandContext, sides: tuple[str, ...], other: str, everything: bool, exit_code: bool) -> int:
    """Compare attempts, turns, forks or sessions step by step. The first difference comes on top, with what went into
    it on each side (prompt, model, parameters, context, state) and what followed.

    Each side is a session, or a turn, attempt or range of one. One turn alone compares its attempts. One fork alone is
    compared with the session it comes from. Steps that differ only in ids or times count as the same.

    \b
    Examples:
      wakelog compare fix-bug@6.1 @6.2
      wakelog compare fix-bug try-refresh
      wakelog compare fix-bug@6
    """
    store = open_store(other, create=False) if other else None
    try:
        extents = _extents(ctx, sides, store)
        return show_comparison(ctx, compare(*extents), extents, everything=everything, exit_code=exit_code)
    finally:
        if store is not None:
            store.close()


def _extents(ctx: CommandContext, sides: tuple[str, ...], store: Store | None) -> list[Extent]:
    if len(sides) > 1 or (sides and store is not None):
        first = _extent(ctx, sides[0])
        rest = sides[1:] or sides
        return [first, *(_extent(ctx, side, store=store, session=sides[0]) for side in rest)]
    place = ctx.place(sides[0] if sides else "")
    session, spot = place.session, place.text.partition("..")[0]
    if spot:
        turn = session.log.entry(span_of(session, spot).last).header.turn
        found = attempts(session.log, turn, session.name, forks=True) if turn else []
        if len(found) > 1:
            return found
        raise InvalidInputError(
            f"{sides[0]} has one attempt: there is nothing to compare it with",
            kind="nothing-to-compare",
            hint="wakelog compare A B",
        )
    fork = session.head.fork
    if fork is None:
        raise InvalidInputError(
            f"{session.name or session.id} is not a fork: name what to compare it with",
            kind="nothing-to-compare",
            hint="wakelog compare A B",
        )
    return [select_extent(ctx.store.resume(fork.parent).log), select_extent(session.log, name=session.name)]


def _extent(ctx: CommandContext, side: str, *, store: Store | None = None, session: str = "") -> Extent:
    """A side of the comparison; a place without a session is in the session of the first side."""
    place = ctx.place(side)
    found = place.session if place.named or not session else ctx.place(session).session
    if store is not None:
        found = store.resume(store.find(place.named or found.name or found.id))
    if place.text:
        span_of(found, place.text)  # for its error, which names what is near
    return select_extent(found.log, place.text, found.name)


def show_comparison(
    ctx: CommandContext, comparison: Comparison, extents: list[Extent], *, everything: bool, exit_code: bool
) -> int:
    """Answers with a comparison; shared by `attempts diff`."""
    data = {"pairs": comparison.pairs}
    ctx.answer("compare", data, lambda: _show(ctx, comparison, extents, everything))
    _suggest(ctx, comparison)
    return NO if exit_code and comparison else 0


def _show(ctx: CommandContext, comparison: Comparison, extents: list[Extent], everything: bool) -> None:
    """For two, the first difference comes first; for more, what each came to."""
    several = len(comparison.pairs) > 1
    if several:
        ctx.say_all(sum_lines(ctx, comparison.courses))
    for number, pair in enumerate(comparison.pairs, 1):
        names, logs = letter(0) + letter(number), (extents[0].log, extents[number].log)
        if several:
            ctx.say()
        ctx.say(title_line(ctx, pair, names))
        ctx.say_all(divergence_lines(ctx, pair, logs, names, everything=everything))
        if not several:
            ctx.say(ctx.style("sums", bold=True))
            ctx.say_all(sum_lines(ctx, comparison.courses))
        if (pair.divergence and not several) or everything:
            ctx.say_all(step_lines(ctx, pair, logs, names, everything=everything))
            ctx.say_all(end_lines(ctx, pair, everything=everything))


def _suggest(ctx: CommandContext, comparison: Comparison) -> None:
    a, b = comparison.courses[0], comparison.courses[-1]
    if len(comparison.pairs) > 1 and all(map(harmless, (a.name.replace("@", ""), b.name.replace("@", "")))):
        ctx.suggest(f"wakelog compare {a.name} {b.name}")
    elif comparison.divergence is not None and comparison.divergence.b is not None:
        step = b.steps[comparison.divergence.b]
        ctx.suggest(f"wakelog show -s {b.session} e{step.seq}", "wakelog compare --all …")


@click.command("attempts")
@click.argument("words", nargs=-1, metavar="[diff|pick] [SEL]", shell_complete=complete_selector)
@click.option("-a", "--all", "everything", is_flag=True, help="With diff: show every step and every difference.")
@click.option("-y", "--yes", is_flag=True, help="With pick: do not ask.")
@common
def attempts_command(ctx: CommandContext, words: tuple[str, ...], everything: bool, yes: bool) -> int:
    """List the attempts at a turn, in the session and in forks that started just before it: how each ended, what it
    cost, and where it first differs from the first one. Without SEL, the newest turn with more than one attempt.

    diff compares the attempts step by step. pick makes another attempt the current one: it rewinds to the end of that
    attempt, and `wakelog undo` reverts that. To take over the result of a fork, use `wakelog adopt`.

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
    where = ctx.place(places[0] if places else "")
    session, first = where.session, where.text.partition("..")[0]
    if verbs == ["pick"]:
        return _pick(ctx, session, first, yes)
    turn = _turn(session, first)
    try:
        found = attempts(session.log, turn, session.name, forks=True)
    except NotFoundError:
        span_of(session, f"@{turn}")  # its error names what is near
        raise
    if verbs == ["diff"]:
        return _diff(ctx, session, turn, found, everything)
    return _list(ctx, session, turn, found)


def _turn(session: Session[Any], spot: str) -> int:
    if not spot:
        return tried_again(session.log)
    if spot.startswith("@") and spot[1:].isdigit():
        return int(spot[1:])  # also one that only forks have
    return session.log.entry(span_of(session, spot).last).header.turn


def _diff(ctx: CommandContext, session: Session[Any], turn: int, found: list[Extent], everything: bool) -> int:
    from wakelog.cli.commands.compare import show_comparison

    if len(found) < 2:
        raise InvalidInputError(
            f"@{turn} of {session.name or session.id} has one attempt: there is nothing to compare",
            kind="nothing-to-compare",
            hint=f"wakelog show {handle(session)}@{turn}",
        )
    return show_comparison(ctx, compare(*found), found, everything=everything, exit_code=False)


# The list


def _list(ctx: CommandContext, session: Session[Any], turn: int, found: list[Extent]) -> int:
    pairs = compare(*found).pairs if len(found) > 1 else ()
    courses = [read_course(found[0]), *(pair.b for pair in pairs)]
    compared: list[Pair | None] = [None, *pairs]
    tried = [_plain(course, pair) for course, pair in zip(courses, compared, strict=True)]
    data = {**identity(session), "turn": turn, "attempts": tried}
    ctx.answer("attempts", data, lambda: _show_attempts(ctx, session, turn, found, courses, compared), records=tried)
    if len(found) > 1:
        ctx.suggest(f"wakelog attempts diff {handle(session)}@{turn}")
    return 0


def _plain(course: Course, pair: Pair | None) -> dict[str, Any]:
    summary = {name: value for name, value in plain(course).items() if name != "steps"}
    return {**summary, "divergence": pair.divergence if pair else None}


def _show_attempts(
    ctx: CommandContext,
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


def _pick(ctx: CommandContext, session: Session[Any], spot: str, yes: bool) -> int:
    from wakelog.cli.commands.rewind import show_preview
    from wakelog.diff.rewind_preview import preview_rewind

    name = handle(session)
    turn, _, number = spot.removeprefix("@").partition(".")
    if not spot.startswith("@") or not turn.isdigit() or not number.isdigit():
        raise click.UsageError(f"pick names one attempt: wakelog attempts pick {name}@6.1")
    span_of(session, spot)
    span = next(s for s in attempts_of(session.log, int(turn)) if s.attempt == int(number))
    preview = preview_rewind(session.log, span.last)
    if ctx.is_for_people:
        show_preview(ctx, session, preview)
    ctx.confirm("Pick it?", yes=yes)
    head = session.rewind(span.last, why=f"picked {spot}")
    undo = f"wakelog undo {name}"
    data = {**msgspec.to_builtins(preview), "name": session.name, "picked": spot, "operation": head.seq, "undo": undo}
    ctx.answer(
        "attempts-pick",
        data,
        lambda: ctx.say(f"{spot} ({span.outcome}) is in view. To undo: {inert(undo, lines=False)}"),
    )
    return 0
