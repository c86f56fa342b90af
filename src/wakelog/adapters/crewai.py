"""CrewAI: stores the state of flows, and the checkpoints of crews and flows.

    from wakelog.adapters.crewai import WakelogFlowPersistence

    @persist(WakelogFlowPersistence("agents.db"))
    class Report(Flow): ...

A flow is the session `crewai/<flow id>`, and its state is the session's data. Each completed method is a turn, whose
diff is what the method changed. Feedback that a flow waits for is a pending question.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import os
import pathlib
import uuid
import warnings
from collections.abc import Mapping
from typing import Any

import msgspec

from wakelog.adapters import frameworks

try:
    from crewai.flow.async_feedback.types import PendingFeedbackContext
    from crewai.flow.persistence.base import FlowPersistence
    from crewai.state.provider.json_provider import JsonProvider
    from pydantic import BaseModel, PrivateAttr
    from pydantic_core import PydanticSerializationError
except ImportError as exc:
    raise frameworks.missing("CrewAI", "crewai") from exc

from wakelog.adapters.compound_names import compound_name, ids_of
from wakelog.adapters.exact_values import from_stored, stored_form
from wakelog.adapters.held_logs import HeldLog, HeldLogs
from wakelog.adapters.stores import Place
from wakelog.errors import InvalidInputError
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread
from wakelog.state.diff import diff
from wakelog.store import Store
from wakelog.timeline.messages import content_of

frameworks.warn_outside("crewai", oldest="1.15.30", newest="1.15.30")

FLOWS, CHECKPOINTS = "crewai", "crewai-checkpoint"
_FEEDBACK, _CHECKPOINT = "crewai-feedback", "crewai-checkpoint"
_PRUNED = "x.crewai.checkpoints_pruned"
_decode = msgspec.json.Decoder().decode


class _StoreFields(BaseModel):
    """Base of adapters that CrewAI configures by fields."""

    url: str = ""
    """The path or URL of the store, as for `wakelog.open`. Empty for the default store."""
    _logs: HeldLogs = PrivateAttr()

    def __init__(self, store: Place = None, /, **kwargs: Any) -> None:
        """`store` is an open store, or an argument of `wakelog.open`."""
        if store is not None and not isinstance(store, Store):
            kwargs["url"] = os.fspath(store)
        super().__init__(**kwargs)
        self._logs = HeldLogs(store if isinstance(store, Store) else self.url or None, FLOWS)


class WakelogFlowPersistence(_StoreFields, FlowPersistence):  # type: ignore[misc]  # Any if it is not installed
    """Stores the state of flows in a wakelog store."""

    persistence_type: str = "WakelogFlowPersistence"

    @staticmethod
    def name_of(flow_uuid: str) -> str:
        """The name of a flow's session in the store."""
        return compound_name(FLOWS, flow_uuid)

    @staticmethod
    def id_of(name: str) -> str | None:
        """The id of the flow with this session name; None if the session is not CrewAI's."""
        ids = ids_of(FLOWS, name)
        return ids[0] if ids is not None else None

    def init_db(self) -> None:
        """Does nothing: opening a store creates it."""

    def save_state(self, flow_uuid: str, method_name: str, state_data: dict[str, Any] | BaseModel) -> None:
        self._save(flow_uuid, method_name, _stored_state(state_data))

    def load_state(self, flow_uuid: str) -> dict[str, Any] | None:
        held = self._logs.find(self.name_of(flow_uuid))
        found: dict[str, Any] | None = from_stored(held.log.state()["data"]) if held is not None else None
        return found

    def save_pending_feedback(
        self, flow_uuid: str, context: PendingFeedbackContext, state_data: dict[str, Any] | BaseModel
    ) -> None:
        stored = stored_form(_plain(context.to_dict(), "context"), "context")
        kept = ev.ItemsKept(format=_FEEDBACK, rest=msgspec.json.encode(stored).decode(), ids=(flow_uuid,))
        options = tuple(str(option) for option in context.emit or ())
        question = ev.InputRequested(request=f"feedback:{flow_uuid}", prompt=context.message or "", options=options)
        self._save(flow_uuid, context.method_name, _stored_state(state_data), question=question, kept=kept)

    def load_pending_feedback(self, flow_uuid: str) -> tuple[dict[str, Any], PendingFeedbackContext] | None:
        held = self._logs.find(self.name_of(flow_uuid))
        if held is None or f"feedback:{flow_uuid}" not in held.log.part("pending_actions"):
            return None
        found: tuple[Seq, Any] | None = None
        for entry in held.log.entries(payloads=True):
            if entry.kind == "items.kept" and entry.body.get("format") == _FEEDBACK:
                found = entry.seq, content_of(held.log, entry, "rest")
        if found is None or not isinstance(found[1], str):
            return None
        context = PendingFeedbackContext.from_dict(from_stored(_decode(found[1])))
        return from_stored(held.log.state(found[0])["data"]), context

    def clear_pending_feedback(self, flow_uuid: str) -> None:
        held = self._logs.find(self.name_of(flow_uuid))
        if held is None:
            return
        request = f"feedback:{flow_uuid}"

        def attempt() -> None:
            seq, parts, _ = held.log.look("pending_actions")
            if request in parts["pending_actions"]:
                answered = ev.InputAnswered(request=request, answer=None)
                held.log.append(EventDraft(answered, actor="user"), expect=seq)

        retry_on_moved_head(held.log.id, "to clear feedback", attempt)

    def _save(
        self,
        flow_uuid: str,
        method: str,
        state: dict[str, Value],
        *,
        question: ev.InputRequested | None = None,
        kept: ev.ItemsKept | None = None,
    ) -> None:
        held = self._logs.open(self.name_of(flow_uuid), {"crewai.flow": flow_uuid})

        def attempt() -> None:
            seq, now = held.log.now()
            drafts = [
                EventDraft(ev.TurnStarted(input=method), actor="runtime", source="crewai", trust="trusted"),
                EventDraft(ev.ActionRecorded(action=f"{method}:{seq}", tool=method, params={"kind": "flow method"})),
            ]
            if patch := diff(now["data"], state, "/data"):
                drafts.append(EventDraft(ev.StatePatched(patch=patch, why=f"{method} was completed")))
            if question is not None and kept is not None:
                if question.request in now["pending_actions"]:
                    drafts.append(EventDraft(ev.InputAnswered(request=question.request, answer=None), actor="runtime"))
                drafts += [EventDraft(question), EventDraft(kept, actor="runtime")]
            held.log.append(*drafts, EventDraft(ev.TurnEnded(), actor="runtime"), expect=seq)

        retry_on_moved_head(held.log.id, "to save the state of a flow", attempt)


