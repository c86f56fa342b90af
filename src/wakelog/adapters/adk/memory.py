"""ADK's memory service: finds messages of sessions that were added to memory by their words.

The memory of a user is a session named `adk-memory/<app>/<user>`. Each ADK event is one message in it, also if its
session is added several times. A deleted memory is erased, and does not come back when its session is added again.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.platform import uuid as adk_uuid
from google.adk.sessions.session import Session as AdkSession
from google.genai import types

from wakelog.adapters.adk.event_drafts import FORMAT, LABELS, message_content, micros
from wakelog.adapters.adk.state_values import stored_value
from wakelog.adapters.compound_names import compound_name
from wakelog.adapters.exact_values import from_stored
from wakelog.adapters.held_logs import HeldLog, LogsAdapter
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.runtime.bridge import in_thread
from wakelog.session import Session
from wakelog.timeline.messages import content_of

MEMORIES = "adk-memory"
FOUND_MAX = 10
_ADDED, _DELETED = "x.adk.memory", "x.adk.memory_deleted"
_WORD = re.compile(r"\w+")


class KeptMemory(msgspec.Struct, frozen=True):
    """One memory: ADK's entry, its text and words, its session, and the events that hold it."""

    entry: MemoryEntry
    text: str
    words: frozenset[str]
    session: str
    seqs: tuple[int, int]


class _UserMemories(msgspec.Struct):
    """The memories of a user up to an event."""

    upto: int = 0
    kept: dict[str, KeptMemory] = {}
    deleted: set[str] = set()


class WakelogMemoryService(LogsAdapter, BaseMemoryService):  # type: ignore[misc]  # Any if it is not installed
    """Stores ADK's memory as sessions of a wakelog store."""

    framework = FORMAT

    async def add_session_to_memory(self, session: AdkSession) -> None:
        await in_thread(self._add, session.app_name, session.user_id, list(session.events), session.id, {})

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        await in_thread(self._add, app_name, user_id, list(events), session_id or "", dict(custom_metadata or {}))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        shared = dict(custom_metadata or {})
        new = [
            _NewMemory(
                entry.id or adk_uuid.new_uuid(),
                entry.content,
                entry.author or "",
                entry.timestamp or "",
                {**shared, **entry.custom_metadata},
            )
            for entry in memories
        ]
        await in_thread(self._store, app_name, user_id, new, "")

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        return SearchMemoryResponse(memories=await in_thread(self._search, app_name, user_id, query))

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        if memory_id:
            await in_thread(self._forget, app_name, user_id, memory_id)

    def _add(self, app: str, user: str, events: list[Event], session: str, metadata: dict[str, Any]) -> None:
        new = [
            _NewMemory(
                e.id, e.content, e.author, datetime.fromtimestamp(e.timestamp).isoformat(), metadata, e.timestamp
            )
            for e in events
            if e.content and any(part.text for part in e.content.parts or ())  # a search compares words
        ]
        self._store(app, user, new, session)

    def _store(self, app: str, user: str, memories: list[_NewMemory], session: str) -> None:
        name = compound_name(MEMORIES, app, user)
        labels = {label: id for label, id in zip(LABELS, (app, user), strict=False) if id}
        held = self._logs.open(name, labels, agent=app)

        def attempt() -> None:
            seq = held.log.look()[0]
            known = _read_memories(held)
            new = {m.id: m for m in memories if m.id not in known.kept and m.id not in known.deleted}
            drafts = [draft for memory in new.values() for draft in memory.drafts(session)]
            if drafts:
                held.log.append(*drafts, expect=seq)

        retry_on_moved_head(held.log.id, "to add to memory", attempt)

    def _search(self, app: str, user: str, query: str) -> list[MemoryEntry]:
        held = self._logs.find(compound_name(MEMORIES, app, user))
        if held is None:
            return []
        query_words = _words(query)
        scored = []
        for memory in _read_memories(held).kept.values():
            # Some languages are written without spaces. Their words are searched in the text.
            hits = sum(word in memory.words or (not word.isascii() and word in memory.text) for word in query_words)
            if hits:
                scored.append((hits, memory.entry))
        scored.sort(key=lambda pair: -pair[0])
        return [entry.model_copy(deep=True) for _, entry in scored[:FOUND_MAX]]

    def _forget(self, app: str, user: str, id: str) -> None:
        name = compound_name(MEMORIES, app, user)
        held = self._logs.find(name)
        memory = _read_memories(held).kept.get(id) if held is not None else None
        if held is None or memory is None:
            return
        held.log.append(ev.Foreign(foreign_kind=_DELETED, data={"id": id}))
        self.store.erase(Session(held.log, name=name), memory.seqs, why="deleted through ADK")


class _NewMemory(msgspec.Struct, frozen=True):
    """A memory to add."""

    id: str
    content: types.Content | None
    author: str
    timestamp: str
    metadata: dict[str, Any]
    at: float = 0.0

    def drafts(self, session: str) -> list[EventDraft]:
        content = self.content.model_dump(mode="json", exclude_none=True) if self.content is not None else {}
        is_user = self.author == "user"
        message = ev.MessageAdded(
            role="user" if is_user else "assistant",
            content=message_content(content, content.get("parts") or []),
            name=self.author,
            occurred_at=micros(self.at),
        )
        about = {
            "id": self.id,
            "session": session,
            "timestamp": self.timestamp,
            "role": content.get("role", ""),
            "metadata": stored_value(self.metadata, "custom_metadata"),
        }
        return [
            EventDraft(message, actor="user" if is_user else "agent"),
            EventDraft(ev.Foreign(foreign_kind=_ADDED, data=about), actor="runtime"),
        ]


def _read_memories(held: HeldLog) -> _UserMemories:
    """The memories in a log. They are cached, so only new events are read."""
    with held.lock:
        if held.cache is None:
            held.cache = _UserMemories()
        known: _UserMemories = held.cache
        message = None
        for entry in held.log.entries(after=known.upto, payloads=True):
            if entry.kind == "message.added":
                message = entry
            elif entry.kind == _ADDED and message is not None and "id" in entry.body:
                known.kept[entry.body["id"]] = _memory(held.log, message, entry)
            elif entry.kind == _DELETED:
                known.kept.pop(entry.body.get("id", ""), None)
                known.deleted.add(entry.body.get("id", ""))
            known.upto = entry.seq
        return known


def _memory(log: Log, message: Entry, about: Entry) -> KeptMemory:
    value, body = content_of(log, message, "content"), about.body
    parts = [{"text": value}] if isinstance(value, str) else list(from_stored(value).get("parts", ()))
    content = types.Content.model_validate({"role": body.get("role") or None, "parts": parts})
    text = unicodedata.normalize("NFC", " ".join(part.text for part in content.parts or () if part.text)).lower()
    entry = MemoryEntry(
        id=body["id"],
        content=content,
        author=message.body.get("name") or None,
        timestamp=body.get("timestamp") or None,
        custom_metadata=from_stored(body.get("metadata") or {}),
    )
    return KeptMemory(entry, text, frozenset(_words(text)), body.get("session", ""), (message.seq, about.seq))


def _words(text: str) -> set[str]:
    """The words of a text in lower case. A word of mixed scripts also adds its runs of Latin letters."""
    words = {word.lower() for word in _WORD.findall(unicodedata.normalize("NFC", text))}
    mixed = [word for word in words if not word.isascii()]
    return words | {"".join(run) for word in mixed for latin, run in itertools.groupby(word, _is_latin) if latin}


def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith("LATIN")
