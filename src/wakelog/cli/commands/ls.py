"""`wakelog ls`: lists the sessions of this store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import limit_option
from wakelog.cli.render.money import plain_money
from wakelog.cli.render.results import shape
from wakelog.cli.render.sessions import status_sign
from wakelog.cli.render.table import Cell, Row, say_table
from wakelog.cli.selectors import find_session, find_time
from wakelog.cli.text import age, glyph, inert_line, money
from wakelog.codec.envelope import ENCRYPTED, ERASED
from wakelog.index.index import Index
from wakelog.index.results import SessionInfo
from wakelog.model.names import is_of_store, unquoted_name

MAX_ROWS, MAX_FIRST_PAGE = 50, 200
SPARE = 50
"""How many more sessions to read for the first page, because archived ones are left out."""

_COLUMNS = "session 16~ | > age | > turns -3 | > events -4 | status | > cost -2 | needs 8 | about 12 -1"


@click.command("ls")
@click.option(
    "-A", "--all", "everything", is_flag=True, help="List archived sessions too, and those of the store itself."
)
@click.option("--since", metavar="T", help="List sessions with events since: 2h, today, 2026-11-15.")
@click.option(
    "--status",
    type=click.Choice(["open", "active", "paused", "closed", "archived"]),
    help="List sessions with that status.",
)
@click.option("--label", metavar="K[=V]", help="List sessions with that label.")
@click.option("--agent", metavar="NAME", help="List sessions of that agent: claude-code, codex …")
@click.option("--repo", metavar="DIR", help="List sessions that worked in the repository of this folder.")
@click.option("--failed", is_flag=True, help="List sessions that failed, or whose last turn did.")
@click.option("--live", is_flag=True, help="List sessions that are not closed.")
@click.option("--pending", is_flag=True, help="List sessions with calls that are not settled.")
@click.option("--flagged", is_flag=True, help="List sessions with flags.")
@click.option("--text", metavar="TEXT", help="List sessions with this in their name, id, goal or an input.")
@click.option("--forks-of", "parent", metavar="NAME", help="List the forks of that session.")
@click.option("--name", metavar="GLOB", help="List sessions with that name: fix-*.")
@limit_option(MAX_ROWS)
@common
def ls_command(
    ctx: CommandContext,
    everything: bool,
    since: str | None,
    repo: str | None,
    parent: str | None,
    name: str | None,
    limit: int,
    **chosen: Any,
) -> None:
    """List the sessions of this store, the last active one first. Forks are listed below their parent.

    When many sessions are not indexed yet, the list is sorted by the last write, and -n 0 indexes all of them.

    Examples:
      wakelog ls
      wakelog ls --json
    """
    filters = {
        **{option: None if value is False else value for option, value in chosen.items()},
        "parent": find_session(ctx.store, parent) if parent else None,
        "name_glob": name,
        "since": find_time(ctx, since),
    }
    # A filter may match the oldest session, so it needs the whole index; the first page without one does not.
    is_there = ctx.store.git.worked_in(repo) if repo else None
    is_filtered = any(filters.values()) or is_there is not None
    encryption = ctx.store.encryption.state
    has_index = encryption is None or encryption.has_key or is_filtered
    is_first_page = has_index and 0 < limit <= MAX_FIRST_PAGE and not is_filtered and ctx.store.is_index_behind
    if has_index:
        with _index(ctx, limit if is_first_page else 0) as index:
            infos, more = _find(index, everything or filters["status"] == "archived", limit, is_there, **filters)
    else:
        infos, more = ctx.store.encryption.sessions()[: limit or None], ""
        ctx.warn("the store is encrypted, and was opened without its key: only heads are known")
    hint = f"there are more; -n {limit * 4} shows more of them, -n 0 all" if more else ""
    if is_first_page and infos:
        hint = "these were written last; many sessions are not indexed yet: -n 0 indexes and lists all"
    none = _none(ctx, chosen["agent"]) if is_filtered and not infos and ctx.is_for_people else "no sessions"
    ctx.answer("ls", infos, lambda: _show(ctx, infos, hint, none), next_cursor=more or None)
    if infos:
        name_or_id = unquoted_name(infos[0].name) or infos[0].id
        ctx.suggest(f"wakelog log {name_or_id}", f"wakelog status {name_or_id}", "wakelog ps")


def _none(ctx: CommandContext, agent: str | None) -> str:
    """The answer when a filter leaves nothing: what there is without it."""
    everything = ctx.store.index.query_sql("select count(*), group_concat(distinct nullif(agent, '')) from sessions")
    total, agents = everything.rows[0]
    others = f"; its agents are {inert_line(agents.replace(',', ', '))}" if agent and agents else ""
    return f"no session matches, of {total:,} in this store{others}"


def _show(ctx: CommandContext, infos: list[SessionInfo], hint: str, none: str) -> None:
    rows = [_row(ctx, info, depth) for info, depth in _in_families(infos)]
    say_table(ctx, _COLUMNS, rows, none=none)
    if hint:
        ctx.remark(f"  {hint}")


@contextlib.contextmanager
def _index(ctx: CommandContext, most: int) -> Iterator[Index]:
    """The index, or with `most` an index of the newest sessions only."""
    if not most:
        yield ctx.store.index
        return
    with ctx.store.newest_index(most + SPARE) as index:
        yield index


def _find(
    index: Index, archived: bool, limit: int, is_there: Callable[[dict[str, str]], bool] | None, **filters: Any
) -> tuple[list[SessionInfo], str]:
    """The matching sessions, and a cursor for the rest."""
    infos: list[SessionInfo] = []
    is_named = bool(filters["name_glob"])
    for info in index.every_session(**filters):
        if not archived and (info.status == "archived" or (is_of_store(info.name) and not is_named)):
            continue
        if is_there is not None and not is_there(info.labels):
            continue
        if limit and len(infos) == limit:
            return infos, f"{infos[-1].last_at}:{infos[-1].id}"
        infos.append(info)
    return infos, ""


def _in_families(infos: list[SessionInfo]) -> Iterator[tuple[SessionInfo, int]]:
    """Each session with its depth: forks below their parents, families ordered by their newest member."""
    by_id = {info.id: info for info in infos}
    children: dict[str, list[SessionInfo]] = {}
    for info in infos:
        if info.parent in by_id:
            children.setdefault(info.parent, []).append(info)

    def walk(info: SessionInfo, depth: int) -> Iterator[tuple[SessionInfo, int]]:
        yield info, depth
        for child in children.get(info.id, ()):
            yield from walk(child, depth + 1)

    seen: set[str] = set()
    for info in infos:
        top = info
        while top.parent in by_id:
            top = by_id[top.parent]
        if top.id not in seen:
            seen.add(top.id)
            yield from walk(top, 0)


def _row(ctx: CommandContext, info: SessionInfo, depth: int) -> Row:
    sign, color = status_sign(info.status, failed=info.outcome == "failed")
    mark = f"{'  ' * max(0, min(depth, 8) - 1)}{glyph('fork')} " if info.parent else ""
    needs = []
    if info.pending:
        needs.append(f"{info.pending} pending")
    if info.flags:
        needs.append(f"{glyph('warn')} {info.flags}")
    if info.damaged:
        words = [
            word for start, word in ((ENCRYPTED, "encrypted"), (ERASED, "erased")) if info.damaged.startswith(start)
        ]
        needs += words or [f"{glyph('failed')} damaged"]
    return (
        Cell(f"{mark}{info}", {"bold": True}),
        age(info.last_at, ctx.store.clock()).removesuffix(" ago") if info.last_at else "",
        str(info.turn or ""),
        str(info.head or ""),
        Cell(f"{sign} {info.status}" + (" failed" if info.outcome == "failed" else ""), {"fg": color}),
        money(info.usd_micros) if info.usd_micros else "",
        Cell(" ".join(needs), {"fg": "yellow"}),
        info.about,
    )


shape(
    SessionInfo,
    "id name? status outcome? parent spawner? agent? goal about? labels turns=turn events=head created_at=first_at:iso"
    " updated_at=last_at:iso tokens? money pending flags last_error? damaged?",
    parent=lambda info: {"session": info.parent, "at": info.forked_at} if info.parent else None,
    money=lambda info: plain_money(info.usd_micros),
)