class WakelogCheckpointProvider(_StoreFields, JsonProvider):  # type: ignore[misc]  # Any if it is not installed
    """Stores the checkpoints of crews and flows. Each is a point in the session `crewai-checkpoint/<location>`, and
    only its difference to the one before is stored.

    It derives from CrewAI's own provider because `CheckpointConfig` accepts no other. CrewAI restores only from its own
    files: `to_file` writes one."""

    def checkpoint(self, data: str, location: str, *, parent_id: str | None = None, branch: str = "main") -> str:
        state = _decode(data)
        if not isinstance(state, dict):
            raise InvalidInputError("a checkpoint is a JSON object", kind="not-a-value")
        stored = stored_form(state, "checkpoint")
        held = self._logs.open(compound_name(CHECKPOINTS, location), {"crewai.location": location})
        id = f"{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%S}_{uuid.uuid4().hex[:8]}"
        rest = msgspec.json.encode({"parent": parent_id, "branch": branch}).decode()

        def attempt() -> None:
            seq, now = held.log.now()
            patch = diff(now["data"], stored, "/data")
            drafts = [EventDraft(ev.StatePatched(patch=patch, why=f"checkpoint on {branch}"))] if patch else []
            kept = ev.ItemsKept(format=_CHECKPOINT, counts=(len(drafts),), rest=rest, ids=(id,))
            held.log.append(*drafts, EventDraft(kept, actor="runtime"), expect=seq)

        retry_on_moved_head(held.log.id, "to save a checkpoint", attempt)
        return f"{location}#{id}"

    async def acheckpoint(self, data: str, location: str, *, parent_id: str | None = None, branch: str = "main") -> str:
        return await in_thread(self.checkpoint, data, location, parent_id=parent_id, branch=branch)

    def prune(self, location: str, max_keep: int, *, branch: str = "main") -> int:
        """Hides all but the newest checkpoints of a branch; returns how many. The history keeps their content."""
        held = self._logs.find(compound_name(CHECKPOINTS, location))
        if held is None:
            return 0
        ids = [id for id, (_, rest) in _checkpoints(held).items() if rest["branch"] == branch]
        gone = ids[: max(0, len(ids) - max_keep)]
        if gone:
            held.log.append(EventDraft(ev.Foreign(foreign_kind=_PRUNED, data={"ids": gone}), actor="runtime"))
        return len(gone)

    def extract_id(self, location: str) -> str:
        return location.rsplit("#", 1)[1]

    def from_checkpoint(self, location: str) -> str:
        place, id = location.rsplit("#", 1)
        held = self._logs.find(compound_name(CHECKPOINTS, place))
        found = _checkpoints(held).get(id) if held is not None else None
        if held is None or found is None:
            raise ValueError(f"Checkpoint not found: {id}")
        return msgspec.json.encode(from_stored(held.log.state(found[0])["data"])).decode()

    async def afrom_checkpoint(self, location: str) -> str:
        return await in_thread(self.from_checkpoint, location)

    def to_file(self, location: str, path: str | os.PathLike[str]) -> str:
        """Writes a checkpoint to a file from which CrewAI can restore; returns its path."""
        pathlib.Path(path).write_text(self.from_checkpoint(location), encoding="utf-8")
        return os.fspath(path)


