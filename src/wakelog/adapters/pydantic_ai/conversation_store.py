"""`WakelogConversationStore`: Pydantic AI's conversation store. Each conversation is a wakelog session.

Messages become turns, model calls, tool calls and outcomes. The record of a conversation is in the session's data. It
is written in the same commit as its messages, so a revision conflict stores nothing. A branch is a rewind within the
session. A fork is a fork of the session, and shares the history.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from wakelog.adapters.exact_values import from_stored, stored_form
from wakelog.adapters.item_log import KeptItem, PlannedWrite
from wakelog.adapters.ownership import own_session
from wakelog.adapters.pydantic_ai.message_log import MessageLog
from wakelog.adapters.pydantic_ai.message_shape import AGENT, dump_message, load_message
from wakelog.adapters.stores import Place, StoreUser
from wakelog.errors import ConflictError
from wakelog.model import events as ev
from wakelog.model.events import Effect
from wakelog.model.ids import Seq, SessionId
from wakelog.model.names import name_of_id
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread, in_thread_to_the_end
from wakelog.session import Session

RECORD = "$pydantic_ai"
"""The key of the session's data that holds the record."""
OPEN_MAX = 64
_records: TypeAdapter[Any] = TypeAdapter(ConversationRecord)


class WakelogConversationStore(StoreUser, ConversationStore):  # type: ignore[misc]  # Any if it is not installed
    """Several processes may use the same store. A deleted conversation leaves a tombstone; entries shared with forks
    stay."""

    def __init__(self, store: Place = None, *, effects: Mapping[str, Effect] | None = None) -> None:
        """`store` is an open store, or an argument of `wakelog.open`. `effects` are the effects of tools by name:
        `{"get_weather": "read"}`; other tools count as external."""
        super().__init__(store)
        self._effects = effects
        self._logs: OrderedDict[SessionId, MessageLog] = OrderedDict()
        self._lock = threading.RLock()

    # The protocol. Private methods must not be named as in the framework's class, which has `_read_record`.

    async def read_record(self, conversation_id: str) -> Any:
        return await in_thread(self._stored_record, conversation_id)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[Any]:
        def read() -> list[Any]:
            records = [r for session in self._sessions() if (r := _record_of(self._log(session))) is not None]
            chosen = [r for r in records if scope is None or r.scope == scope]
            return sorted(chosen, key=lambda r: r.updated_at, reverse=True)[:limit]

        return await in_thread(read)

    async def write_record(
        self, record: Any, *, new_entries: Sequence[Any] = (), expected_revision: str | None
    ) -> None:
        await in_thread_to_the_end(self._store_record, record, list(new_entries), expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Deletes the session. Entries shared with forks stay readable until the last fork is deleted."""
        await in_thread_to_the_end(self._drop_record, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> Any:
        def read() -> Any:
            found = self._locate(entry_id)
            if found is None:
                raise LookupError(f"there is no entry {entry_id!r}")
            return _entry(found[1])

        return await in_thread(read)

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[Any]:
        return await in_thread(self._stored_history, head_id, limit)

    # More than the protocol

    def session(self, conversation_id: str) -> Session[Any]:
        """The wakelog session of a conversation, for diff, why, rewind and all other verbs."""
        return self.store.resume(name_of_id(conversation_id))

    def opened(self, conversation_id: str) -> Session[Any]:
        """Like `session`, but creates the session if needed."""
        return own_session(self.store, AGENT, conversation_id, origin=conversation_id)

    def find_log(self, conversation_id: str) -> MessageLog | None:
        """The messages of a conversation; None if there is no session for it."""
        name = name_of_id(conversation_id)
        if not self.store.is_open(name):
            return None
        log = self._log(self.store.resume(name))
        log.refresh(0)
        return log

    # Reading

    def _sessions(self) -> list[Session[Any]]:
        """The sessions of conversations, the most recently active first."""
        found = self.store.index.every_session(label=f"framework={AGENT}")
        return [self.store.resume(row.id) for row in found]

    def _stored_record(self, conversation_id: str) -> Any:
        log = self.find_log(conversation_id)
        return _record_of(log, conversation_id) if log is not None else None

    def _log(self, session: Session[Any]) -> MessageLog:
        """The messages of a session, from a cache."""
        with self._lock:
            found = self._logs.get(session.id)
            if found is None:
                found = self._logs[session.id] = MessageLog(session, self._effects)
                while len(self._logs) > OPEN_MAX:
                    self._logs.popitem(last=False)
            self._logs.move_to_end(session.id)
            return found

    def _locate(self, entry_id: str) -> tuple[MessageLog, KeptItem] | None:
        """Finds an entry by its id: first in the cached sessions, then in all."""
        with self._lock:
            known = [log for log in reversed(self._logs.values()) if log.session.status != "deleted"]
        for log in known:
            if (found := _find_newest(log, entry_id)) is not None:
                return log, found
        searched = {log.session.id for log in known}
        for session in self._sessions():
            if session.id not in searched and (found := _find_newest(log := self._log(session), entry_id)) is not None:
                return log, found
        return None

    def _stored_history(self, head_id: str | None, limit: int | None) -> list[Any]:
        if head_id is None or limit == 0:
            return []
        found = self._locate(head_id)
        if found is None:
            raise LookupError(f"there is no entry {head_id!r}")
        items = {item.id: item for item in found[0].all_items}
        entries: list[Any] = []
        at: str | None = head_id
        while at is not None and (limit is None or len(entries) < limit):
            if at not in items:
                raise LookupError(f"there is no entry {at!r}")
            entries.append(_entry(items[at]))
            at = entries[-1].parent_id
        return entries[::-1]

    # Writing

    def _store_record(self, record: Any, entries: list[Any], expected: str | None) -> None:
        given = [
            (e.id, {"parent_id": e.parent_id, "message": dump_message(e.message, f"entries[{place}].message")})
            for place, e in enumerate(entries)
        ]
        stored = stored_form(_records.dump_python(record, mode="json"), "record")
        with self._lock:
            if self._revision(record.conversation_id) != expected:
                raise ConversationConflict(record.conversation_id)
            log = self._log(self._session_for(record, given))
            log.write(lambda parts: self._plan(log, parts, record, stored, given, expected))

    def _revision(self, conversation_id: str) -> str | None:
        found = self._stored_record(conversation_id)
        return found.revision if found is not None else None

    def _session_for(self, record: Any, given: list[tuple[str, dict[str, Any]]]) -> Session[Any]:
        """The session of a conversation. A new one whose history starts in another session is a fork of it."""
        name, start = name_of_id(record.conversation_id), given[0][1]["parent_id"] if given else record.head_id
        if start is None or self.store.is_open(name):
            return self.opened(record.conversation_id)
        source = self._locate(start)
        if source is None:
            raise ConversationConflict(record.conversation_id)
        try:
            return source[0].session.fork(source[1].last, name=name, why=f"forked from {record.forked_from}")
        except ConflictError as exc:
            if exc.kind != "name-taken":
                raise
            raise ConversationConflict(record.conversation_id) from exc

    def _plan(
        self,
        log: MessageLog,
        parts: dict[str, Value],
        record: Any,
        stored: Value,
        given: list[tuple[str, dict[str, Any]]],
        expected: str | None,
    ) -> PlannedWrite:
        seq, state = log.session.log.now()
        if seq != log.seen:
            raise ConflictError(f"session {log.session.id} moved on", kind="head-moved")
        current = _in_view(log, _parse_record(log, state["data"].get(RECORD), record.conversation_id))
        if (current.revision if current is not None else None) != expected:
            raise ConversationConflict(record.conversation_id)
        start = given[0][1]["parent_id"] if given else record.head_id
        # No refresh here: the position must come from the same state that the revision was compared with.
        after = _find_item(log, start) if start is not None else None
        if start is not None and after is None:
            raise ConversationConflict(record.conversation_id)
        deferred = record.deferred_tool_requests
        waiting = [call.tool_call_id for call in deferred.approvals] if deferred is not None else []
        items = log.plan_messages(parts, given, after=after, ends=deferred is None, waiting=waiting)
        patch = EventDraft(
            ev.StatePatched(patch=[{"op": "add", "path": f"/data/{RECORD}", "value": stored}]), actor="runtime"
        )
        if items:
            # The patch comes first, so that the record is there wherever the session is rewound to or forked.
            items[0].drafts.insert(0, patch)
        why = "the conversation went on from an earlier message"
        return PlannedWrite(items, _rewind_target(log, after), why, after=[] if items else [patch])

    def _drop_record(self, conversation_id: str, expected: str) -> None:
        with self._lock:
            if self._revision(conversation_id) != expected:
                raise ConversationConflict(conversation_id)
            session = self.session(conversation_id)
            seq, state = session.log.now()
            log = self._log(session)
            current = _in_view(log, _parse_record(log, state["data"].get(RECORD), conversation_id))
            if current is None or current.revision != expected:
                raise ConversationConflict(conversation_id)
            try:
                gone = ev.StatePatched(patch=[{"op": "remove", "path": f"/data/{RECORD}"}])
                session.append(EventDraft(gone, actor="runtime"), expect=seq)
            except ConflictError as exc:
                raise ConversationConflict(conversation_id) from exc
            self.store.delete(session)
            self._logs.pop(session.id, None)


def _find_newest(log: MessageLog, entry_id: str) -> KeptItem | None:
    log.refresh(0)
    return _find_item(log, entry_id)


def _find_item(log: MessageLog, entry_id: str) -> KeptItem | None:
    return next((item for item in reversed(log.all_items) if item.id == entry_id), None)


def _rewind_target(log: MessageLog, after: KeptItem | None) -> Seq | None:
    """The event to rewind to so that the history ends with an item; None if it does already."""
    last = log.items[-1] if log.items else None
    if (last.id if last is not None else None) == (after.id if after is not None else None):
        return None
    return after.last if after is not None else log.items[0].first - 1


def _entry(item: KeptItem) -> Any:
    value = item.original
    return ConversationEntry(id=item.id, parent_id=value["parent_id"], message=load_message(value["message"]))


def _record_of(log: MessageLog, conversation_id: str | None = None) -> Any:
    log.refresh(0)
    data = log.session.log.state()["data"]
    stored = data.get(RECORD) if isinstance(data, dict) else None
    return _in_view(log, _parse_record(log, stored, conversation_id))


def _in_view(log: MessageLog, record: Any) -> Any:
    """Adjusts a record to the view. The session may have been rewound to the middle of one save; then the record gets
    the head that is in view, and another revision."""
    head_id = log.items[-1].id if log.items else None
    if record is not None and record.head_id != head_id:
        record.head_id, record.revision = head_id, f"{record.revision}@{head_id or ''}"
    return record


def _parse_record(log: MessageLog, stored: Value, conversation_id: str | None) -> Any:
    """The record in a session's data; None if it is the parent's, which a fork has until its own is written. The parent
    may have had the same id: it was deleted, and a fork of its fork has its name now."""
    if not isinstance(stored, dict):
        return None
    is_own = stored.get("conversation_id") == conversation_id
    if conversation_id is None:
        is_own = name_of_id(str(stored.get("conversation_id"))) == log.session.name
    inherited = log.data_at_fork.get(RECORD) if is_own else None
    if not is_own or (isinstance(inherited, dict) and inherited["revision"] == stored["revision"]):
        return None
    return _records.validate_python(from_stored(stored))
