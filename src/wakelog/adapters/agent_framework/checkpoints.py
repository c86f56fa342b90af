"""The framework's checkpoint storage: checkpoints are points in the session `agent-framework-workflow/<name>`.

A checkpoint has the whole state of a workflow, but only its difference to the checkpoint before is stored. The
session's `data` has the parts `state`, `messages` and `requests`. A run is a turn. A request that waits for a person is
a pending question.

An id names one checkpoint, as in the framework's own storages. If it is saved again under another workflow's name, the
one saved last counts, and the first workflow has it no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec
from agent_framework import WorkflowCheckpoint, WorkflowCheckpointException

from wakelog.adapters.agent_framework.checkpoint_values import CheckpointValues
from wakelog.adapters.compound_names import compound_name
from wakelog.adapters.held_logs import HeldLog, LogsAdapter
from wakelog.adapters.stores import Place
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread, in_thread_to_the_end
from wakelog.state.diff import diff
from wakelog.state.fold import Fold
from wakelog.timeline.messages import content_of

WORKFLOWS, FORMAT = "agent-framework-workflow", "agent-framework-checkpoint"
_DELETED = "x.agent_framework.checkpoint_deleted"
_PARTS = ("state", "messages", "requests")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Place(msgspec.Struct, frozen=True):
    """Where a checkpoint is in its log, when it was saved, and its fields that are not in the data."""

    seq: Seq
    at: int
    rest: dict[str, Any]


class _CheckpointPlaces(msgspec.Struct):
    """The checkpoints in a log up to an event."""

    upto: Seq = 0
    places: dict[str, _Place] = {}


class WakelogCheckpointStorage(LogsAdapter):
    """Stores workflow checkpoints in a wakelog store. Implements `agent_framework.CheckpointStorage`."""

    framework = "agent-framework"

    def __init__(
        self,
        store: Place = None,
        *,
        allowed_checkpoint_types: Iterable[str] | None = None,
    ) -> None:
        """`store` is an open store, or an argument of `wakelog.open`. `allowed_checkpoint_types` (`module:name`) limits
        which classes are stored and read, besides the framework's own. By default every loaded class is allowed."""
        super().__init__(store)
        self._values = CheckpointValues(
            None if allowed_checkpoint_types is None else frozenset(allowed_checkpoint_types)
        )

    @staticmethod
    def name_of(workflow_name: str) -> str:
        """The name of the session that holds a workflow's checkpoints."""
        return compound_name(WORKFLOWS, workflow_name)

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        return await in_thread_to_the_end(self._save, checkpoint)

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        return await in_thread(self._load, checkpoint_id)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        return await in_thread(lambda: [checkpoint for _, checkpoint in self._all(workflow_name)])

    async def delete(self, checkpoint_id: str) -> bool:
        return await in_thread_to_the_end(self._delete, checkpoint_id)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        return await in_thread(self._latest, workflow_name)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        return await in_thread(lambda: list(self._in_view(workflow_name)))

    def _save(self, checkpoint: WorkflowCheckpoint) -> str:
        fields = checkpoint.to_dict()
        data = {
            "state": self._values.encode(fields.pop("state"), "state"),
            "messages": self._values.encode(fields.pop("messages"), "messages"),
            "requests": self._values.encode(fields.pop("pending_request_info_events"), "pending_request_info_events"),
        }
        rest = msgspec.json.encode(self._values.encode(fields, "checkpoint")).decode()
        workflow = checkpoint.workflow_name
        held = self._logs.open(self.name_of(workflow), {"workflow": workflow} if workflow else {}, agent=workflow)

        def attempt() -> None:
            seq, parts, before = held.log.look("turn", "pending_actions", data=_PARTS)
            drafts = list(_drafts(checkpoint, data, before, parts))
            kept = ev.ItemsKept(format=FORMAT, counts=(len(drafts),), rest=rest, ids=(checkpoint.checkpoint_id,))
            # A run ends when no message is in flight.
            ended = [] if any(checkpoint.messages.values()) else [EventDraft(ev.TurnEnded(), actor="runtime")]
            held.log.append(*drafts, EventDraft(kept, actor="runtime"), *ended, expect=seq)

        retry_on_moved_head(held.log.id, "to save a checkpoint", attempt)
        return str(checkpoint.checkpoint_id)

    def _load(self, id: str) -> WorkflowCheckpoint:
        found = self._find(id)
        if not found:
            raise WorkflowCheckpointException(f"No checkpoint found with ID {id}")
        held, place = max(found, key=_saved_at)
        return self._checkpoint(place.rest, held.log.state(place.seq)["data"])

    def _delete(self, id: str) -> bool:
        found = self._find(id)
        for held, _ in sorted(found, key=_saved_at):  # the one that counts last, so that an older one never comes back
            held.log.append(EventDraft(ev.Foreign(foreign_kind=_DELETED, data={"id": id}), actor="user"))
        return bool(found)

    def _latest(self, workflow: str) -> WorkflowCheckpoint | None:
        places = self._in_view(workflow)
        if not places:
            return None
        newest = max(places.values(), key=lambda place: (datetime.fromisoformat(place.rest["timestamp"]), place.seq))
        return self._load(newest.rest["checkpoint_id"])

    def _all(self, workflow: str) -> Iterator[tuple[Seq, WorkflowCheckpoint]]:
        """The checkpoints of a workflow, in one pass over its log."""
        places = {place.seq: place.rest for place in self._in_view(workflow).values()}
        held = self._logs.find(self.name_of(workflow))
        if held is None or not places:
            return
        first, last = min(places), max(places)
        fold = Fold(held.log.state(first))
        yield first, self._checkpoint(places[first], fold.doc["data"])
        for entry in held.log.entries(after=first, upto=last):
            fold.apply(entry.delta)
            if entry.seq in places:
                yield entry.seq, self._checkpoint(places[entry.seq], fold.doc["data"])

    def _checkpoint(self, rest: dict[str, Any], data: dict[str, Value]) -> WorkflowCheckpoint:
        fields = self._values.decode(rest)
        fields["state"] = self._values.decode(data["state"])
        fields["messages"] = self._values.decode(data["messages"])
        fields["pending_request_info_events"] = self._values.decode(data["requests"])
        return WorkflowCheckpoint.from_dict(fields)

    def _workflows(self) -> Iterator[tuple[HeldLog, dict[str, _Place]]]:
        """The logs of all workflows, with the checkpoints in each."""
        for head in self.store.sessions():
            if not head.name.startswith(f"{WORKFLOWS}/"):
                continue
            held = self._logs.find(head.name, is_listed=True)
            if held is not None:
                yield held, _read_places(held).places

    def _find(self, id: str) -> list[tuple[HeldLog, _Place]]:
        """The checkpoint with this id, in each log that has one. The one saved last counts."""
        # Another thread may delete it at any moment.
        return [(held, place) for held, places in self._workflows() if (place := places.get(id)) is not None]

    def _in_view(self, workflow: str) -> dict[str, _Place]:
        """The checkpoints that are in view, oldest first."""
        held = self._logs.find(self.name_of(workflow))
        if held is None:
            return {}
        places, view = dict(_read_places(held).places), held.log.view()
        for other, elsewhere in self._workflows():
            for id in places.keys() & elsewhere.keys() if other is not held else ():
                newer = elsewhere.get(id)
                if newer is not None and newer.at > places[id].at:
                    del places[id]
        return {id: place for id, place in places.items() if any(low <= place.seq <= high for low, high in view)}


