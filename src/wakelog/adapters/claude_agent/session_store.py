"""`WakelogSessionStore`: the session store of the Claude Agent SDK.

Each transcript is a wakelog session: the main one, and one for each sub-agent, linked to it. `load` returns every entry
as it was appended. After a `wakelog rewind` it returns the entries that are still in view, so the SDK resumes there.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from claude_agent_sdk import fold_session_summary

from wakelog.adapters.claude_agent.transcript import (
    FORMAT,
    SUMMARY,
    KeyedTranscript,
    TranscriptKey,
    check_entries,
    entry_of,
    project_prefix,
)
from wakelog.adapters.item_log import ItemLog
from wakelog.adapters.stores import Place, StoreUser
from wakelog.log.retry import retry_on_moved_head
from wakelog.model.ids import SessionId
from wakelog.model.json_fields import as_dict
from wakelog.model.records import Head
from wakelog.runtime.bridge import in_thread, in_thread_to_the_end
from wakelog.session import Session

OPEN_MAX = 64
"""How many transcripts stay open. Others are read again when they are needed."""


class WakelogSessionStore(StoreUser):
    """For `ClaudeAgentOptions(session_store=…)`. Several processes may use the same store."""

    def __init__(self, store: Place = None) -> None:
        """`store` is an open store, or an argument of `wakelog.open`."""
        super().__init__(store)
        self._open: OrderedDict[TranscriptKey, KeyedTranscript] = OrderedDict()
        self._lock = threading.RLock()

    # The protocol

    async def append(self, key: Any, entries: list[Any]) -> None:
        """Adds entries in one commit. Entries with a known uuid are skipped."""
        if entries:
            await in_thread_to_the_end(self._append, key_of(key), list(entries))

    async def load(self, key: Any) -> list[Any] | None:
        """The entries of a transcript as they were appended; None if there is none."""
        return await in_thread(self._load, key_of(key))

    async def list_sessions(self, project_key: str) -> list[Any]:
        """The main transcripts of a project, each with the time of its last write in milliseconds."""
        return await in_thread(
            lambda: [
                {"session_id": self._session_id(project_key, head), "mtime": _milliseconds(head)}
                for head in self._heads(project_key)
            ]
        )

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        """The summaries that the SDK lists, as `fold_session_summary` made them."""

        def read() -> list[Any]:
            found = []
            for head in self._heads(project_key):
                data = self.store.resume(head.session).log.state()["data"].get(SUMMARY)
                id = self._session_id(project_key, head)
                found.append({"session_id": id, "mtime": _milliseconds(head), "data": as_dict(data)})
            return found

        return await in_thread(read)

    async def delete(self, key: Any) -> None:
        """Deletes a transcript. With a main one, those of its sub-agents are deleted too."""
        await in_thread_to_the_end(self._delete, key_of(key))

    async def list_subkeys(self, key: Any) -> list[str]:
        """The subpaths of a session's sub-agents."""

        def read() -> list[str]:
            found = (self.store.resume(head.session).log.part("labels") for head in self._sub_agents(key_of(key)))
            return [str(labels["subpath"]) for labels in found if "subpath" in labels]

        return await in_thread(read)

    # More than the protocol

    def session(self, key: Any) -> Session[Any]:
        """The wakelog session of a transcript, for diff, why, rewind and all other verbs."""
        return self.store.resume(key_of(key).name)

    def opened(self, key: Any) -> Session[Any]:
        """Like `session`, but creates the session if needed: a hook may run before the transcript is written."""
        with self._lock:
            return self._transcript(key_of(key)).open()

    def _append(self, key: TranscriptKey, entries: list[Any]) -> None:
        check_entries(entries)

        def attempt() -> None:
            transcript = self._transcript(key)
            try:
                transcript.add(entries, self._fold_summary(key, transcript, entries))
            except BaseException:
                # Another process wrote first, or an event was refused. The transcript is read again from the log.
                self._open.pop(key, None)
                raise

        with self._lock:
            retry_on_moved_head(SessionId(key.name), "to append a transcript to", attempt)

    def _transcript(self, key: TranscriptKey) -> KeyedTranscript:
        found = self._open.get(key)
        if found is None or (found.session is not None and found.session.status == "deleted"):
            found = self._open[key] = KeyedTranscript(self.store, key)
            while len(self._open) > OPEN_MAX:
                self._open.popitem(last=False)
        self._open.move_to_end(key)
        return found

    def _fold_summary(
        self, key: TranscriptKey, transcript: KeyedTranscript, entries: list[Any]
    ) -> dict[str, Any] | None:
        if key.subpath:
            return None
        new = [e for e in entries if not (isinstance(e.get("uuid"), str) and e["uuid"] in transcript.known)]
        if not new:
            return None
        known, own = transcript.summary(), {"project_key": key.project, "session_id": key.session}
        before = None if known is None else {"session_id": key.session, "mtime": 0, "data": known}
        data: dict[str, Any] = fold_session_summary(before, own, new)["data"]
        return data

    def _load(self, key: TranscriptKey) -> list[Any] | None:
        if not self.store.is_open(key.name):
            return None
        log = ItemLog(self.store.resume(key.name), FORMAT)
        log.refresh()
        # If the user went back inside the SDK, the abandoned branch is part of the transcript. If the session was
        # rewound with wakelog after the last entry, the rewound entries are left out.
        is_whole = not log.all_items or (bool(log.items) and log.items[-1] is log.all_items[-1])
        found = [entry_of(item.value) for item in (log.all_items if is_whole else log.items)]
        return found or None

    def _delete(self, key: TranscriptKey) -> None:
        with self._lock:
            for head in [] if key.subpath else list(self._sub_agents(key)):
                self.store.delete(self.store.resume(head.session))
            if self.store.is_open(key.name):
                self.store.delete(self.store.resume(key.name))
            self._open.clear()

    def _sub_agents(self, key: TranscriptKey) -> Iterator[Head]:
        return (head for head in self.store.sessions() if head.name.startswith(f"{key.name}+"))

    def _heads(self, project: str) -> Iterator[Head]:
        front = project_prefix(project)
        return (head for head in self.store.sessions() if head.name.startswith(front) and "+" not in head.name)

    def _session_id(self, project: str, head: Head) -> str:
        word = head.name.removeprefix(project_prefix(project))
        if "~" not in word:
            return word
        return str(self.store.resume(head.session).log.part("labels").get("session_id", ""))


def key_of(key: Any) -> TranscriptKey:
    """Converts the SDK's key."""
    return TranscriptKey(str(key["project_key"]), str(key["session_id"]), str(key.get("subpath") or ""))


def _milliseconds(head: Head) -> int:
    return head.at // 1000
