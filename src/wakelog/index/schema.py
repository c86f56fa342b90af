"""Making the database of an index, and emptying it again, through any connection."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import apsw

from wakelog.engines.sqlite.connection import transaction

APPLICATION_ID = 0x77616B69  # "waki"
SCHEMA_VERSION = 6
BUSY_S = 30.0

_SCHEMA = Path(__file__).with_name("schema.sql")


def configure(db: apsw.Connection, *, is_file: bool) -> None:
    """Sets a connection up for a cache that several processes share."""
    db.set_busy_handler(wait)
    if is_file and db.pragma("journal_mode") != "wal":
        # Changing the mode needs the file alone, and SQLite does not ask the busy handler while several ask at once.
        deadline = time.monotonic() + BUSY_S
        while True:
            try:
                db.pragma("journal_mode", "wal")
                break
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.001)
    db.pragma("synchronous", "normal")
    db.pragma("secure_delete", 1)
    db.pragma("temp_store", "memory")
    db.pragma("journal_size_limit", 64 << 20)


def make(db: apsw.Connection) -> None:
    """Makes the tables; whichever process takes the write lock first does it for all."""
    with transaction(db):
        if db.pragma("user_version") == 0:
            db.execute(_SCHEMA.read_text(encoding="utf-8")).fetchall()
            # Others tell by this number whether the tables they know are still where they were. Counted from the
            # beginning it would be the same as before the reset.
            db.pragma("schema_version", random.randrange(1 << 20, 1 << 30))
            db.pragma("application_id", APPLICATION_ID)
            db.pragma("user_version", SCHEMA_VERSION)


def clear(db: apsw.Connection) -> None:
    """Leaves an empty database, even of a file that cannot be read any more."""
    db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
    try:
        db.execute("vacuum")
    finally:
        db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)


_waiting = threading.local()


def wait(times_called: int) -> bool:
    """A busy handler: short random sleeps, so that everybody who waits has the same chance."""
    if times_called == 0:
        _waiting.since = time.monotonic()
    time.sleep(random.uniform(0.0002, 0.001))
    return time.monotonic() - float(_waiting.since) < BUSY_S
