"""One thread over its session, to store in.

Writers of several processes share a thread. What a checkpoint changes is told against the state that this process saw,
so it is only stored on that state; when another writer came first, it is worked out anew. A run that began at the
newest checkpoint, and finds that another run has gone on from there, is refused: its state would replace the other's.

A sync takes longer than all else. So a checkpoint is sealed when it comes, and may be stored in the sync of the next
one; but only while a call of the same run waits, and returns when both are stored. LangGraph waits for every call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from copy import copy as bare_copy
from typing import Any

import msgspec
from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.adapters.langgraph.interrupts import asked_by, interrupts_in
from wakelog.adapters.langgraph.put_in_line import PutInLine
from wakelog.adapters.langgraph.run_events import RunEvents
from wakelog.adapters.langgraph.thread_data import (
    ROOT,
    CheckpointDraft,
    ThreadCopy,
    added_items,
    channel_path,
    writes_key,
)
from wakelog.adapters.langgraph.thread_reads import ThreadReads, commit_name
from wakelog.adapters.langgraph.waiting_writes import TaskWrites, WaitingWrites
from wakelog.errors import ConflictError, InvalidInputError, WakelogError
from wakelog.importers.frameworks.langgraph.messages import input_of, message_kind
from wakelog.importers.source.timestamps import microseconds
from wakelog.importers.writer.reply_costs import ReplyCosts
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft, Head
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.state.patch import Delta

_ALONE_S, _TOGETHER_S, _UNPLACED_S = 0.04, 0.002, (0.02, 0.1, 0.5)
"""So long a task's writes wait for a checkpoint to take them along; less where others wait, because each takes up a
worker. Further only while the checkpoint that they were made on is not stored itself, because LangGraph stores both in
the background."""
_INPUT_S = 0.02
"""So long an input waits for what follows right after it, to share its sync."""
_LINE_MAX = 3
"""So many checkpoints wait for the sync of the next one. Each keeps a worker waiting; LangGraph has five or more."""
_LAST_WORDS = frozenset({ERROR, INTERRUPT})
"""What a task writes when no checkpoint will follow: that waits for none."""
_LOST_MAX = 1024


class ThreadLog(ThreadReads):
    """A thread whose session is there."""

    def __init__(self, thread: str, session: Session[Any], codec: ValueCodec, costs: ReplyCosts) -> None:
        super().__init__(thread, session, codec)
        self._costs = costs
        self._waiting = WaitingWrites()
        self._lost: dict[tuple[str, str], WakelogError] = {}
        """Checkpoints that were not stored, and why: nothing that rests on them is."""
        self._line: list[PutInLine] = []
        """Checkpoints that are sealed and not stored yet, each on the one before."""
        self._is_landing = False

    @property
    def is_busy(self) -> bool:
        """Whether something waits to be stored."""
        return bool(self._line)

    # Storing

    def put_copy(self, ns: str, parent: str, copy: CheckpointTuple) -> None:
        """Stores a checkpoint from elsewhere, with what its tasks wrote, as of when it was made."""
        by_task: dict[str, list[tuple[str, Any]]] = {}
        for task, channel, value in copy.pending_writes or ():
            by_task.setdefault(task, []).append((channel, value))
        for task, writes in by_task.items():
            self._waiting.add(self._task_writes(ns, copy.checkpoint["id"], writes, task, ""))
        versions = copy.checkpoint["channel_versions"]
        self.put(ns, parent, copy.checkpoint, copy.metadata, versions, at=microseconds(copy.checkpoint.get("ts")))

    def has(self, ns: str, id: str) -> bool:
        return bool(self._seq_of(ns, id))

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
    ) -> None:
        """Stores a checkpoint; `at` tells when it was made, if that was not now. Where a task of the run has written on
        it already, it may be stored a moment later: that task's `put_writes` does not return before."""
        try:
            draft = CheckpointDraft(self._codec, checkpoint, metadata, parent)
            draft.made_at = at
            self._put_along(PutInLine(ns, draft, new_versions), is_run)
        except WakelogError as exc:
            with self._lock:
                self._lose(ns, _id_of(checkpoint), exc)
            raise

    def _lose(self, ns: str, id: str, why: WakelogError) -> None:
        # LangGraph 1.0 goes on to store what follows, and would put it over what another run has stored.
        self._lost[ns, id] = bare_copy(why)  # without the frames it was raised in, which hold the state
        while len(self._lost) > _LOST_MAX:
            del self._lost[next(iter(self._lost))]

    def _refuse_if_lost(self, ns: str, id: str) -> None:
        if (why := self._lost.get((ns, id))) is not None:
            raise bare_copy(why)

    def _put_along(self, put: PutInLine, is_run: bool) -> None:
        """Stores a checkpoint, with the writes that wait for one."""
        ns, draft = put.ns, put.draft
        with self._lock:
            if self._line and (self._copy is None or not self._line[-1].leads_to(put)):
                self._settle()
            put.waiting = self._waiting.take(
                lambda each: (each.ns, each.checkpoint) == (ns, draft.id) or self._is_placed(each)
            )
            try:
                self._again(lambda: self._launch(put))
            except BaseException:
                self._waiting.give_back(put.waiting)
                raise
            self._lost.pop((ns, draft.id), None)
            self._line.append(put)
            if len(self._line) > _LINE_MAX or not self._is_awaited(put, is_run):
                self._land(put)

    def _is_awaited(self, put: PutInLine, is_run: bool) -> bool:
        """Whether somebody who wrote on a checkpoint waits, and sees to it that both are stored. LangGraph waits for
        those before a run ends. With `sync` it also waits for each checkpoint before the next step, but not for that of
        an input: the first step follows right away, and is stored in the same sync."""
        if put.is_stored:
            return False
        place = put.ns, put.draft.id
        if any(each.is_awaited and (each.ns, each.checkpoint) == place for each in put.waiting):
            return True
        is_input = is_run and put.draft.source == "input"
        return self._waiting.has(*place, within_s=_INPUT_S if is_input else 0)

    # What is in line

    def _settle(self) -> None:
        with self._lock:
            if self._line and not self._is_landing:
                self._land()

    def _land(self, mine: PutInLine | None = None) -> None:
        """Waits until all that is in line is stored, in order. What cannot be stored is lost, with what rests on it;
        raises where that is `mine`."""
        self._is_landing = True
        failed: WakelogError | None = None
        try:
            while self._line:
                put = self._line[0]
                try:
                    self._again(functools.partial(self._land_one, put))
                except WakelogError as exc:
                    self._lose(put.ns, put.draft.id, exc)
                    self._waiting.give_back(put.waiting)
                    self._waiting.wake(put.ns, put.draft.id)
                    failed = exc if put is mine else failed
                else:
                    self._waiting.stored(put.waiting)
                    self._unhand((put.ns, put.draft.parent))
                    self._hand((put.ns, put.draft.id))  # the run that stored it goes on from there
                del self._line[0]
        finally:
            self._is_landing = False
        if failed is not None:
            raise failed

    def _land_one(self, put: PutInLine) -> None:
        while not put.is_stored:
            if put.sealed is None:  # it was taken back
                self._launch(put)
                continue
            try:
                head = self._log.land(put.sealed)
            except BaseException as exc:
                self._take_back()
                if not isinstance(exc, InvalidInputError) or exc.kind != "commit-id-reused":
                    raise
                put.number += 1  # the same checkpoint, stored again
            else:
                put.is_stored = True
                if head.hash != put.sealed.commit.hash:
                    self._take_back()  # it was stored before, as it is

    def _take_back(self) -> None:
        """What is in line is to be worked out anew: the log has taken all of it back."""
        self._copy = None
        for put in self._line:
            put.sealed = None

    def _launch(self, put: PutInLine) -> None:
        """Puts a checkpoint in line. One that goes back in the thread is stored at once."""
        ns, draft, waiting = put.ns, put.draft, put.waiting
        copy = self._known()
        self._refuse_if_lost(ns, draft.parent)  # it may have been in line until just now
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
        room, changes, ops = moved.put(ns, draft, put.new_versions)
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
        drafts = events.done()
        if draft.made_at:
            drafts = [
                msgspec.structs.replace(d, event=msgspec.structs.replace(d.event, occurred_at=draft.made_at))
                for d in drafts
            ]
        if back_to:
            self._go_back(put, drafts, copy.seq, back_to, moved)
        else:
            # Not looked up before: where another writer came first, the engine says so.
            self._log.look(refresh=False)
            name = commit_name(ns, draft.id, put.number)
            put.sealed = self._log.put_in_line(*drafts, expect=copy.seq, commit_id=name)
            self._keep(moved, put.sealed.commit.last)

    def _go_back(self, put: PutInLine, drafts: list[EventDraft], seen: Seq, back_to: Seq, moved: ThreadCopy) -> None:
        why = f"the graph goes on from checkpoint {put.draft.parent}"
        while not put.is_stored:
            name = commit_name(put.ns, put.draft.id, put.number)
            try:
                head = self._log.rewind(back_to, why=why, expect=seen, then=drafts, commit_id=name)
            except InvalidInputError as exc:
                if exc.kind != "commit-id-reused":
                    raise
                put.number += 1  # the same checkpoint, stored again
            else:
                put.is_stored = True
                self._keep(moved, head.seq)

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

    def put_writes(self, ns: str, id: str, writes: Sequence[tuple[str, Any]], task: str, path: str) -> None:
        """Stores what a task wrote. A checkpoint that comes right after it takes it along in its own commit."""
        mine = self._task_writes(ns, id, writes, task, path)
        mine.is_awaited = True
        try:
            is_alone = self._waiting.add(mine) == 1
            first = _ALONE_S if is_alone else _TOGETHER_S
            self._wait_until_stored(mine, 0.0 if any(c in _LAST_WORDS for c, _ in writes) else first)
        finally:
            mine.is_awaited = False

    def _wait_until_stored(self, mine: TaskWrites, first_s: float) -> None:
        ns, id = mine.ns, mine.checkpoint
        for pause in (first_s, *_UNPLACED_S):
            if mine.wait(pause):
                return
            with self._lock:
                self._settle()  # the checkpoint may be in line, and this with it
                mine.is_awaited = False  # from here on it sleeps longer than a checkpoint should wait for it
                if mine.is_stored:
                    return
                if (ns, id) in self._lost:
                    self._waiting.take(lambda each: each is mine)
                    self._refuse_if_lost(ns, id)
                if self._is_placed(mine) or pause == _UNPLACED_S[-1]:
                    self._store_waiting(mine)
                    return

    def _task_writes(self, ns: str, id: str, writes: Sequence[tuple[str, Any]], task: str, path: str) -> TaskWrites:
        stored = [
            (WRITES_IDX_MAP.get(c, i), c, self._codec.stored(v, f"a write to {c}")) for i, (c, v) in enumerate(writes)
        ]
        asked = [(str(i.id), self._said(i.value)) for c, v in writes if c == INTERRUPT for i in interrupts_in(v)]
        return TaskWrites(ns, id, task, path, stored, asked)

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
            self._keep(moved, self._append(drafts, copy.seq).seq)

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
                events.answer(asked_by(entries, given.task), answer)
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

    def _append(self, drafts: Sequence[EventDraft], seen: Seq) -> Head:
        self._log.look(refresh=False)  # as in `_launch`
        return self._log.append(*drafts, expect=seen)

    def _keep(self, moved: ThreadCopy, seq: Seq) -> None:
        moved.seq = seq
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
        self._keep(moved, self._append([draft], copy.seq).seq)


def _id_of(checkpoint: Any) -> str:
    return str(checkpoint.get("id", "")) if isinstance(checkpoint, dict) else ""


def _before_end(drafts: list[EventDraft]) -> int:
    """The place before the end of the turn, if it ends here."""
    is_end = bool(drafts) and type(drafts[-1].event) is ev.TurnEnded
    return len(drafts) - is_end
