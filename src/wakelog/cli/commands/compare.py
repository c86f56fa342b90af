"""`wakelog compare` and `attempts`: attempts, forks or sessions side by side, and where they differ."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.render.comparison import (
    divergence_lines,
    end_lines,
    letter,
    step_lines,
    step_text,
    sum_lines,
    title_line,
)
from wakelog.cli.render.results import plain
from wakelog.cli.render.sessions import handle, identity, title
from wakelog.cli.render.table import Cell, Row, lay_out
from wakelog.cli.render.values import text_of
from wakelog.cli.selectors import find_span
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import count, duration, fit, glyph, inert_line, money, width
from wakelog.compare.comparison import Comparison, Pair
from wakelog.compare.trajectory import Course
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.log import Log
from wakelog.model.names import unquoted_name
from wakelog.model.short_text import pluralize
from wakelog.session import Session
from wakelog.store import Store
from wakelog.store import open as open_store

_LOOKS = {"completed": ("done", "green"), "failed": ("failed", "red"), "open": ("open", "blue")}
_COLUMNS = " |  | > -3 | > -4 | > -1 | > -5 | > -2 | "


@click.command("compare")
@click.argument("sides", nargs=-1, metavar="A [B] [C …]", shell_complete=complete_selector)
@click.option("--other", metavar="PATH", help="Look for all but the first side in this store.")
@click.option("-a", "--all", "everything", is_flag=True, help="Show every step and every difference.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 when something differs.")
@common
def compare_command(ctx: CommandContext, sides: tuple[str, ...], other: str, everything: bool, exit_code: bool) -> int:
    """Compare attempts, turns, forks or sessions step by step. The first difference comes on top, with what went into
    it on each side (prompt, model, parameters, context, state) and what followed.

    Each side is a session, or a turn, attempt or range of one. One turn alone compares its attempts. One fork alone is
    compared with the session it comes from. Steps that differ only in ids or times count as the same.

    Examples:
      wakelog compare fix-bug@6.1 @6.2
      wakelog compare fix-bug try-refresh
      wakelog compare fix-bug@6
    """
    store = open_store(other, create=False) if other else None
    try:
        comparison, logs = _compare(ctx, sides, store)
        return _answer(ctx, comparison, logs, everything=everything, exit_code=exit_code)
    finally:
        if store is not None:
            store.close()


def _compare(ctx: CommandContext, sides: tuple[str, ...], store: Store | None) -> tuple[Comparison, list[Log]]:
    """The comparison that the arguments ask for, and the log of each side."""
    if len(sides) > 1 or (sides and store is not None):
        places = [_side(ctx, sides[0])]
        places += [_side(ctx, side, store=store, session=sides[0]) for side in sides[1:] or sides]
        return places[0][0].history.compare(*places), [session.log for session, _ in places]
    place = ctx.place(sides[0] if sides else "")
    session, spot = place.session, place.text.partition("..")[0]
    if spot:
        find_span(session, spot)  # its error suggests what is near
        return _compare_attempts(ctx, session, spot, f"{sides[0]} has one attempt: there is nothing to compare it with")
    fork = session.head.fork
    if fork is None:
        raise _nothing_to_compare(f"{session} is not a fork: name what to compare it with")
    parent = ctx.store.resume(fork.parent)
    return parent.history.compare(session), [parent.log, session.log]


def _side(ctx: CommandContext, side: str, *, store: Store | None = None, session: str = "") -> tuple[Session[Any], str]:
    """A side of the comparison. A place without a session is in the session of the first side."""
    place = ctx.place(side)
    found = place.session if place.named or not session else ctx.place(session).session
    if store is not None:
        found = store.resume(store.find(place.named or str(found)))
    if place.text:
        find_span(found, place.text)  # its error suggests what is near
    return found, place.text


def _compare_attempts(
    ctx: CommandContext, session: Session[Any], spot: str, otherwise: str
) -> tuple[Comparison, list[Log]]:
    """Compares the attempts at a turn, those of forks included."""
    try:
        comparison = session.history.compare(spot)
    except InvalidInputError as exc:
        if exc.kind != "nothing-to-compare":
            raise
        raise _nothing_to_compare(otherwise) from exc
    return comparison, [_log(ctx, session, course) for course in comparison.courses]


def _log(ctx: CommandContext, session: Session[Any], course: Course) -> Log:
    return session.log if course.session == session.id else ctx.store.resume(course.session).log


def _nothing_to_compare(message: str, hint: str = "wakelog compare A B") -> InvalidInputError:
    return InvalidInputError(message, kind="nothing-to-compare", hint=hint)


def _answer(
    ctx: CommandContext, comparison: Comparison, logs: list[Log], *, everything: bool, exit_code: bool = False
) -> int:
    ctx.answer("compare", {"pairs": comparison.pairs}, lambda: _show(ctx, comparison, logs, everything))
    _suggest(ctx, comparison)
    return NO if exit_code and comparison else 0


def _show(ctx: CommandContext, comparison: Comparison, logs: list[Log], everything: bool) -> None:
    """For two sides the first difference comes first; for more, the totals."""
    several = len(comparison.pairs) > 1
    if several:
        ctx.say_all(sum_lines(ctx, comparison.courses))
    for number, pair in enumerate(comparison.pairs, 1):
        names, both = letter(0) + letter(number), (logs[0], logs[number])
        if several:
            ctx.say()
        ctx.say(title_line(ctx, pair, names))
        ctx.say_all(divergence_lines(ctx, pair, both, names, everything=everything))
        if not several:
            ctx.say(ctx.style("sums", bold=True))
            ctx.say_all(sum_lines(ctx, comparison.courses))
        if (pair.divergence and not several) or everything:
            ctx.say_all(step_lines(ctx, pair, both, names, everything=everything))
            ctx.say_all(end_lines(ctx, pair, everything=everything))


def _suggest(ctx: CommandContext, comparison: Comparison) -> None:
    a, b = comparison.courses[0], comparison.courses[-1]
    if len(comparison.pairs) > 1 and all(map(unquoted_name, (a.name.replace("@", ""), b.name.replace("@", "")))):
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
    turn = _turn_at(session, first)
    try:
        courses = session.history.attempts(turn, forks=True)
    except NotFoundError:
        if turn is not None:
            find_span(session, f"@{turn}")  # its error suggests what is near
        raise
    turn = courses[0].turn
    if verbs != ["diff"]:
        return _list(ctx, session, turn, courses)
    one = f"@{turn} of {session} has one attempt: there is nothing to compare"
    if len(courses) < 2:
        raise _nothing_to_compare(one, f"wakelog show {handle(session)}@{turn}")
    return _answer(ctx, *_compare_attempts(ctx, session, f"@{turn}", one), everything=everything)


def _turn_at(session: Session[Any], spot: str) -> int | None:
    if not spot:
        return None
    if spot.startswith("@") and spot[1:].isdigit():
        return int(spot[1:])  # it may exist in forks only
    return session.log.entry(find_span(session, spot).last).header.turn


# The list


def _list(ctx: CommandContext, session: Session[Any], turn: int, courses: list[Course]) -> int:
    pairs = session.history.compare(f"@{turn}").pairs if len(courses) > 1 else ()
    courses = [courses[0], *(pair.b for pair in pairs)]
    compared: list[Pair | None] = [None, *pairs]
    attempts = [_plain(course, pair) for course, pair in zip(courses, compared, strict=True)]
    data = {**identity(session), "turn": turn, "attempts": attempts}
    ctx.answer("attempts", data, lambda: _show_attempts(ctx, session, turn, courses, compared), records=attempts)
    if len(courses) > 1:
        ctx.suggest(f"wakelog attempts diff {handle(session)}@{turn}")
    return 0


def _plain(course: Course, pair: Pair | None) -> dict[str, Any]:
    summary = {name: value for name, value in plain(course).items() if name != "steps"}
    return {**summary, "divergence": pair.divergence if pair else None}


def _show_attempts(
    ctx: CommandContext, session: Session[Any], turn: int, courses: list[Course], compared: list[Pair | None]
) -> None:
    total = pluralize(len(courses), "attempt")
    logs = [_log(ctx, session, course) for course in courses]
    asked = _input(courses[0], logs[0])
    front = f"{title(ctx, session)} @{turn}"
    room = max(8, ctx.columns - width(click.unstyle(front)) - width(total) - 4)
    ctx.say(f"{front}  {fit(asked, min(room, ctx.columns // 2))}  {ctx.style(total, dim=True)}")
    rows = [_row(session, course) for course in courses]
    for line, log, course, pair in zip(
        lay_out(ctx, _COLUMNS, rows, titles=False), logs, courses, compared, strict=True
    ):
        ctx.say(line)
        if pair is not None:
            ctx.say("   " + ctx.style(fit(_difference(log, course, pair), ctx.columns - 3), dim=True))


def _input(course: Course, log: Log) -> str:
    first = next((step for step in course.steps if step.kind == "input"), None)
    return text_of(log.whole(first.input, 4096)) if first is not None and first.input is not None else ""


def _row(session: Session[Any], course: Course) -> Row:
    sign, color = _LOOKS.get(course.outcome, ("failed", "yellow"))
    tokens = course.cost.tokens_in + course.cost.tokens_out
    remark = "in a fork" if course.session != session.id else "in view" if course.in_view else "given up"
    return (
        Cell(f" {course.name}", {"fg": "cyan"}),
        Cell(f"{glyph(sign)} {course.outcome}", {"fg": color}),
        f"{len(course.steps)} steps",
        pluralize(course.calls, "call"),
        duration(course.duration_us),
        f"{count(tokens)} tokens" if tokens else "",
        money(course.cost.usd_micros) if course.cost.usd_micros else "",
        Cell(remark, {"bold": True} if remark == "in view" else {}),
    )


def _difference(log: Log, course: Course, pair: Pair) -> str:
    """Where an attempt first differs from the first one."""
    divergence = pair.divergence
    if divergence is None:
        return "the same, step by step"
    if divergence.b is None:
        return f"ended after {divergence.same_before} same steps"
    what = "" if divergence.what == ("step",) else f" ({', '.join(divergence.what)})"
    return f"differs from step {divergence.b + 1} on{what}: {step_text(log, course.steps[divergence.b])}"


# Picking an attempt


def _pick(ctx: CommandContext, session: Session[Any], spot: str, yes: bool) -> int:
    from wakelog.cli.commands.rewind import show_preview

    name = handle(session)
    turn, _, number = spot.removeprefix("@").partition(".")
    if not spot.startswith("@") or not turn.isdigit() or not number.isdigit():
        raise click.UsageError(f"pick names one attempt: wakelog attempts pick {name}@6.1")
    find_span(session, spot)
    span = next(course for course in session.history.attempts(int(turn)) if course.attempt == int(number))
    preview = session.history.preview_rewind(span.last)
    if ctx.is_for_people:
        show_preview(ctx, session, preview)
    ctx.confirm("Pick it?", yes=yes)
    head = session.rewind(span.last, why=f"picked {spot}")
    undo = f"wakelog undo {name}"
    data = {**msgspec.to_builtins(preview), "name": session.name, "picked": spot, "operation": head.seq, "undo": undo}
    ctx.answer("attempts-pick", data, f"{spot} ({span.outcome}) is in view. To undo: {inert_line(undo)}")
    return 0
