"""Writes one thread's checkpoints and task writes to its session.

Optimistic writing: a checkpoint is stored as a patch on the state that this process knows, and only on that state. If
another process wrote first, the thread is read again and the patch is computed again. A run is refused if another run
has continued from the checkpoint that it started at: its state would overwrite the other's.

Shared syncs: a sync takes longer than everything else. So a checkpoint is sealed when it arrives, and may be queued for
the sync of the next one. That happens only while a `put_writes` call of the same run waits; it returns when both are
stored. LangGraph waits for all these calls before a run ends.

The main path is `put`, `_enqueue`, `_seal`, `_flush`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT

from wakelog.adapters.langgraph.checkpoint_index import CheckpointIndex, keep_newest, remove_runs
from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.adapters.langgraph.failed_checkpoints import FailedCheckpoints
from wakelog.adapters.langgraph.queued_checkpoint import QueuedCheckpoint
from wakelog.adapters.langgraph.run_events import RunEvents
from wakelog.adapters.langgraph.thread_data import ROOT, CheckpointDraft, ThreadCopy, checkpoint_key
from wakelog.adapters.langgraph.thread_reads import ThreadReads, commit_name
from wakelog.adapters.langgraph.waiting_writes import TaskWrites, WaitingWrites
from wakelog.errors import ConflictError, InvalidInputError, WakelogError
from wakelog.importers.source.timestamps import microseconds
from wakelog.importers.writer.reply_costs import ReplyCosts
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.state.patch import Delta

_WAIT_ALONE_S, _WAIT_TOGETHER_S = 0.04, 0.002
"""How long task writes wait for a checkpoint to share a commit with. Shorter if others wait too, because each waiting
call occupies a worker thread."""
_WAIT_FOR_BASE_S = (0.02, 0.1, 0.5)
"""How long they wait after that for the checkpoint that they were made on. LangGraph stores both in the background, so
the writes may arrive first."""
_WAIT_AFTER_INPUT_S = 0.02
"""How long the checkpoint of an input waits for the first task's writes, to share their sync."""
_QUEUE_MAX = 3
"""How many checkpoints wait for the next one. Each blocks a worker thread; LangGraph has at least five."""
_FINAL_CHANNELS = frozenset({ERROR, INTERRUPT})
"""A task that writes to these is followed by no checkpoint, so its writes do not wait for one."""


