"""Reads one thread's checkpoints from its session.

The newest checkpoint is the session's state; this process keeps a copy of it. Earlier ones are the states at earlier
events, which the checkpoint index finds.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from wakelog.adapters.langgraph.checkpoint_index import CheckpointIndex, StoredCheckpoint, is_removed
from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.adapters.langgraph.thread_data import PLAIN, GraphCopy, ThreadCopy, checkpoint_key
from wakelog.adapters.ownership import ELSEWHERE, foreign_message
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.log.reader import fold_at
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.session import Session

_RUNS_MAX = 256
_LIST_BATCH = 16


class ThreadReads:
    """One thread, to read. Its session exists."""

    def __init__(self, thread: str, session: Session[Any], codec: ValueCodec) -> None:
        self.thread = thread
        self.session = session
        self._log = session.log
        self._codec = codec
        self._lock = threading.RLock()
        self._copy: ThreadCopy | None = None
        self._index: CheckpointIndex | None = None
        self._runs_at: dict[str, int] = {}
        """How many runs may continue from a checkpoint: one each time it was read as the newest or stored here."""

    def current(self) -> ThreadCopy:
        """The thread as it is now."""
        self._flush()
        head = self._log.head()
        if head.status == "deleted":
            raise NotFoundError(f"session {self._log.id} was deleted", kind="session-deleted")
        if self._copy is None or self._copy.seq != head.seq:
            self._copy = None
            copy = ThreadCopy(self._codec, *self._log.now())
            if copy.has_other_data:
                raise InvalidInputError(
                    foreign_message(str(self.session.name), "LangGraph"), kind="not-a-thread", hint=ELSEWHERE
                )
            self._copy = copy
        return self._copy

    def _flush(self) -> None:
        """Stores what this process has queued."""

    def _last_known(self) -> ThreadCopy:
        """The thread as this process last saw it. It may be old; then an append that builds on it is refused."""
        return self._copy if self._copy is not None else self.current()

    def get(self, ns: str, id: str, parents: dict[str, str] | None = None) -> CheckpointTuple | None:
        """The checkpoint with this id; without an id, the newest of the namespace."""
        with self._lock:
            copy = self.current()
            if not id:
                found = self._newest(ns, copy, parents)
                self._note_run(checkpoint_key(ns, found.checkpoint["id"] if found else ""))
                return found
            self._runs_at.pop(checkpoint_key(ns, id), None)
            graph = copy.graphs.get(ns)
            if graph is not None and graph.id == id and not copy.removed:
                return self._as_tuple(ns, graph, copy.writes.get(checkpoint_key(ns, id), {}))
            stored = self._refreshed_index().get(ns, id) if self._seq_of(ns, id) else None
            if stored is None or is_removed(stored, copy.removed):
                return None
            return self._load(stored)

    def _newest(self, ns: str, copy: ThreadCopy, parents: dict[str, str] | None) -> CheckpointTuple | None:
        graph = copy.graphs.get(ns)
        if graph is not None and not copy.removed:
            return self._as_tuple(ns, graph, copy.writes.get(checkpoint_key(ns, graph.id), {}))
        if graph is None and not ns and not copy.removed:
            return None
        if parents and self._index is None and not copy.removed:
            stored = [(above, id) for above, id in parents.items() if self._seq_of(above, id)]
            if not stored:
                return None
            index = CheckpointIndex(self._log, max(self._seq_before(copy, *place) for place in stored)).refresh()
        else:
            index = self._refreshed_index()
        found = index.checkpoints(copy.removed, ns)
        return self._load(found[0]) if found else None

    def _seq_before(self, copy: ThreadCopy, ns: str, id: str) -> Seq:
        """An event after which everything was stored that belongs to the tasks of a checkpoint. That is the checkpoint
        before it: a subgraph may be stored before the checkpoint that it runs on, always so with durability `exit`."""
        graph = copy.graphs.get(ns)
        before = str(graph.checkpoint.get("parent", "")) if graph is not None and graph.id == id else ""
        return self._seq_of(ns, before) if before else 0

    def history(
        self, ns: str | None, id: str, before: str, matches: Any, limit: int | None
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints that match, newest id first."""
        with self._lock:
            removed = self.current().removed
            found = self._refreshed_index().checkpoints(removed, ns)
        chosen = [
            stored
            for stored in found
            if (not id or stored.id == id)
            and (not before or stored.id < before)
            and matches(self._metadata(stored.header))
        ]
        if limit is not None:
            chosen = chosen[: max(0, limit)]
        for first in range(0, len(chosen), _LIST_BATCH):
            batch = chosen[first : first + _LIST_BATCH]
            with self._lock:
                tuples = self._load_batch(batch)
            yield from (tuples[stored.key] for stored in batch)

    def resumed(self, ns: str, before: str) -> Iterator[CheckpointTuple]:
        """The newest checkpoint of a namespace before another, from which a run will continue on purpose."""
        with self._lock:
            found = list(self.history(ns, "", before, lambda metadata: True, 1))
            self._runs_at.pop(checkpoint_key(ns, found[0].checkpoint["id"] if found else ""), None)
        return iter(found)

    def _load_batch(self, batch: Sequence[StoredCheckpoint]) -> dict[str, CheckpointTuple]:
        """Loads several checkpoints in one pass over the log."""
        index, removed = self._refreshed_index(), self._last_known().removed
        tuples: dict[str, CheckpointTuple] = {}
        fold, at = None, 0
        for stored in sorted(batch, key=lambda stored: stored.seq):
            if fold is None:
                fold = fold_at(self._log.engine, self._log.segments, stored.seq).fold
            else:
                for entry in self._log.entries(after=at, upto=stored.seq):
                    fold.apply(entry.delta)
            at = stored.seq
            graph = ThreadCopy(self._codec, at, fold.doc).graphs[stored.ns]
            tuples[stored.key] = self._as_tuple(stored.ns, graph, index.writes(stored.key), removed)
        return tuples

    def _load(self, stored: StoredCheckpoint) -> CheckpointTuple:
        graph, removed = self._copy_at(stored.seq).graphs[stored.ns], self._last_known().removed
        return self._as_tuple(stored.ns, graph, self._refreshed_index().writes(stored.key), removed)

    def _copy_at(self, seq: Seq) -> ThreadCopy:
        return ThreadCopy(self._codec, seq, self._log.state(seq))

    def _refreshed_index(self) -> CheckpointIndex:
        if self._index is None:
            self._index = CheckpointIndex(self._log)
        return self._index.refresh()

    def _newest_id(self, ns: str, copy: ThreadCopy) -> str:
        """The id of the newest checkpoint that was not removed, or an empty text."""
        return next((stored.id for stored in self._refreshed_index().checkpoints(copy.removed, ns)), "")

    def _seq_of(self, ns: str, id: str) -> Seq:
        """Where a checkpoint was stored last, or 0. Its commit id is made from the checkpoint's id."""
        for segment in reversed(self._log.segments):
            found, number = 0, 1
            while (known := self._log.engine.known(segment.session, commit_name(ns, id, number))) is not None:
                if segment.last is None or known.head.seq <= segment.last:
                    found = known.head.seq
                number += 1
            if found:
                return found
        return 0

    def _as_tuple(
        self, ns: str, graph: GraphCopy, writes: dict[str, Any], removed: dict[str, Any] | None = None
    ) -> CheckpointTuple:
        header = graph.checkpoint
        checkpoint: Any = {
            "id": graph.id,
            **{name: self._codec.decode(value) for name, value in header["fields"].items()},
            "channel_values": {name: channel.hand_out() for name, channel in graph.channels.items()},
            "channel_versions": PLAIN.decode(graph.versions),
            "versions_seen": PLAIN.decode(graph.seen),
        }
        parent = header.get("parent")
        if parent and removed and (stored := self._refreshed_index().get(ns, parent)) and is_removed(stored, removed):
            parent = None  # as in LangGraph's own stores
        return CheckpointTuple(
            config=self._config(ns, graph.id),
            checkpoint=checkpoint,
            metadata=self._metadata(header),
            parent_config=self._config(ns, parent) if parent else None,
            pending_writes=[(task, c, self._codec.decode(v)) for task, c, v in in_order(writes)],
        )

    def _metadata(self, header: dict[str, Value]) -> Any:
        return PLAIN.decode(header["metadata"])

    def _config(self, ns: str, id: str) -> Any:
        return {"configurable": {"thread_id": self.thread, "checkpoint_ns": ns, "checkpoint_id": id}}

    def delta_history(self, ns: str, id: str, channels: Sequence[str]) -> dict[str, Any]:
        """What the ancestors of a checkpoint wrote to some channels, back to the nearest one that has the value.
        Removed ancestors count too, because later checkpoints are made of their writes."""
        with self._lock:
            copy = self.current()
            index = self._refreshed_index()
            if not id:
                newest = copy.graphs.get(ns)
                id = newest.id if newest and not copy.removed else self._newest_id(ns, copy)
            target = index.get(ns, id)
            at = index.get(ns, target.parent) if target is not None and target.parent else None
            writes: dict[str, list[Any]] = {name: [] for name in channels}
            seeds: dict[str, Any] = {}
            seen: set[str] = set()
            while at is not None and len(seeds) < len(writes) and at.id not in seen:
                seen.add(at.id)
                for task, channel, value in reversed(list(in_order(index.writes(at.key)))):
                    if channel in writes and channel not in seeds:
                        writes[channel].append((task, channel, self._codec.decode(value)))
                values = self._copy_at(at.seq).graphs[ns].channels
                seeds |= {c: values[c].hand_out() for c in channels if c not in seeds and c in values}
                at = index.get(ns, at.parent) if at.parent else None
        return {c: {"writes": writes[c][::-1], **({"seed": seeds[c]} if c in seeds else {})} for c in channels}

    # Runs, by the checkpoint that they may continue from

    def note_runs_before_start(self, runs: int) -> None:
        """Counts runs that started before the thread had a session."""
        if runs:
            self._runs_at[checkpoint_key("", "")] = runs

    def _note_run(self, key: str) -> None:
        self._runs_at[key] = self._runs_at.pop(key, 0) + 1
        while len(self._runs_at) > _RUNS_MAX:
            del self._runs_at[next(iter(self._runs_at))]

    def _forget_run(self, key: str) -> None:
        left = self._runs_at.pop(key, 0) - 1
        if left > 0:
            self._runs_at[key] = left


def commit_name(ns: str, id: str, number: int = 1) -> str:
    """The commit id of a checkpoint that is stored for the `number`th time."""
    name = f"{id}|{hashlib.sha256(ns.encode()).hexdigest()[:16]}" if ns else id
    if len(name) > 200:
        name = hashlib.sha256(name.encode()).hexdigest()
    return name if number == 1 else f"{name}#{number}"


def in_order(writes: dict[str, Any]) -> Iterator[tuple[str, str, Value]]:
    """Writes in the order in which a run applies them."""
    rows = [
        (entry.get("path", ""), task, int(i), channel, value)
        for task, entry in writes.items()
        for i, (channel, value) in entry["writes"].items()
    ]
    rows.sort(key=lambda row: row[:3])
    yield from ((task, channel, value) for _, task, _, channel, value in rows)
