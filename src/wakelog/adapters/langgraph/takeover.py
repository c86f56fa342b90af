"""How `wakelog import` takes over a database of LangGraph's checkpointers, if LangGraph is installed.

LangGraph's own checkpointer reads the database, and the threads are copied. An SQLite file is copied first, because the
checkpointer would change it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wakelog.adapters.langgraph.saver import AGENT, WakelogSaver, session_name
from wakelog.adapters.langgraph.thread_copy import CheckpointPlace, copy_threads
from wakelog.errors import InvalidInputError, UnsupportedError
from wakelog.importers.source.foreign_database import copy_database
from wakelog.importers.transcript_import import ImportedSession, ImportReport
from wakelog.log.deleted_origins import was_deleted
from wakelog.store import Store

_PLACES = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints ORDER BY checkpoint_id"


def recognises(url: str) -> bool:
    """True if a PostgreSQL database holds checkpoints."""
    with _connected(url) as db:
        found = db.execute(
            "SELECT to_regclass('checkpoints') IS NOT NULL AND to_regclass('checkpoint_blobs') IS NOT NULL"
        )
        return bool(found.fetchone()[0])


def take_over(store: Store, place: str, *, again: bool = False) -> ImportReport:
    """Takes over the threads in an SQLite file, or at the address of a PostgreSQL database."""
    saver = WakelogSaver(store)
    sessions: list[ImportedSession] = []
    deleted: dict[str, None] = {}
    gone_on: list[str] = []
    with _opened(place) as (source, places):
        chosen = []
        for found in places:
            name = session_name(found.thread)
            if again or store.is_open(name) or not was_deleted(store.engine, AGENT, found.thread):
                chosen.append(found)
            else:
                deleted[name] = None
        before = {thread: _size(store, thread) for thread in {found.thread for found in chosen}}
        for copied in copy_threads(saver, source, chosen):
            name = session_name(copied.thread)
            if copied.has_gone_on:
                gone_on.append(name)
            events, turns = before[copied.thread]
            events_now, turns_now = _size(store, copied.thread)
            session = store.resume(name)
            if not session.log.part("labels").get("origin"):
                session.label({"origin": copied.thread})
            new = events_now - events, turns_now - turns
            sessions.append(ImportedSession(name, session.id, copied.checkpoints, *new))
    return ImportReport(place, AGENT, tuple(sessions), deleted=tuple(deleted), gone_on=tuple(gone_on))


def _size(store: Store, thread: str) -> tuple[int, int]:
    """How many events and turns a thread has here."""
    if not store.is_open(session_name(thread)):
        return 0, 0
    log = store.resume(session_name(thread)).log
    return log.head().seq, log.part("turn")["number"]


@contextmanager
def _opened(place: str) -> Iterator[tuple[Any, list[CheckpointPlace]]]:
    """The checkpointer of a database, and where its checkpoints are, oldest first."""
    if "://" in place:
        with _connected(place) as db:
            from langgraph.checkpoint.postgres import PostgresSaver
            from psycopg.rows import dict_row

            places = [CheckpointPlace(*row) for row in db.execute(_PLACES).fetchall()]
            db.row_factory = dict_row
            yield PostgresSaver(db), places
        return
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError as exc:
        raise missing_reader("langgraph-checkpoint-sqlite") from exc
    with copy_database(place) as db:
        yield SqliteSaver(db), [CheckpointPlace(*row) for row in db.execute(_PLACES)]


@contextmanager
def _connected(url: str) -> Iterator[Any]:
    try:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver  # noqa: F401  # without it, connecting is useless
    except ImportError as exc:
        raise missing_reader("langgraph-checkpoint-postgres psycopg[binary]") from exc
    try:
        with psycopg.connect(url, autocommit=True, prepare_threshold=0) as db:
            yield db
    except psycopg.Error as exc:
        raise InvalidInputError(
            f"the database cannot be read: {exc}", kind="bad-transcript", hint="check its address"
        ) from exc


def missing_reader(package: str) -> UnsupportedError:
    return UnsupportedError(
        f"LangGraph needs a package to read this database, and it is not installed: {package}",
        kind="missing-extra",
        hint=f"pip install '{package.split()[0]}'",
    )
