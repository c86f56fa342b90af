"""Opens the engine that a URL names, and finds the default store."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from wakelog.engine import Engine
from wakelog.errors import InvalidInputError, UnsupportedError, missing_extra

DEFAULT_FOLDER = ".wakelog"
POSTGRES = ("postgresql", "postgres")
FILES = (".db", ".sqlite", ".sqlite3")


def default_url() -> str:
    """Returns the store that `open()` uses without a URL."""
    return chosen_url() or str(Path.cwd() / DEFAULT_FOLDER)


def chosen_url(start: Path | None = None) -> str:
    """Returns the store that was chosen for a folder (by default this one): by an environment variable, a setting, or a
    `.wakelog` folder there or above. Empty if none was."""
    if url := os.environ.get("WAKELOG_STORE"):
        return url
    from wakelog.config.settings import store_path

    if url := store_path(start):
        return url
    here = start or Path.cwd()
    for folder in (here, *here.parents):
        if os.path.isdir(folder / DEFAULT_FOLDER):
            return str(folder / DEFAULT_FOLDER)
    return ""


def user_store(*, must_exist: bool = False) -> str:
    """Returns the user's own store, for what belongs to no project; empty if it must exist and does not."""
    from wakelog.config.folders import data_folder

    folder = Path(data_folder()) / "store"
    return str(folder) if not must_exist or os.path.isdir(folder) else ""


def stores_in(folder: Path) -> list[str]:
    """The names of the stores that are directly in a folder: files that end in .db, and folders with a log."""
    found = []
    for path in sorted(folder.iterdir()):
        log = path / "log.db" if path.is_dir() else path
        with contextlib.suppress(OSError):
            if log.suffix == ".db" and log.is_file() and _is_store(log):
                found.append(path.name)
    return found


def _is_store(path: Path) -> bool:
    from wakelog.engines.sqlite.connection import APPLICATION_ID

    with path.open("rb") as file:
        return file.read(72)[68:] == APPLICATION_ID.to_bytes(4, "big")  # where SQLite keeps the id of an application


def open_engine(url: str, create: bool, key: str = "") -> Engine:
    """Opens the engine that a URL or path names."""
    if url in ("memory:", "memory://"):
        from wakelog.engines.memory import MemoryEngine

        return MemoryEngine()
    scheme, separator, rest = url.partition("://")
    if scheme in ("http", "https") and separator:
        from wakelog.engines.remote import RemoteEngine

        return RemoteEngine(url, key or os.environ.get("WAKELOG_KEY", ""), create=create)
    if scheme in POSTGRES and separator:
        return open_postgres(url, create)
    if scheme in ("nats", "tls") and separator:
        from wakelog.store.nats_url import open_nats

        return open_nats(url, create)
    if separator and scheme != "sqlite":
        raise UnsupportedError(
            f"there is no engine for {scheme}:// stores",
            kind="unknown-engine",
            hint="use a path, memory:, or a URL with postgresql://, nats:// or http://",
        )
    from wakelog.engines.sqlite import SqliteEngine

    path = Path(rest if separator else url)
    if path.suffix in FILES:
        return SqliteEngine(path, create=create)
    is_new = create and not path.exists()
    engine = SqliteEngine(path / "log.db", create=create)
    if is_new:
        _ignore(path)
    return engine


def _ignore(folder: Path) -> None:
    """Adds a .gitignore to a new folder, because it may be in a repository and hold private content."""
    path = folder / ".gitignore"
    with contextlib.suppress(OSError):
        path.touch(0o600, exist_ok=False)
        path.write_text("# Written by wakelog. A session can hold anything a tool has seen.\n*\n", encoding="utf-8")


def open_postgres(url: str, create: bool, distributed: bool = False, shards: int | None = None) -> Engine:
    """Opens `postgresql://user@host/database?namespace=team`. With `index=local` the index is on this machine. If the
    server is unavailable, retries for `patience` seconds. A new store can be `distributed` over workers."""
    from urllib.parse import parse_qsl, urlencode, urlsplit

    try:
        from wakelog.engines.postgres import PostgresEngine
        from wakelog.engines.postgres.connections import PATIENCE_S
    except ImportError as exc:
        raise missing_extra("a PostgreSQL store needs asyncpg", "postgres") from exc
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    namespace = query.pop("namespace", "default")
    keeps_index = query.pop("index", "shared")
    if keeps_index not in ("shared", "local"):
        raise InvalidInputError(
            f"the index cannot be {keeps_index!r}", kind="bad-url", hint="index=shared or index=local"
        )
    try:
        patience_s = float(query.pop("patience", PATIENCE_S))
    except ValueError as exc:
        raise InvalidInputError("patience is a number of seconds", kind="bad-url", hint="patience=15") from exc
    place = parts._replace(query=urlencode(query)).geturl()
    engine = PostgresEngine(
        place, ns=namespace, create=create, patience_s=patience_s, distributed=distributed, shards=shards
    )
    engine.keeps_index = keeps_index == "shared"
    return engine
