"""How tables are distributed over the workers of a sharded PostgreSQL (Citus).

A fork tree is on one worker: all tables about sessions are distributed by the tree's root, together. Names are
distributed separately. The index of a namespace is on one worker. Small tables that all need are on every worker.

`distribute` may run at any time: it takes tables that are not distributed yet. It is called when a store is created,
after each migration, and after tables of the index were created, because a new table exists only on the coordinator.
"""

from __future__ import annotations

from typing import Any

import asyncpg

from wakelog.errors import UnsupportedError

BY_ROOT = ("wl_session", "wl_commit", "wl_commit_id", "wl_snapshot", "wl_heartbeat", "wl_title")
BY_NAME = ("wl_name",)
EVERYWHERE = ("wl_version", "wl_migration", "wl_mark", "wl_note", "wi_version")

# The append finds the newest commit by its last event: a pushed down insert may have no `order by … limit 1`.
LAST_INDEX = "create index if not exists wl_commit_last on wl_commit (ns, root, session, last)"

# Citus has this table in its catalog.
HAS_EXTENSION = "to_regclass('pg_dist_partition') is not null"
_IS_EXTENDED = f"select {HAS_EXTENSION}"
_IS_DISTRIBUTED = "select exists (select 1 from pg_dist_partition where logicalrelid = to_regclass($1::text))"
_IS_THERE = "select to_regclass($1::text) is not null"
_DISTRIBUTE = "select create_distributed_table($1::text::regclass, $2::text, colocate_with => $3::text)"
_DISTRIBUTE_FIRST = (
    "select create_distributed_table($1::text::regclass, $2::text, colocate_with => $3::text, shard_count => $4::int)"
)
_WORKERS = """
select n.nodename || ':' || n.nodeport as worker, count(*) as parts
from pg_dist_shard s join pg_dist_placement p on p.shardid = s.shardid
join pg_dist_node n on n.groupid = p.groupid and n.noderole = 'primary'
where s.logicalrelid = 'wl_commit'::regclass group by n.nodename, n.nodeport order by n.nodename, n.nodeport
"""
_SYNCS = "select nodename, nodeport, success, result from run_command_on_workers('show synchronous_commit')"
_ASK_S = 5.0
_COPY_EVERYWHERE = "select create_reference_table($1::text::regclass)"


async def is_distributed(db: Any, table: str = "wl_commit") -> bool:
    """Whether a table is distributed; False on a server without the extension."""
    if not await db.fetchval(_IS_EXTENDED):
        return False
    found: bool = await db.fetchval(_IS_DISTRIBUTED, table)
    return found


async def require_extension(db: Any) -> None:
    if not await db.fetchval(_IS_EXTENDED):
        raise UnsupportedError(
            "this database has no Citus extension, so its tables cannot be distributed",
            kind="no-shards",
            hint="on the coordinator: create extension citus, then citus_add_node for each worker;"
            " or leave out --distributed",
        )


async def distribute(db: Any, tables: tuple[str, ...], *, shards: int | None = None) -> None:
    """Distributes those of the tables that exist and are not distributed yet."""
    for table in tables:
        if await db.fetchval(_IS_THERE, table) and not await db.fetchval(_IS_DISTRIBUTED, table):
            try:
                await _distribute_one(db, table, shards)
            except asyncpg.PostgresError:
                if not await db.fetchval(_IS_DISTRIBUTED, table):  # otherwise another process did it
                    raise


async def distribute_log(db: Any, *, shards: int | None = None) -> None:
    """Distributes the tables of the log."""
    await distribute(db, (*BY_ROOT, *BY_NAME, *EVERYWHERE), shards=shards)
    await db.execute(LAST_INDEX)


async def _distribute_one(db: Any, table: str, shards: int | None) -> None:
    if table in EVERYWHERE:
        await db.execute(_COPY_EVERYWHERE, table)
        return
    column, first = distribution_of(table)
    if table != first:
        await db.execute(_DISTRIBUTE, table, column, first)
    elif shards is None:
        await db.execute(_DISTRIBUTE, table, column, "none")
    else:
        await db.execute(_DISTRIBUTE_FIRST, table, column, "none", shards)


async def check_syncs(db: Any) -> None:
    """Refuses workers that acknowledge before they sync: what is set on the coordinator does not reach them. One that
    is away is not asked."""
    try:
        rows = await db.fetch(_SYNCS, timeout=_ASK_S)
    except (asyncpg.PostgresError, TimeoutError):
        return  # this user may not ask, or a worker hangs
    if off := sorted(
        f"{row['nodename']}:{row['nodeport']}" for row in rows if row["success"] and row["result"] == "off"
    ):
        raise UnsupportedError(
            f"an append that was answered could be lost: synchronous_commit is off on {', '.join(off)}",
            kind="not-synced",
            hint="set it to on there (alter system, alter database or alter role), and reload the configuration",
        )


async def workers(db: Any) -> dict[str, int]:
    """The servers that have parts of the log, and how many. Only the coordinator knows."""
    return {row["worker"]: row["parts"] for row in await db.fetch(_WORKERS)}


def distribution_of(table: str) -> tuple[str, str]:
    """The column that a table is distributed by, and the table that it is colocated with."""
    if table in BY_ROOT:
        return "root", BY_ROOT[0]
    if table in BY_NAME:
        return "name", table
    assert table.startswith("wi_"), table
    return "ns", "wi_meta"
