"""Reads messages of OpenCode into named steps.

Messages and parts are rewritten while they grow: a call is pending, runs, is over. A text is imported once it is
complete, a call once it runs, its result once it exists. Step names count the texts within a message and use the ids of
calls, so they are the same in every version of the store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from wakelog.importers import steps as st
from wakelog.importers.coding_agents.opencode.files import changes_of
from wakelog.importers.common.amounts import micros, read_usage, usage_sum
from wakelog.importers.common.chat import call_block, image_block, join_texts, text_block, thinking_block
from wakelog.importers.common.file_changes import TrackedFiles
from wakelog.importers.common.tools import effect_of
from wakelog.importers.steps import NamedStep
from wakelog.model.events import Cost
from wakelog.model.json_fields import as_dict, as_text, dicts_in, text_in
from wakelog.model.usage import Usage
from wakelog.model.values import Value

_DENIED = re.compile(
    r"rejected permission|user (?:rejected|denied|dismissed)|permission (?:was )?denied", re.IGNORECASE
)
_STOPPED = re.compile(r"aborted|interrupted|cancelled", re.IGNORECASE)
_TIMED_OUT = re.compile(r"exceed(?:ed|ing) (?:the )?timeout|timed out", re.IGNORECASE)


def user_steps(id: str, parts: list[dict[str, Any]]) -> Iterator[NamedStep]:
    """A user's message: their own input starts a turn, what was added to it does not."""
    own: list[dict[str, Value]] = []
    notes: list[str] = []
    for part in parts:
        text = part.get("text")
        match part.get("type"):
            case "text" if isinstance(text, str) and text.strip():
                if part.get("synthetic") is True or part.get("ignored") is True:
                    notes.append(text)
                else:
                    own.append(text_block(text))
            case "subtask" if isinstance(part.get("prompt"), str):
                own.append(text_block(part["prompt"]))
            case "file":
                own.append(_file(part))
    if own:
        yield f"{id}/prompt", st.PromptStep(join_texts(own), id=id)
    for number, note in enumerate(notes):
        yield f"{id}/note/{number}", st.MessageStep("user", note, name="context", trust="unverified")


