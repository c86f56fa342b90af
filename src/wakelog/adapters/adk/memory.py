"""The memory service: what was said in sessions that were added to memory, found by its words.

The memory of a user is a session named `adk-memory/<app>/<user>`. Each event in it is a message, and is kept once,
however often its session is added. A memory that is deleted is erased, and does not come back with its session.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.platform import uuid as adk_uuid
from google.adk.sessions.session import Session as AdkSession
from google.genai import types

from wakelog.adapters.adk.event_drafts import FORMAT, LABELS, as_said, micros
from wakelog.adapters.adk.state_values import stored_value
from wakelog.adapters.compound_names import compound_name
from wakelog.adapters.exact_values import from_stored
from wakelog.adapters.held_logs import HeldLog, HeldLogs
from wakelog.adapters.stores import Place
from wakelog.log import Log
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.runtime.bridge import in_thread
from wakelog.session import Session
from wakelog.timeline.messages import content_of

MEMORIES = "adk-memory"
FOUND_MAX = 10
_KEPT, _FORGOTTEN = "x.adk.memory", "x.adk.memory_deleted"
_WORD = re.compile(r"\w+")


class KeptMemory(msgspec.Struct, frozen=True):
    """One memory: its entry as ADK has it, its words, the session it is from, and the events that hold it."""

    entry: MemoryEntry
    text: str
    words: frozenset[str]
    session: str
    seqs: tuple[int, int]


class _Known(msgspec.Struct):
    """The memories of a user up to an event."""

    upto: int = 0
    kept: dict[str, KeptMemory] = {}
    forgotten: set[str] = set()


class WakelogMemoryService(BaseMemoryService):  # type: ignore[misc]  # Any where it is not installed
    """Keeps the memory of ADK in a store."""

    def __init__(self, store: Place = None) -> None:
        """`store` is a store, or the url of one as for `wakelog.open`."""
        self._logs = HeldLogs(store, FORMAT)
        self.store = self._logs.store

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
        told = [
            _Told(
                entry.id or adk_uuid.new_uuid(),
                entry.content,
                entry.author or "",
                entry.timestamp or "",
                {**shared, **entry.custom_metadata},
            )
            for entry in memories
        ]
        await in_thread(self._keep, app_name, user_id, told, "")

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        return SearchMemoryResponse(memories=await in_thread(self._search, app_name, user_id, query))

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        if memory_id:
            await in_thread(self._forget, app_name, user_id, memory_id)

    async def close(self) -> None:
        """Closes the store, if it was opened here."""
        await in_thread(self._logs.close)

    def _add(self, app: str, user: str, events: list[Event], session: str, metadata: dict[str, Any]) -> None:
        told = [
            _Told(e.id, e.content, e.author, datetime.fromtimestamp(e.timestamp).isoformat(), metadata, e.timestamp)
            for e in events
            if e.content and any(part.text for part in e.content.parts or ())  # a search goes by words
        ]
        self._keep(app, user, told, session)

    def _keep(self, app: str, user: str, told: Iterable[_Told], session: str) -> None:
        name = compound_name(MEMORIES, app, user)
        labels = {label: id for label, id in zip(LABELS, (app, user), strict=False) if id}
        held = self._logs.open(name, labels, agent=app)

        def attempt() -> None:
            seq = held.log.look()[0]
            known = _known(held)
            new = {t.id: t for t in told if t.id not in known.kept and t.id not in known.forgotten}
            drafts = [draft for each in new.values() for draft in each.drafts(session)]
            if drafts:
                held.log.append(*drafts, expect=seq)

        told = list(told)
        retry_on_moved_head(held.log.id, "to add to memory", attempt)

    def _search(self, app: str, user: str, query: str) -> list[MemoryEntry]:
        held = self._logs.find(compound_name(MEMORIES, app, user))
        if held is None:
            return []
        asked = _words(query)
        scored = []
        for memory in _known(held).kept.values():
            # Languages that are written without spaces have no words to compare: there the text is searched.
            hits = sum(word in memory.words or (not word.isascii() and word in memory.text) for word in asked)
            if hits:
                scored.append((hits, memory.entry))
        scored.sort(key=lambda pair: -pair[0])
        return [entry.model_copy(deep=True) for _, entry in scored[:FOUND_MAX]]

    def _forget(self, app: str, user: str, id: str) -> None:
        name = compound_name(MEMORIES, app, user)
        held = self._logs.find(name)
        memory = _known(held).kept.get(id) if held is not None else None
        if held is None or memory is None:
            return
        held.log.append(ev.Foreign(foreign_kind=_FORGOTTEN, data={"id": id}))
        self.store.erase(Session(held.log, name=name), memory.seqs, why="deleted through ADK")


class _Told(msgspec.Struct, frozen=True):
    """A memory to be kept."""

    id: str
    content: types.Content | None
    author: str
    timestamp: str
    metadata: dict[str, Any]
    at: float = 0.0

    def drafts(self, session: str) -> list[EventDraft]:
        content = self.content.model_dump(mode="json", exclude_none=True) if self.content is not None else {}
        is_user = self.author == "user"
        said = ev.MessageAdded(
            role="user" if is_user else "assistant",
            content=as_said(content, content.get("parts") or []),
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
            EventDraft(said, actor="user" if is_user else "agent"),
            EventDraft(ev.Foreign(foreign_kind=_KEPT, data=about), actor="runtime"),
        ]


def _known(held: HeldLog) -> _Known:
    """The memories in a log. What was read before is remembered."""
    with held.lock:
        if held.memory is None:
            held.memory = _Known()
        known: _Known = held.memory
        said = None
        for entry in held.log.entries(after=known.upto, payloads=True):
            if entry.kind == "message.added":
                said = entry
            elif entry.kind == _KEPT and said is not None and "id" in entry.body:
                memory = _memory(held.log, said, entry)
                known.kept[entry.body["id"]] = memory
            elif entry.kind == _FORGOTTEN:
                known.kept.pop(entry.body.get("id", ""), None)
                known.forgotten.add(entry.body.get("id", ""))
            known.upto = entry.seq
        return known


def _memory(log: Log, said: Any, about: Any) -> KeptMemory:
    value, body = content_of(log, said, "content"), about.body
    parts = [{"text": value}] if isinstance(value, str) else list(from_stored(value).get("parts", ()))
    content = types.Content.model_validate({"role": body.get("role") or None, "parts": parts})
    text = unicodedata.normalize("NFC", " ".join(part.text for part in content.parts or () if part.text)).lower()
    entry = MemoryEntry(
        id=body["id"],
        content=content,
        author=said.body.get("name") or None,
        timestamp=body.get("timestamp") or None,
        custom_metadata=from_stored(body.get("metadata") or {}),
    )
    return KeptMemory(entry, text, frozenset(_words(text)), body.get("session", ""), (said.seq, about.seq))


def _words(text: str) -> set[str]:
    """Words in lower case; of a word that mixes scripts, each run of Latin letters too."""
    words = {word.lower() for word in _WORD.findall(unicodedata.normalize("NFC", text))}
    return words | {run for word in words if not word.isascii() for run in re.findall(r"[a-z0-9_]+", word)}
