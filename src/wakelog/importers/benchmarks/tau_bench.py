"""tau-bench: one JSON array of runs. In each, an agent and a simulated customer play one task.

A run is a session: the customer's messages start its turns, and its reward says how it ended. The file has no times.
The task, the expected actions and the calculation of the reward are kept unchanged in the run's last record: the agent
never saw them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.common.chat import blocks_of, calls_of, text_of
from wakelog.importers.source.files import (
    RecordIds,
    Sample,
    bad_transcript,
    digest,
    home_files,
    read_document,
    storable,
)
from wakelog.model.events import Effect
from wakelog.model.json_fields import as_dict, as_list, dicts_in, text_in, without_fields

NAME = "tau-bench"
TITLE = "tau-bench"
find_in_home = home_files()
_READS = ("get_", "list_", "search_", "find_")
_STOP = "###STOP###"


def recognises(sample: Sample) -> bool:
    return sample.first == b"[" and sample.has(b'"task_id"', b'"traj"', b'"reward"')


def transcripts(path: Path) -> Iterator[st.Transcript]:
    runs = read_document(path)
    if not isinstance(runs, list):
        raise bad_transcript(f"{path} is not a list of runs", "is it tau-bench's own file?")
    for number, run in enumerate(runs):
        yield _transcript(number, storable(run))


def _transcript(number: int, run: Any) -> st.Transcript:
    fields = as_dict(run)
    task, trial = fields.get("task_id", number), fields.get("trial", 0)
    # A run is written once and complete, so its content tells it from the same task run with another model.
    raw = msgspec.json.encode(run)
    head = st.TranscriptHead(
        f"{task}-{trial}-{digest(raw, 8)}",
        NAME,
        labels={"task": str(task)[:100], "trial": str(trial)[:100]},
        name=f"{task}-{trial}",
    )
    return st.Transcript(head, lambda: _records(run, len(raw)))


def _records(run: Any, size: int) -> Iterator[tuple[st.SourceRecord, int]]:
    if not isinstance(run, dict):
        yield st.SourceRecord("run", rest=run, broken="a run is not an object"), size
        return
    messages = as_list(run.get("traj"))
    reader = _RunReader()
    for number, message in enumerate(messages):
        yield reader.record(number, message), size // (len(messages) + 1)
    rest = {k: v for k, v in run.items() if k != "traj" or not isinstance(v, list)}
    yield st.SourceRecord("run", tuple(_ending(run)), rest=rest), size // (len(messages) + 1)


class _RunReader:
    def __init__(self) -> None:
        self._calls = RecordIds()
        self._open: dict[str, str] = {}
        """Calls that wait for their result: the file's id of each, and ours."""

    def record(self, number: int, message: Any) -> st.SourceRecord:
        id = f"m{number}"
        if not isinstance(message, dict):
            return st.SourceRecord(id, rest=message, broken=f"message {number} is not an object")
        steps = self._steps(id, message)
        held = ("content", "role", "tool_calls", "tool_call_id", "name") if steps else ()
        rest = without_fields(message, held)
        return st.SourceRecord(id, tuple(steps), rest={"role": text_in(message, "role"), **rest})

    def _steps(self, id: str, message: dict[str, Any]) -> list[st.Step]:
        content = message.get("content")
        match message.get("role"):
            case "user" if _STOP in text_of(content):
                # The customer says goodbye: there is no reply.
                return [st.MessageStep("user", content, name="stop")]
            case "user":
                return [st.PromptStep(content)]
            case "assistant":
                calls = [self._open_call(call) for call in calls_of(message, id, _effects(message))]
                return [st.ReplyStep(id, blocks_of(text_of(content), calls), is_last=not calls), *calls]
            case "tool":
                return [self._result(message)]
            case "system":
                return [st.MessageStep("system", content, name="instructions")]
        return []

    def _open_call(self, call: st.CallStep) -> st.CallStep:
        self._open[call.id] = id = self._calls.unique(call.id)
        return msgspec.structs.replace(call, id=id)

    def _result(self, message: dict[str, Any]) -> st.ResultStep:
        given_id = text_in(message, "tool_call_id")
        text = text_of(message.get("content"))
        is_error = text.startswith("Error")
        id = self._open.pop(given_id, None) or self._calls.unique(given_id or "unknown")
        return st.ResultStep(
            id,
            message.get("content"),
            "failed" if is_error else "succeeded",
            error=text[: st.ERROR_MAX] if is_error else "",
        )


def _effects(message: dict[str, Any]) -> dict[str, Effect]:
    """Tools in these environments are named after what they do to the data."""
    names = [text_in(as_dict(call.get("function")), "name") for call in dicts_in(message.get("tool_calls"))]
    effects: dict[str, Effect] = {name: "read" for name in names if name.startswith(_READS)}
    return effects | {"think": "pure", "calculate": "pure"}


def _ending(run: dict[str, Any]) -> Iterator[st.Step]:
    reward = run.get("reward")
    if not isinstance(reward, int | float) or isinstance(reward, bool):
        yield st.FinishStep("ended")
        return
    info = as_dict(run.get("info"))
    wanted = [text_in(as_dict(a), "name") or "?" for a in as_list(as_dict(info.get("task")).get("actions"))]
    yield st.LabelsStep({"reward": f"{reward:g}"})
    yield st.TurnEndStep("failed" if "error" in info else "completed")
    if "error" in info:
        yield st.NoteStep(f"the run broke off: {text_in(info, 'error')[: st.ERROR_MAX]}")
    yield st.NoteStep(f"reward {reward:g}; the task expected {', '.join(wanted[:20]) or 'no action'}")
    yield st.FinishStep("completed" if reward == 1 else "failed")
