"""Google ADK: the SQLite databases of its `DatabaseSessionService` and `SqliteSessionService`.

A session is a row of `sessions`, and each row of `events` is one record. In the current schema an event is JSON
(`event_data`). Before, it had a column for each field, and its actions were a pickle. Unpickling can run code, so the
actions are skipped and a gap is noted. To continue such sessions in ADK itself, see docs/how-to/google-adk.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.coding_agents.gemini_cli.messages import text_of
from wakelog.importers.common.chat import call_block
from wakelog.importers.common.foreign_state import ForeignState
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import Sample, home_files, json_digest, storable
from wakelog.importers.source.foreign_database import MAGIC, open_database, table_names
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.json_fields import as_dict, as_text, dicts_in
from wakelog.model.usage import usage_of

NAME = "adk"
TITLE = "Google ADK"
find_in_home = home_files()
_TABLES = {"app_states", "user_states", "sessions", "events"}
_SESSIONS = """
select s.app_name, s.user_id, s.id, s.state, count(e.id) as events, max(e.timestamp) as last from sessions s
left join events e on e.app_name = s.app_name and e.user_id = s.user_id and e.session_id = s.id
group by s.app_name, s.user_id, s.id order by s.create_time, s.id
"""
_EVENTS = "select * from events where app_name = ? and user_id = ? and session_id = ? order by timestamp, rowid"
_JSON_COLUMNS = ("content", "usage_metadata", "custom_metadata", "grounding_metadata")
_decode = msgspec.json.Decoder().decode


def recognises(sample: Sample) -> bool:
    return sample.start.startswith(MAGIC) and table_names(sample.path) >= _TABLES


def transcripts(path: Path) -> Iterator[st.Transcript]:
    with open_database(path) as db:
        rows = db.execute(_SESSIONS).fetchall()
    for row in rows:
        app, user, id = str(row["app_name"]), str(row["user_id"]), str(row["id"])
        head = st.TranscriptHead(
            f"{app}/{user}/{id}", NAME, labels={"adk.app": app, "adk.user": user, "adk.session": id}
        )
        stat = int(row["events"]), microseconds(row["last"])
        yield st.Transcript(head, partial(_records, path, (app, user, id), _json(row["state"])), stat)


def _records(path: Path, ids: tuple[str, str, str], state: Any) -> Iterator[tuple[st.SourceRecord, int]]:
    reader = _EventReader()
    with open_database(path) as db:
        for row in db.execute(_EVENTS, ids):
            yield reader.record(dict(row))
        yield reader.state_record(state)


class _EventReader:
    def __init__(self) -> None:
        self._invocation = ""
        self._state = ForeignState()
        self._known: dict[str, Any] = {}
        self._at = 0

    def record(self, row: dict[str, Any]) -> tuple[st.SourceRecord, int]:
        id = str(row.get("id"))
        raw = row.get("event_data")
        event = _json(raw) if "event_data" in row else _from_columns(row)
        self._at = microseconds(row.get("timestamp"))
        if not isinstance(event, dict):
            return st.SourceRecord(id, at=self._at, rest=storable(raw), broken=f"event {id} is not an object"), 0
        event = storable(event)
        invocation = str(row.get("invocation_id") or event.get("invocation_id") or "")
        steps = list(self._steps(id, invocation, event))
        if isinstance(row.get("actions"), bytes):
            steps.append(st.GapStep("the actions of this event, a pickle that is not read"))
        self._invocation = invocation
        size = len(raw) if isinstance(raw, str | bytes) else 0
        return st.SourceRecord(id, tuple(steps), self._at, rest=event), size

    def state_record(self, state: Any) -> tuple[st.SourceRecord, int]:
        """The part of the state that no event set: what the session was created with."""
        rest = {k: v for k, v in state.items() if self._known.get(k) != v} if isinstance(state, dict) else {}
        steps = [step for key, value in storable(rest).items() for step in self._state.put(key, value)]
        return st.SourceRecord(f"state/{json_digest(storable(rest))}", tuple(steps), self._at), 0

    def _steps(self, id: str, invocation: str, event: dict[str, Any]) -> Iterator[st.Step]:
        parts = dicts_in(as_dict(event.get("content")).get("parts"))
        words = text_of(parts)
        is_user = event.get("author") == "user"
        for part in parts:
            if isinstance(answer := _first_of(part, "function_response", "functionResponse"), dict):
                yield _result(answer)
        if is_user and words:
            if invocation != self._invocation or not self._invocation:
                yield st.PromptStep(words, id=invocation)
            else:
                yield st.MessageStep("user", words, name="queued")
        elif not is_user:
            yield from self._reply_steps(id, event, parts)
        for key, value in as_dict(_first_of(event.get("actions"), "state_delta", "stateDelta")).items():
            self._known[key] = value
            yield from self._state.put(key, value)
        if event.get("error_code"):
            yield st.TurnEndStep("failed", str(event.get("error_message") or event["error_code"])[: st.ERROR_MAX])

    def _reply_steps(self, id: str, event: dict[str, Any], parts: list[dict[str, Any]]) -> Iterator[st.Step]:
        blocks: list[dict[str, Any]] = []
        asks: list[st.CallStep] = []
        for number, part in enumerate(parts):
            call = _first_of(part, "function_call", "functionCall")
            if isinstance(call, dict):
                own, name = str(call.get("id") or f"{id}-{number}"), str(call.get("name") or "unknown")
                blocks.append(call_block(own, name))
                asks.append(st.CallStep(own, name, call.get("args"), effect_of(name, call.get("args")), group=id))
            elif isinstance(text := part.get("text"), str) and text:
                kind = "thinking" if part.get("thought") is True else "text"
                blocks.append({"type": kind, kind: text})
        usage = usage_of({"usage_metadata": _first_of(event, "usage_metadata", "usageMetadata")})
        if blocks or usage.is_known:
            model = as_text(_first_of(event, "model_version", "modelVersion"))
            stop = as_text(_first_of(event, "finish_reason", "finishReason"))
            yield st.ReplyStep(id, blocks, model=model, usage=usage, stop_reason=stop, is_last=not asks)
        yield from asks


def _result(answer: dict[str, Any]) -> st.ResultStep:
    response = answer.get("response")
    error = response.get("error") if isinstance(response, dict) and "result" not in response else None
    outcome: Any = "failed" if error else "succeeded"
    return st.ResultStep(str(answer.get("id") or ""), response, outcome, str(error)[: st.ERROR_MAX] if error else "")


def _from_columns(row: dict[str, Any]) -> dict[str, Any]:
    event = {k: v for k, v in row.items() if v is not None and not isinstance(v, bytes)}
    return event | {name: _json(event[name]) for name in _JSON_COLUMNS if name in event}


def _first_of(held: Any, *names: str) -> Any:
    return next((held[name] for name in names if held.get(name) is not None), None) if isinstance(held, dict) else None


def _json(text: Any) -> Any:
    try:
        return _decode(text) if isinstance(text, str | bytes) else text
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
