"""Imports a bundle into a store, and reports how many events are new and whether the session's name is free."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import msgspec

from wakelog.codec.envelope import is_encrypted
from wakelog.encryption.engine import EncryptedEngine
from wakelog.engine import Engine, head_or_none
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import ConflictError
from wakelog.log import Log
from wakelog.log.bundle import import_bundle
from wakelog.model.ids import Seq, SessionId
from wakelog.model.names import is_name
from wakelog.model.records import Head

if TYPE_CHECKING:
    from wakelog.store import Store


class ImportedBundle(msgspec.Struct, frozen=True):
    """The result of an import: the bundle's session, and how many of its events are new here."""

    head: Head
    new_events: int
    warning: str = ""
    """Set if the session's name is not available here; says how to reach the session."""


def import_into(store: Store, source: IO[bytes], *, dry_run: bool, size_max: int | None) -> ImportedBundle:
    """See `Store.import_bundle`."""
    engine = store.engine
    before: Seq = 0

    def look(session: SessionId) -> None:
        nonlocal before
        head = head_or_none(engine, session)
        before = head.seq if head is not None else 0

    if dry_run:

        def in_memory(memory: Engine, ring: str) -> Engine:
            return EncryptedEngine(memory, engine.ring if isinstance(engine, EncryptedEngine) else None, ring)

        log = import_bundle(MemoryEngine(), source, size_max=size_max, for_encrypted=in_memory)
        before = _shared(engine, log)
    else:

        def in_store(plain: Engine, ring: str) -> Engine:
            from wakelog.store.encryption import hold_encrypted

            store.engine = hold_encrypted(plain, ring)
            return store.engine

        log = import_bundle(engine, source, size_max=size_max, before=look, for_encrypted=in_store)
    head = log.head()
    return ImportedBundle(head, head.seq - before, _name_warning(log, store.engine))


def _shared(engine: Engine, log: Log) -> Seq:
    """Returns the last event that the store shares with the bundle. ConflictError if their histories differ."""
    mine = head_or_none(engine, log.id)
    if mine is None:
        return 0
    if mine.status == "deleted":
        raise ConflictError(f"{log.id} was deleted in this store and cannot be imported again", kind="session-deleted")
    common_end = min(mine.seq, log.head().seq)
    if Log(engine, log.id).entry(common_end).hash != log.entry(common_end).hash:
        raise ConflictError(
            f"{log.id} has a different history in this store",
            kind="head-moved",
            head_seq=mine.seq,
            hint="import it into another store",
        )
    return common_end


def _name_warning(log: Log, engine: Engine) -> str:
    """Says how to reach the session if its name is taken here or is not valid; else empty."""
    own = [s for s in log.segments if s.last is None]
    first = log.entry(own[0].first)
    name = str(first.body.get("name", "")) if not is_encrypted(first.record.body) else ""
    if name and not is_name(name):
        return f"{name!r} looks like a position and cannot name a session; use its id, {log.id}"
    bound = engine.find(name) if name else None
    if bound is not None and bound != log.id:
        return f"the name {name} is taken by {bound}; use its id, {log.id}"
    return ""
