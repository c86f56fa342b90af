"""Finds and opens the index of a store: beside the log, in the log's database, in another database, or in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakelog.codec.envelope import no_key
from wakelog.config.folders import cached_index
from wakelog.errors import missing_extra

if TYPE_CHECKING:
    from pathlib import Path

    from wakelog.engine import Engine
    from wakelog.index.index import Index


def open_index(engine: Engine) -> Index:
    """Opens the index of an engine's sessions. A server has its own. Each process builds the index of an encrypted
    store in memory, and needs the key: the index holds content."""
    from wakelog.index.index import Index

    encryption = engine.abilities.encryption
    if encryption is not None and not encryption.has_key:
        raise no_key("its content cannot be searched")
    if getattr(engine, "is_remote", False):
        from wakelog.store.remote import RemoteIndex

        return RemoteIndex(engine)
    if engine.abilities.keeps_index:
        from wakelog.index.shared_index import SharedIndex

        return SharedIndex(engine, index_path(engine))
    if engine.abilities.index is not None and encryption is None:
        try:
            from wakelog.index.sharded_index import ShardedIndex
        except ImportError as exc:
            raise missing_extra("an index in PostgreSQL needs asyncpg", "postgres") from exc
        return ShardedIndex(engine, index_path(engine))
    return Index(engine, index_path(engine))


def has_index(engine: Engine) -> bool:
    """Whether these sessions have an index."""
    abilities = engine.abilities
    return abilities.keeps_index or abilities.index is not None or has_local_index(engine)


def has_local_index(engine: Engine) -> bool:
    """Whether these sessions have an index in a file."""
    path = index_path(engine)
    return path is not None and path.exists()


def index_path(engine: Engine) -> Path | None:
    """Returns the file of the index, or None if it is in memory. The index of an encrypted store is never on disk."""
    abilities = engine.abilities
    path = abilities.path
    if abilities.encryption is not None:
        return None
    if path is None:
        return cached_index(abilities.identity) if abilities.identity else None
    return path.with_name("index.db" if path.name == "log.db" else f"{path.stem}.index.db")
