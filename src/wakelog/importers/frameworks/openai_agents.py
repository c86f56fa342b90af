"""OpenAI Agents SDK: the databases of its `SQLiteSession`, `AdvancedSQLiteSession` and `SQLAlchemySession` on SQLite.

`agent_sessions` lists the sessions, `agent_messages` holds their items as JSON, in order. In an advanced session,
`message_structure` says which items belong to which branch; each branch is a session. Imported sessions can be
continued: `WakelogSession` with the same id returns the same items.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.common.chat import call_block, text_block
from wakelog.importers.common.provider_messages import ReadMessage, read_message, reply_blocks, said_content
from wakelog.importers.source.files import Sample, decode_json, home_files
from wakelog.importers.source.foreign_database import MAGIC, open_database, table_names
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.names import name_of_id

NAME = "openai-agents"
TITLE = "OpenAI Agents SDK"
find_in_home = home_files()
MAIN = "main"
_ROWS = "SELECT id, message_data, created_at FROM agent_messages WHERE session_id = ? ORDER BY id"
_BRANCH = (
    "SELECT m.id, m.message_data, m.created_at FROM message_structure s JOIN agent_messages m ON m.id = s.message_id "
    "WHERE s.session_id = ? AND s.branch_id = ? ORDER BY s.sequence_number"
)


def recognises(sample: Sample) -> bool:
    return sample.start.startswith(MAGIC) and {"agent_sessions", "agent_messages"} <= table_names(sample.path)


def transcripts(path: Path) -> Iterator[st.Transcript]:
    with open_database(path) as db:
        rows = db.execute("SELECT session_id FROM agent_sessions ORDER BY rowid").fetchall()
        sessions = [str(row["session_id"]) for row in rows]
        keys = [(session, branch) for session in sessions for branch in _branches(db, session) or [""]]
        stats = {key: _stat(db, *key) for key in keys}
    for (session, branch), stat in stats.items():
        is_main = branch in ("", MAIN)
        origin = session if is_main else f"{session}+{branch}"
        name = name_of_id(session) if is_main else name_of_id(f"{name_of_id(session)}+{branch}")
        head = st.TranscriptHead(origin, NAME, labels={"framework": NAME}, name=name)
        yield st.Transcript(head, partial(_records, path, session, branch), stat, keeps=NAME)


def _branches(db: sqlite3.Connection, session: str) -> list[str]:
    try:
        rows = db.execute("SELECT DISTINCT branch_id FROM message_structure WHERE session_id = ?", (session,))
        return sorted({str(row["branch_id"]) for row in rows}, key=lambda b: (b != MAIN, b))
    except sqlite3.Error:
        return []


def _query(branch: str, session: str) -> tuple[str, tuple[str, ...]]:
    return (_BRANCH, (session, branch)) if branch else (_ROWS, (session,))


def _stat(db: sqlite3.Connection, session: str, branch: str) -> tuple[int, int]:
    """The number of items and the time of the newest. If both are unchanged, nothing is new."""
    query, given = _query(branch, session)
    row = db.execute(f"SELECT count(*), max(id), max(created_at) FROM ({query})", given).fetchone()
    return int(row[0] or 0) + int(row[1] or 0), microseconds(row[2])


def _records(path: Path, session: str, branch: str) -> Iterator[tuple[st.SourceRecord, int]]:
    reader = _Reader()
    query, given = _query(branch, session)
    with open_database(path) as db:
        for row in db.execute(query, given):
            yield reader.record(str(row["id"]), row["message_data"], microseconds(row["created_at"]))


class _Reader:
    def __init__(self) -> None:
        self._has_reply = True
        self._group = ""

    def record(self, id: str, raw: Any, at: int) -> tuple[st.SourceRecord, int]:
        size = len(raw) if isinstance(raw, str | bytes) else 0
        try:
            item = decode_json(raw)
        except (ValueError, TypeError) as exc:
            return st.SourceRecord(id, at=at, rest=None, broken=f"item {id} is not JSON: {exc}"), size
        if not isinstance(item, dict):
            return st.SourceRecord(id, at=at, rest=item, broken=f"item {id} is not an object"), size
        return st.SourceRecord(id, tuple(self._steps(id, item)), at, item), size

    def _steps(self, id: str, item: dict[str, Any]) -> Iterator[st.Step]:
        message = read_message(item)
        if message.role == "assistant":
            yield from self._reply_steps(id, message)
            return
        self._group = ""
        yield from (answer for answer, _ in message.answers)
        content = said_content(message)
        if message.role == "system":
            yield st.MessageStep("system", content)
        elif message.role == "user" and (content or not message.answers):
            if self._has_reply and not message.answers:
                yield st.PromptStep(content)
                self._has_reply = False
            else:
                yield st.MessageStep("user", content)

    def _reply_steps(self, id: str, message: ReadMessage) -> Iterator[st.Step]:
        self._has_reply = True
        is_first = not self._group
        self._group = self._group or str(message.message.get("id") or f"reply-{id}")
        blocks = reply_blocks(message)
        if is_first and not blocks:
            blocks = [call_block(ask.id, ask.tool) for ask in message.asks]
        if blocks or not message.asks:
            is_last = not message.asks and message.says_something
            part = self._group if is_first else f"{self._group}.{id}"
            yield st.ReplyStep(part, blocks or [text_block("")], is_last=is_last)
        answers = {answer.id: answer for answer, _ in message.answers}
        for ask in message.asks:
            yield msgspec.structs.replace(ask, group=self._group)
            if ask.id in answers:
                yield answers[ask.id]
