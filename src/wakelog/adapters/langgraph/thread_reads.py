"""One thread over its session, to read: with this process's copy of the newest checkpoint.

The newest checkpoint is the session's state, and costs what the state costs. Earlier ones are states at earlier events.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from wakelog.adapters.langgraph.checkpoint_index import CheckpointIndex, StoredCheckpoint, is_removed
from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.adapters.langgraph.thread_data import PLAIN, GraphCopy, ThreadCopy, writes_key
from wakelog.adapters.ownership import ELSEWHERE, what_is_foreign
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.log.reader import fold_at
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.session import Session

_HANDED_MAX = 256
_LISTED_AT_ONCE = 16


class ThreadReads:
    """A thread whose session is there, to read."""

    def __init__(self, thread: str, session: Session[Any], codec: ValueCodec) -> None:
        self.thread = thread
        self.session = session
        self._log = session.log
        self._codec = codec
        self._lock = threading.RLock()
        self._copy: ThreadCopy | None = None
        self._index: CheckpointIndex | None = None
        self._handed: dict[tuple[str, str], int] = {}
        """Checkpoints from which runs may go on, and how many: those given out as the newest, and those stored here."""

    # Reading

    def current(self) -> ThreadCopy:
        """The thread as it is now."""
        self._settle()
        head = self._log.head()
        if head.status == "deleted":
            raise NotFoundError(f"session {self._log.id} was deleted", kind="session-deleted")
        if self._copy is None or self._copy.seq != head.seq:
            self._copy = None
            copy = ThreadCopy(self._codec, *self._log.now())
            if copy.has_other_data:
                raise InvalidInputError(
                    what_is_foreign(str(self.session.name), "LangGraph"), kind="not-a-thread", hint=ELSEWHERE
                )
            self._copy = copy
        return self._copy

    def _settle(self) -> None:
        """Waits until what this process has in line is stored."""

    def _known(self) -> ThreadCopy:
        """The thread as this process knows it. Who stores on it is told when others have gone on."""
        return self._copy if self._copy is not None else self.current()

    def get(self, ns: str, id: str, parents: dict[str, str] | None = None) -> CheckpointTuple | None:
        """The checkpoint of that id; without one, the newest of the namespace."""
        with self._lock:
            copy = self.current()
            if not id:
                found = self._newest(ns, copy, parents)
                self._hand((ns, found.checkpoint["id"] if found else ""))
                return found
            self._handed.pop((ns, id), None)
            graph = copy.graphs.get(ns)
            if graph is not None and graph.id == id and not copy.removed:
                return self._tuple(ns, graph, copy.writes.get(writes_key(ns, id), {}))
            stored = self._find(ns, id)
            if stored is None or is_removed(stored, copy.removed):
                return None
            return self._past(stored)

    def _newest(self, ns: str, copy: ThreadCopy, parents: dict[str, str] | None) -> CheckpointTuple | None:
        graph = copy.graphs.get(ns)
        if graph is not None and not copy.removed:
            return self._tuple(ns, graph, copy.writes.get(writes_key(ns, graph.id), {}))
        if graph is None and not ns and not copy.removed:
            return None
        if parents and self._index is None and not copy.removed:
            # The namespace of a task is made from its parent's checkpoint: nothing of it can be older.
            since = [seq for above, id in parents.items() if (seq := self._seq_of(above, id))]
            if not since:
                return None
            index = CheckpointIndex(self._log, max(since)).refresh()
        else:
            index = self._indexed()
        found = index.checkpoints(copy.removed, ns)
        return self._past(found[0]) if found else None

    def history(
        self, ns: str | None, id: str, before: str, matches: Any, limit: int | None
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints that match, newest id first."""
        with self._lock:
            removed = self.current().removed
            found = self._indexed().checkpoints(removed, ns)
        chosen = [
            each
            for each in found
            if (not id or each.id == id) and (not before or each.id < before) and matches(self._metadata(each.header))
        ]
        if limit is not None:
            chosen = chosen[: max(0, limit)]
        for first in range(0, len(chosen), _LISTED_AT_ONCE):
            some = chosen[first : first + _LISTED_AT_ONCE]
            with self._lock:
                tuples = self._tuples(some)
            yield from (tuples[each.key] for each in some)

    def _tuples(self, some: Sequence[StoredCheckpoint]) -> dict[str, CheckpointTuple]:
        """Several checkpoints in one reading of the log."""
        index = self._indexed()
        found: dict[str, CheckpointTuple] = {}
        fold, at = None, 0
        for each in sorted(some, key=lambda each: each.seq):
            if fold is None:
                fold = fold_at(self._log.engine, self._log.segments, each.seq).fold
            else:
                for entry in self._log.entries(after=at, upto=each.seq):
                    fold.apply(entry.delta)
            at = each.seq
            graph = ThreadCopy(self._codec, at, fold.doc).graphs[each.ns]
            found[each.key] = self._tuple(each.ns, graph, index.writes(each.key))
        return found

    def _past(self, stored: StoredCheckpoint) -> CheckpointTuple:
        graph = self._copy_at(stored.seq).graphs[stored.ns]
        return self._tuple(stored.ns, graph, self._indexed().writes(stored.key))

    def _copy_at(self, seq: Seq) -> ThreadCopy:
        return ThreadCopy(self._codec, seq, self._log.state(seq))

    def _indexed(self) -> CheckpointIndex:
        if self._index is None:
            self._index = CheckpointIndex(self._log)
        return self._index.refresh()

    def _find(self, ns: str, id: str) -> StoredCheckpoint | None:
        seq = self._seq_of(ns, id)
        return self._indexed().get(ns, id) if seq else None

    def _seq_of(self, ns: str, id: str) -> Seq:
        """Where a checkpoint was stored last: its commit has its id. 0 where there is none."""
        for segment in reversed(self._log.segments):
            found, number = 0, 1
            while (known := self._log.engine.known(segment.session, commit_name(ns, id, number))) is not None:
                if segment.last is None or known.head.seq <= segment.last:
                    found = known.head.seq
                number += 1
            if found:
                return found
        return 0

    def _tuple(self, ns: str, graph: GraphCopy, writes: dict[str, Any]) -> CheckpointTuple:
        header = graph.checkpoint
        checkpoint: Any = {
            "id": graph.id,
            **{name: self._codec.revived(value) for name, value in header["fields"].items()},
            "channel_values": {name: channel.hand_out() for name, channel in graph.channels.items()},
            "channel_versions": PLAIN.revived(graph.versions),
            "versions_seen": PLAIN.revived(graph.seen),
        }
        parent = header.get("parent")
        return CheckpointTuple(
            config=self._config(ns, graph.id),
            checkpoint=checkpoint,
            metadata=self._metadata(header),
            parent_config=self._config(ns, parent) if parent else None,
            pending_writes=[(task, c, self._codec.revived(v)) for task, c, v in in_order(writes)],
        )

    def _metadata(self, header: dict[str, Value]) -> Any:
        return PLAIN.revived(header["metadata"])

    def _config(self, ns: str, id: str) -> Any:
        return {"configurable": {"thread_id": self.thread, "checkpoint_ns": ns, "checkpoint_id": id}}

    def delta_history(self, ns: str, id: str, channels: Sequence[str]) -> dict[str, Any]:
        """What the ancestors of a checkpoint wrote to some channels, back to the nearest that has the value. Ancestors
        that were removed count too: a checkpoint that was kept is made of their writes."""
        with self._lock:
            copy = self.current()
            index = self._indexed()
            if not id:
                newest = copy.graphs.get(ns)
                found = newest.id if newest and not copy.removed else ""
                id = found or next((each.id for each in index.checkpoints(copy.removed, ns)), "")
            target = index.get(ns, id)
            at = index.get(ns, target.parent) if target is not None and target.parent else None
            writes: dict[str, list[Any]] = {name: [] for name in channels}
            seeds: dict[str, Any] = {}
            seen: set[str] = set()
            while at is not None and len(seeds) < len(writes) and at.id not in seen:
                seen.add(at.id)
                for task, channel, value in reversed(list(in_order(index.writes(at.key)))):
                    if channel in writes and channel not in seeds:
                        writes[channel].append((task, channel, self._codec.revived(value)))
                values = self._copy_at(at.seq).graphs[ns].channels
                seeds |= {c: values[c].hand_out() for c in channels if c not in seeds and c in values}
                at = index.get(ns, at.parent) if at.parent else None
        return {c: {"writes": writes[c][::-1], **({"seed": seeds[c]} if c in seeds else {})} for c in channels}

    # Checkpoints that runs go on from

    def begun_empty(self, runs: int) -> None:
        """So many runs began when the thread was not there yet."""
        if runs:
            self._handed["", ""] = runs

    def _hand(self, place: tuple[str, str]) -> None:
        self._handed[place] = self._handed.pop(place, 0) + 1
        while len(self._handed) > _HANDED_MAX:
            del self._handed[next(iter(self._handed))]

    def _unhand(self, place: tuple[str, str]) -> None:
        left = self._handed.pop(place, 0) - 1
        if left > 0:
            self._handed[place] = left


def commit_name(ns: str, id: str, number: int = 1) -> str:
    """The commit id of a checkpoint; `number` tells how often it was stored."""
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
