"""How `wakelog import` takes over a database of ADK's session services, if ADK is installed.

The service that wrote the database reads it, and the sessions are copied. An SQLite file is copied first, because the
service would change it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from wakelog.adapters.adk.session_copy import copy_sessions
from wakelog.adapters.adk.sessions import WakelogSessionService
from wakelog.errors import InvalidInputError, UnsupportedError
from wakelog.importers.source.foreign_database import copy_database
from wakelog.importers.transcript_import import ImportedSession, ImportReport
from wakelog.log.deleted_origins import was_deleted
from wakelog.store import Store

AGENT = "adk"
TABLES = frozenset({"app_states", "user_states", "sessions", "events"})
_APPS = "SELECT DISTINCT app_name FROM sessions ORDER BY app_name"


def recognises(url: str) -> bool:
    """True if a database on a server holds ADK sessions."""

    async def ask() -> bool:
        async with _connected(url) as (_, connection):
            from sqlalchemy import inspect

            return set(await connection.run_sync(lambda sync: inspect(sync).get_table_names())) >= TABLES

    return asyncio.run(ask())


def take_over(store: Store, place: str, *, again: bool = False) -> ImportReport:
    """Takes over the sessions of every app in an SQLite file, or in a database on a server."""
    if "://" in place:
        return asyncio.run(_take_from_server(store, place, again))
    with copy_database(place) as db:
        file = next(row[2] for row in db.execute("pragma database_list") if row[1] == "main")
        apps = [row[0] for row in db.execute(_APPS)]
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        columns = {row[1] for row in db.execute("pragma table_info(events)")}
        is_plain = "adk_internal_metadata" not in tables and "event_data" in columns
        return asyncio.run(_take_from_file(store, place, file, apps, again, is_plain=is_plain))


async def _take_from_file(
    store: Store, place: str, file: str, apps: list[str], again: bool, *, is_plain: bool
) -> ImportReport:
    try:
        if is_plain:
            from google.adk.sessions.sqlite_session_service import SqliteSessionService

            return await _take(store, place, SqliteSessionService(file), apps, again)
        from google.adk.sessions import DatabaseSessionService

        async with DatabaseSessionService(f"sqlite+aiosqlite:///{file}") as service:
            return await _take(store, place, service, apps, again)
    except ImportError as exc:
        raise _missing_driver("aiosqlite") from exc


async def _take_from_server(store: Store, url: str, again: bool) -> ImportReport:
    async with _connected(url) as (service, connection):
        from sqlalchemy import text

        apps = [row[0] for row in await connection.execute(text(_APPS))]
        return await _take(store, url, service, apps, again)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[tuple[Any, Any]]:
    """ADK's service for a database on a server, and a connection to it."""
    rest = url.partition("://")[2]
    try:
        from google.adk.sessions import DatabaseSessionService
        from sqlalchemy.exc import SQLAlchemyError

        service = DatabaseSessionService(f"postgresql+asyncpg://{rest}")
    except (ImportError, ValueError) as exc:
        raise _missing_driver("asyncpg") from exc
    async with service:
        try:
            async with service.db_engine.connect() as connection:
                yield service, connection
        except (SQLAlchemyError, OSError) as exc:
            raise InvalidInputError(
                f"the database cannot be read: {exc}", kind="bad-transcript", hint="check its address"
            ) from exc


def _missing_driver(driver: str) -> UnsupportedError:
    return UnsupportedError(
        f"ADK needs SQLAlchemy and {driver} to read this database, and they are not installed",
        kind="missing-extra",
        hint=f"pip install 'sqlalchemy[asyncio]' {driver}",
    )


async def _take(store: Store, place: str, service: Any, apps: list[str], again: bool) -> ImportReport:
    ours = WakelogSessionService(store)
    sessions: list[ImportedSession] = []
    deleted: list[str] = []
    gone_on: list[str] = []
    for app in apps:

        def is_wanted(user: str, id: str, app: str = app) -> bool:
            name = ours.name_of(app_name=app, user_id=user, session_id=id)
            if again or store.is_open(name) or not was_deleted(store.engine, AGENT, f"{app}/{user}/{id}"):
                return True
            deleted.append(name)
            return False

        async for copied in copy_sessions(ours, service, app, ours.share, is_wanted):
            name = ours.name_of(app_name=app, user_id=copied.user, session_id=copied.id)
            session = store.resume(name)
            if copied.has_gone_on:
                gone_on.append(name)
            if not session.log.part("labels").get("origin"):
                session.label({"agent": AGENT, "origin": f"{app}/{copied.user}/{copied.id}"})
            new = (session.head.seq, session.state().turn.number) if copied.events else (0, 0)
            sessions.append(ImportedSession(name, session.id, copied.events, *new))
    return ImportReport(place, AGENT, tuple(sessions), deleted=tuple(deleted), gone_on=tuple(gone_on))