def _saved_at(found: tuple[HeldLog, _Place]) -> int:
    return found[1].at


def _read_places(held: HeldLog) -> _CheckpointPlaces:
    with held.lock:
        if held.cache is None:
            held.cache = _CheckpointPlaces()
        known: _CheckpointPlaces = held.cache
        for entry in held.log.entries(after=known.upto, payloads=True):
            if entry.kind == "items.kept" and entry.body.get("format") == FORMAT:
                rest = content_of(held.log, entry, "rest")
                id = entry.body["ids"][0]
                known.places.pop(id, None)  # a checkpoint that is saved again becomes the newest
                if isinstance(rest, str):
                    known.places[id] = _Place(entry.seq, entry.header.at, _decode(rest))
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
        given = _given(checkpoint)
        yield EventDraft(ev.TurnStarted(input=given or None), actor="user" if given else "runtime")
    waiting = {action for action, pending in parts["pending_actions"].items() if pending["tool"] == "input"}
    for request, event in checkpoint.pending_request_info_events.items():
        if request not in waiting:
            yield EventDraft(ev.InputRequested(request=request, prompt=_prompt(event)))
    for request in sorted(waiting - checkpoint.pending_request_info_events.keys()):
        yield EventDraft(ev.InputAnswered(request=request, answer=None), actor="user")
    if patch := diff(before, {**before, **data}, "/data"):
        yield EventDraft(ev.StatePatched(patch=patch, why=f"superstep {checkpoint.iteration_count}"))


def _given(checkpoint: WorkflowCheckpoint) -> str:
    """The text that a run was started with, if it was one: it is on its way in the first checkpoint."""
    sent = [message.data for waiting in checkpoint.messages.values() for message in waiting]
    if checkpoint.previous_checkpoint_id or len(sent) != 1:
        return ""
    parts = sent[0] if isinstance(sent[0], list) else sent
    texts = [part if isinstance(part, str) else getattr(part, "text", None) for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def _prompt(event: Any) -> str:
    data = getattr(event, "data", None)
    return str(getattr(data, "prompt", None) or getattr(data, "question", None) or data)[:500]
