"""The checkpoint storage: a workflow's checkpoints are points in the session `agent-framework-workflow/<name>`.

A checkpoint holds the whole state of a workflow. Stored is what changed in it since the checkpoint before: the
session's `data` has the parts `state`, `messages` and `requests`, and a checkpoint is a place in its history. A run is
a turn. A request that waits for a person is a pending question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec
from agent_framework import WorkflowCheckpoint, WorkflowCheckpointException

from wakelog.adapters.agent_framework.checkpoint_values import CheckpointValues
from wakelog.adapters.compound_names import compound_name, ids_of
from wakelog.adapters.held_logs import HeldLog, HeldLogs
from wakelog.adapters.stores import Place
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread
from wakelog.state.diff import diff
from wakelog.state.fold import Fold
from wakelog.timeline.messages import content_of

WORKFLOWS, FORMAT = "agent-framework-workflow", "agent-framework-checkpoint"
_DELETED = "x.agent_framework.checkpoint_deleted"
_PARTS = ("state", "messages", "requests")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Known(msgspec.Struct):
    """The checkpoints in a log up to an event: where each is, and what is kept of it beside the data."""

    upto: Seq = 0
    places: dict[str, tuple[Seq, dict[str, Any]]] = {}


class WakelogCheckpointStorage:
    """Keeps the checkpoints of workflows in a store. Implements `agent_framework.CheckpointStorage`."""

    def __init__(
        self,
        store: Place = None,
        *,
        allowed_checkpoint_types: Iterable[str] | None = None,
    ) -> None:
        """`store` is a store, or the url of one as for `wakelog.open`. With `allowed_checkpoint_types`, as
        `module:name`, only these classes and the framework's own are stored and read; without, every class that the
        program has loaded."""
        self._logs = HeldLogs(store, "agent-framework")
        self.store = self._logs.store
        self._values = CheckpointValues(
            None if allowed_checkpoint_types is None else frozenset(allowed_checkpoint_types)
        )

    @staticmethod
    def name_of(workflow_name: str) -> str:
        """The name of the session that holds a workflow's checkpoints."""
        return compound_name(WORKFLOWS, workflow_name)

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        return await in_thread(self._save, checkpoint)

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        return await in_thread(self._load, checkpoint_id)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        return await in_thread(lambda: [checkpoint for _, checkpoint in self._all(workflow_name)])

    async def delete(self, checkpoint_id: str) -> bool:
        return await in_thread(self._delete, checkpoint_id)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        return await in_thread(self._latest, workflow_name)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        return await in_thread(lambda: list(self._in_view(workflow_name)))

    async def close(self) -> None:
        """Closes the store, if it was opened here."""
        await in_thread(self._logs.close)

    def _save(self, checkpoint: WorkflowCheckpoint) -> str:
        told = checkpoint.to_dict()
        data = {
            "state": self._values.encode(told.pop("state"), "state"),
            "messages": self._values.encode(told.pop("messages"), "messages"),
            "requests": self._values.encode(told.pop("pending_request_info_events"), "pending_request_info_events"),
        }
        rest = msgspec.json.encode(self._values.encode(told, "checkpoint")).decode()
        workflow = checkpoint.workflow_name
        held = self._logs.open(self.name_of(workflow), {"workflow": workflow} if workflow else {}, agent=workflow)

        def attempt() -> None:
            seq, parts, before = held.log.look("turn", "pending_actions", data=_PARTS)
            drafts = list(_drafts(checkpoint, data, before, parts))
            kept = ev.ItemsKept(format=FORMAT, counts=(len(drafts),), rest=rest, ids=(checkpoint.checkpoint_id,))
            # A run rests when no message is under way.
            ended = [] if any(checkpoint.messages.values()) else [EventDraft(ev.TurnEnded(), actor="runtime")]
            held.log.append(*drafts, EventDraft(kept, actor="runtime"), *ended, expect=seq)

        retry_on_moved_head(held.log.id, "to save a checkpoint", attempt)
        return str(checkpoint.checkpoint_id)

    def _load(self, id: str) -> WorkflowCheckpoint:
        found = self._find(id)
        if found is None:
            raise WorkflowCheckpointException(f"No checkpoint found with ID {id}")
        held, seq, told = found
        return self._made(told, held.log.state(seq)["data"])

    def _delete(self, id: str) -> bool:
        found = self._find(id)
        if found is None:
            return False
        gone = ev.Foreign(foreign_kind=_DELETED, data={"id": id})
        found[0].log.append(EventDraft(gone, actor="user"))
        return True

    def _latest(self, workflow: str) -> WorkflowCheckpoint | None:
        places = self._in_view(workflow)
        if not places:
            return None
        newest = max(places.values(), key=lambda place: (datetime.fromisoformat(place[1]["timestamp"]), place[0]))
        return self._load(newest[1]["checkpoint_id"])

    def _all(self, workflow: str) -> Iterator[tuple[Seq, WorkflowCheckpoint]]:
        """The checkpoints of a workflow, in one pass over its log."""
        places = dict(self._in_view(workflow).values())
        held = self._logs.find(self.name_of(workflow))
        if held is None or not places:
            return
        first, last = min(places), max(places)
        fold = Fold(held.log.state(first))
        yield first, self._made(places[first], fold.doc["data"])
        for entry in held.log.entries(after=first, upto=last):
            fold.apply(entry.delta)
            if entry.seq in places:
                yield entry.seq, self._made(places[entry.seq], fold.doc["data"])

    def _made(self, told: dict[str, Any], data: dict[str, Value]) -> WorkflowCheckpoint:
        whole = self._values.decode(told)
        whole["state"] = self._values.decode(data["state"])
        whole["messages"] = self._values.decode(data["messages"])
        whole["pending_request_info_events"] = self._values.decode(data["requests"])
        return WorkflowCheckpoint.from_dict(whole)

    # Finding

    def _find(self, id: str) -> tuple[HeldLog, Seq, dict[str, Any]] | None:
        for head in self.store.sessions():
            if ids_of(WORKFLOWS, head.name) is None and not head.name.startswith(f"{WORKFLOWS}/"):
                continue
            held = self._logs.find(head.name, is_listed=True)
            if held is not None and (place := _known(held).places.get(id)) is not None:
                return held, *place
        return None

    def _in_view(self, workflow: str) -> dict[str, tuple[Seq, dict[str, Any]]]:
        """The checkpoints that no rewind has left behind, oldest first."""
        held = self._logs.find(self.name_of(workflow))
        if held is None:
            return {}
        places = _known(held).places
        view = held.log.view()
        return {id: place for id, place in places.items() if any(low <= place[0] <= high for low, high in view)}