def _checkpoints(held: HeldLog) -> dict[str, tuple[Seq, dict[str, Any]]]:
    found: dict[str, tuple[Seq, dict[str, Any]]] = {}
    for entry in held.log.entries(payloads=True):
        if entry.kind == "items.kept" and entry.body.get("format") == _CHECKPOINT:
            rest = content_of(held.log, entry, "rest")
            if isinstance(rest, str):
                found[entry.body["ids"][0]] = entry.seq, _decode(rest)
        elif entry.kind == _PRUNED:
            for id in entry.body.get("ids", ()):
                found.pop(id, None)
    return found


def _stored_state(given: dict[str, Any] | BaseModel) -> dict[str, Value]:
    if not isinstance(given, dict | BaseModel):
        raise ValueError(f"state_data must be either a Pydantic BaseModel or dict, got {type(given)}")
    state: dict[str, Value] = stored_form(_plain(given, "state"), "state")
    return state


def _plain(value: Any, where: str) -> Any:
    """A value as JSON, in the form that CrewAI's own persistence writes. A value that has none becomes its text, as
    there, with a warning that names the place."""
    if isinstance(value, BaseModel):
        try:
            fields = value.model_dump(mode="json")
        except PydanticSerializationError:  # it does not name the place: look at the fields one by one
            fields = {name: getattr(value, name) for name in _fields(value)}
        return _plain(fields, where)
    if isinstance(value, Mapping):
        return {_key(key, where): _plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{n}]") for n, item in enumerate(value)]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item, where) for item in value), key=repr)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return _plain(value.value, where)
    if isinstance(value, uuid.UUID | decimal.Decimal | pathlib.PurePath):
        return str(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    warnings.warn(f"{where} is a {type(value).__name__}, which is not JSON: its text is stored", stacklevel=2)
    return str(value)


def _fields(value: BaseModel) -> list[str]:
    return [*type(value).model_fields, *(value.model_extra or {})]


def _key(key: Any, where: str) -> str:
    if isinstance(key, str | int | float | bool) or key is None:
        return key if isinstance(key, str) else msgspec.json.encode(key).decode()
    raise InvalidInputError(f"{where} cannot be stored: the key {key!r} is not a str", kind="not-a-value")
