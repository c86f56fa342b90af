"""What readers of a shared store cannot tell, because they would only find less: rows that belong to nobody, ids that
would not be known again, names that lead nowhere. Each question is about all trees of one namespace."""

from __future__ import annotations

from typing import Any

import asyncpg

from wakelog.engine import StoreFinding
from wakelog.model.ids import SessionId

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
_NAMES = """
select n.name, n.session, h.status from wl_name n
left join wl_session s on s.ns = n.ns and s.session = n.session and s.root = split_part(n.session, '.', 1)
left join lateral (
    select c.status from wl_commit c where c.ns = s.ns and c.root = s.root and c.session = s.session
    order by c.first desc limit 1
) h on true
where n.ns = $1::text and (h.status is null or h.status = 'deleted')
"""
_TITLES = """
select t.session, t.name, n.session as bound from wl_title t
left join wl_name n on n.ns = t.ns and n.name = t.name
where t.ns = $1::text and (n.session is null or n.session <> t.session)
"""
_TIDY = [
    f"delete from {table} t where t.ns = $1::text and not exists ({_OF_SESSION})"
    for table in ("wl_snapshot", "wl_heartbeat")
]
_FREE = "delete from wl_name where ns = $1::text and name = $2::text and session = $3::text"
_BACKUP = "wakelog store restore BACKUP brings back what is lost"


async def findings(db: Any, ns: str) -> list[StoreFinding]:
    """Everything that is not as it should be, apart from what is inside commits."""
    out: list[StoreFinding] = []
    for row in await db.fetch(_EMPTY, ns):
        out.append(StoreFinding(f"session {row['session']} has lost its commits", row["session"], fix=_BACKUP))
    for what, query in _ORPHANS.items():
        if count := await db.fetchval(query, ns):
            is_damage = what == "commits"
            fix = _BACKUP if is_damage else "wakelog store scrub --repair drops them"
            text = f"{count} {what} belong to no session"
            out.append(StoreFinding(text, is_damage=is_damage, fix=fix, can_tidy=not is_damage))
    for row in await db.fetch(_LOST_IDS, ns):
        text = f"what is stored of commit id {row['commit_id']!r} leads to no commit"
        out.append(StoreFinding(text, row["session"], row["seq"], fix=_BACKUP))
    for row in await db.fetch(_FORGOTTEN, ns):
        text = f"commit id {row['commit_id']!r} would not be known if it came again"
        out.append(StoreFinding(text, row["session"], row["seq"], fix=_BACKUP))
    out += await _names(db, ns)
    return out


async def _names(db: Any, ns: str) -> list[StoreFinding]:
    out: list[StoreFinding] = []
    for row in await db.fetch(_NAMES, ns):
        if row["status"] is None:
            text = f"the name {row['name']!r} was claimed for a session that was never opened"
            fix = "nothing: whoever asks for the name next opens it"
        else:
            text = f"the name {row['name']!r} is bound to a session that is deleted"
            fix = "wakelog store scrub --repair frees it"
        out.append(StoreFinding(text, row["session"], is_damage=False, fix=fix, can_tidy=row["status"] is not None))
    for row in await db.fetch(_TITLES, ns):
        text = f"the session is called {row['name']!r}, but that name leads to {row['bound'] or 'nowhere'}"
        out.append(StoreFinding(text, row["session"], is_damage=False, fix="reach it by its id"))
    return out


async def tidied(db: Any, ns: str) -> int:
    """Drops what belongs to nobody; how many rows."""
    count = 0
    for statement in _TIDY:
        count += int((await db.execute(statement, ns)).rpartition(" ")[2])
    for row in await db.fetch(_NAMES, ns):
        if row["status"] == "deleted":
            await db.execute(_FREE, ns, row["name"], row["session"])
            count += 1
    return count


_TABLE_BYTES = """
select c.relname::text as name, pg_total_relation_size(c.oid)::bigint as size from pg_catalog.pg_class c
where c.relkind = 'r' and c.relname like 'wl\\_%' and pg_catalog.pg_table_is_visible(c.oid) order by c.relname
"""
# The length of a big value is told by its place in the row, without fetching it.
_SESSION_BYTES = """
select t.session, sum(t.size)::bigint as size from (
    select c.session, octet_length(c.records) + octet_length(c.payloads) as size from wl_commit c where c.ns = $1::text
    union all
    select x.session, octet_length(x.data) as size from wl_snapshot x where x.ns = $1::text
) t group by t.session
"""


async def table_bytes(db: Any) -> dict[str, int]:
    """What the tables take on the server; empty where it does not tell."""
    try:
        return {row["name"]: row["size"] for row in await db.fetch(_TABLE_BYTES)}
    except (asyncpg.PostgresSyntaxError, asyncpg.UndefinedFunctionError):
        return {}


async def session_bytes(db: Any, ns: str) -> dict[SessionId, int]:
    """The stored bytes of each session."""
    return {SessionId(row["session"]): row["size"] for row in await db.fetch(_SESSION_BYTES, ns)}
