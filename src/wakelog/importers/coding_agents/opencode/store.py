"""Reads OpenCode's storage of all versions into one form: a session with its messages.

Until 1.1 each session, message and part is a JSON file under `storage/`. Since 1.2 they are rows of `opencode.db`
(`session`, `message`, `part`). Since 2.0 a message is one row of `session_message`, and sessions are in `session_v2`;
the old tables may still exist. `opencode export` prints one session as a document.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from wakelog.errors import WakelogError
from wakelog.importers.source.files import bad_transcript, decode_json, read_document
from wakelog.importers.source.foreign_database import is_database, open_database
from wakelog.model.json_fields import as_dict, as_list


class StoredRow(msgspec.Struct, frozen=True):
    """A stored message or part. `broken` says why it cannot be read; then `data` is the raw content."""

    id: str
    data: Any
    broken: str = ""


class StoredMessage(msgspec.Struct, frozen=True):
    row: StoredRow
    parts: tuple[StoredRow, ...] = ()
    is_whole: bool = False
    """Its parts are inside `row`."""


class StoredSession(msgspec.Struct, frozen=True):
    id: str
    info: dict[str, Any]
    messages: Callable[[], Iterator[StoredMessage]]
    stat: tuple[int, int] | None = None


def sessions_in(path: Path) -> Iterator[StoredSession]:
    """The sessions in a database, an exported document, or the file of one session in the storage folder."""
    if is_database(path):
        yield from _database_sessions(path)
        return
    info = read_document(path)
    if isinstance(info, dict) and isinstance(info.get("messages"), list):
        fields = as_dict(info.get("info"))
        yield StoredSession(_id(fields, path.stem), fields, partial(_exported_messages, info["messages"]))
    elif isinstance(info, dict):
        # The file name is right even if a migration left an old id inside.
        yield _folder_session(path, info)
    else:
        raise bad_transcript(f"{path} is not a session of OpenCode", "it is JSON, but not an object")


def session_ids(path: Path) -> set[str]:
    try:
        return {session.id for session in _database_sessions(path)}
    except WakelogError:
        return set()


# Files


def _folder_session(path: Path, info: dict[str, Any]) -> StoredSession:
    id = path.stem
    storage = path.parent.parent
    if path.parent.name == "info":
        files = partial(_folder_files, storage / "message" / id, storage / "part" / id)
    else:
        files = partial(_folder_files, storage.parent / "message" / id, storage.parent / "part")
    stats = [p.stat() for each in files() for p in (each[0], *each[1]) if p.exists()] + [path.stat()]
    stat = sum(s.st_size for s in stats), max(s.st_mtime_ns for s in stats) // 1000
    return StoredSession(id, info, partial(_folder_messages, files), stat)


def _folder_files(messages: Path, parts: Path) -> Iterator[tuple[Path, list[Path]]]:
    for message in sorted(messages.glob("*.json")):
        yield message, sorted((parts / message.stem).glob("*.json"))


def _folder_messages(files: Callable[[], Iterator[tuple[Path, list[Path]]]]) -> Iterator[StoredMessage]:
    for message, parts in files():
        yield StoredMessage(_file_row(message), tuple(map(_file_row, parts)))


def _file_row(path: Path) -> StoredRow:
    try:
        raw = path.read_bytes()
    except OSError as exc:
        return StoredRow(path.stem, None, f"{path.name} cannot be read: {exc.strerror}")
    return _row(path.stem, raw.decode(errors="replace"), path.name)


def _row(id: str, raw: Any, what: str) -> StoredRow:
    try:
        data = decode_json(raw) if isinstance(raw, str | bytes) else raw
    except ValueError as exc:
        return StoredRow(id, raw if isinstance(raw, str) else None, f"{what} is not JSON: {exc}")
    if not isinstance(data, dict):
        return StoredRow(id, data, f"{what} is not an object")
    return StoredRow(id, data)


def _exported_messages(messages: list[Any]) -> Iterator[StoredMessage]:
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            yield StoredMessage(StoredRow(f"message-{number}", message, f"message {number} is not an object"))
            continue
        info = message.get("info", message)
        parts = message.get("parts")
        rows = [_row(_id(p, f"{number}-{n}"), p, f"part {n} of message {number}") for n, p in enumerate(as_list(parts))]
        row = _row(_id(info, f"message-{number}"), info, f"message {number}")
        yield StoredMessage(row, tuple(rows), is_whole="parts" not in message)


# Databases


def _database_sessions(path: Path) -> Iterator[StoredSession]:
    with open_database(path) as db:
        sessions = list(_list_sessions(db, path))
    yield from sessions


def _list_sessions(db: sqlite3.Connection, path: Path) -> Iterator[StoredSession]:
    known = {str(row["name"]) for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    seen: set[str] = set()
    for table in ("session_v2", "session"):
        if table not in known:
            continue
        for row in db.execute(f"SELECT * FROM {table} ORDER BY time_created, id"):
            info = dict(row)
            id = str(info.get("id"))
            if id in seen:
                continue
            count, changed = _count_and_changed(db, "session_message", id) if "session_message" in known else (0, 0)
            is_whole = bool(count)
            if not is_whole and {"message", "part"} <= known:
                of_messages, of_parts = _count_and_changed(db, "message", id), _count_and_changed(db, "part", id)
                count, changed = of_messages[0] + of_parts[0], max(of_messages[1], of_parts[1])
            seen.add(id)
            stat = count, max(changed, _number(info.get("time_updated"))) * 1000
            yield StoredSession(id, info, partial(_database_messages, path, id, is_whole=is_whole), stat)


def _count_and_changed(db: sqlite3.Connection, table: str, session: str) -> tuple[int, int]:
    row = db.execute(f"SELECT count(*), max(time_updated) FROM {table} WHERE session_id = ?", (session,)).fetchone()
    return _number(row[0]), _number(row[1])


def _database_messages(path: Path, session: str, *, is_whole: bool) -> Iterator[StoredMessage]:
    with open_database(path) as db:
        yield from _whole_rows(db, session) if is_whole else _rows_with_parts(db, session)


def _whole_rows(db: sqlite3.Connection, session: str) -> Iterator[StoredMessage]:
    names = {row["name"] for row in db.execute("PRAGMA table_info(session_message)")}
    order = "seq, id" if "seq" in names else "time_created, id"
    for row in db.execute(f"SELECT * FROM session_message WHERE session_id = ? ORDER BY {order}", (session,)):
        found = _row(str(row["id"]), row["data"], f"message {row['id']}")
        if not found.broken:
            found = StoredRow(found.id, found.data | {"type": row["type"], "id": found.id})
        yield StoredMessage(found, is_whole=True)


def _rows_with_parts(db: sqlite3.Connection, session: str) -> Iterator[StoredMessage]:
    parts: dict[str, list[StoredRow]] = {}
    for row in db.execute("SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id", (session,)):
        parts.setdefault(str(row["message_id"]), []).append(_row(str(row["id"]), row["data"], f"part {row['id']}"))
    query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    for row in db.execute(query, (session,)):
        id = str(row["id"])
        yield StoredMessage(_row(id, row["data"], f"message {id}"), tuple(parts.get(id, ())))


def _id(value: Any, other: str) -> str:
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str) and found else other


def _number(value: Any) -> int:
    return value if type(value) is int and 0 < value < 1 << 50 else 0
