"""Migrations of the tables: numbered forward steps, taken in place while others read and write.

`wl_version` has the version that a program must know to open the store; it changes only if a step breaks older readers.
`wl_migration` lists the steps taken; without that table, the version is 1. A step runs statement by statement, and is
recorded when all are done. Each statement may run again, so several processes may take a step at once, and an
interrupted step can be repeated. On a sharded server, tables that a step creates are distributed before it is recorded.

To add a step: write it below with the next number, make the same change in schema.sql, and keep a golden store of the
version before (tests/golden/make_stores.py). A test checks that both ways lead to the same tables. An index on a
growing table is created with `create index concurrently if not exists`, by one process at a time: it first drops what
an interrupted creation left behind, and an index that is still being created looks the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import Any

import asyncpg

from wakelog.engine import MigrationStep
from wakelog.engines.postgres import distribution
from wakelog.engines.postgres import statements as sql

FIRST = 1
STEPS: tuple[MigrationStep, ...] = (
    MigrationStep(
        2,
        "a place for marks, such as how far a scrub has come, and for what servers share",
        (
            "create table if not exists wl_mark"
            " (ns text not null, name text not null, value text not null, primary key (ns, name))",
            "create table if not exists wl_note"
            " (kind text not null, name text not null, content bytea not null, primary key (kind, name))",
        ),
    ),
)
CAME_FIRST = (asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError)
"""What `if not exists` raises when another process creates the same thing at the same moment."""
_TAKEN = "create table if not exists wl_migration (version bigint not null primary key)"
_CONCURRENT = re.compile(r"create index concurrently if not exists (\w+)")
_IS_INVALID = """
select exists (select 1 from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
where c.relname = $1::text and not i.indisvalid)
"""
_INDEX_LOCK = 0x77616B65_6C6F67
"""The advisory lock for creating an index. It is polled, not waited for, because `create index concurrently` waits for
every waiting statement."""
_PAUSE_S = 0.05


async def version_of(db: Any) -> int:
    """The version of the tables."""
    try:
        found = await db.fetchval(sql.MIGRATED)
    except asyncpg.UndefinedTableError:
        found = None
    return found or FIRST


async def waiting(db: Any) -> tuple[MigrationStep, ...]:
    """The steps that were not taken yet."""
    version = await version_of(db)
    return tuple(step for step in STEPS if step.version > version)


async def take(db: Any, step: MigrationStep) -> bool:
    """Takes one step; False if another process took it meanwhile."""
    if await version_of(db) >= step.version:
        return False
    for statement in (_TAKEN, *step.statements):
        await _run(db, statement)
    if await distribution.is_distributed(db):
        await distribution.distribute_log(db)
    if step.breaks:
        await db.execute(sql.SET_VERSION, step.version)
    await db.execute(sql.SET_MIGRATED, step.version)
    return True


async def _run(db: Any, statement: str) -> None:
    index = _CONCURRENT.match(statement)
    with contextlib.suppress(*CAME_FIRST):
        if index is None:
            await db.execute(statement)
        else:
            await _make_index(db, index[1], statement)


async def _make_index(db: Any, name: str, statement: str) -> None:
    while not await db.fetchval("select pg_try_advisory_lock($1::bigint)", _INDEX_LOCK):
        await asyncio.sleep(_PAUSE_S)
    try:
        if await db.fetchval(_IS_INVALID, name):
            await db.execute(f"drop index concurrently if exists {name}")
        await db.execute(statement)
    finally:
        await db.execute("select pg_advisory_unlock($1::bigint)", _INDEX_LOCK)
