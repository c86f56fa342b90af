"""Derived insight for people. Each line is marked `~` and names the event it quotes; a footer explains the mark.
Nothing here is shown as if the agent had recorded it."""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from wakelog.cli.context import CommandContext
from wakelog.cli.render.results import shape
from wakelog.cli.text import fit, fit_path, glyph, inert_line, pad
from wakelog.errors import WakelogError
from wakelog.insight.items import Insight, InsightItem
from wakelog.model.short_text import pluralize
from wakelog.session import Session

TITLES = {
    "goal": "goal",
    "correction": "correction",
    "redirect": "redirected",
    "failure_report": "reported",
    "preference": "preference",
    "answer": "answer",
    "approach_change": "change",
    "dead_end": "dead end",
    "decision": "decision",
    "pending": "pending",
}
WHY = ("approach_change", "dead_end", "decision", "answer", "correction", "redirect", "failure_report")
"""Kinds that explain what the agent did differently, and why."""
MAX_LINES = 3
"""How many lines a quote may take."""
_MARGIN = 12
_FILES_MAX = 8
_PATH_MAX = 48
"""How long a path in the middle of a line may be."""


def derive_insight(session: Session[Any], where: str, *, everything: bool = False) -> Insight | None:
    """The derived insight, or None if the words cannot be read; then the caller shows its answer without it."""
    try:
        return session.insight(where, all=everything)
    except WakelogError:
        return None


def reasons_for(session: Session[Any], seqs: Sequence[int]) -> Insight | None:
    """The derived items that are one of these events, or led to one, within the turn of the first event. Minor ones
    too: they are about what was asked for."""
    if not seqs:
        return None
    insight = derive_insight(session, f"e{seqs[0]}", everything=True)
    if insight is None:
        return None
    about = set(seqs)
    items = tuple(i for i in insight.items if i.kind in WHY and (i.seq in about or about & set(i.calls)))
    return Insight(items, 0, (), insight.rules)


def insight_lines(
    ctx: CommandContext,
    insight: Insight,
    kinds: Iterable[str] = (),
    *,
    indent: str = "  ",
    files: bool = True,
    footer: bool = True,
) -> Iterator[str]:
    """The items of these `kinds` (default: all): those with words first, then checks and files. The footer says that
    they are derived."""
    wanted = tuple(kinds) or tuple(TITLES)
    items = _once([item for item in insight.items if item.kind in wanted and item.kind in TITLES])
    quotes: set[str] = set()
    for kind in TITLES:
        for item in items:
            if item.kind == kind:
                yield from _item_lines(ctx, item, indent, quotes)
                quotes.add(item.quote)
    checks = insight.of("check") if files or "check" in wanted else ()
    writes = insight.of("file") if files else ()
    if checks:
        yield indent + _title(ctx, "checks") + "  " + _checks(ctx, checks)
    if writes:
        yield from _file_lines(ctx, writes, indent)
    for note in insight.notes:
        yield from ctx.wrapped(inert_line(note), indent)
    if footer and (items or (insight.hidden and not kinds)):
        yield from footer_lines(ctx, insight, indent)


def _once(items: list[InsightItem]) -> list[InsightItem]:
    """Without decisions whose words are already shown as a change of approach or a dead end."""
    quotes = {(item.seq, item.quote) for item in items if item.kind in ("approach_change", "dead_end")}
    return [item for item in items if item.kind != "decision" or (item.seq, item.quote) not in quotes]


def footer_lines(ctx: CommandContext, insight: Insight, indent: str = "  ") -> Iterator[str]:
    """What the mark means, and how much is hidden."""
    hidden = (
        f"{pluralize(insight.hidden, 'minor item')} hidden (insight --all) {glyph('dot')} " if insight.hidden else ""
    )
    yield from ctx.wrapped(f"{hidden}~ derived by rules {insight.rules} from words in the log; not recorded", indent)


