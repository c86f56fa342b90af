"""One sample of an Inspect evaluation: its events in order, and the messages it ended with.

The events say what happened: calls of models and tools, spans around them, changes of the state as JSON Patch, scores.
The messages repeat that, and are read only if there are no events. Long texts are attachments of the sample, which
events refer to by hash. A span with a name is a call, and what happened in it is inside that call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.common.amounts import duration
from wakelog.importers.common.chat import blocks_of, first_choice, text_of
from wakelog.importers.common.file_changes import file_change
from wakelog.importers.common.foreign_state import ForeignState
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import RecordIds, json_digest
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.events import Cost
from wakelog.model.json_fields import as_dict, as_list, as_text, count_in, dicts_in, text_in, without_fields
from wakelog.model.usage import Usage
from wakelog.model.values import Value

_ATTACHED = "attachment://"
_SILENT = frozenset({"init", "tool", "sample"})
"""Spans that add nothing to what is in them."""


class SampleReader:
    def __init__(self, sample: dict[str, Any]) -> None:
        self._sample = sample
        self._attached = as_dict(sample.get("attachments"))
        self._ids = RecordIds()
        self._state = ForeignState()
        self._seen: set[str] = set()
        self._asked: set[str] = set()
        self._spans: dict[str, str] = {}
        """Each open span, and the nearest call around it."""
        self._stack: list[str] = []
        self._is_begun = False

    def records(self) -> Iterator[tuple[st.SourceRecord, int]]:
        events, messages = as_list(self._sample.get("events")), as_list(self._sample.get("messages"))
        for event in events:
            yield self._event_record(event), len(str(event))
        for message in messages:
            yield self._message_record(message, has_steps=not events), len(str(message))
        rest = {k: v for k, v in self._sample.items() if k not in ("events", "messages") or not isinstance(v, list)}
        steps = [*self._start_steps(), *self._ending(has_events=bool(events))]
        yield st.SourceRecord("sample", tuple(steps), rest=rest), len(str(rest))

    def _event_record(self, event: Any) -> st.SourceRecord:
        if not isinstance(event, dict):
            id = self._ids.unique(f"e:{json_digest(event)}")
            return st.SourceRecord(id, rest=event, broken="an event is not an object")
        id = self._ids.unique(f"e:{text_in(event, 'uuid') or json_digest(event)}")
        steps = list(self._steps(id, event))
        return st.SourceRecord(id, tuple(steps), microseconds(event.get("timestamp")), _rest(event) if steps else event)

    def _message_record(self, message: Any, has_steps: bool) -> st.SourceRecord:
        fields = as_dict(message)
        id = self._ids.unique(f"m:{text_in(fields, 'id') or json_digest(message)}")
        if not isinstance(message, dict):
            return st.SourceRecord(id, rest=message, broken="a message is not an object")
        steps = list(self._message_steps(id, message)) if has_steps else []
        rest = without_fields(message, ("content", "tool_calls")) if steps else message
        return st.SourceRecord(id, tuple(steps), rest=rest)

    # The start

    def _start_steps(self) -> Iterator[st.Step]:
        """The sample's input, once, before anything else."""
        if self._is_begun:
            return
        self._is_begun = True
        given = self._sample.get("input")
        messages = dicts_in(given)
        last = max((n for n, m in enumerate(messages) if m.get("role") == "user"), default=None)
        for number, message in enumerate(messages):
            self._seen.add(_message_key(message))
            content = self._fill_attachments(message.get("content"))
            if number == last:
                yield st.PromptStep(content)
            else:
                yield st.MessageStep(text_in(message, "role") or "user", content, name="context")
        if last is None and isinstance(given, str):
            self._seen.add(_message_key({"role": "user", "content": given}))
            yield st.PromptStep(self._fill_attachments(given))

    # Events

    def _steps(self, id: str, event: dict[str, Any]) -> Iterator[st.Step]:
        kind = event.get("event")
        if kind in ("sample_init", "model", "tool", "span_begin", "step"):
            yield from self._start_steps()
        match kind:
            case "sample_init":
                yield from self._state.put("state", event.get("state"))
                yield from self._state.put("store", as_dict(as_dict(event.get("state")).get("store")))
            case "state" | "store":
                yield from self._state.patch(event.get("changes"), str(kind))
            case "model":
                yield from self._model(id, event)
            case "tool":
                yield from self._tool(id, event)
            case "span_begin":
                yield from self._span(text_in(event, "id"), event, text_in(event, "parent_id"))
            case "span_end":
                yield from self._end_span(text_in(event, "id"))
            case "step":
                yield from self._legacy_step(id, event)
            case "subtask":
                yield from self._subtask(id, event)
            case "sandbox":
                yield from self._sandbox(id, event)
            case "score" | "score_edit":
                yield st.NoteStep(
                    _verdict(as_dict(event.get("score") or event.get("edit")), text_in(event, "score_name"))
                )
            case "error":
                yield st.NoteStep(f"error: {text_in(as_dict(event.get('error')), 'message')[: st.ERROR_MAX]}")
            case "sample_limit":
                yield st.NoteStep(
                    f"limit reached: {text_in(event, 'type')} {text_in(event, 'message')[: st.ERROR_MAX]}"
                )
            case "input" if text_in(event, "input"):
                yield st.MessageStep("user", event["input"], name="input")
            case "approval" if text_in(event, "decision"):
                call = text_in(as_dict(event.get("call")), "function")
                yield st.NoteStep(f"{text_in(event, 'approver')}: {event['decision']} {call}")

    def _model(self, id: str, event: dict[str, Any]) -> Iterator[st.Step]:
        inside = self._inside(event)
        output = as_dict(event.get("output"))
        choice = first_choice(output)
        message = as_dict(choice.get("message"))
        for given in as_list(event.get("input")):
            if isinstance(given, dict) and _message_key(given) not in self._seen:
                self._seen.add(_message_key(given))
                yield from self._context(given, inside)
        self._seen.add(_message_key(message))
        if not message:
            if failure := text_in(event, "error") or text_in(output, "error"):
                yield st.MessageStep("assistant", failure[: st.ERROR_MAX], name="error")
            return
        model = text_in(output, "model") or text_in(event, "model")
        stop = text_in(choice, "stop_reason")
        yield from self._reply(id, message, model, _usage(as_dict(output.get("usage"))), stop, inside)

    def _context(self, message: dict[str, Any], inside: str) -> Iterator[st.Step]:
        """A message in a model's input that was not seen before."""
        role, content = text_in(message, "role"), self._fill_attachments(message.get("content"))
        if role == "system":
            yield st.MessageStep("system", content, name="instructions")
        elif role == "user":
            yield st.MessageStep("user", content, name="inner" if inside else "context")

    def _reply(
        self, id: str, message: dict[str, Any], model: str, usage: Usage, stop: str, inside: str
    ) -> Iterator[st.Step]:
        asks = []
        for number, call in enumerate(as_list(message.get("tool_calls"))):
            fields = as_dict(call)
            tool = text_in(fields, "function") or text_in(as_dict(fields.get("function")), "name") or "unknown"
            arguments = fields.get("arguments")
            call_id = text_in(fields, "id") or f"{id}.{number}"
            asks.append(st.CallStep(call_id, tool, arguments, effect_of(tool, arguments), group=id, inside=inside))
            self._asked.add(call_id)
        content = self._fill_attachments(message.get("content"))
        thinking = "\n".join(text_in(as_dict(b), "reasoning") for b in as_list(content) if as_dict(b).get("reasoning"))
        yield st.ReplyStep(
            id,
            blocks_of(text_of(content), asks, thinking),
            model=model.rpartition("/")[2] if model.count("/") == 1 else model,
            usage=usage,
            stop_reason=stop,
            is_last=not asks and not inside,
            inside=inside,
        )
        yield from asks

    def _tool(self, id: str, event: dict[str, Any]) -> Iterator[st.Step]:
        call, tool, arguments = (
            text_in(event, "id") or id,
            text_in(event, "function") or "unknown",
            event.get("arguments"),
        )
        if call not in self._asked:
            yield st.CallStep(call, tool, arguments, effect_of(tool, arguments), inside=self._inside(event))
        self._asked.discard(call)
        for number, nested in enumerate(as_list(event.get("events"))):
            if isinstance(nested, dict):
                yield from self._steps(f"{id}.{number}", nested)
        outcome, error = _outcome(event.get("error"))
        output = self._fill_attachments(event.get("result"))
        if (output is None or output == "") and error:
            output = error
        yield st.ResultStep(call, output, outcome, error, cost=Cost(duration_us=duration(event.get("working_time"))))

    # Spans, and their predecessors in older versions

    def _inside(self, event: dict[str, Any]) -> str:
        """The call around an event."""
        if self._stack:
            return self._stack[-1]
        return self._spans.get(text_in(event, "span_id"), "")

    def _span(self, id: str, event: dict[str, Any], parent: str) -> Iterator[st.Step]:
        around = self._spans.get(parent, "")
        kind, name = text_in(event, "type"), text_in(event, "name")
        if not id:
            return
        if kind in _SILENT or not name or (not kind and name in ("solvers", "scorers")):
            self._spans[id] = around
            return
        self._spans[id] = id
        yield st.CallStep(id, f"{kind}:{name}" if kind else name, {"span": kind or name}, "pure", inside=around)
        self._asked.add(id)

    def _end_span(self, id: str) -> Iterator[st.Step]:
        if id in self._asked:
            self._asked.discard(id)
            yield st.ResultStep(id, None)

    def _legacy_step(self, id: str, event: dict[str, Any]) -> Iterator[st.Step]:
        if event.get("action") == "begin":
            name = text_in(event, "name") or "step"
            around = self._stack[-1] if self._stack else ""
            yield st.CallStep(id, f"{text_in(event, 'type') or 'step'}:{name}", {"span": name}, "pure", inside=around)
            self._asked.add(id)
            self._stack.append(id)
        elif event.get("action") == "end" and self._stack:
            yield from self._end_span(self._stack.pop())

    def _subtask(self, id: str, event: dict[str, Any]) -> Iterator[st.Step]:
        yield st.CallStep(
            id, f"subtask:{text_in(event, 'name')}", event.get("input"), "pure", inside=self._inside(event)
        )
        for number, nested in enumerate(as_list(event.get("events"))):
            if isinstance(nested, dict):
                yield from self._steps(f"{id}.{number}", nested)
        yield st.ResultStep(id, event.get("result"), cost=Cost(duration_us=duration(event.get("working_time"))))

    def _sandbox(self, id: str, event: dict[str, Any]) -> Iterator[st.Step]:
        action = text_in(event, "action") or "exec"
        value: Value = {k: event[k] for k in ("cmd", "file", "input", "options") if event.get(k) is not None}
        effect = {"read_file": "read_file", "write_file": "write_file"}.get(action, "bash")
        result = event.get("result")
        is_failed = type(result) is int and result != 0
        path = text_in(event, "file")
        files = (file_change(path),) if action == "write_file" and path and not is_failed else ()
        yield st.CallStep(
            id, f"sandbox:{action}", value, effect_of(effect, {"command": event.get("cmd")}), inside=self._inside(event)
        )
        output = event.get("output")
        error = text_of(output)[-st.ERROR_MAX :] if is_failed else ""
        yield st.ResultStep(id, output, "failed" if is_failed else "succeeded", error, files)

    # Messages, if there are no events

    def _message_steps(self, id: str, message: dict[str, Any]) -> Iterator[st.Step]:
        content = self._fill_attachments(message.get("content"))
        match message.get("role"):
            case "system":
                yield st.MessageStep("system", content, name="instructions")
            case "user" if not self._is_begun:
                self._is_begun = True
                yield st.PromptStep(content)
            case "user":
                yield st.MessageStep("user", content, name="message")
            case "assistant":
                yield from self._start_steps()
                yield from self._reply(id, message, text_in(message, "model"), Usage(), "", "")
            case "tool":
                call = text_in(message, "tool_call_id") or id
                if call not in self._asked:
                    yield st.CallStep(call, text_in(message, "function") or "unknown", None)
                self._asked.discard(call)
                outcome, error = _outcome(message.get("error") or message.get("tool_error"))
                yield st.ResultStep(call, content if content not in (None, "") else error or content, outcome, error)

    # The end

    def _ending(self, has_events: bool) -> Iterator[st.Step]:
        sample = self._sample
        if not has_events:
            for model, used in as_dict(sample.get("model_usage")).items():
                yield st.CostStep(model.rpartition("/")[2], _usage(as_dict(used)))
        single = {"score": sample["score"]} if sample.get("score") is not None else {}
        scores = as_dict(sample.get("scores")) or single
        labels = {f"score.{name}"[:100]: label_of(score) for name, score in scores.items()}
        if len(scores) == 1:
            labels["score"] = next(iter(labels.values()))
        if labels:
            yield st.LabelsStep({k: v for k, v in labels.items() if v})
        if not any(as_dict(e).get("event") == "score" for e in as_list(sample.get("events"))):
            yield from (st.NoteStep(_verdict(as_dict(score), name)) for name, score in scores.items())
        if "id" not in sample:
            return  # events alone: nothing says whether they are complete
        failure = text_in(as_dict(sample.get("error")), "message")
        limit = text_in(as_dict(sample.get("limit")), "type")
        yield st.TurnEndStep("failed" if failure else "interrupted" if limit else "completed", failure[: st.ERROR_MAX])
        yield st.FinishStep("failed" if failure else f"{limit} limit" if limit else "completed")

    def _fill_attachments(self, value: Any) -> Any:
        """A value with its attachments filled in."""
        if isinstance(value, str) and value.startswith(_ATTACHED):
            return self._attached.get(value[len(_ATTACHED) :], value)
        if isinstance(value, list):
            return [self._fill_attachments(v) for v in value]
        return {k: self._fill_attachments(v) for k, v in value.items()} if isinstance(value, dict) else value