class ThreadLog(ThreadReads):
    """One thread, to read and to write. Its session exists."""

    def __init__(self, thread: str, session: Session[Any], codec: ValueCodec, costs: ReplyCosts) -> None:
        super().__init__(thread, session, codec)
        self._costs = costs
        self._waiting = WaitingWrites()
        self._queue: list[QueuedCheckpoint] = []
        """Checkpoints that are sealed but not stored yet. Each is the parent of the next."""
        self._is_flushing = False
        self._failed = FailedCheckpoints()

    @property
    def is_busy(self) -> bool:
        """True if something waits to be stored."""
        return bool(self._queue)

    def has(self, ns: str, id: str) -> bool:
        return bool(self._seq_of(ns, id))

    # Checkpoints

    def put(
        self,
        ns: str,
        parent: str,
        checkpoint: Any,
        metadata: Any,
        new_versions: dict[str, Any],
        *,
        at: int = 0,
        is_run: bool = False,
        is_by_hand: bool = True,
    ) -> None:
        """Stores a checkpoint. `at` is when it was made, if that was not now. If a task of the run has already written
        on it, it may be stored a moment later: before that task's `put_writes` returns."""
        try:
            draft = CheckpointDraft(self._codec, checkpoint, metadata, parent)
            draft.made_at = at
            self._enqueue(QueuedCheckpoint(ns, draft, new_versions, is_by_hand=is_by_hand), is_run)
        except WakelogError as exc:
            id = checkpoint.get("id") if isinstance(checkpoint, dict) else None
            if type(id) is str:  # without an id it would look like the start of the thread
                with self._lock:
                    self._failed.add(checkpoint_key(ns, id), exc)
            raise

    def put_copy(self, ns: str, parent: str, copy: CheckpointTuple) -> None:
        """Stores a checkpoint of another thread or checkpointer, with its task writes and its original time."""
        by_task: dict[str, list[tuple[str, Any]]] = {}
        for task, channel, value in copy.pending_writes or ():
            by_task.setdefault(task, []).append((channel, value))
        for task, writes in by_task.items():
            self._waiting.add(TaskWrites.encode(self._codec, ns, copy.checkpoint["id"], task, "", writes))
        versions = copy.checkpoint["channel_versions"]
        self.put(ns, parent, copy.checkpoint, copy.metadata, versions, at=microseconds(copy.checkpoint.get("ts")))

    def _enqueue(self, new: QueuedCheckpoint, is_run: bool) -> None:
        """Seals a checkpoint together with the task writes that are ready, and stores it unless it may wait."""
        with self._lock:
            if self._queue and (self._copy is None or self._queue[-1].key != new.parent_key):
                self._flush()
            new.writes = self._waiting.take(lambda writes: writes.key == new.key or self._is_on_stored(writes))
            try:
                self._retry(lambda: self._seal(new))
            except BaseException:
                self._waiting.give_back(new.writes)
                raise
            self._failed.discard(new.key)
            self._queue.append(new)
            if len(self._queue) > _QUEUE_MAX or not self._may_wait(new, is_run):
                self._flush(new)

    def _may_wait(self, new: QueuedCheckpoint, is_run: bool) -> bool:
        """True if a caller who wrote on this checkpoint waits: that call stores both before it returns, and LangGraph
        waits for it before the run ends. With durability `sync`, LangGraph also waits for each checkpoint before the
        next step, except for that of an input: the first step follows at once and shares its sync."""
        if new.is_stored:
            return False
        if any(writes.is_awaited and writes.key == new.key for writes in new.writes):
            return True
        is_input = is_run and new.draft.source == "input"
        return self._waiting.has_awaited(new.key, within_s=_WAIT_AFTER_INPUT_S if is_input else 0)

    def _seal(self, new: QueuedCheckpoint) -> None:
        """Turns a checkpoint into events and seals their commit. If it goes back in the thread, it is stored at once:
        that takes a rewind."""
        ns, draft = new.ns, new.draft
        copy = self._last_known()
        self._failed.refuse(new.parent_key)  # the parent may have been in the queue until just now
        # A fork goes back on purpose. So does a caller without a graph if everything newer was stored here.
        if draft.source != "fork" and not (new.is_by_hand and copy.is_own):
            self._refuse_if_stale(ns, draft.parent, copy)
        base, back_to = copy, 0
        graph = copy.graphs.get(ns)
        if not ns and graph is not None and draft.parent and graph.id != draft.parent:
            back_to = self._seq_of(ns, draft.parent)
            base = self._copy_at(back_to) if back_to else copy
        thread = base.working_copy(copy)
        events = RunEvents(thread, self._costs, self._log.clock())
        if back_to:
            events.abandon(after=back_to)
        self._add_checkpoint(new, thread, copy, events)
        if base is not copy or graph is None or graph.id != draft.parent:
            thread.earlier_writes = {}  # others may have written on its parent
        drafts = events.finish()
        if draft.made_at:
            drafts = [
                msgspec.structs.replace(d, event=msgspec.structs.replace(d.event, occurred_at=draft.made_at))
                for d in drafts
            ]
        if back_to:
            self._store_after_rewind(new, drafts, copy.seq, back_to, thread)
        else:
            self._expect_known_head()
            name = commit_name(ns, draft.id, new.number)
            new.sealed = self._log.put_in_line(*drafts, expect=copy.seq, commit_id=name)
            self._remember(thread, new.sealed.commit.last)

    def _add_checkpoint(self, new: QueuedCheckpoint, thread: ThreadCopy, now: ThreadCopy, events: RunEvents) -> None:
        """Moves `thread` on to a checkpoint and adds the events that tell of it. `now` is the thread before."""
        ns, draft = new.ns, new.draft
        later = [writes for writes in new.writes if writes.key == new.key]
        patch = self._add_writes([writes for writes in new.writes if writes not in later], thread, events)
        nodes = thread.nodes_of(new.parent_key)
        new_parts, channels, rest = thread.put(ns, draft, new.new_versions, self._ahead(now, new.parent_key))
        if thread.removed != now.removed:  # what was removed stays removed after a rewind
            thread.removed = now.removed
            rest.append({"op": "add", "path": f"{ROOT}/removed", "value": now.removed})
        events.add_checkpoint(ns, draft, channels, is_readable=self._codec.is_readable)
        rest += self._add_writes(later, thread, events)
        step = f"step {draft.step}" if type(draft.step) is int else "checkpoint"
        why = f"{ns + ' ' if ns else ''}{step}{': ' + ', '.join(nodes) if nodes else ''} ({draft.source or 'put'})"
        actor = "user" if draft.source == "update" else "agent"
        events.add(ev.StatePatched(patch=[*patch, *new_parts, *channels, *rest], why=why), actor=actor)
        if not ns and draft.is_at_rest and draft.source == "loop":
            events.end_turn()

    def _store_after_rewind(
        self, new: QueuedCheckpoint, drafts: list[EventDraft], seen: Seq, back_to: Seq, thread: ThreadCopy
    ) -> None:
        why = f"the graph goes on from checkpoint {new.draft.parent}"
        while not new.is_stored:
            name = commit_name(new.ns, new.draft.id, new.number)
            try:
                head = self._log.rewind(back_to, why=why, expect=seen, then=drafts, commit_id=name)
            except InvalidInputError as exc:
                if exc.kind != "commit-id-reused":
                    raise
                new.number += 1  # the same checkpoint is stored again
            else:
                new.is_stored = True
                self._remember(thread, head.seq)

    # The queue

    def _flush(self, mine: QueuedCheckpoint | None = None) -> None:
        """Stores everything in the queue, in order. A checkpoint that cannot be stored is noted as failed, and raises
        only if it is `mine`."""
        with self._lock:
            if self._is_flushing:
                return
            self._is_flushing = True
            error: WakelogError | None = None
            try:
                while self._queue:
                    first = self._queue[0]
                    try:
                        self._retry(functools.partial(self._store, first))
                    except WakelogError as exc:
                        self._failed.add(first.key, exc)
                        self._waiting.give_back(first.writes)
                        self._waiting.wake(first.key)
                        error = exc if first is mine else error
                    else:
                        for writes in first.writes:
                            writes.mark_stored()
                        self._forget_run(first.parent_key)
                        self._note_run(first.key)  # the run that stored it continues from here
                    del self._queue[0]
            finally:
                self._is_flushing = False
            if error is not None:
                raise error

    def _store(self, first: QueuedCheckpoint) -> None:
        while not first.is_stored:
            if first.sealed is None:
                self._seal(first)
                continue
            try:
                head = self._log.land(first.sealed)
            except BaseException as exc:
                self._unseal_all()
                if not isinstance(exc, InvalidInputError) or exc.kind != "commit-id-reused":
                    raise
                first.number += 1  # the same checkpoint is stored again
            else:
                first.is_stored = True
                if head.hash != first.sealed.commit.hash:
                    self._unseal_all()  # the same commit was stored earlier

    def _unseal_all(self) -> None:
        """The log has dropped the sealed commits, so everything queued has to be computed again."""
        self._copy = None
        for queued in self._queue:
            queued.sealed = None

    def _retry(self, attempt: Callable[[], None]) -> None:
        """Runs `attempt` until nobody else writes first. After a failure the thread is read again."""

        def run_attempt() -> None:
            try:
                attempt()
            except BaseException:
                self._copy = None
                raise

        retry_on_moved_head(self._log.id, "to store a checkpoint in", run_attempt)

    def _expect_known_head(self) -> None:
        # Do not ask for the newest head before an append: the engine refuses the append if another writer came first.
        self._log.look(refresh=False)

    def _append(self, drafts: Sequence[EventDraft], thread: ThreadCopy) -> None:
        self._expect_known_head()
        self._remember(thread, self._log.append(*drafts, expect=thread.seq).seq)

    def _remember(self, thread: ThreadCopy, seq: Seq) -> None:
        thread.seq, thread.is_own = seq, True
        self._copy = thread

    def _refuse_if_stale(self, ns: str, parent: str, copy: ThreadCopy) -> None:
        """ConflictError if another run has continued from the checkpoint that this run started at."""
        graph, key = copy.graphs.get(ns), checkpoint_key(ns, parent)
        if graph is None or graph.id == parent or key not in self._runs_at:
            return
        newest = graph.id
        if copy.removed:
            newest = self._newest_id(ns, copy)
            if newest == parent:
                return
        self._forget_run(key)
        raise ConflictError(
            f"thread {self.thread!r} has gone on to checkpoint {newest}, but this run began at {parent or 'its start'}:"
            " another run came first, and nothing of this one is stored from here on.",
            kind="thread-moved-on",
            hint="invoke the graph again; to go on from the older checkpoint, name its checkpoint_id",
        )

    # Writes of tasks

    def put_writes(self, ns: str, id: str, writes: Sequence[tuple[str, Any]], task: str, path: str) -> None:
        """Stores what a task wrote. If a checkpoint follows right away, both are stored in one commit."""
        mine = TaskWrites.encode(self._codec, ns, id, task, path, writes)
        mine.is_awaited = True
        try:
            is_alone = self._waiting.add(mine) == 1
            is_final = any(channel in _FINAL_CHANNELS for channel, _ in writes)
            self._wait_until_stored(mine, 0.0 if is_final else _WAIT_ALONE_S if is_alone else _WAIT_TOGETHER_S)
        finally:
            mine.is_awaited = False

    def _wait_until_stored(self, mine: TaskWrites, first_s: float) -> None:
        for pause_s in (first_s, *_WAIT_FOR_BASE_S):
            if mine.wait(pause_s):
                return
            with self._lock:
                self._flush()  # the checkpoint may be queued, and these writes with it
                mine.is_awaited = False  # the next pauses are longer than a checkpoint should wait
                if mine.is_stored:
                    return
                if mine.key in self._failed:
                    self._waiting.take(lambda writes: writes is mine)
                    self._failed.refuse(mine.key)
                if self._is_on_stored(mine) or pause_s == _WAIT_FOR_BASE_S[-1]:
                    self._store_waiting(mine)
                    return

    def _store_waiting(self, mine: TaskWrites) -> None:
        """Stores these writes without a checkpoint, and all others that are ready."""
        ready = self._waiting.take(lambda writes: writes is mine or self._is_on_stored(writes))
        try:
            self._retry(lambda: self._append_writes(ready))
        except BaseException:
            self._waiting.give_back([writes for writes in ready if writes is not mine])
            raise
        for writes in ready:
            writes.mark_stored()

    def _append_writes(self, ready: Sequence[TaskWrites]) -> None:
        thread = self._last_known().working_copy()
        events = RunEvents(thread, self._costs, self._log.clock())
        patch = self._add_writes(ready, thread, events)
        if patch:
            nodes = ", ".join(dict.fromkeys(writes.node for writes in ready))
            drafts = events.finish()
            ends_turn = bool(drafts) and type(drafts[-1].event) is ev.TurnEnded
            drafts.insert(len(drafts) - ends_turn, EventDraft(ev.StatePatched(patch=patch, why=f"writes of {nodes}")))
            self._append(drafts, thread)

    def _add_writes(self, ready: Sequence[TaskWrites], thread: ThreadCopy, events: RunEvents) -> Delta:
        """Adds task writes to `thread` and the events that tell of them; returns the operations that store them."""
        patch: Delta = []
        for writes in ready:
            known = self._stored_writes(thread, writes)
            entries = dict(known.get("writes", {}))
            new = [(i, c, value) for i, c, value in writes.writes if i < 0 or str(i) not in entries]
            if new:
                entries |= {str(i): [c, value] for i, c, value in new}
                events.add_writes(writes, new, entries)
                patch += thread.put_writes(writes.key, writes.task, {"path": writes.path, "writes": entries})
        return patch

    def _stored_writes(self, thread: ThreadCopy, writes: TaskWrites) -> dict[str, Any]:
        """What the same task has written before, on the same checkpoint. A `thread` that goes back to the checkpoint
        does not tell: it is older than what was written on it."""
        known = thread.writes.get(writes.key, {}).get(writes.task)
        if known is None:
            known = thread.earlier_writes.get(writes.key, {}).get(writes.task)
        if known is not None:
            return dict(known)
        if writes.key in thread.earlier_writes:
            return {}
        graph = self._last_known().graphs.get(writes.ns)
        is_newest = graph is not None and graph.id == writes.checkpoint
        if is_newest or not self._seq_of(writes.ns, writes.checkpoint):
            return {}
        return dict(self._refreshed_index().writes(writes.key).get(writes.task, {}))

    def _is_on_stored(self, writes: TaskWrites) -> bool:
        """True if the checkpoint that the writes were made on is stored."""
        known = self._last_known()
        graph = known.graphs.get(writes.ns)
        is_known = (graph is not None and graph.id == writes.checkpoint) or writes.key in known.earlier_writes
        return is_known or bool(self._seq_of(writes.ns, writes.checkpoint))

    def _ahead(self, now: ThreadCopy, parent: str) -> dict[str, Any]:
        """The stored writes whose checkpoints are not stored yet: on a slow disk, LangGraph is some steps ahead."""
        known = {parent, *now.earlier_writes, *(checkpoint_key(ns, graph.id) for ns, graph in now.graphs.items())}
        ahead = {}
        for key in now.writes.keys() - known:
            id, _, ns = key.partition("|")
            if not self._seq_of(ns, id):
                ahead[key] = now.writes[key]
        return ahead

    # Removal

    def remove_runs(self, runs: Sequence[str]) -> None:
        self._remove(functools.partial(remove_runs, runs=frozenset(runs)), "runs removed")

    def keep_latest(self) -> None:
        self._remove(keep_newest, "all but the newest removed")

    def _remove(self, change: Callable[[ThreadCopy, CheckpointIndex], dict[str, Value]], why: str) -> None:
        def attempt() -> None:
            copy = self.current()
            removed = change(copy, self._refreshed_index())
            if removed == copy.removed:
                return
            thread = copy.working_copy()
            thread.removed = removed
            patch = [{"op": "add", "path": f"{ROOT}/removed", "value": removed}]
            self._append([EventDraft(ev.StatePatched(patch=patch, why=f"checkpoints of {why}"), actor="user")], thread)

        with self._lock:
            self._retry(attempt)