def _title(ctx: CommandContext, word: str) -> str:
    return ctx.style(f"{word:<{_MARGIN}}", dim=True)


def _item_lines(ctx: CommandContext, item: InsightItem, indent: str, quotes: Collection[str]) -> Iterator[str]:
    """The lines of an item. Words that were shown before (`quotes`) are no reason again."""
    room = max(16, ctx.columns - len(indent) - _MARGIN - 4 - len(item.id))
    first, *rest = _wrap(_words(item, quotes), room)
    yield f"{indent}{_title(ctx, TITLES[item.kind])}~ {pad(first, room)}  {ctx.style(item.id, fg='cyan')}"
    under = f"{indent}{' ' * _MARGIN}  "
    yield from (f"{under}{line}" for line in rest)
    if item.reason and item.reason not in (item.quote, *quotes) and item.kind != "goal":
        first, *rest = _wrap(_quoted(item.reason), room - 4)
        yield f"{under}{ctx.style('why', dim=True)} {first}"
        yield from (f"{under}    {line}" for line in rest)


def _wrap(text: str, room: int) -> list[str]:
    """The text on at most MAX_LINES lines; the rest is cut."""
    lines = textwrap.wrap(inert_line(text), room, max_lines=MAX_LINES, placeholder=glyph("more"))
    return [fit(line, room) for line in lines] or [""]


def _words(item: InsightItem, quotes: Collection[str]) -> str:
    if item.asked:  # the question comes last, because it may be long
        return f"{_quoted(item.quote)}, to {_quoted(item.asked)}"
    note = item.note.replace("→", glyph("arrow"))
    for path in item.files:
        note = note.replace(path, fit_path(path, _PATH_MAX))
    if item.open_items or not item.quote or (note and item.quote in quotes):
        return note
    if item.result == "carried" and item.reason:
        return f"{_quoted(item.quote)}, going on with {_quoted(item.reason)}"
    return f"{note}: {_quoted(item.quote)}" if note else _quoted(item.quote)


def _quoted(text: str) -> str:
    return f'"{" ".join(text.split())}"'


def _checks(ctx: CommandContext, items: Sequence[InsightItem]) -> str:
    """The results in order. The same one several times in a row is shown once."""
    runs = [list(run) for _, run in itertools.groupby(items, key=lambda item: (item.checks, item.result))]
    shown = runs[-_FILES_MAX:]
    earlier = sum(len(run) for run in runs) - sum(len(run) for run in shown)
    words = [_check(ctx, run[0]) + (f" {glyph('times')}{len(run)}" if len(run) > 1 else "") for run in shown]
    return "   ".join([*([f"{glyph('more')} {earlier} before"] if earlier else []), *words])


def _check(ctx: CommandContext, item: InsightItem) -> str:
    name, colour = {"pass": ("done", "green"), "fail": ("failed", "red")}.get(item.result, ("warn", "yellow"))
    sign = ctx.style(glyph(name), fg=colour)
    return f"{'+'.join(item.checks)} {sign} {item.result}"


def _file_lines(ctx: CommandContext, writes: Sequence[InsightItem], indent: str) -> Iterator[str]:
    counts = Counter(path for item in writes for path in item.files)
    for number, (path, times) in enumerate(counts.items()):
        if number == _FILES_MAX:
            more = f"{glyph('more')} {len(counts) - number} more"
            yield f"{indent}{' ' * _MARGIN}  {ctx.style(more, dim=True)}"
            return
        often = f"  ({times} writes)" if times > 1 else ""
        name = fit_path(path, ctx.columns - len(indent) - _MARGIN - 2 - len(often))
        yield f"{indent}{_title(ctx, 'files' if not number else '')}  {name}{often}"


shape(
    InsightItem,
    "id kind turn seq quote? reason? reason_seq? score calls tools checks result? files open_items asked? offered note?"
    " is_minor known rules",
)
shape(Insight, "items hidden notes rules")
