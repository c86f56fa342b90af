"""Measures the bytes of sessions and files, and checks the index file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from wakelog.engine import Engine, all_heads
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit

INDEX_FILE = "index.db"


def session_bytes(engine: Engine) -> dict[SessionId, int]:
    """Returns the stored bytes of each session: records, payloads and snapshots."""
    if (path := engine.abilities.path) is not None:
        from wakelog.engines.sqlite.inspection import stored_bytes

        return stored_bytes(path)
    if (sizes := engine.abilities.sizes) is not None:
        return sizes.session_bytes()
    return {head.session: _stored_bytes(engine.read(head.session, payloads=True)) for head in all_heads(engine)}


def _stored_bytes(commits: Iterable[Commit]) -> int:
    return sum(
        sum(len(r.header) + len(r.salt) + len(r.body) for r in c.records) + sum(len(p) for _, p in c.payloads)
        for c in commits
    )


def file_bytes(path: Path) -> dict[str, int]:
    """Returns the sizes of a store's files: the log, its write-ahead log, and the index beside it."""
    index = path.with_name(INDEX_FILE)
    files = {
        "log": path,
        "wal": path.with_name(path.name + "-wal"),
        "index": index,
        "index_wal": index.with_name(index.name + "-wal"),
    }
    return {name: _size(file) for name, file in files.items()}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def index_fault(path: Path | None) -> str:
    """Returns what is wrong with an index file; empty if it is fine, missing, or cannot be checked because its folder
    is read-only."""
    if path is None or not path.exists():
        return ""
    import apsw

    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        verdict = _quick_check(uri)
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        # SQLite wants to make files beside it, unless the write-ahead log is known to be empty.
        if _size(path.with_name(path.name + "-wal")):
            return ""
        try:
            verdict = _quick_check(f"{uri}&immutable=1")
        except apsw.Error as exc:
            verdict = str(exc)
    except apsw.Error as exc:
        verdict = str(exc)
    return "" if verdict == "ok" else verdict


def _quick_check(uri: str) -> str:
    import apsw

    with contextlib.closing(apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)) as db:
        return str(db.execute("pragma quick_check(1)").get)