def label_of(score: Any) -> str:
    """A score's value as a short string."""
    value = score.get("value") if isinstance(score, dict) else score
    if isinstance(value, float):
        return f"{value:g}"
    return value[:100] if isinstance(value, str) else msgspec.json.encode(value).decode()[:100]


def _verdict(score: dict[str, Any], name: str) -> str:
    reason = text_in(score, "explanation") or text_in(score, "answer")
    return f"{name or 'score'} {label_of(score)}" + (f": {reason[: st.ERROR_MAX]}" if reason else "")


def _message_key(message: dict[str, Any]) -> str:
    id = text_in(message, "id")
    return id or json_digest([message.get("role"), message.get("content")])


def _usage(data: dict[str, Any]) -> Usage:
    tokens_in, tokens_out = count_in(data, "input_tokens"), count_in(data, "output_tokens")
    read, written = count_in(data, "input_tokens_cache_read"), count_in(data, "input_tokens_cache_write")
    thought = min(tokens_out, count_in(data, "reasoning_tokens"))
    # Some providers include cached tokens in the input, some do not. The total tells which.
    if count_in(data, "total_tokens") == tokens_in + tokens_out:
        tokens_in = max(0, tokens_in - read - written)
    return Usage(input=tokens_in, cache_read=read, cache_write=written, output=tokens_out - thought, reasoning=thought)


def _outcome(error: Any) -> tuple[st.Outcome, str]:
    if not error:
        return "succeeded", ""
    fields = as_dict(error)
    message = (text_in(fields, "message") or as_text(error))[: st.ERROR_MAX]
    match fields.get("type"):
        case "timeout":
            return "timed_out", message
        case "approval":
            return "denied", message
    return "failed", message


def _rest(event: dict[str, Any]) -> dict[str, Any]:
    """What the steps of an event do not cover. The input of a model is kept: it shows how the prompt was built."""
    held = ("timestamp", "arguments", "result") if event.get("event") == "tool" else ("timestamp",)
    return without_fields(event, held)
