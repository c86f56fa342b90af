"""A quick check whether a store is usable, whatever its size. `scrub` reads every byte.

It reads every session's head, the newest commits and the names, and checks that blobs and the index can be reached. In
a small store it also compares the index with the log. It changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

import msgspec

from wakelog.engine import Migrations, require
from wakelog.engines.blobs import BlobEngine
from wakelog.errors import UnsupportedError, WakelogError
from wakelog.log import Log
from wakelog.maintenance.byte_sizes import index_fault
from wakelog.maintenance.scrub import last_pass, open_pass
from wakelog.model.records import Head
from wakelog.store import Store
from wakelog.store.index_place import has_index, index_path

NEWEST = 20
"""How many sessions are opened, the newest first."""
REBUILD = "wakelog store scrub --repair rebuilds it"
_ANSWERED = {"synced": "on the disk", "written": "written, not synced", "memory": "in memory only"}
QUICK_BYTES = 256_000_000
"""Up to this size, the whole database file is checked."""
QUICK_EVENTS = 10_000
"""Up to this many events, the index is compared with the log."""


class StoreCheck(msgspec.Struct, frozen=True):
    """The result of one check."""

    what: str
    level: Literal["ok", "warn", "fail"]
    found: str
    fix: str = ""


def check_store(store: Store) -> Iterator[StoreCheck]:
    """Runs the checks and yields their results."""
    yield StoreCheck("opens", "ok", f"an answered append is {_ANSWERED.get(store.engine.durability, 'stored')}")
    yield from version_check(store)
    yield from encryption_check(store)
    yield from _file(store)
    heads: list[Head] = []
    damaged = 0
    for session, problem in store.session_ids():
        if problem is None:
            heads.append(store.engine.head(session))
        else:
            damaged += 1
            yield StoreCheck("heads", "fail", f"{session}: {problem.message}", f"wakelog verify {session}")
    events = sum(h.seq - (h.fork.at if h.fork else 0) for h in heads)
    if not damaged:
        yield StoreCheck("heads", "ok", f"{len(heads)} sessions, {events:,} events")
    yield from _newest(store, heads)
    yield from _blobs(store)
    yield from _index(store, compare=not damaged and events <= QUICK_EVENTS)
    yield _scrubbed(store)


def version_check(store: Store) -> Iterator[StoreCheck]:
    """Checks that the tables have the newest version, if they have versions."""
    migrations = store.engine.abilities.migrations
    if migrations is None:
        return
    version, waiting = migrations.version(), migrations.waiting()
    if waiting:
        steps = f"{len(waiting)} {'step waits' if len(waiting) == 1 else 'steps wait'}"
        yield StoreCheck(
            "version", "warn", f"{version}; {steps}, and it can be used meanwhile", "wakelog store migrate"
        )
    else:
        yield StoreCheck("version", "ok", str(version))


def encryption_check(store: Store) -> Iterator[StoreCheck]:
    """Checks whether an encrypted store was opened with its key."""
    encryption = store.engine.abilities.encryption
    if encryption is None:
        return
    if encryption.has_key:
        yield StoreCheck("encryption", "ok", f"opened with the key; key ring {store.encryption.ring_path}")
    else:
        yield StoreCheck(
            "encryption",
            "warn",
            "opened without the key: headers and the chain can be checked, content cannot",
            "set WAKELOG_ENCRYPTION_KEY: file:PATH, env:NAME, keyring:SERVICE/NAME or command:CMD",
        )


def _file(store: Store) -> Iterator[StoreCheck]:
    path = store.engine.abilities.path
    if path is None:
        return
    size = path.stat().st_size
    if size > QUICK_BYTES:
        yield StoreCheck("file", "ok", "too large for a quick look: wakelog store scrub checks it")
        return
    from wakelog.engines.sqlite.inspection import integrity_faults

    faults = integrity_faults(path)
    if faults:
        yield StoreCheck(
            "file", "fail", f"damaged: {faults[0]}", "wakelog store scrub tells more; restore it from a backup"
        )
    else:
        yield StoreCheck("file", "ok", "sound")


def _newest(store: Store, heads: list[Head]) -> Iterator[StoreCheck]:
    """Checks that the newest commits can be read, belong to the chain, and are found by name."""
    newest = sorted(heads, key=lambda h: h.at, reverse=True)[:NEWEST]
    bad = 0
    for head in newest:
        name = str(head)
        try:
            if Log(store.engine, head.session, clock=store.clock).entry(head.seq).hash != head.hash:
                bad += 1
                yield StoreCheck(
                    "newest", "fail", f"the head of {name} is not its last event", f"wakelog verify {name}"
                )
            elif head.name and store.engine.find(head.name) != head.session:
                bad += 1
                yield StoreCheck(
                    "names", "warn", f"{head.name} leads to another session", f"reach it as {head.session}"
                )
        except WakelogError as exc:
            bad += 1
            yield StoreCheck("newest", "fail", f"{name}: {exc.message}", f"wakelog verify {name}")
    if not bad:
        encryption = store.engine.abilities.encryption
        state = "can be read" if encryption is None or encryption.has_key else "are there, encrypted"
        yield StoreCheck("newest", "ok", f"the newest {len(newest)} {state}" if newest else "nothing to read yet")


def _blobs(store: Store) -> Iterator[StoreCheck]:
    encryption = store.engine.abilities.encryption
    engine = encryption.below if encryption is not None else store.engine
    if not isinstance(engine, BlobEngine):
        return
    try:
        next(engine.objects.list(), None)
        yield StoreCheck("blobs", "ok", engine.url)
    except WakelogError as exc:
        yield StoreCheck("blobs", "fail", exc.message, exc.hint)


def _index(store: Store, *, compare: bool) -> Iterator[StoreCheck]:
    from wakelog.index.comparison import differences

    fault = index_fault(index_path(store.engine))
    if fault:
        yield StoreCheck("index", "warn", f"damaged: {fault}", REBUILD)
    elif not has_index(store.engine):
        return
    elif not compare:
        yield StoreCheck("index", "ok", "not compared with the log here: wakelog store scrub does")
    else:
        bad = list(differences(store.index, store.engine))
        for session, what in bad:
            yield StoreCheck("index", "fail", f"{session}: it does not say what the log says ({what})", REBUILD)
        if not bad:
            yield StoreCheck("index", "ok", "says what the log says")


def _scrubbed(store: Store) -> StoreCheck:
    now = open_pass(store)
    under_way = f"; one is in progress, {now.sessions} sessions so far" if now is not None else ""
    last = last_pass(store)
    if last is None or last.ended is None:
        return StoreCheck("scrub", "ok", f"no full pass yet{under_way}", "" if now else "wakelog store scrub")
    day = datetime.fromtimestamp(last.ended / 1e6, UTC).strftime("%Y-%m-%d %H:%M")
    found = f"{last.damage} damaged" if last.damage else "nothing was damaged"
    level: Literal["ok", "fail"] = "fail" if last.damage else "ok"
    fix = "wakelog store scrub --anew lists them again" if last.damage else ""
    return StoreCheck("scrub", level, f"{day} UTC, {last.sessions} sessions, {found}{under_way}", fix)


def require_migrations(store: Store) -> Migrations:
    """Returns the store's migrations. Raises UnsupportedError if it has none."""
    return require(
        store.engine.abilities.migrations,
        UnsupportedError(
            "this store has no tables to upgrade",
            kind="no-migrations",
            hint="over HTTP, run it where the server's store is",
        ),
    )