class ReplyReader:
    """Reads one message of the model: its parts, in order."""

    def __init__(self, id: str, info: dict[str, Any], parts: list[dict[str, Any]], files: TrackedFiles) -> None:
        self._id, self._files = id, files
        self._model = text_in(info, "modelID") or text_in(as_dict(info.get("model")), "id")
        self._folder = text_in(as_dict(info.get("path")), "cwd")
        self._is_over = bool(as_dict(info.get("time")).get("completed") or info.get("error"))
        self._is_summary = info.get("summary") is True
        self._steps = _usages(info if self._is_over else {}, parts)
        self._step = 0
        self._texts = 0

    def _reply(self, *blocks: dict[str, Value]) -> st.ReplyStep:
        usage, paid = self._steps[min(self._step, len(self._steps) - 1)]
        id = self._id if not self._step else f"{self._id}.{self._step + 1}"
        return st.ReplyStep(id, list(blocks), model=self._model, usage=usage, cost_micros=paid)

    def parts(self, parts: list[dict[str, Any]]) -> list[tuple[list[NamedStep], bool]]:
        """The steps of each part, and whether the part has any. What the model said and requested at once stays
        together at its first part, so an early result does not split it."""
        results: list[tuple[list[NamedStep], bool]] = []
        first: list[NamedStep] | None = None
        for number, part in enumerate(parts):
            named = list(self._part(part, is_last=number == len(parts) - 1))
            results.append((named, bool(named)))
            if part.get("type") == "step-finish":
                first = None
            elif first is None:
                first = named if named else None
            else:
                early = [n for n in named if not isinstance(n[1], st.ResultStep)]
                named[:] = [n for n in named if isinstance(n[1], st.ResultStep)]
                place = next((i for i, n in enumerate(first) if isinstance(n[1], st.ResultStep)), len(first))
                first[place:place] = early
        return results

    def _part(self, part: dict[str, Any], *, is_last: bool) -> Iterator[NamedStep]:
        """The steps of a part. The last part may be incomplete."""
        kind, text = part.get("type"), part.get("text")
        match kind:
            case "text" | "reasoning" if isinstance(text, str) and text.strip():
                time = as_dict(part.get("time"))
                if is_last and not (self._is_over or time.get("end") or time.get("completed")):
                    return
                self._texts += 1
                name = f"{self._id}/{kind}/{self._texts}"
                if self._is_summary and kind == "text":
                    yield name, st.CompactionStep(text)
                else:
                    yield name, self._reply(text_block(text) if kind == "text" else thinking_block(text))
            case "tool":
                yield from self._tool(part)
            case "step-finish":
                yield f"{self._id}/used/{self._step}", self._reply()
                self._step += 1

    def _tool(self, part: dict[str, Any]) -> Iterator[NamedStep]:
        call = text_in(part, "callID") or text_in(part, "id")
        tool, state = text_in(part, "tool") or text_in(part, "name") or "unknown", as_dict(part.get("state"))
        status, value = state.get("status"), state.get("input")
        if status not in ("running", "completed", "error") or not call:
            return
        reply = self._reply(call_block(call, tool))
        yield f"mention/{call}", reply
        yield f"ask/{call}", st.CallStep(call, tool, value, effect_of(tool, value), group=reply.id)
        if status != "running":
            yield f"answer/{call}", self._result(call, tool, value, state)

    def _result(self, call: str, tool: str, value: Value, state: dict[str, Any]) -> st.ResultStep:
        output = _output(state)
        text = as_text(output)
        metadata, time = as_dict(state.get("metadata")), as_dict(state.get("time"))
        error = _error(state.get("error"))
        outcome = _outcome(tool, text, error, state.get("status"), metadata)
        child = metadata.get("sessionId") or metadata.get("sessionID")
        start, end = time.get("start"), time.get("end")
        took = end - start if isinstance(start, int | float) and isinstance(end, int | float) else 0
        return st.ResultStep(
            call,
            output if output is not None else error or None,
            outcome,
            error="" if outcome == "succeeded" else (error or text)[: st.ERROR_MAX],
            files=tuple(changes_of(tool, value, metadata, self._folder, self._files)) if outcome == "succeeded" else (),
            cost=Cost(duration_us=int(took * 1000)) if 0 < took < 1e12 else Cost(),
            child=child if tool == "task" and isinstance(child, str) else "",
        )

    def end(self, info: dict[str, Any]) -> Iterator[NamedStep]:
        """The steps at the end of the message."""
        error = info.get("error")
        used = self._steps[-1]
        if not self._step and (used[0].is_known or used[1]):
            yield f"{self._id}/used/0", self._reply()
        if error:
            name = text_in(as_dict(error), "name") or text_in(as_dict(error), "type")
            if _STOPPED.search(name):
                yield f"{self._id}/done", st.TurnEndStep("interrupted")
            else:
                text = _error(error) or name or "the model failed"
                yield f"{self._id}/error", st.MessageStep("system", text, name="error")
        elif self._is_over and info.get("finish") in ("stop", "length") and not self._is_summary:
            yield f"{self._id}/done", st.TurnEndStep()


