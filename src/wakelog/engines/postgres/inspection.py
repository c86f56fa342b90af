"""Finds damage that readers cannot notice, because they would only find less: orphaned rows, commit ids that would not
be recognized, names without a session. Each query is about all trees of one namespace.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import asyncpg

from wakelog.engine import StoreFinding
from wakelog.engines.postgres import statements as sql
from wakelog.model.ids import SessionId, root_of

_KEY = "{0}.ns = {1}.ns and {0}.root = {1}.root and {0}.session = {1}.session"
_OF_SESSION = f"select 1 from wl_session s where {_KEY.format('s', 't')}"

_EMPTY = f"""
select t.session from wl_session t
where t.ns = $1::text and not exists (select 1 from wl_commit c where {_KEY.format("c", "t")})
"""
_ORPHANS = {
    name: f"select count(*) from {table} t where t.ns = $1::text and not exists ({_OF_SESSION})"
    for name, table in (("commits", "wl_commit"), ("snapshots", "wl_snapshot"), ("heartbeats", "wl_heartbeat"))
}
_LOST_IDS = f"""
select t.session, t.commit_id, t.first as seq from wl_commit_id t
where t.ns = $1::text and not exists (
    select 1 from wl_commit c where {_KEY.format("c", "t")} and c.first = t.first and c.commit_id = t.commit_id)
"""
_FORGOTTEN = f"""
select t.session, t.commit_id, t.first as seq from wl_commit t
where t.ns = $1::text and t.fingerprint <> ''::bytea and not exists (
    select 1 from wl_commit_id k where {_KEY.format("k", "t")} and k.commit_id = t.commit_id and k.first = t.first)
"""
_NAMES = "select name, session from wl_name where ns = $1::text order by name"
# A name and its session may be on different servers, so each is asked for by itself.
_TITLES = "select session, name from wl_title where ns = $1::text order by session"
_STATUSES = """
select t.session, c.status from wl_title t
cross join lateral (
    select p.status from wl_commit p where p.ns = t.ns and p.root = t.root and p.session = t.session
    order by p.first desc limit 1
) c
where t.ns = $1::text
"""
_TIDY = [
    f"delete from {table} t where t.ns = $1::text and not exists ({_OF_SESSION})"
    for table in ("wl_snapshot", "wl_heartbeat")
]
_FREE = "delete from wl_name where ns = $1::text and name = $2::text and session = $3::text"
_BACKUP = "wakelog store restore BACKUP brings back what is lost"


async def findings(db: Any, ns: str) -> list[StoreFinding]:
    """Everything that is wrong, except inside commits."""
    found: list[StoreFinding] = []
    for row in await db.fetch(_EMPTY, ns):
        found.append(StoreFinding(f"session {row['session']} has lost its commits", row["session"], fix=_BACKUP))
    for what, query in _ORPHANS.items():
        if count := await db.fetchval(query, ns):
            is_damage = what == "commits"
            fix = _BACKUP if is_damage else "wakelog store scrub --repair drops them"
            text = f"{count} {what} belong to no session"
            found.append(StoreFinding(text, is_damage=is_damage, fix=fix, can_tidy=not is_damage))
    for row in await db.fetch(_LOST_IDS, ns):
        text = f"the entry of commit id {row['commit_id']!r} leads to no commit"
        found.append(StoreFinding(text, row["session"], row["seq"], fix=_BACKUP))
    for row in await db.fetch(_FORGOTTEN, ns):
        text = f"commit id {row['commit_id']!r} would not be recognized if it were repeated"
        found.append(StoreFinding(text, row["session"], row["seq"], fix=_BACKUP))
    found += await _name_findings(db, ns)
    return found


async def _name_findings(db: Any, ns: str) -> list[StoreFinding]:
    found: list[StoreFinding] = []
    bound, titles = await db.fetch(_NAMES, ns), await db.fetch(_TITLES, ns)
    for name, session, status in await _unused_names(db, ns, bound):
        if status is None:
            text = f"the name {name!r} was claimed for a session that was never opened"
            fix = "none needed: the next request for the name opens it"
        else:
            text = f"the name {name!r} is bound to a session that is deleted"
            fix = "wakelog store scrub --repair frees it"
        found.append(StoreFinding(text, session, is_damage=False, fix=fix, can_tidy=status is not None))
    leads = {row["name"]: row["session"] for row in bound}
    for row in titles:
        there = leads.get(row["name"])
        if there != row["session"]:
            text = f"the session is called {row['name']!r}, but that name leads to {there or 'nowhere'}"
            found.append(StoreFinding(text, row["session"], is_damage=False, fix="reach it by its id"))
    return found


async def _unused_names(db: Any, ns: str, bound: list[Any]) -> list[tuple[str, SessionId, str | None]]:
    """Names whose session is deleted, or was never opened (status None)."""
    statuses = {row["session"]: row["status"] for row in await db.fetch(_STATUSES, ns)}
    out = []
    for row in bound:
        session, status = SessionId(row["session"]), statuses.get(row["session"])
        if status is None:
            head = await db.fetchrow(sql.HEAD, ns, root_of(session), session)
            status = head["status"] if head is not None else None
        if status is None or status == "deleted":
            out.append((row["name"], session, status))
    return out


async def tidy(db: Any, ns: str) -> int:
    """Deletes orphans, and returns how many rows."""
    count = 0
    for statement in _TIDY:
        count += int((await db.execute(statement, ns)).rpartition(" ")[2])
    for name, session, status in await _unused_names(db, ns, await db.fetch(_NAMES, ns)):
        if status == "deleted":
            await db.execute(_FREE, ns, name, session)
            count += 1
    return count


_TABLE_BYTES = """
select c.relname::text as name, pg_total_relation_size(c.oid)::bigint as size from pg_catalog.pg_class c
where c.relkind = 'r' and c.relname like 'wl\\_%' and pg_catalog.pg_table_is_visible(c.oid) order by c.relname
"""
_DISTRIBUTED_BYTES = """
select d.logicalrelid::text as name, citus_total_relation_size(d.logicalrelid)::bigint as size from pg_dist_partition d
where d.logicalrelid::text like 'wl\\_%' order by 1
"""
# The row itself holds the length of a big value, so its content is not fetched.
_SESSION_BYTES = (
    "select session, sum(octet_length(records) + octet_length(payloads))::bigint as size from wl_commit"
    " where ns = $1::text group by session",
    "select session, sum(octet_length(data))::bigint as size from wl_snapshot where ns = $1::text group by session",
)


async def table_bytes(db: Any, *, is_distributed: bool) -> dict[str, int]:
    """The size of the tables on the server, or on all workers together; empty if it does not report them."""
    try:
        return {
            row["name"]: row["size"] for row in await db.fetch(_DISTRIBUTED_BYTES if is_distributed else _TABLE_BYTES)
        }
    except (asyncpg.PostgresSyntaxError, asyncpg.UndefinedFunctionError):
        return {}


async def session_bytes(db: Any, ns: str) -> dict[SessionId, int]:
    sizes: Counter[SessionId] = Counter()
    for query in _SESSION_BYTES:
        for row in await db.fetch(query, ns):
            sizes[SessionId(row["session"])] += row["size"]
    return dict(sizes)
