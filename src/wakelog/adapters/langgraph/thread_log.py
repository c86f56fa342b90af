"""One thread over its session: what a saver does, with this process's copy of the newest checkpoint.

Writers of several processes share a thread. What a checkpoint changes is told against the state that this process saw,
so it is only stored on that state; when another writer came first, it is worked out anew. A run that began at the newest
checkpoint, and finds that another run has gone on from there, is refused: its state would replace the other's.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

from wakelog.adapters.langgraph.checkpoint_index import CheckpointIndex, StoredCheckpoint, is_removed
from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.adapters.langgraph.run_events import RunEvents
from wakelog.adapters.langgraph.thread_data import (
    PLAIN,
    ROOT,
    CheckpointDraft,
    GraphCopy,
    ThreadCopy,
    added_items,
    channel_path,
    writes_key,
)
from wakelog.adapters.langgraph.waiting_writes import TaskWrites, WaitingWrites
from wakelog.errors import ConflictError, InvalidInputError, NotFoundError
from wakelog.importers.langgraph_messages import input_of, message_kind
from wakelog.importers.reply_costs import ReplyCosts
from wakelog.log.reader import fold_at
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft, Head
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.state.patch import Delta

_HANDED_MAX = 256
_COMPANY_S = (0.002, 0.02, 0.1, 0.5)
"""So long a task's writes wait for a checkpoint to take them along; further only while the checkpoint that they were
made on is not stored itself, because LangGraph stores both in the background."""
_LISTED_AT_ONCE = 16
_NO_TASK = "00000000-0000-0000-0000-000000000000"


class ThreadLog:
    """A thread whose session is there."""

    def __init__(self, thread: str, session: Session[Any], codec: ValueCodec, costs: ReplyCosts) -> None:
        self.thread = thread
        self.session = session
        self._log = session.log
        self._codec = codec
        self._costs = costs
        self._lock = threading.RLock()
        self._copy: ThreadCopy | None = None
        self._index: CheckpointIndex | None = None
        self._waiting = WaitingWrites()
        self._handed: dict[tuple[str, str], int] = {}
        """Checkpoints from which runs may go on, and how many: those given out as the newest, and those that runs stored
        last."""

    # Reading

    def current(self) -> ThreadCopy:
        """The thread as it is now."""
        head = self._log.head()
        if head.status == "deleted":
            raise NotFoundError(f"session {self._log.id} was deleted", kind="session-deleted")
        if self._copy is None or self._copy.seq != head.seq:
            self._copy = None
            copy = ThreadCopy(self._codec, *self._log.now())
            if copy.has_other_data:
                raise InvalidInputError(
                    f"session {self.session.name or self.session.id!r} has data of its own, and is no thread of LangGraph",
                    kind="not-a-thread",
                    hint="choose another thread id, or another store",
                )
            self._copy = copy
        return self._copy

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
    ) -> Iterator[tuple[StoredCheckpoint, CheckpointTuple]]:
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
            yield from ((each, tuples[each.key]) for each in some)

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
            pending_writes=[(task, c, self._codec.revived(v)) for task, c, v in _in_order(writes)],
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
                for task, channel, value in reversed(list(_in_order(index.writes(at.key)))):
                    if channel in writes and channel not in seeds:
                        writes[channel].append((task, channel, self._codec.revived(value)))
                values = self._copy_at(at.seq).graphs[ns].channels
                seeds |= {c: values[c].hand_out() for c in channels if c not in seeds and c in values}
                at = index.get(ns, at.parent) if at.parent else None
        return {c: {"writes": writes[c][::-1], **({"seed": seeds[c]} if c in seeds else {})} for c in channels}

    # Storing

    def put(self, ns: str, parent: str, checkpoint: Any, metadata: Any, new_versions: dict[str, Any]) -> None:
        draft = CheckpointDraft(self._codec, checkpoint, metadata, parent)
        with self._lock:
            waiting = self._waiting.take(
                lambda each: (each.ns, each.checkpoint) == (ns, draft.id) or self._is_placed(each)
            )
            try:
                self._again(lambda: self._put(ns, draft, new_versions, waiting))
            except BaseException:
                self._waiting.give_back(waiting)
                raise
            self._waiting.stored(waiting)
            self._unhand((ns, parent))
            self._hand((ns, draft.id))  # the run that stored it goes on from there

    def _put(
        self, ns: str, draft: CheckpointDraft, new_versions: dict[str, Any], waiting: Sequence[TaskWrites]
    ) -> None:
        copy = self._known()
        self._refuse_if_stale(ns, draft.parent, copy)
        base, back_to = copy, 0
        graph = copy.graphs.get(ns)
        if not ns and graph is not None and draft.parent and graph.id != draft.parent:
            back_to = self._seq_of(ns, draft.parent)
            base = self._copy_at(back_to) if back_to else copy
        moved = base.moved(copy)
        events = RunEvents(moved, self._costs, self._log.clock())
        if back_to:
            events.abandon(after=back_to)
        later = [each for each in waiting if (each.ns, each.checkpoint) == (ns, draft.id)]
        patch = [op for each in waiting if each not in later for op in self._take(each, moved, events)]
        nodes = moved.nodes_of(writes_key(ns, draft.parent))
        room, changes, ops = moved.put(ns, draft, new_versions)
        if moved.removed != copy.removed:
            moved.removed = copy.removed
            ops.append({"op": "add", "path": f"{ROOT}/removed", "value": copy.removed})
        self._tell(events, ns, draft, changes)
        step = f"step {draft.step}" if type(draft.step) is int else "checkpoint"
        why = f"{ns + ' ' if ns else ''}{step}{': ' + ', '.join(nodes) if nodes else ''} ({draft.source or 'put'})"
        actor = "user" if draft.source == "update" else "agent"
        ops += [op for each in later for op in self._take(each, moved, events)]
        events.add(ev.StatePatched(patch=[*patch, *room, *changes, *ops], why=why), actor=actor)
        if not ns and draft.is_at_rest and draft.source == "loop":
            events.end_turn()
        self._store(ns, draft, events.done(), copy.seq, back_to, moved)

    def _tell(self, events: RunEvents, ns: str, draft: CheckpointDraft, changes: Delta) -> None:
        """The turn and the messages of a checkpoint."""
        if ns:
            events.items(added_items(changes), only_named=True)
            return
        added = added_items([op for op in changes if not op["path"].startswith(ROOT)])
        said = next((item["content"] for item in added if message_kind(item) in ("human", "user")), None)
        if draft.source == "input":
            start = [op.get("value") for op in changes if op["path"] == channel_path("", "__start__")]
            events.begin_turn(input_of(start[0]) if start and self._codec.is_readable else said)
        elif draft.source == "fork":
            events.begin_turn(None, why=f"replays from checkpoint {draft.parent}")
        elif draft.source == "loop":
            events.go_on(said)
        events.items(added)

    def _store(
        self, ns: str, draft: CheckpointDraft, drafts: list[EventDraft], seen: Seq, back_to: Seq, moved: ThreadCopy
    ) -> None:
        number = 1
        while True:
            name = commit_name(ns, draft.id, number)
            try:
                if back_to:
                    why = f"the graph goes on from checkpoint {draft.parent}"
                    head = self._log.rewind(back_to, why=why, expect=seen, then=drafts, commit_id=name)
                else:
                    head = self._log.append(*drafts, expect=seen, commit_id=name)
            except InvalidInputError as exc:
                if exc.kind != "commit-id-reused":
                    raise
                number += 1  # the same checkpoint, stored again
            else:
                break
        self._keep(moved, head)

    def put_writes(self, ns: str, id: str, writes: Sequence[tuple[str, Any]], task: str, path: str) -> None:
        """Stores what a task wrote. A checkpoint that comes right after it takes it along in its own commit."""
        stored = [
            (WRITES_IDX_MAP.get(c, i), c, self._codec.stored(v, f"a write to {c}")) for i, (c, v) in enumerate(writes)
        ]
        asked = [(str(i.id), self._said(i.value)) for c, v in writes if c == INTERRUPT for i in _interrupts(v)]
        mine = TaskWrites(ns, id, task, path, stored, asked)
        self._waiting.add(mine)
        for pause in _COMPANY_S:
            if mine.is_stored.wait(pause):
                return
            with self._lock:
                if mine.is_stored.is_set():
                    return
                if self._is_placed(mine) or pause == _COMPANY_S[-1]:
                    self._store_waiting(mine)
                    return

    def _is_placed(self, writes: TaskWrites) -> bool:
        """Whether the checkpoint that was written on is stored."""
        graph = self._known().graphs.get(writes.ns)
        is_newest = graph is not None and graph.id == writes.checkpoint
        return is_newest or bool(self._seq_of(writes.ns, writes.checkpoint))

    def _store_waiting(self, mine: TaskWrites) -> None:
        waiting = self._waiting.take(lambda each: each is mine or self._is_placed(each))
        try:
            self._again(lambda: self._put_waiting(waiting))
        except BaseException:
            self._waiting.give_back([each for each in waiting if each is not mine])
            raise
        self._waiting.stored(waiting)

    def _put_waiting(self, waiting: Sequence[TaskWrites]) -> None:
        copy = self._known()
        moved = copy.moved()
        events = RunEvents(moved, self._costs, self._log.clock())
        ops = [op for each in waiting for op in self._take(each, moved, events)]
        if ops:
            nodes = ", ".join(dict.fromkeys(each.node for each in waiting))
            patched = EventDraft(ev.StatePatched(patch=ops, why=f"writes of {nodes}"))
            drafts = events.done()
            drafts.insert(_before_end(drafts), patched)
            self._keep(moved, self._log.append(*drafts, expect=copy.seq))

    def _take(self, given: TaskWrites, moved: ThreadCopy, events: RunEvents) -> Delta:
        """What a task wrote: the operations that note it, and what they tell."""
        key = writes_key(given.ns, given.checkpoint)
        known = self._known_writes(moved, given.ns, given.checkpoint).get(given.task, {})
        entries = dict(known.get("writes", {}))
        new = [(i, c, value) for i, c, value in given.writes if i < 0 or str(i) not in entries]
        if not new:
            return []
        entries |= {str(i): [c, value] for i, c, value in new}
        root = moved.graphs.get("")
        if root is not None and not root.is_at_rest:
            events.go_on()
        for _, channel, value in new:
            if channel == INTERRUPT:
                for request, question in given.asked:
                    events.ask(request, question)
            elif channel == RESUME:
                answer = value[-1] if type(value) is list and value else value
                events.answer(_asked_by(entries, given.task), answer)
            elif channel == ERROR:
                if not any(c == "__error_source_node__" for _, c, _ in new):
                    events.fail(value)
            elif not channel.startswith("__"):
                events.items(value if type(value) is list else [value], only_named=True)
        return moved.put_writes(key, given.task, {"path": given.path, "writes": entries})

    def _said(self, value: Any) -> Value:
        return self._codec.stored(value, "an interrupt") if self._codec.is_readable else "(not readable)"

    def _known_writes(self, copy: ThreadCopy, ns: str, id: str) -> dict[str, Any]:
        key = writes_key(ns, id)
        if key in copy.writes:
            known: dict[str, Any] = copy.writes[key]
            return known
        graph = copy.graphs.get(ns)
        if (graph is not None and graph.id == id) or not self._seq_of(ns, id):
            return {}
        return self._indexed().writes(key)

    def _keep(self, moved: ThreadCopy, head: Head) -> None:
        moved.seq = head.seq
        self._copy = moved

    def _again(self, attempt: Callable[[], None]) -> None:
        """Makes an attempt until it finds the thread as it knew it."""

        def fresh() -> None:
            try:
                attempt()
            except BaseException:
                self._copy = None
                raise

        retry_on_moved_head(self._log.id, "to store a checkpoint in", fresh)

    # Runs that began where another has gone on

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

    def _refuse_if_stale(self, ns: str, parent: str, copy: ThreadCopy) -> None:
        graph = copy.graphs.get(ns)
        if graph is None or graph.id == parent or (ns, parent) not in self._handed:
            return
        newest = graph.id
        if copy.removed:
            newest = next((each.id for each in self._indexed().checkpoints(copy.removed, ns)), "")
            if newest == parent:
                return
        self._unhand((ns, parent))
        raise ConflictError(
            f"thread {self.thread!r} has gone on to checkpoint {newest}, but this run began at {parent or 'its start'}:"
            " another run came first, and nothing of this one is stored from here on.",
            kind="thread-moved-on",
            hint="invoke the graph again; to go on from the older checkpoint, name its checkpoint_id",
        )

    # Removal

    def remove_runs(self, runs: Sequence[str]) -> None:
        with self._lock:
            self._again(lambda: self._remove_runs(set(runs)))

    def _remove_runs(self, runs: set[str]) -> None:
        copy = self.current()
        there = {each.header["metadata"].get("run_id") for each in self._indexed().checkpoints(copy.removed)}
        if gone := {run for run in there if type(run) is str and run in runs}:
            known = copy.removed.get("runs", {})
            self._remove(copy, {"runs": {**known, **dict.fromkeys(sorted(gone), copy.seq)}}, "runs removed")

    def keep_latest(self) -> None:
        with self._lock:
            self._again(self._keep_latest)

    def _keep_latest(self) -> None:
        copy = self.current()
        newest: dict[str, str] = {}
        for each in self._indexed().checkpoints(copy.removed):
            graph = copy.graphs.get(each.ns)
            key = writes_key(each.ns, graph.id) if graph is not None and not copy.removed else each.key
            newest.setdefault(each.ns, key)
        if newest:
            self._remove(copy, {"upto": copy.seq, "kept": sorted(newest.values())}, "all but the newest removed")

    def _remove(self, copy: ThreadCopy, change: dict[str, Value], why: str) -> None:
        moved = copy.moved()
        moved.removed = {**copy.removed, **change}
        patch = [{"op": "add", "path": f"{ROOT}/removed", "value": moved.removed}]
        draft = EventDraft(ev.StatePatched(patch=patch, why=f"checkpoints of {why}"), actor="user")
        self._keep(moved, self._log.append(draft, expect=copy.seq))


def commit_name(ns: str, id: str, number: int = 1) -> str:
    """The commit id of a checkpoint; `number` tells how often it was stored."""
    name = f"{id}|{hashlib.sha256(ns.encode()).hexdigest()[:16]}" if ns else id
    if len(name) > 200:
        name = hashlib.sha256(name.encode()).hexdigest()
    return name if number == 1 else f"{name}#{number}"


def _in_order(writes: dict[str, Any]) -> Iterator[tuple[str, str, Value]]:
    """Writes in the order in which a run applies them."""
    rows = [
        (entry.get("path", ""), task, int(i), channel, value)
        for task, entry in writes.items()
        for i, (channel, value) in entry["writes"].items()
    ]
    rows.sort(key=lambda row: row[:3])
    yield from ((task, channel, value) for _, task, _, channel, value in rows)


def _interrupts(value: Any) -> list[Any]:
    found = value if isinstance(value, list | tuple) else [value]
    return [each for each in found if hasattr(each, "value") and hasattr(each, "id")]


def _asked_by(entries: dict[str, Any], task: str) -> list[str]:
    """The interrupts that a task has written, by id; none for what is meant for the thread as a whole."""
    if task == _NO_TASK:
        return []
    found = [value for channel, value in entries.values() if channel == INTERRUPT]
    return [id for value in found for id in _ids_in(value)]


def _ids_in(value: Value) -> list[str]:
    """The ids of stored interrupts: extensions that hold a class and its fields."""
    if type(value) is list:
        return [id for item in value for id in _ids_in(item)]
    inside = value.get("value") if type(value) is dict else None
    fields = inside[2] if type(inside) is list and len(inside) > 2 else None
    id = fields.get("id") if type(fields) is dict else None
    return [id] if type(id) is str else []


def _before_end(drafts: list[EventDraft]) -> int:
    """The place before the end of the turn, if it ends here."""
    is_end = bool(drafts) and type(drafts[-1].event) is ev.TurnEnded
    return len(drafts) - is_end
