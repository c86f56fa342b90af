"""The versions of the tables: numbered steps forward, taken in place.

A program must know the file's `user_version` to open it; that changes only if a step breaks older readers. The table
`migration` lists the steps taken; a file without it has version 1. A step is one transaction that starts with the write
lock: a second process finds it done, and a process that dies leaves it undone.

To add a step: write it below with the next number, make the same change in schema.sql, and keep a golden store of the
version before (tests/golden/make_stores.py). A test checks that both ways give the same tables."""

from __future__ import annotations

import time
from typing import Any

import apsw

from wakelog.engine import MigrationStep

FIRST = 1
STEPS: tuple[MigrationStep, ...] = (
    MigrationStep(
        2,
        "a place for marks, such as how far a scrub has come",
        (
            "create table if not exists mark (name text primary key, value text not null, checksum integer not null)"
            " strict, without rowid",
        ),
    ),
    MigrationStep(
        3,
        "a second way to every row that is found by its key, so that a damaged index is noticed",
        (
            "create index if not exists session_twin on session (length(id), id)",
            "create index if not exists session_parent_twin on session (length(parent), parent)"
            " where parent is not null",
            "create index if not exists name_twin on name (length(name), name)",
            "create index if not exists name_session_twin on name (length(session), session)",
            "create unique index if not exists log_twin on log (session, first)",
            "create index if not exists commit_id_twin on commit_id (session, length(id), id)",
        ),
    ),
)
_TAKEN = "create table if not exists migration (version integer primary key, at integer not null) strict"


def version_of(db: apsw.Connection) -> int:
    """The version that the tables have."""
    if not db.execute("select count(*) from sqlite_schema where type = 'table' and name = 'migration'").get:
        return FIRST
    found: Any = db.execute("select max(version) from migration").get
    return found or FIRST


def waiting(db: apsw.Connection) -> tuple[MigrationStep, ...]:
    """The steps that are still to be taken."""
    version = version_of(db)
    return tuple(step for step in STEPS if step.version > version)


def take(db: apsw.Connection, step: MigrationStep) -> bool:
    """Takes one step, inside a transaction; False when another process has taken it meanwhile."""
    db.execute(_TAKEN)
    if version_of(db) >= step.version:
        return False
    for statement in step.statements:
        db.execute(statement)
    note(db, step.version)
    if step.breaks:
        db.pragma("user_version", step.version)
    return True


def note(db: apsw.Connection, version: int) -> None:
    """Notes that the tables have a version."""
    db.execute("insert or ignore into migration (version, at) values (?, ?)", (version, time.time_ns() // 1000))