def _known(held: HeldLog) -> _Known:
    with held.lock:
        if held.memory is None:
            held.memory = _Known()
        known: _Known = held.memory
        for entry in held.log.entries(after=known.upto, payloads=True):
            if entry.kind == "items.kept" and entry.body.get("format") == FORMAT:
                rest = content_of(held.log, entry, "rest")
                id = entry.body["ids"][0]
                known.places.pop(id, None)  # saved again, it is the newest
                if isinstance(rest, str):
                    known.places[id] = entry.seq, _decode(rest)
            elif entry.kind == _DELETED:
                known.places.pop(entry.body.get("id", ""), None)
            known.upto = entry.seq
        return known


def _drafts(
    checkpoint: WorkflowCheckpoint, data: dict[str, Value], before: dict[str, Value], parts: dict[str, Any]
) -> Iterator[EventDraft]:
    is_open = parts["turn"]["status"] == "open"
    if is_open and not checkpoint.previous_checkpoint_id:
        yield EventDraft(ev.TurnEnded(outcome="interrupted"), actor="runtime")
        is_open = False
    if not is_open:
        yield EventDraft(ev.TurnStarted(), actor="runtime")
    waiting = {action for action, pending in parts["pending_actions"].items() if pending["tool"] == "input"}
    for request, event in checkpoint.pending_request_info_events.items():
        if request not in waiting:
            yield EventDraft(ev.InputRequested(request=request, prompt=_prompt(event)))
    for request in sorted(waiting - checkpoint.pending_request_info_events.keys()):
        yield EventDraft(ev.InputAnswered(request=request, answer=None), actor="user")
    if patch := diff(before, {**before, **data}, "/data"):
        yield EventDraft(ev.StatePatched(patch=patch, why=f"superstep {checkpoint.iteration_count}"))


def _prompt(event: Any) -> str:
    data = getattr(event, "data", None)
    said = getattr(data, "prompt", None) or getattr(data, "question", None) or data
    return str(said)[:500]
