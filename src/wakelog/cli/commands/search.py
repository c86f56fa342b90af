"""`wakelog search` and `query`: find words, and run read-only SQL."""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from typing import Any

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.options import limit_option
from wakelog.cli.output import Progress
from wakelog.cli.render.results import shape, shows
from wakelog.cli.render.table import GAP, Cell, Column, say_table
from wakelog.cli.render.values import scalar, text_of
from wakelog.cli.selectors import find_time
from wakelog.cli.text import age, fit, glyph, inert_line, pad, place_of_turn, trust_mark, width
from wakelog.index.results import Hit, Table
from wakelog.index.sql import ROWS_MAX, VIEWS
from wakelog.model.names import unquoted_name
from wakelog.model.payloads import without_bytes
from wakelog.store.insight_search import DerivedHit

MAX_HITS, ALL = 20, 10_000
_NARROWEST = 8
"""With fewer columns of text than this for each column, a table is unreadable."""


@click.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("-A", "--all", "everything", is_flag=True, help="Search all sessions, also when -s names one.")
@click.option("--since", metavar="T", help="Search from this time on: 2h, 60d, today, 2026-11-15.")
@click.option("--kind", metavar="K", help="Show events of this kind, or of all kinds K.*.")
@limit_option(MAX_HITS, "Show at most N hits.", least=1, most=ALL)
@click.option("-l", "--sessions", "names", is_flag=True, help="List only the sessions with a hit.")
@click.option("-c", "--count", "counts", is_flag=True, help="Count the hits of each session.")
@common
def search_command(
    ctx: CommandContext,
    query: tuple[str, ...],
    everything: bool,
    since: str | None,
    kind: str | None,
    limit: int,
    names: bool,
    counts: bool,
) -> int:
    """Find events that contain all the words, the best match first. "Quoted words" are a phrase; word* matches a
    prefix.

    Searches all sessions of the store, or the one that -s names. Each hit starts with what `wakelog show` takes. With
    --kind decision or dead_end, what is derived from the agent's words is found too, marked ~. The exit code is 1 when
    nothing is found.

    Examples:
      wakelog search session token
      wakelog search '"session token" expir*'
    """
    text = " ".join(query)
    session = ctx.session().id if ctx.names_session and not everything else None
    with Progress(ctx, "words of events") as progress:  # words are indexed on the first search, then kept
        ctx.store.index.catch_up_words(session, progress.reach)
    page = ctx.store.index.search(
        text, session=session, kind=kind, since=find_time(ctx, since), limit=ALL if names or counts else limit
    )
    hits = list(page)
    ctx.warn_unread(page.as_of.damaged)
    if names or counts:
        return _answer_sessions(ctx, text, hits, counts)
    derived = ctx.store.find_derived(text, kind or "", session=session, since=find_time(ctx, since), limit=limit)
    data = {"query": text, "hits": hits, "derived": derived}
    ctx.answer("search", data, lambda: _show(ctx, text, hits, derived, since), records=[*hits, *derived])
    if hits:
        ctx.suggest(f"wakelog show {_place(hits[0])}")
    return 0 if hits or derived else NO


def _answer_sessions(ctx: CommandContext, text: str, hits: list[Hit], counts: bool) -> int:
    found = Counter((hit.session, hit.name) for hit in hits)
    rows = [{"session": session, "name": name or None, "hits": count} for (session, name), count in found.most_common()]

    def human() -> None:
        for row in rows:
            name = inert_line(str(row["name"] or row["session"]))
            ctx.say(f"{row['hits']:>6}  {name}" if counts else name)

    ctx.answer("search", {"query": text, "sessions": rows}, human, records=rows)
    return 0 if hits else NO


def _place(hit: Hit) -> str:
    """A selector to paste: `fix-auth@7 e40`."""
    name = unquoted_name(hit.name) or hit.session
    return f"{name}{place_of_turn(hit.turn, hit.attempt)} e{hit.seq}" if hit.turn else f"-s {name} e{hit.seq}"


