"""`WakelogConversationStore`: the conversation store of Pydantic AI, each conversation a wakelog session.

Messages become turns, model calls, tool calls and outcomes. The record of a conversation is in the session's data,
written in the same commit as its messages, so a revision conflict leaves nothing behind. A branch is a rewind, within
the session; a fork is a fork, and shares the history.
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

from wakelog.adapters.item_log import KeptItem, PlannedWrite
from wakelog.adapters.ownership import own_session
from wakelog.adapters.pydantic_ai.message_log import MessageLog
from wakelog.adapters.pydantic_ai.message_shape import AGENT, dumped, loaded
from wakelog.adapters.stores import Place, StoreUser
from wakelog.errors import ConflictError
from wakelog.model import events as ev
from wakelog.model.events import Effect
from wakelog.model.ids import Seq, SessionId
from wakelog.model.names import name_of_id
from wakelog.model.records import EventDraft
from wakelog.model.values import Value, check_value
from wakelog.runtime.bridge import in_thread, in_thread_to_the_end
from wakelog.session import Session

RECORD = "$pydantic_ai"
"""The key of the session's data that holds the record."""
OPEN_MAX = 64
_records: TypeAdapter[Any] = TypeAdapter(ConversationRecord)


class WakelogConversationStore(StoreUser, ConversationStore):  # type: ignore[misc]  # not installed where types are checked
    """Several processes may use the same store. What is deleted leaves a tombstone; entries that forks share stay."""

    def __init__(self, store: Place = None, *, effects: Mapping[str, Effect] | None = None) -> None:
        """`store` is an open store, or a url as for `wakelog.open`. `effects` says what tools do, by name:
        `{"get_weather": "read"}`; a tool that is not named counts as external."""
        super().__init__(store)
        self._effects = effects
        self._logs: OrderedDict[SessionId, MessageLog] = OrderedDict()
        self._lock = threading.RLock()

    # The five primitives, and what would be slow with them

    async def read_record(self, conversation_id: str) -> Any:
        return await in_thread(self._kept_record, conversation_id)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[Any]:
        def read() -> list[Any]:
            records = [r for session in self._sessions() if (r := _record_of(self._log(session))) is not None]
            chosen = [r for r in records if scope is None or r.scope == scope]
            return sorted(chosen, key=lambda r: r.updated_at, reverse=True)[:limit]

        return await in_thread(read)

    async def write_record(
        self, record: Any, *, new_entries: Sequence[Any] = (), expected_revision: str | None
    ) -> None:
        await in_thread_to_the_end(self._keep, record, list(new_entries), expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Deletes the session. Entries that forks of it share stay readable through them, and go with the last."""
        await in_thread_to_the_end(self._drop, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> Any:
        def read() -> Any:
            found = self._locate(entry_id)
            if found is None:
                raise LookupError(f"there is no entry {entry_id!r}")
            return _entry(found[1])

        return await in_thread(read)

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[Any]:
        return await in_thread(self._kept_history_of, head_id, limit)

    # Beside the protocol

    def session(self, conversation_id: str) -> Session[Any]:
        """The wakelog session of a conversation: for diff, why, rewind and every other verb."""
        return self.store.resume(name_of_id(conversation_id))

    def opened(self, conversation_id: str) -> Session[Any]:
        """The same, made where there is none."""
        return own_session(self.store, AGENT, conversation_id, origin=conversation_id)

    # Reading

    def _sessions(self) -> list[Session[Any]]:
        """Those of conversations, the one last active first."""
        found = self.store.index.every_session(label=f"framework={AGENT}")
        return [self.store.resume(each.id) for each in found]

    def _kept_record(self, conversation_id: str) -> Any:
        name = name_of_id(conversation_id)
        if not self.store.is_open(name):
            return None
        return _record_of(self._log(self.store.resume(name)), conversation_id)

    def _log(self, session: Session[Any]) -> MessageLog:
        """What is known of a session's messages, kept at hand."""
        with self._lock:
            found = self._logs.get(session.id)
            if found is None:
                found = self._logs[session.id] = MessageLog(session, self._effects)
                while len(self._logs) > OPEN_MAX:
                    self._logs.popitem(last=False)
            self._logs.move_to_end(session.id)
            return found

    def _locate(self, entry_id: str) -> tuple[MessageLog, KeptItem] | None:
        """The entry of an id: among the sessions at hand, newest first, and then among all."""
        with self._lock:
            known = [log for log in reversed(self._logs.values()) if log.session.status != "deleted"]
        for log in known:
            if (found := _item(log, entry_id)) is not None:
                return log, found
        at_hand = {log.session.id for log in known}
        for session in self._sessions():
            if session.id not in at_hand and (found := _item(log := self._log(session), entry_id)) is not None:
                return log, found
        return None

    def _kept_history_of(self, head_id: str | None, limit: int | None) -> list[Any]:
        if head_id is None or limit == 0:
            return []
        found = self._locate(head_id)
        if found is None:
            raise LookupError(f"there is no entry {head_id!r}")
        items = {item.id: item for item in found[0].every}
        entries: list[Any] = []
        at: str | None = head_id
        while at is not None and (limit is None or len(entries) < limit):
            if at not in items:
                raise LookupError(f"there is no entry {at!r}")
            entries.append(_entry(items[at]))
            at = entries[-1].parent_id
        return entries[::-1]

    # Writing

    def _keep(self, record: Any, entries: list[Any], expected: str | None) -> None:
        given = [
            (e.id, {"parent_id": e.parent_id, "message": dumped(e.message, f"entries[{place}].message")})
            for place, e in enumerate(entries)
        ]
        told = check_value(_records.dump_python(record, mode="json"), "record")
        with self._lock:
            if self._revision(record.conversation_id) != expected:
                raise ConversationConflict(record.conversation_id)
            log = self._log(self._session_for(record, given))
            log.write(lambda parts: self._plan(log, parts, record, told, given, expected))

    def _revision(self, conversation_id: str) -> str | None:
        found = self._kept_record(conversation_id)
        return found.revision if found is not None else None

    def _session_for(self, record: Any, given: list[tuple[str, dict[str, Any]]]) -> Session[Any]:
        """The session of a conversation. A new one whose history begins elsewhere is a fork there."""
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
        told: Value,
        given: list[tuple[str, dict[str, Any]]],
        expected: str | None,
    ) -> PlannedWrite:
        seq, state = log.session.log.now()
        if seq != log.seen:
            raise ConflictError(f"session {log.session.id} moved on", kind="head-moved")
        stored = _in_view(log, _parsed(state["data"].get(RECORD), record.conversation_id))
        if (stored.revision if stored is not None else None) != expected:
            raise ConversationConflict(record.conversation_id)
        start = given[0][1]["parent_id"] if given else record.head_id
        # Without reading on: the revision was compared with what is known here, and so is the place of the write.
        after = _known(log, start) if start is not None else None
        if start is not None and after is None:
            raise ConversationConflict(record.conversation_id)
        ends = record.deferred_tool_requests is None
        items = log.plan_messages(parts, given, after=after, ends=ends)
        patch = EventDraft(ev.StatePatched(patch=_patch(told)), actor="runtime")
        if items:
            # First, so that it is there at every place where the session may be rewound to or forked.
            items[0].drafts.insert(0, patch)
        why = "the conversation went on from an earlier message"
        return PlannedWrite(items, _back(log, after), why, after=[] if items else [patch])

    def _drop(self, conversation_id: str, expected: str) -> None:
        with self._lock:
            if self._revision(conversation_id) != expected:
                raise ConversationConflict(conversation_id)
            session = self.session(conversation_id)
            seq, state = session.log.now()
            stored = _in_view(self._log(session), _parsed(state["data"].get(RECORD), conversation_id))
            if stored is None or stored.revision != expected:
                raise ConversationConflict(conversation_id)
            try:
                gone = ev.StatePatched(patch=[{"op": "remove", "path": f"/data/{RECORD}"}])
                session.append(EventDraft(gone, actor="runtime"), expect=seq)
            except ConflictError as exc:
                raise ConversationConflict(conversation_id) from exc
            self.store.delete(session)
            self._logs.pop(session.id, None)


