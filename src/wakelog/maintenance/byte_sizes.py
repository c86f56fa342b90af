"""How many bytes things take: sessions, files, kinds of events."""

from __future__ import annotations

from pathlib import Path

from wakelog.engine import Engine
from wakelog.model.ids import SessionId

INDEX_FILE = "index.db"


def session_bytes(engine: Engine) -> dict[SessionId, int]:
    """The stored bytes of each session: records, payloads and snapshots."""
    if (path := engine.abilities.path) is not None:
        from wakelog.engines.sqlite.inspection import stored_bytes

        return stored_bytes(path)
    if (sizes := engine.abilities.sizes) is not None:
        return sizes.session_bytes()
    out: dict[SessionId, int] = {}
    after = ""
    while page := engine.sessions(after=after):
        for head in page:
            commits = engine.read(head.session, payloads=True)
            out[head.session] = sum(
                sum(len(r.header) + len(r.salt) + len(r.body) for r in c.records) + sum(len(p) for _, p in c.payloads)
                for c in commits
            )
        after = page[-1].session
    return out


def file_bytes(path: Path) -> dict[str, int]:
    """The files of a store and their sizes: the log, its write-ahead log, the index beside it."""
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
    """What is wrong with the file of an index; empty when it is sound, or when there is none."""
    if path is None or not path.exists():
        return ""
    import apsw

    try:
        with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) as db:
            verdict = str(db.execute("pragma quick_check(1)").get)
    except apsw.Error as exc:
        verdict = str(exc)
    return "" if verdict == "ok" else verdict
