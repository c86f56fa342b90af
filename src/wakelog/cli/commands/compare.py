"""`wakelog compare`: attempts, forks or sessions side by side, and where they part."""

from __future__ import annotations

from collections.abc import Iterable

import click

from wakelog.cli.context import Context, common
from wakelog.cli.errors import NO
from wakelog.cli.render.comparison import (
    divergence_lines,
    end_lines,
    letter,
    plain_pair,
    step_lines,
    sum_lines,
    title_line,
)
from wakelog.cli.render.places import place
from wakelog.cli.render.sessions import harmless
from wakelog.cli.shell_completion import complete_selector
from wakelog.compare.comparison import Comparison, compare
from wakelog.compare.trajectory import Extent, attempts, select_extent
from wakelog.errors import InvalidInputError
from wakelog.store import Store
from wakelog.store import open as open_store


@click.command("compare")
@click.argument("sides", nargs=-1, metavar="A [B] [C …]", shell_complete=complete_selector)
@click.option("--other", "other", metavar="PATH", help="The store of all but the first.")
@click.option("-a", "--all", "everything", is_flag=True, help="Every step and every difference; nothing is folded.")
@click.option("--exit-code", "exit_code", is_flag=True, help="Exit with 1 when something differs.")
@common
def compare_command(ctx: Context, sides: tuple[str, ...], other: str, everything: bool, exit_code: bool) -> int:
    """Lays attempts, turns, forks or sessions side by side, step by step. On top: the first difference, what went into
    it on each side (prompt, model, parameters, context, state), and what followed.

    Each side is a session, or a turn, attempt or range of one. One turn alone: its attempts. One fork alone: against
    the session it left. Steps that differ only in ids or times count as the same, and are counted.

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


def _extents(ctx: Context, sides: tuple[str, ...], store: Store | None) -> list[Extent]:
    if len(sides) > 1 or (sides and store is not None):
        first = _extent(ctx, sides[0])
        rest = sides[1:] or sides
        return [first, *(_extent(ctx, side, store=store, session=sides[0]) for side in rest)]
    session, selector = ctx.select(sides[0] if sides else "")
    if selector.first:
        turn = session.log.entry(place(ctx, session, selector.first).last).header.turn
        found = attempts(session.log, turn, session.name, forks=True) if turn else []
        if len(found) > 1:
            return found
        raise InvalidInputError(
            f"{sides[0]} was tried once: there is nothing to hold it against",
            kind="nothing-to-compare",
            hint="wakelog compare A B",
        )
    fork = session.head.fork
    if fork is None:
        raise InvalidInputError(
            f"{session.name or session.id} is no fork: say what to hold it against",
            kind="nothing-to-compare",
            hint="wakelog compare A B",
        )
    return [select_extent(ctx.store.resume(fork.parent).log), select_extent(session.log, name=session.name)]


def _extent(ctx: Context, side: str, *, store: Store | None = None, session: str = "") -> Extent:
    """A side of the comparison; a place without a session is in the session of the first side."""
    found, selector = ctx.select(side)
    if not selector.session and session:
        found, _ = ctx.select(session)
    if store is not None:
        found = store.resume(store.find(selector.session or found.name or found.id))
    spot = selector.first + (f"..{selector.last}" if selector.last else "")
    if spot:
        place(ctx, found, spot)  # for its error, which names what is near
    return select_extent(found.log, spot, found.name)


def show_comparison(
    ctx: Context, comparison: Comparison, extents: list[Extent], *, everything: bool, exit_code: bool
) -> int:
    """Answers with a comparison; shared by `attempts diff`."""
    data = {"pairs": [plain_pair(pair) for pair in comparison.pairs]}
    ctx.answer("compare", data, lambda: _show(ctx, comparison, extents, everything))
    _suggest(ctx, comparison)
    return NO if exit_code and comparison else 0


def _show(ctx: Context, comparison: Comparison, extents: list[Extent], everything: bool) -> None:
    """For two, the first difference comes first; for more, what each came to."""
    several = len(comparison.pairs) > 1
    if several:
        _say(ctx, sum_lines(ctx, comparison.courses))
    for number, pair in enumerate(comparison.pairs, 1):
        names, logs = letter(0) + letter(number), (extents[0].log, extents[number].log)
        if several:
            ctx.say()
        ctx.say(title_line(ctx, pair, names))
        _say(ctx, divergence_lines(ctx, pair, logs, names, everything=everything))
        if not several:
            ctx.say(ctx.style("sums", bold=True))
            _say(ctx, sum_lines(ctx, comparison.courses))
        if (pair.divergence and not several) or everything:
            _say(ctx, step_lines(ctx, pair, logs, names, everything=everything))
            _say(ctx, end_lines(ctx, pair, everything=everything))


def _say(ctx: Context, lines: Iterable[str]) -> None:
    for line in lines:
        ctx.say(line)


def _suggest(ctx: Context, comparison: Comparison) -> None:
    a, b = comparison.courses[0], comparison.courses[-1]
    if len(comparison.pairs) > 1 and all(map(harmless, (a.name.replace("@", ""), b.name.replace("@", "")))):
        ctx.suggest(f"wakelog compare {a.name} {b.name}")
    elif comparison.divergence is not None and comparison.divergence.b is not None:
        step = b.steps[comparison.divergence.b]
        ctx.suggest(f"wakelog show -s {b.session} e{step.seq}", "wakelog compare --all …")
