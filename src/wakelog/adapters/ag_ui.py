"""AG-UI: streams a session as events for a user interface, and records such events as a session.

    from wakelog.adapters.ag_ui import session_events

    for event in session_events(store.resume("fix-auth")):
        yield encoder.encode(event)

A session is a thread, and a turn is a run. Each run starts with a snapshot of the session's data; later changes are
JSON Patches. `AgUiRecorder` does the reverse: it records what an agent streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from wakelog.adapters import frameworks
from wakelog.model.json_fields import as_dict

try:
    from ag_ui import core as ui
except ImportError as exc:
    raise frameworks.missing("AG-UI", "ag-ui") from exc

from wakelog.importers.event_streams.ag_ui import NAME, ThreadReader
from wakelog.importers.source.files import storable
from wakelog.importers.steps import TranscriptHead
from wakelog.importers.writer.imported_records import rests_of
from wakelog.importers.writer.session_writer import SessionWriter
from wakelog.log.reader import Entry
from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.ids import Seq
from wakelog.model.parts import Text, Thinking, is_answer, parts_of, text_of
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.store import Store
from wakelog.timeline.messages import Message, content_of, is_input_said

frameworks.warn_outside("ag-ui-protocol", oldest="1.0.0", newest="1.0.0")

_OUTCOMES = frozenset({"action.succeeded", "action.failed", "action.timed_out", "action.denied", "action.reconciled"})
_CUSTOM_KINDS = frozenset(
    {
        *("decision.made", "fact.recorded", "dead_end.noted", "artefact.recorded", "file.changed", "flag.raised"),
        *("input.requested", "checkpoint.named", "note.added", "goal.set"),
    }
)
"""Kinds that AG-UI has no event for, but that an interface may show. They become custom events."""
_ROLES = frozenset({"user", "assistant", "system", "developer"})


def session_events(
    session: Session[Any], *, after: Seq = 0, follow: bool = False, timeout_s: float | None = None
) -> Iterator[Any]:
    """The turns of a session as AG-UI events: all, or those that start after an event. With `follow`, also what is
    appended later, until nothing arrives for `timeout_s`."""
    log = session.log
    stream = _SessionStream(session, has_history=after > 0)
    for entry in log.follow(after=after, timeout_s=timeout_s) if follow else log.entries(after=after, payloads=True):
        yield from stream.events(entry)


class _SessionStream:
    """Converts the entries of a session to AG-UI events."""

    def __init__(self, session: Session[Any], *, has_history: bool) -> None:
        self._session = session
        self._log = session.log
        self._thread = session.name or str(session.id)
        self._run = ""
        self._is_behind = has_history
        """True if there are messages that no run has shown."""
        self._models: set[Any] = set()
        self._said: set[str] = set()
        self._at = 0

    def events(self, entry: Entry) -> Iterator[Any]:
        self._at = entry.happened_at // 1000
        match entry.kind:
            case "turn.started":
                yield from self._begin(entry)
            case "turn.ended":
                yield from self._end(entry)
            case _ if not self._run:
                self._is_behind = self._is_behind or entry.kind in ("message.added", "history.rewound")
            case "message.added":
                yield from self._message(entry)
            case "action.requested" | "action.recorded":
                yield from self._call(entry)
            case "state.patched":
                delta = [{**op, "path": op["path"].removeprefix("/data")} for op in entry.delta]
                yield ui.StateDeltaEvent(delta=delta, timestamp=self._at)
            case "history.rewound" | "history.adopted":
                yield from self._snapshots(entry.seq)
            case kind if kind in _OUTCOMES:
                yield from self._outcome(entry)
            case kind if kind in _CUSTOM_KINDS:
                body = {key: value for key, value in entry.body.items() if key != "delta"}
                yield ui.CustomEvent(name=f"wakelog.{kind}", value={"seq": entry.seq, **body}, timestamp=self._at)

    # Runs

    def _begin(self, entry: Entry) -> Iterator[Any]:
        if self._run:
            yield self._finished()
        self._run = f"{self._session.id}@{entry.header.turn}.{entry.header.attempt}"
        self._said.clear()
        yield ui.RunStartedEvent(thread_id=self._thread, run_id=self._run, timestamp=self._at)
        state = self._log.state(entry.seq)
        yield ui.StateSnapshotEvent(snapshot=state["data"], timestamp=self._at)
        if self._is_behind:
            yield from self._history(entry.seq - 1)
        if entry.body.get("input") is not None and not is_input_said(self._log, entry):
            yield from self._text(f"e{entry.seq}", "user", content_of(self._log, entry, "input"))

    def _end(self, entry: Entry) -> Iterator[Any]:
        if not self._run:
            return
        error = entry.body.get("error")
        if entry.body.get("outcome") == "failed":
            failure = as_dict(error)
            message = text_of(failure.get("message") or failure.get("type") or "the turn failed")
            code = text_of(failure.get("type") or "failed")
            yield ui.RunErrorEvent(message=message, code=code, timestamp=self._at)
            self._run = ""
        else:
            yield self._finished()

    def _finished(self) -> Any:
        run, self._run = self._run, ""
        return ui.RunFinishedEvent(thread_id=self._thread, run_id=run, timestamp=self._at)

    def _snapshots(self, seq: Seq) -> Iterator[Any]:
        yield ui.StateSnapshotEvent(snapshot=self._log.state(seq)["data"], timestamp=self._at)
        yield from self._history(seq)

    def _history(self, seq: Seq) -> Iterator[Any]:
        self._is_behind = False
        if seq > 0:
            messages = [shown for m in self._session.messages(seq) if (shown := _snapshot_message(m)) is not None]
            yield ui.MessagesSnapshotEvent(messages=messages, timestamp=self._at)

    # Messages and calls

    def _message(self, entry: Entry) -> Iterator[Any]:
        role, content = str(entry.body.get("role")), content_of(self._log, entry, "content")
        if role in _ROLES and not (role == "assistant" and _words(content) in self._said):
            yield from self._text(f"e{entry.seq}", role, content)

    def _text(self, id: str, role: str, content: Value) -> Iterator[Any]:
        if not (words := _words(content)):
            return
        yield ui.TextMessageStartEvent(message_id=id, role=role, timestamp=self._at)
        yield ui.TextMessageContentEvent(message_id=id, delta=words, timestamp=self._at)
        yield ui.TextMessageEndEvent(message_id=id, timestamp=self._at)

    def _call(self, entry: Entry) -> Iterator[Any]:
        body = entry.body
        if body.get("effect") == "model":
            self._models.add(body.get("action"))
            if entry.kind == "action.recorded":
                yield from self._reply(entry)
            return
        id = str(body.get("action"))
        given = text_of(content_of(self._log, entry, "input")) if body.get("input") is not None else "{}"
        parent = str(body["group"]) if body.get("group") else None
        yield ui.ToolCallStartEvent(
            tool_call_id=id, tool_call_name=str(body.get("tool")), parent_message_id=parent, timestamp=self._at
        )
        yield ui.ToolCallArgsEvent(tool_call_id=id, delta=given, timestamp=self._at)
        yield ui.ToolCallEndEvent(tool_call_id=id, timestamp=self._at)
        if entry.kind == "action.recorded":
            yield self._result(entry)

    def _outcome(self, entry: Entry) -> Iterator[Any]:
        action = entry.body.get("action")
        if action not in self._models and not self._is_model(entry):
            if not (entry.body.get("retry") and entry.kind != "action.succeeded"):
                yield self._result(entry)
        elif entry.kind in ("action.succeeded", "action.reconciled"):
            yield from self._reply(entry)

    def _is_model(self, entry: Entry) -> bool:
        """True if a call that was requested before this stream started is a model call."""
        cause = entry.header.cause
        request = self._log.entry(cause) if cause else None
        return request is not None and request.kind in BEGIN_KINDS and request.body.get("effect") == "model"

    def _result(self, entry: Entry) -> Any:
        output, error = content_of(self._log, entry, "output"), entry.body.get("error")
        if output is None and isinstance(error, dict):
            output = f"{text_of(error.get('type', 'error'))}: {text_of(error.get('message', ''))}"
        content = _words(output) or text_of(output if output is not None else entry.body.get("outcome", entry.kind))
        return ui.ToolCallResultEvent(
            message_id=f"e{entry.seq}", tool_call_id=str(entry.body.get("action")), content=content, timestamp=self._at
        )

    def _reply(self, entry: Entry) -> Iterator[Any]:
        answer = content_of(self._log, entry, "output")
        id = str(entry.body.get("action"))
        for part in parts_of(answer) if is_answer(answer) else ():
            if isinstance(part, Thinking) and (thought := part.block.get("thinking")):
                yield from self._reasoning(f"{id}:thought", str(thought))
        if words := _words(answer):
            self._said.add(words)
        yield from self._text(id, "assistant", answer)

    def _reasoning(self, id: str, thought: str) -> Iterator[Any]:
        yield ui.ReasoningStartEvent(message_id=id, timestamp=self._at)
        yield ui.ReasoningMessageStartEvent(message_id=id, role="reasoning", timestamp=self._at)
        yield ui.ReasoningMessageContentEvent(message_id=id, delta=thought, timestamp=self._at)
        yield ui.ReasoningMessageEndEvent(message_id=id, timestamp=self._at)
        yield ui.ReasoningEndEvent(message_id=id, timestamp=self._at)


def _words(content: Value) -> str:
    """The text of a content, without its tool calls."""
    return "\n".join(part.text for part in parts_of(content) if isinstance(part, Text))


def _snapshot_message(message: Message) -> Any:
    id, words = f"e{message.seq}", _words(message.content)
    match message.role:
        case "user":
            return ui.UserMessage(id=id, role="user", content=words)
        case "assistant":
            return ui.AssistantMessage(id=id, role="assistant", content=words)
        case "system" | "summary":
            return ui.SystemMessage(id=id, role="system", content=words)
        case "tool" if message.action:
            return ui.ToolMessage(id=id, role="tool", content=words, tool_call_id=message.action)
    return None


class AgUiRecorder:
    """Records the events that agents stream, one session for each thread. Pass it every event, in order, and close it.
    A run that was recorded to its end is not recorded again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._threads: dict[str, tuple[ThreadReader, SessionWriter]] = {}
        self._done: dict[str, set[str]] = {}
        """The runs that were recorded to their end, by thread."""
        self._thread = self._run = ""
        self._is_known = False

    def take(self, event: Any) -> None:
        """Takes one event, an AG-UI object or a mapping. It is stored when its run ends."""
        plain = _plain(event)
        self._thread = str(plain.get("threadId") or plain.get("thread_id") or self._thread or "thread")
        reader, writer = self._open(self._thread)
        is_end = plain.get("type") in ("RUN_FINISHED", "RUN_ERROR")
        if plain.get("type") == "RUN_STARTED":
            self._run = _run_of(plain)
            self._is_known = self._run in self._done[self._thread]
        if self._is_known:
            self._is_known = not is_end
            return
        for record, size in reader.records([(plain, "", len(msgspec.json.encode(plain)))]):
            writer.take(record, size)
        if is_end:
            self._done[self._thread].add(self._run)
            writer.close()

    def take_all(self, events: Iterable[Any]) -> None:
        for event in events:
            self.take(event)

    def session(self, thread_id: str) -> Session[Any]:
        return self._store.resume(self._open(thread_id)[1].name)

    def close(self) -> None:
        """Stores the runs that did not end."""
        for _, writer in self._threads.values():
            writer.close()

    def _open(self, thread: str) -> tuple[ThreadReader, SessionWriter]:
        if thread not in self._threads:
            writer = SessionWriter(self._store, TranscriptHead(thread, NAME), format=NAME, source="stream", stat=(0, 0))
            reader, done, run = ThreadReader(), self._done.setdefault(thread, set()), ""
            for event in _source_events(writer.session) if writer.session is not None else ():
                for record, size in reader.records([(event, "", 0)]):
                    writer.take(record, size)
                run = _run_of(event) or run
                if event.get("type") in ("RUN_FINISHED", "RUN_ERROR"):
                    done.add(run)
            self._threads[thread] = reader, writer
        return self._threads[thread]


def _source_events(session: Session[Any]) -> Iterator[dict[str, Any]]:
    """The AG-UI events that a session was made from, so that the reader can continue after them."""
    for entry in session.log.entries():
        if entry.kind == "records.imported":
            yield from (e for e in rests_of(content_of(session.log, entry, "rest")) if isinstance(e, dict))


def _run_of(event: dict[str, Any]) -> str:
    return str(event.get("runId") or event.get("run_id") or "")


def _plain(event: Any) -> dict[str, Any]:
    if isinstance(event, Mapping):
        return dict(storable(dict(event)))
    return dict(storable(event.model_dump(mode="json", by_alias=True, exclude_none=True)))