def whole_steps(id: str, row: dict[str, Any], tracked: TrackedFiles) -> Iterator[NamedStep]:
    """The steps of a message that contains its parts, as since 2.0."""
    text = row.get("text")
    match row.get("type"):
        case "user":
            files = [{"type": "file"} | file for file in dicts_in(row.get("files"))]
            yield from user_steps(id, [{"type": "text", "text": text}, *files])
        case "synthetic" | "skill" if isinstance(text, str):
            yield f"{id}/note/0", st.MessageStep("user", text, name="context", trust="unverified")
        case "system" if isinstance(text, str):
            yield f"{id}/note/0", st.MessageStep("system", text, name="context")
        case "shell" if row.get("status") != "running":
            shown = text_in(as_dict(row.get("output")), "output") or text_in(row, "output")
            words = f"!{text_in(row, 'command')}\n{shown}".strip()
            yield f"{id}/shell", st.MessageStep("user", words, name="command", trust="unverified")
        case "assistant":
            parts = dicts_in(row.get("content"))
            reader = ReplyReader(id, row, parts, tracked)
            for named, _ in reader.parts([_with_times(part) for part in parts]):
                yield from named
            yield from reader.end(row | {"finish": None})
        case "compaction" if row.get("status") == "completed" and isinstance(row.get("summary"), str):
            yield f"{id}/summary", st.CompactionStep(row["summary"])
        case "model-switched":
            model = text_in(as_dict(row.get("model")), "id")
            if model:
                yield f"{id}/model", st.LabelsStep({"model": model})
        case "idle":
            outcomes: dict[Any, Any] = {"succeeded": "completed", "failed": "failed", "interrupted": "interrupted"}
            yield f"{id}/done", st.TurnEndStep(outcomes.get(text_in(row, "outcome"), "completed"))


def _with_times(part: dict[str, Any]) -> dict[str, Any]:
    """Moves the times of a 2.0 call into its state."""
    if part.get("type") != "tool":
        return part
    time = as_dict(part.get("time"))
    state = {"time": {"start": time.get("ran"), "end": time.get("completed")}} | as_dict(part.get("state"))
    return part | {"state": state}


def _usages(info: dict[str, Any], parts: list[dict[str, Any]]) -> list[tuple[Usage, int]]:
    """The usage of each model call: from its end, otherwise from the message."""
    ends = [p for p in parts if p.get("type") == "step-finish"]
    return [_usage(e) for e in ends] or [_usage(info)]


def _usage(entry: dict[str, Any]) -> tuple[Usage, int]:
    used = as_dict(entry.get("tokens"))
    usage = read_usage(used, input="input", output="output", reasoning="reasoning")
    cached = read_usage(as_dict(used.get("cache")), cache_read="read", cache_write="write")
    return usage_sum(usage, cached), micros(entry.get("cost"))


def _output(state: dict[str, Any]) -> Value:
    """The output of a call: a string, since 2.0 content blocks."""
    content = state.get("content")
    if not isinstance(content, list):
        return state.get("output")
    texts = [b["text"] for b in content if isinstance(b, dict) and isinstance(b.get("text"), str)]
    return "\n".join(texts) if len(texts) == len(content) else content


def _outcome(tool: str, text: str, error: str, status: Any, metadata: dict[str, Any]) -> st.Outcome:
    if status == "error":
        if _DENIED.search(error[:400]):
            return "denied"
        if metadata.get("interrupted") is True or _STOPPED.search(error[:100]):
            return "interrupted"
        return "timed_out" if _TIMED_OUT.search(error[:400]) else "failed"
    if tool in ("bash", "shell"):
        if "<bash_metadata>" in text and _TIMED_OUT.search(text[text.rindex("<bash_metadata>") :]):
            return "timed_out"
        code = metadata.get("exit", metadata.get("exitCode"))
        return "failed" if type(code) is int and code != 0 else "succeeded"
    return "succeeded"


def _error(error: Any) -> str:
    if isinstance(error, str):
        return error
    results = as_dict(error)
    return text_in(results, "message") or text_in(as_dict(results.get("data")), "message")


def _file(part: dict[str, Any]) -> dict[str, Value]:
    url, mime = text_in(part, "url") or text_in(part, "uri"), text_in(part, "mime")
    if url.startswith("data:") and ";base64," in url and mime.startswith("image/"):
        return image_block(mime, url.partition(";base64,")[2])
    kept = {k: v for k, v in part.items() if k in ("filename", "mime", "url", "uri", "name")}
    return {"type": "file", **kept}