def _show(ctx: CommandContext, text: str, hits: list[Hit], derived: list[DerivedHit], since: str | None) -> None:
    if not hits and not derived:
        when = f" since {inert_line(since)}" if since else ""
        more = "; without --since, older sessions are searched too" if since else ""
        ctx.say(f"nothing{when} contains {inert_line(text)!r}{more}")
    now = ctx.store.clock()
    for hit in hits:
        place = fit(_place(hit), ctx.columns // 2)
        marks = [hit.tool or hit.kind, age(hit.at, now)]
        if hit.trust != "trusted":
            marks.append(trust_mark(hit.trust))
        if not hit.in_view:
            marks.append(f"{glyph('back')} rewound")
        rest = fit("  ".join(marks), max(10, ctx.columns - width(place) - 2))
        ctx.say(f"{ctx.style(place, fg='cyan')}  {ctx.style(rest, dim=True)}")
        snippet = fit(hit.snippet, ctx.columns - 4)
        ctx.say("    " + _highlight(ctx, snippet))
    for found in derived:
        place = f"{unquoted_name(found.name) or found.session}@{found.item.turn} e{found.item.seq}"
        rest = f"~ {found.item.kind.replace('_', ' ')}, derived by rules {found.item.rules}"
        ctx.say(f"{ctx.style(fit(place, ctx.columns // 2), fg='cyan')}  {ctx.style(rest, dim=True)}")
        question = f', to "{found.item.asked}"' if found.item.asked else ""
        ctx.say("    " + fit(inert_line(f'"{" ".join(found.item.quote.split())}"{question}'), ctx.columns - 4))


def _highlight(ctx: CommandContext, snippet: str) -> str:
    """The snippet with matches in bold; without colour the marks « » stay."""
    if not ctx.color:
        return snippet
    return re.sub("«([^»]*)»?", lambda match: ctx.style(match[1], bold=True, fg="yellow"), snippet)


shape(
    Hit,
    "session name? seq turn? attempt kind timestamp=at:iso tool? trust in_view snippet rank",
    attempt=lambda hit: hit.attempt if hit.turn else None,
    in_view=lambda hit: bool(hit.in_view),
)


@click.command("query")
@click.argument("sql", required=False, default="")
@click.option("--views", is_flag=True, help="List the views and their columns.")
@limit_option(1000, "Return at most N rows.", least=1, most=ROWS_MAX)
@click.option(
    "--timeout", "timeout_s", type=float, default=2.0, show_default=True, metavar="S", help="Stop after S seconds."
)
@click.option("--archive", "place", default="", metavar="DIR|URL", help="Query an archive in Parquet, not the store.")
@common
def query_command(ctx: CommandContext, sql: str, views: bool, limit: int, timeout_s: float, place: str) -> None:
    """Run one SELECT over the views of the store (list them with --views). `-` reads the statement from stdin.

    The views are sessions, turns, events, files, decisions, facts, tools, errors and messages. Queries can read nothing
    else and change nothing. With --archive the tables are those of an archive that `wakelog archive --to` made:
    sessions, events, commits and payloads, in the SQL of DuckDB.

    Examples:
      wakelog query "select kind, count(*) from events group by kind"
      wakelog query --archive old "select day, count(*) from events group by 1"
    """
    if place and views:
        raise click.UsageError("--views lists those of the store; the tables of an archive are in its guide")
    if views:
        _answer_views(ctx)
        return
    if sql == "-":
        sql = sys.stdin.read()
    if not sql:
        raise click.UsageError('query needs a statement, as in: wakelog query "select name, turns from sessions"')
    if place:
        from wakelog.maintenance.parquet_restore import query_parquet

        table = query_parquet(place, sql, max_rows=limit, timeout_s=timeout_s)
    else:
        table = ctx.store.index.query_sql(sql, max_rows=limit, timeout_s=timeout_s)
    ctx.warn_unread(table.as_of.damaged)
    if table.truncated:
        ctx.warn(f"only the first {len(table.rows):,} rows are shown; -n allows more, up to {ROWS_MAX:,}")
    records = ({"row": dict(zip(table.columns, map(without_bytes, row), strict=True))} for row in table.rows)
    ctx.answer("query", table, records=records)


@shows(Table)
def _show_query(ctx: CommandContext, table: Table) -> None:
    if not table.rows:
        ctx.say("no rows")
        return
    if len(table.columns) * (_NARROWEST + GAP) > ctx.columns:
        _show_vertically(ctx, table)
        return
    columns = [
        Column(
            fit(name, 40),
            least=min(6, len(name)),
            right=all(isinstance(row[i], int | float | None) for row in table.rows),
        )
        for i, name in enumerate(table.columns)
    ]
    say_table(ctx, columns, [[Cell(_text(value)) for value in row] for row in table.rows])


def _show_vertically(ctx: CommandContext, table: Table) -> None:
    """For too many columns: a block for each row, with a line for each column that is not empty."""
    names = [pad(name, 16) for name in table.columns]
    for number, row in enumerate(table.rows, 1):
        ctx.say(ctx.style(f"row {number}", bold=True))
        for name, value in zip(names, row, strict=True):
            if value is not None and value != "":
                ctx.say(f"  {ctx.style(name, dim=True)}  {fit(_text(value), ctx.columns - 20)}")


def _text(value: Any) -> str:
    if value is None:
        return "null"
    return text_of(value)[:2000] if isinstance(value, str | bytes) else scalar(value, 60)


def _answer_views(ctx: CommandContext) -> None:
    columns = {view: list(ctx.store.index.query_sql(f"select * from {view} limit 0").columns) for view in VIEWS}
    data = [{"view": view, "columns": names} for view, names in columns.items()]

    def human() -> None:
        for view, names in columns.items():
            ctx.say(ctx.style(view, bold=True))
            text = " ".join(names)
            ctx.say_all(textwrap.wrap(text, ctx.columns - 1, initial_indent="    ", subsequent_indent="    "))

    ctx.answer("query", data, human)


shape(DerivedHit, "session name? item")
shape(
    Table,
    "columns rows truncated",
    rows=lambda table: [[without_bytes(value) for value in row] for row in table.rows],
)
