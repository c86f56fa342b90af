"""Rewriting tables, so that nothing of what was removed is left in the server's files.

A server keeps the old version of a changed row until it is vacuumed, and even then its bytes stay in the page until
they are overwritten. Common values of a column are also kept as statistics. So after an erasure the tables are
rewritten completely (`vacuum full`), with their indexes and out-of-line values. Then the statistics are computed again,
and the table that holds them is rewritten too.

This locks a table while it is written, and helps only when no older transaction can see the old rows. So it is done at
once if the tables are small and no transaction is in the way. Otherwise it stays *due*, noted in `wl_mark`, and
`wakelog store scrub` does it. The write-ahead log, its archive, standbys and backups are up to the server's
administrator.

A sharded server does the same on each worker. Servers that only speak the protocol drop old versions in other ways, so
nothing is due there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any

import asyncpg

from wakelog.engines.postgres import statements as sql
from wakelog.errors import UnavailableError

DUE = "rewrite-due"
WAIT_S = 2.0
"""How long to wait for older transactions."""
_PAUSE_S = 0.05
_LOCK_MS = 3000
"""How long to wait for a table's lock. Meanwhile all others queue behind it."""

_IS_POSTGRES = "select version() like 'PostgreSQL %' and version() not like '%-YB-%'"
_TABLES = """
select c.oid::bigint as oid, format('%I.%I', n.nspname, c.relname) as name, pg_total_relation_size(c.oid) as size
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r' and c.relname ~ '^w[il]_' and pg_table_is_visible(c.oid)
order by c.relname
"""
_STATISTICS = "pg_catalog.pg_statistic"
_DISTRIBUTED_TABLES = """
select d.logicalrelid::text as name, citus_total_relation_size(d.logicalrelid)::bigint as size from pg_dist_partition d
where d.logicalrelid::text ~ '^w[il]_' order by 1
"""
_ON_WORKERS = "select nodename, nodeport, success, result from run_command_on_workers($1::text)"
# Columns of a table that have statistics. For an empty table the server computes no new ones and keeps the old.
_KNOWN = """
select format('alter column %I type %s%s', a.attname, format_type(a.atttypid, a.atttypmod),
    (select format(' collate %I.%I', n.nspname, l.collname) from pg_catalog.pg_collation l
        join pg_catalog.pg_namespace n on n.oid = l.collnamespace where l.oid = a.attcollation)) as same
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_stats s on s.schemaname = n.nspname and s.tablename = c.relname and s.attname = a.attname
where a.attrelid = $1::text::regclass
"""
_FILE = "select pg_relation_filenode($1::text::regclass)"
_NOW = "select pg_current_xact_id()::xid::text"
# Who may still see the old rows: other transactions, standbys with feedback, prepared transactions, slots.
_OLDER = """
select exists (
    select 1 from pg_stat_activity
    where (datname = current_database() or datname is null) and pid <> pg_backend_pid()
        and age(backend_xmin) > age($1::text::xid)
    union all select 1 from pg_prepared_xacts
    where database = current_database() and age(transaction) > age($1::text::xid)
    union all select 1 from pg_replication_slots
    where greatest(age(xmin), age(catalog_xmin)) > age($1::text::xid)
)
"""
_CLEAR = """
update wl_mark set value = '' where ns = $1::text and name = $2::text and value = $3::text
"""


async def note(db: Any, ns: str) -> None:
    """Notes, before a removal, that the tables must be rewritten. An older store without marks notes nothing."""
    with contextlib.suppress(asyncpg.UndefinedTableError):
        await db.execute(sql.SET_MARK, ns, DUE, os.urandom(8).hex())


async def is_due(db: Any, ns: str) -> str:
    """The last note; empty if nothing is due."""
    try:
        return await db.fetchval(sql.MARK, ns, DUE) or ""
    except asyncpg.UndefinedTableError:
        return "unknown"  # an older store without marks, so rewrite


async def rewrite(db: Any, ns: str, most: int | None, *, is_distributed: bool) -> bool:
    """Rewrites the tables if that is due, and returns whether it was. UnavailableError if it must wait."""
    due = await is_due(db, ns)
    if not due or not await db.fetchval(_IS_POSTGRES):
        return False
    tables = await db.fetch(_DISTRIBUTED_TABLES if is_distributed else _TABLES)
    size = sum(row["size"] for row in tables)
    if most is not None and size > most:
        raise pending(f"the tables have {size >> 20} MB, and rewriting them would hold up others")
    await _wait_for_older(db)
    await db.execute(f"set lock_timeout = {_LOCK_MS}")
    try:
        if is_distributed:
            await _rewrite_distributed(db, [row["name"] for row in tables])
        else:
            for name in (*(row["name"] for row in tables), _STATISTICS):
                await _rewrite(db, name)
    except asyncpg.LockNotAvailableError as exc:
        raise pending("a table is in use all the time") from exc
    finally:
        with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError):
            await db.execute("reset lock_timeout")
    if due != "unknown":
        await db.execute(_CLEAR, ns, DUE, due)  # unless something was removed meanwhile
    return True


async def _wait_for_older(db: Any) -> None:
    now = await db.fetchval(_NOW)
    clock = asyncio.get_running_loop().time
    deadline = clock() + WAIT_S
    while await db.fetchval(_OLDER, now):
        if clock() >= deadline:
            raise pending("an older transaction, a standby or a replication slot still sees it")
        await asyncio.sleep(_PAUSE_S)


async def _rewrite(db: Any, name: str) -> None:
    """Rewrites a table. If this user may not vacuum it, the server only warns, and the table's file stays the same."""
    before = await db.fetchval(_FILE, name)
    statistics = ", analyze" if name != _STATISTICS else ""
    await db.execute(f"vacuum (full{statistics}) {name}", timeout=24 * 3600)
    if await db.fetchval(_FILE, name) == before:
        raise pending(f"this user may not rewrite {name}; the owner of the database may")
    if name == _STATISTICS or await db.fetchval(f"select exists (select 1 from {name})"):
        return
    # Setting a column to its own type drops its statistics and changes nothing else.
    if same := [row["same"] for row in await db.fetch(_KNOWN, name)]:
        await db.execute(f"alter table {name} {', '.join(same)}")


async def _rewrite_distributed(db: Any, names: list[str]) -> None:
    """On a sharded server, the coordinator makes each worker vacuum its parts of a table. Other transactions on the
    workers are not checked, and a part that has become empty keeps its statistics until it is filled again."""
    for name in names:
        await db.execute(f"vacuum (full, analyze) {name}", timeout=24 * 3600)
    await _rewrite(db, _STATISTICS)  # the coordinator may have parts too, and is not one of its workers
    for row in await db.fetch(_ON_WORKERS, f"vacuum full {_STATISTICS}", timeout=24 * 3600):
        if not row["success"]:
            worker = f"{row['nodename']}:{row['nodeport']}"
            raise pending(f"worker {worker} did not rewrite its statistics: {row['result']}")


def pending(why: str) -> UnavailableError:
    return UnavailableError(
        f"the content is removed, but old bytes are still in the server's files: {why}",
        kind="scrub-pending",
        hint="run wakelog store scrub at a quiet hour to remove them",
    )