def _patch(told: Value) -> list[dict[str, Value]]:
    return [{"op": "add", "path": f"/data/{RECORD}", "value": told}]


def _item(log: MessageLog, entry_id: str) -> KeptItem | None:
    log.refresh(0)
    return _known(log, entry_id)


def _known(log: MessageLog, entry_id: str) -> KeptItem | None:
    return next((item for item in reversed(log.every) if item.id == entry_id), None)


def _back(log: MessageLog, after: KeptItem | None) -> Seq | None:
    """Where the view has to go for the history to end with an item; None when it does already."""
    last = log.items[-1] if log.items else None
    if (last.id if last is not None else None) == (after.id if after is not None else None):
        return None
    return after.last if after is not None else log.items[0].first - 1


def _entry(item: KeptItem) -> Any:
    value = item.value
    return ConversationEntry(id=item.id, parent_id=value["parent_id"], message=loaded(value["message"]))


def _record_of(log: MessageLog, conversation_id: str | None = None) -> Any:
    log.refresh(0)
    data = log.session.log.state()["data"]
    told = data.get(RECORD) if isinstance(data, dict) else None
    return _in_view(log, _parsed(told, conversation_id, log.session.name))


def _in_view(log: MessageLog, record: Any) -> Any:
    """A record whose history ends where the view does: somebody may have rewound the session in the middle of what was
    saved at once. Then it is another revision."""
    head_id = log.items[-1].id if log.items else None
    if record is not None and record.head_id != head_id:
        record.head_id, record.revision = head_id, f"{record.revision}@{head_id or ''}"
    return record


def _parsed(told: Value, conversation_id: str | None, name: str = "") -> Any:
    """The record that a session's data holds. A fork has its parent's, until its own is written."""
    if not isinstance(told, dict):
        return None
    is_own = told.get("conversation_id") == conversation_id
    if conversation_id is None:
        is_own = name_of_id(str(told.get("conversation_id"))) == name
    return _records.validate_python(told) if is_own else None
