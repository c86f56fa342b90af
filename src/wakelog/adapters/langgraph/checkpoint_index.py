"""Knows which checkpoints a thread has and where each is stored. Reads the log once, and then only what is new.

Lists, time travel and removal need it. Reading the newest checkpoint does not: the session's state has it.
"""

from __future__ import annotations

from typing import Any

from wakelog.adapters.langgraph.thread_data import ROOT, ThreadCopy, checkpoint_key
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
        return checkpoint_key(self.ns, self.id)


class CheckpointIndex:
    """The checkpoints in a log after an event, by namespace and id."""

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
                    self._read_op(op, entry.seq)
        return self

    def _read_op(self, op: dict[str, Any], seq: Seq) -> None:
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
        return self._found.get(checkpoint_key(ns, id))

    def checkpoints(self, removed: dict[str, Value], ns: str | None = None) -> list[StoredCheckpoint]:
        """The checkpoints that were not removed, newest id first."""
        found = [
            stored
            for stored in self._found.values()
            if (ns is None or stored.ns == ns) and not is_removed(stored, removed)
        ]
        return sorted(found, key=lambda stored: stored.id, reverse=True)

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


# A thread's `removed`: `runs`, each up to an event; and everything up to the event `upto`, except `kept`.


def is_removed(stored: StoredCheckpoint, removed: dict[str, Value]) -> bool:
    if not removed:
        return False
    if stored.seq <= removed.get("upto", 0) and stored.key not in removed.get("kept", ()):
        return True
    run = stored.header.get("metadata", {}).get("run_id")
    return type(run) is str and stored.seq <= removed.get("runs", {}).get(run, 0)


def remove_runs(copy: ThreadCopy, index: CheckpointIndex, runs: frozenset[str]) -> dict[str, Value]:
    """The thread's `removed` after its checkpoints of these runs were removed."""
    there = {stored.header["metadata"].get("run_id") for stored in index.checkpoints(copy.removed)}
    if not (found := sorted(run for run in there if type(run) is str and run in runs)):
        return copy.removed
    return {**copy.removed, "runs": {**copy.removed.get("runs", {}), **dict.fromkeys(found, copy.seq)}}


def keep_newest(copy: ThreadCopy, index: CheckpointIndex) -> dict[str, Value]:
    """The thread's `removed` after all checkpoints except the newest of each namespace were removed."""
    newest: dict[str, str] = {}
    for stored in index.checkpoints(copy.removed):
        graph = copy.graphs.get(stored.ns)
        key = checkpoint_key(stored.ns, graph.id) if graph is not None and not copy.removed else stored.key
        newest.setdefault(stored.ns, key)
    return {**copy.removed, "upto": copy.seq, "kept": sorted(newest.values())} if newest else copy.removed
