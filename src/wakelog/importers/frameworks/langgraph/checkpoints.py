"""LangGraph: the SQLite database of its checkpointer (`langgraph-checkpoint-sqlite`), one session for each thread.

A checkpoint is one record. Its steps are the differences from its parent: the input of a run, messages, tool calls, and
the values of the channels. A checkpoint whose parent is not the one before it is a rewind. Checkpoints of subgraphs and
the writes of tasks are kept unchanged. Reading needs neither LangGraph nor the classes of the graph.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from wakelog.importers import steps as st
from wakelog.importers.frameworks.langgraph.messages import has_next, input_of, is_public, message_kind, reply_of
from wakelog.importers.frameworks.langgraph.values import from_msgpack, typed_bytes
from wakelog.importers.source.files import Sample, home_files
from wakelog.importers.source.foreign_database import MAGIC, open_database, table_names
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.json_fields import as_dict, as_list, dicts_in
from wakelog.model.values import Value
from wakelog.state.diff import diff

NAME = "langgraph"
TITLE = "LangGraph"
find_in_home = home_files()

_CHECKPOINTS = (
    "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints"
    " WHERE thread_id = ? ORDER BY checkpoint_id"
)
_WRITES = (
    "SELECT checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value FROM writes"
    " WHERE thread_id = ? ORDER BY task_id, idx"
)


def recognises(sample: Sample) -> bool:
    return sample.start.startswith(MAGIC) and {"checkpoints", "writes"} <= table_names(sample.path)


def transcripts(path: Path) -> Iterator[st.Transcript]:
    threads = [row[0] for row in _rows(path, "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id")]
    for thread in threads:
        yield st.Transcript(st.TranscriptHead(str(thread), NAME, name=str(thread)), partial(_records, path, thread))


def _rows(path: Path, statement: str, *given: object) -> Iterator[Any]:
    with open_database(path) as db:
        yield from db.execute(statement, given)


def _records(path: Path, thread: str) -> Iterator[tuple[st.SourceRecord, int]]:
    reader = CheckpointReader()
    writes: dict[tuple[str, str], list[Value]] = {}
    for ns, id, task, idx, channel, kind, data in _rows(path, _WRITES, thread):
        writes.setdefault((ns, id), []).append([task, idx, channel, decode_value(kind, data)])
    for ns, id, parent, kind, data, metadata in _rows(path, _CHECKPOINTS, thread):
        size, wrote = len(data or b"") + len(metadata or b""), writes.get((ns, id), [])
        yield reader.read(ns, id, parent or "", decode_value(kind, data), _metadata(metadata), wrote), size


def decode_value(kind: str | None, data: bytes | None) -> Value:
    """Decodes a stored value into its readable form. For an unknown serializer it keeps the bytes."""
    if kind in (None, "null", "empty") or data is None:
        return None
    if kind == "msgpack":
        return from_msgpack(data)
    if kind == "json":
        try:
            return json.loads(data)
        except ValueError:
            return typed_bytes(kind, data)
    return typed_bytes(str(kind), data)


def _metadata(data: bytes | str | None) -> dict[str, Any]:
    try:
        found = json.loads(data) if data else {}
    except ValueError:
        found = from_msgpack(data) if isinstance(data, bytes) else {}
    return as_dict(found)


class CheckpointReader:
    """Reads the checkpoints of a thread, oldest first."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, Value]] = {}
        """The channels of each checkpoint that later ones may start from."""
        self._last = ""
        self._is_open = False
        self._asked: Value = None

    def read(
        self, ns: str, id: str, parent: str, checkpoint: Value, metadata: dict[str, Any], wrote: list[Value]
    ) -> st.SourceRecord:
        name = f"{ns}/{id}" if ns else id
        if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get("channel_values"), dict):
            rest = {"checkpoint": checkpoint, "metadata": metadata, "writes": wrote}
            return st.SourceRecord(name, rest=rest, broken=f"checkpoint {id} cannot be read without its serializer")
        at = microseconds(checkpoint.get("ts"))
        if ns:
            return st.SourceRecord(name, at=at, rest={"checkpoint": checkpoint, "metadata": metadata, "writes": wrote})
        values = checkpoint["channel_values"]
        rest = {key: value for key, value in checkpoint.items() if key != "channel_values"}
        rest |= {"parent": parent, "metadata": metadata, "writes": wrote}
        rest["hidden"] = {key: value for key, value in values.items() if not is_public(key)}
        steps = tuple(self._steps(id, parent, checkpoint, values, str(metadata.get("source", ""))))
        self._last = id
        return st.SourceRecord(name, steps, at, rest)

    def _steps(
        self, id: str, parent: str, checkpoint: dict[str, Any], values: dict[str, Value], source: str
    ) -> Iterator[st.Step]:
        before = self._values.get(parent, {})
        if self._last and parent and parent != self._last and parent in self._values:
            yield st.RewindStep(parent)
            self._is_open = False
        public = {key: value for key, value in values.items() if is_public(key)}
        self._values[id] = public
        new = list(_new_messages(before, public))
        said = next((item["content"] for item in new if message_kind(item) in ("human", "user")), None)
        if source == "input":
            start = values.get("__start__")
            yield from self._begin(id, said if start is None else input_of(start))
        elif source == "loop" and not self._is_open:
            yield from self._begin(id, said)
        for item in new:
            yield from self._message_steps(item)
        if changed := diff(before, public):
            yield st.StateDeltaStep(changed)
        if source == "loop" and not has_next(values, as_list(checkpoint.get("updated_channels"))):
            self._is_open = False
            yield st.TurnEndStep()

    def _begin(self, id: str, asked: Value) -> Iterator[st.Step]:
        self._is_open, self._asked = True, asked
        yield st.PromptStep(asked, id)

    def _message_steps(self, item: dict[str, Value]) -> Iterator[st.Step]:
        kind = message_kind(item)
        if kind in ("human", "user"):
            if self._asked is not None and self._asked == item["content"]:
                self._asked = None
            else:
                yield st.MessageStep("user", item["content"])
        elif kind in ("ai", "assistant"):
            reply = reply_of(item)
            group = reply.id or f"reply-{len(self._values)}"
            yield st.ReplyStep(group, reply.content, reply.model, reply.usage, stop_reason=reply.stop_reason)
            for call in reply.calls:
                yield st.CallStep(call["id"], call["name"], call.get("args"), group=group)
        elif kind == "tool" and type(item.get("tool_call_id")) is str:
            failed = item.get("status") == "error"
            error = item["content"] if failed and type(item["content"]) is str else ""
            yield st.ResultStep(item["tool_call_id"], item["content"], "failed" if failed else "succeeded", error)
        else:
            yield st.MessageStep(kind, item["content"])


def _new_messages(before: dict[str, Value], after: dict[str, Value]) -> Iterator[dict[str, Value]]:
    """Messages in lists of `after` that `before` does not have: compared by id, otherwise by position."""
    for name, value in after.items():
        if type(value) is not list:
            continue
        old = as_list(before.get(name))
        known = {item["id"] for item in dicts_in(old) if type(item.get("id")) is str}
        for i, item in enumerate(value):
            if message_kind(item):
                id = item.get("id")
                if id not in known if type(id) is str else i >= len(old) or old[i] != item:
                    yield item
