"""Writes one transcript of the Claude Agent SDK to its session.

The importer's reader of Claude Code transcripts interprets an entry, and the importer's writer makes the events. So a
session recorded through the SDK answers the same questions as an imported one. The entries themselves are kept next to
their events (`items.kept`). An entry with a known uuid is skipped.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from wakelog.adapters.item_log import ItemLog, encode_json
from wakelog.adapters.ownership import refuse_foreign
from wakelog.errors import InvalidInputError
from wakelog.importers.coding_agents.claude_code.transcript import EntryReader
from wakelog.importers.source.files import JsonLine
from wakelog.importers.steps import SourceRecord, StateDeltaStep, TranscriptHead
from wakelog.importers.writer.kept_records import KeptCommit
from wakelog.importers.writer.session_writer import SessionWriter
from wakelog.model.json_fields import as_dict
from wakelog.model.values import Value, check_value
from wakelog.session import Session
from wakelog.store import Store

AGENT = "claude-code"
FORMAT = "claude-agent"
SUMMARY = "$claude_agent"
"""The key of the session's data that holds the summary for the SDK's list of sessions."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_SUBAGENT = re.compile(r"(.+)/agent-([0-9A-Za-z_-]+)")


class TranscriptKey(msgspec.Struct, frozen=True):
    """The SDK's key of a transcript."""

    project: str
    session: str
    subpath: str = ""

    @property
    def name(self) -> str:
        """The name of its session: the project's hash, the SDK's session id, and the part of a sub-agent."""
        own = f"{project_prefix(self.project)}{_word(self.session)}"
        return f"{own}+{_word(self.subpath)}" if self.subpath else own


def project_prefix(project: str) -> str:
    """The prefix of the names of a project's sessions."""
    return f"claude-agent-{hashlib.sha256(project.encode(errors='surrogatepass')).hexdigest()[:8]}-"


def _word(text: str) -> str:
    """A text as a part of a name. If it had to be changed, a hash is added."""
    if _PLAIN.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:48]
    return f"{readable}~{digest}" if readable else f"id~{digest}"


class KeyedTranscript(SessionWriter):
    """Writes entries. A new one is made when another process has written to the session."""

    def __init__(self, store: Store, key: TranscriptKey) -> None:
        self.key = key
        labels = {"framework": FORMAT, "project_key": key.project, "session_id": key.session, "subpath": key.subpath}
        origin = f"{key.session}/{key.subpath}" if key.subpath else key.session
        head = TranscriptHead(
            origin, AGENT, labels={k: v for k, v in labels.items() if v}, parent=key.session if key.subpath else ""
        )
        super().__init__(
            store, head, format=FORMAT, source="", stat=(0, 0), named=self._name_of, commits=partial(KeptCommit, FORMAT)
        )
        self._reader = EntryReader(head)
        self._count = 0
        self.kept = ItemLog(self.session, FORMAT) if self.session is not None else None
        if self.kept is not None:
            refuse_foreign(self.kept.session.log, FORMAT)
            self.kept.refresh()
            for item in self.kept.all_items:
                record = self._read(entry_of(item.value))
                self.known.seqs[item.id] = item.last
                self._skip_steps(record.steps, is_named=False)

    def _name_of(self, origin: str) -> str:
        if origin == self.key.session:
            return msgspec.structs.replace(self.key, subpath="").name
        if (agent := _SUBAGENT.fullmatch(origin)) is not None and not origin.startswith(
            f"{self.key.session}/subagents"
        ):
            # A sub-agent that a call names. The SDK keeps its transcript under this path.
            return msgspec.structs.replace(self.key, subpath=f"subagents/agent-{agent[2]}").name
        return self.key.name

    def _read(self, entry: dict[str, Any]) -> SourceRecord:
        self._count += 1
        record = self._reader.record(JsonLine(self._count, encode_json(entry), entry))
        uuid = entry.get("uuid")
        id = uuid if isinstance(uuid, str) and uuid else f"#{self._count}"
        # Old versions have side chains in the same transcript. They are kept, but make no events of the main agent.
        steps = record.steps if not record.lane else ()
        return msgspec.structs.replace(record, id=id, lane="", steps=steps, rest=entry)

    def add(self, entries: Sequence[dict[str, Any]], summary: dict[str, Value] | None) -> None:
        """Adds entries in order; those with a known uuid are skipped. `summary` is for the SDK's list of sessions."""
        for place, entry in enumerate(entries):
            uuid = entry.get("uuid")
            if isinstance(uuid, str) and uuid in self.known:
                continue
            record = self._read(entry)
            if place == len(entries) - 1 and self._is_new_summary(summary):
                patch = StateDeltaStep([{"op": "add", "path": f"/{SUMMARY}", "value": summary}])
                record = msgspec.structs.replace(record, steps=(*record.steps, patch))
            self._import_record(record, 0)
            self.known.seqs.setdefault(record.id, 0)
        self._pause()

    def open(self) -> Session[Any]:
        """The session, created if there is none."""
        return self._open()

    def _is_new_summary(self, summary: dict[str, Value] | None) -> bool:
        return summary is not None and summary != self.summary()

    def summary(self) -> dict[str, Value] | None:
        """The stored summary for the SDK's list of sessions."""
        if self.session is None:
            return None
        found = self.session.log.state()["data"].get(SUMMARY)
        return found if isinstance(found, dict) else None

    def _pause(self) -> None:
        """Stores the entries so far. Calls without a result stay pending, because more entries may follow."""
        asked = dict(self._calls.asked)
        self._put_reply()
        if self._turn and self._signs.is_done:
            self._end_turn("completed")
        elif self._commit.records:
            self._wait_for_answers()
            self._calls.asked.update(asked)
        self.flush()


def entry_of(value: Any) -> dict[str, Any]:
    """An entry as it was given, also if its events were refused."""
    if isinstance(value, dict) and value.keys() == {"refused", "record", "events"}:
        return entry_of(value["record"])
    return as_dict(value)


def check_entries(entries: Sequence[Any]) -> None:
    """InvalidInputError, with the path, for anything that is not an entry or not JSON."""
    for place, entry in enumerate(entries):
        where = f"entries[{place}]"
        if not isinstance(entry, dict):
            raise InvalidInputError(
                f"{where} is a {type(entry).__name__}, but an entry of a transcript is an object",
                kind="not-a-message",
                hint="pass the entries as the SDK gives them",
            )
        try:
            encode_json(entry)
        except TypeError:
            check_value(entry, where)
            raise
