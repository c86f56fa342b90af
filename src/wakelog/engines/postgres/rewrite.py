"""Writing tables anew, so that nothing of what was removed is left in the server's files.

A server keeps the old version of a changed row until it is vacuumed, and even then its bytes stay in the page until
they happen to be written over. What was common in a column is also kept as statistics. So after an erasure the tables
are written anew as a whole (`vacuum full`), with their indexes and what is stored out of line; then the statistics are
made again, and the table that holds those is written anew too.

That locks a table while it is written, and helps only once no older transaction can see the old rows. So it is done at
once where the tables are small and nobody is in the way; else it stays *due*, noted in `wl_mark`, and
`wakelog store scrub` does it. The write-ahead log, its archive, standbys and backups are the server's keeper's.

A sharded server does the same on each worker. Engines that only speak the protocol have other ways to let old versions
go; there nothing is due."""

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
"""How long older transactions are waited for."""
_PAUSE_S = 0.05
_LOCK_MS = 3000
"""How long a table's lock is waited for: meanwhile everybody else waits behind."""

_IS_POSTGRES = "select version() like 'PostgreSQL %' and version() not like '%-YB-%'"
_TABLES = """
select c.oid::bigint as oid, format('%I.%I', n.nspname, c.relname) as name, pg_total_relation_size(c.oid) as size
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r' and c.relname ~ '^w[il]_' and pg_table_is_visible(c.oid)
order by c.relname
"""
_STATISTICS = "pg_catalog.pg_statistic"
_SPREAD = """
select d.logicalrelid::text as name, citus_total_relation_size(d.logicalrelid)::bigint as size from pg_dist_partition d
where d.logicalrelid::text ~ '^w[il]_' order by 1
"""
_ON_WORKERS = "select nodename, nodeport, success, result from run_command_on_workers($1::text)"
# What the server knows of the columns of a table. Of an empty one it makes no new statistics and keeps the old.
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
# Whoever still sees rows as they were before: other transactions, standbys that say so, prepared ones, slots.
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
    """Notes, before a removal, that the tables are to be written anew. Without a place for marks nothing is noted."""
    with contextlib.suppress(asyncpg.UndefinedTableError):
        await db.execute(sql.SET_MARK, ns, DUE, os.urandom(8).hex())


async def is_due(db: Any, ns: str) -> str:
    """What was noted last; empty when nothing is due."""
    try:
        return await db.fetchval(sql.MARK, ns, DUE) or ""
    except asyncpg.UndefinedTableError:
        return "unknown"  # an older store: nobody can tell, so it is done


async def rewrite(db: Any, ns: str, most: int | None, *, is_distributed: bool) -> bool:
    """Writes the tables anew if that is due; whether it was. UnavailableError when it has to wait."""
    due = await is_due(db, ns)
    if not due or not await db.fetchval(_IS_POSTGRES):
        return False
    tables = await db.fetch(_SPREAD if is_distributed else _TABLES)
    size = sum(row["size"] for row in tables)
    if most is not None and size > most:
        raise pending(f"the tables take {size >> 20} MB, and writing them anew would hold up others")
    await _wait_for_older(db)
    await db.execute(f"set lock_timeout = {_LOCK_MS}")
    try:
        if is_distributed:
            await _rewrite_spread(db, [row["name"] for row in tables])
        else:
            for name in (*(row["name"] for row in tables), _STATISTICS):
                await _rewrite(db, name)
    except asyncpg.LockNotAvailableError as exc:
        raise pending("somebody is using a table all the time") from exc
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
    """The server passes over what this user may not vacuum, with a warning; then the table is where it was."""
    before = await db.fetchval(_FILE, name)
    statistics = ", analyze" if name != _STATISTICS else ""
    await db.execute(f"vacuum (full{statistics}) {name}", timeout=24 * 3600)
    if await db.fetchval(_FILE, name) == before:
        raise pending(f"this user may not write {name} anew: the owner of the database may")
    if name == _STATISTICS or await db.fetchval(f"select exists (select 1 from {name})"):
        return
    # A column that is given the type it has loses its statistics, and nothing else changes.
    if same := [row["same"] for row in await db.fetch(_KNOWN, name)]:
        await db.execute(f"alter table {name} {', '.join(same)}")


async def _rewrite_spread(db: Any, names: list[str]) -> None:
    """On a sharded server: the coordinator has each worker vacuum its parts of a table. Transactions of others on the
    workers are not looked at."""
    for name in names:
        await db.execute(f"vacuum (full, analyze) {name}", timeout=24 * 3600)
    for row in await db.fetch(_ON_WORKERS, f"vacuum full {_STATISTICS}", timeout=24 * 3600):
        if not row["success"]:
            worker = f"{row['nodename']}:{row['nodeport']}"
            raise pending(f"worker {worker} did not write its statistics anew: {row['result']}")


def pending(why: str) -> UnavailableError:
    return UnavailableError(
        f"the content is removed, but old bytes are still in the server's files: {why}",
        kind="scrub-pending",
        hint="run wakelog store scrub at a quiet hour to remove them",
    )
