"""Which checkpoints a thread has, and where each is stored: read once from the log, and then followed.

The newest checkpoint is in the session's state, and needs none of this. Lists, time travel and removal do.
"""

from __future__ import annotations

from typing import Any

from wakelog.adapters.langgraph.thread_data import ROOT, writes_key
from wakelog.log import Log
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.state.patch import tokens_of

_GRAPHS, _WRITES = f"{ROOT}/graphs/", f"{ROOT}/writes/"


class StoredCheckpoint:
    """One checkpoint, without its values."""

    __slots__ = ("header", "ns", "seq")

    def __init__(self, ns: str, seq: Seq, header: dict[str, Value]) -> None:
        self.ns = ns
        self.seq = seq
        self.header = header

    @property
    def id(self) -> str:
        return str(self.header["id"])

    @property
    def parent(self) -> str:
        return str(self.header.get("parent", ""))

    @property
    def key(self) -> str:
        return writes_key(self.ns, self.id)


class CheckpointIndex:
    """The checkpoints that a log tells of after an event, by namespace and id."""

    def __init__(self, log: Log, after: Seq = 0) -> None:
        self._log = log
        self._seq = after
        self._found: dict[str, StoredCheckpoint] = {}
        self._writes: dict[str, list[Seq]] = {}

    def refresh(self) -> CheckpointIndex:
        for entry in self._log.entries(after=self._seq):
            self._seq = entry.seq
            if entry.kind == "state.patched":
                for op in entry.delta:
                    self._take(op, entry.seq)
        return self

    def _take(self, op: dict[str, Any], seq: Seq) -> None:
        path = op["path"]
        if op["op"] != "add" or not path.startswith(ROOT):
            return
        tokens = tokens_of(path)
        if path.startswith(_GRAPHS) and len(tokens) == 5 and tokens[4] == "checkpoint":
            found = StoredCheckpoint(tokens[3], seq, op["value"])
            self._found[found.key] = found
        elif path.startswith(_WRITES) and len(tokens) == 5:
            self._writes.setdefault(tokens[3], []).append(seq)

    def get(self, ns: str, id: str) -> StoredCheckpoint | None:
        return self._found.get(writes_key(ns, id))

    def checkpoints(self, removed: dict[str, Value], ns: str | None = None) -> list[StoredCheckpoint]:
        """Those that were not removed, newest id first."""
        found = [
            each for each in self._found.values() if (ns is None or each.ns == ns) and not is_removed(each, removed)
        ]
        return sorted(found, key=lambda each: each.id, reverse=True)

    def writes(self, key: str) -> dict[str, Any]:
        """What tasks have written on a checkpoint, by task."""
        found: dict[str, Any] = {}
        for seq in self._writes.get(key, ()):
            for op in self._log.entry(seq).delta:
                if op["op"] == "add" and op["path"].startswith(_WRITES):
                    tokens = tokens_of(op["path"])
                    if len(tokens) == 5 and tokens[3] == key:
                        found[tokens[4]] = op["value"]
        return found


def is_removed(each: StoredCheckpoint, removed: dict[str, Value]) -> bool:
    if not removed:
        return False
    if each.seq <= removed.get("upto", 0) and each.key not in removed.get("kept", ()):
        return True
    run = each.header.get("metadata", {}).get("run_id")
    return type(run) is str and each.seq <= removed.get("runs", {}).get(run, 0)
