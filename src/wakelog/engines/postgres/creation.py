"""Creates the tables of a store, or checks that this program can use those that are there."""

from __future__ import annotations

import contextlib
from typing import Any

import asyncpg

from wakelog.engines.loop_owner import no_store
from wakelog.engines.postgres import distribution, migrations
from wakelog.engines.postgres import statements as sql
from wakelog.errors import UnsupportedError

VERSION = 1


async def prepare_tables(db: Any, place: str, *, create: bool, distributed: bool, shards: int | None) -> None:
    """Raises what makes a database unusable. `place` is its address for messages. A new store's tables are
    `distributed` over `shards`."""
    if not await db.fetchval(sql.ORDER):
        raise UnsupportedError(
            "this database does not order text by code point",
            kind="bad-collation",
            hint="create database … template template0 locale 'C'",
        )
    try:
        found = await db.fetchval(sql.VERSION)
    except asyncpg.UndefinedTableError:
        found = None
    if found is None:
        if not create:
            raise no_store(place)
        await _create(db, distributed, shards)
    elif found > VERSION:
        raise UnsupportedError(
            f"this store needs version {found}, and this wakelog knows {VERSION}",
            kind="store-newer",
            hint="upgrade wakelog",
        )


async def _create(db: Any, distributed: bool, shards: int | None) -> None:
    """Creates the tables, statement by statement. Each is harmless if another process was first."""
    if distributed:
        await distribution.require_extension(db)
    for statement in sql.schema():
        if distributed and statement.lstrip().startswith("insert"):
            await distribution.distribute_log(db, shards=shards)  # while the tables are empty
        with contextlib.suppress(*migrations.CAME_FIRST):
            await db.execute(statement)
    await db.execute(sql.SET_VERSION, VERSION)
