"""SWE-agent: a `.traj` file, one JSON document.

It records the run twice. `history` is the conversation as the model saw it. `trajectory` has a step for each action,
with the raw observation, the state of the editor and the duration. Both repeat the action, which pairs them: the
model's reply comes from the history, its result from the step. A demonstration may have a history only. There are no
times of day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.benchmarks.swe_agent.files import EDITS, REFUSED, OpenFiles
from wakelog.importers.common.amounts import duration, micros
from wakelog.importers.common.chat import blocks_of, calls_of, json_or_text, task_steps, text_of
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import (
    Sample,
    bad_transcript,
    digest,
    home_files,
    path_digest,
    read_document,
    storable,
)
from wakelog.model.events import Cost
from wakelog.model.json_fields import as_dict, as_list, as_text, count_in, dicts_in, text_in, without_fields
from wakelog.model.usage import Usage

NAME = "swe-agent"
TITLE = "SWE-agent"
find_in_home = home_files()
_TOOLS = EDITS | {
    *("open", "goto", "scroll_up", "scroll_down", "find_file", "search_dir", "search_file", "filemap", "submit"),
    *("exit_cost", "exit_context", "exit_format", "exit_forfeit", "skip", "set_cursors", "view_image", "think"),
}
_FAILED = re.compile(
    r"Traceback \(most recent call last\)|^bash: .*: (command not found|No such file)|: command not found$"
)
_TIMED_OUT = re.compile(r"EXECUTION TIMED OUT|was cancelled because it took more than|COMMAND TIMED OUT", re.IGNORECASE)
_BLOCKED = re.compile(
    r"Interactive operation '.*' is not supported by this environment|contained syntax errors and was NOT executed"
)
_ISSUE = re.compile(r"(?:ISSUE:\n|<pr_description>\n)(.*?)\s*(?:\n\nINSTRUCTIONS:|</pr_description>)", re.DOTALL)
GOAL_MAX = 200


def recognises(sample: Sample) -> bool:
    name = sample.path.name.removesuffix(".gz").removesuffix(".zst")
    if name.endswith(".traj") and sample.first == b"{":
        return sample.has(b'"history"') or sample.has(b'"trajectory"')
    return sample.first == b"{" and sample.has(b'"trajectory"', b'"observation"', b'"thought"', b'"response"')


def transcripts(path: Path) -> Iterator[st.Transcript]:
    run = storable(read_document(path))
    if not isinstance(run, dict) or not (
        isinstance(run.get("history"), list) or isinstance(run.get("trajectory"), list)
    ):
        raise bad_transcript(f"{path} has no trajectory and no history", "is it a .traj file?")
    yield st.Transcript(_head(path, run), lambda: _RunReader(run).records())


def _head(path: Path, run: dict[str, Any]) -> st.TranscriptHead:
    config = run.get("replay_config")
    config = as_dict(json_or_text(config) if isinstance(config, str) else config)
    problem = as_dict(config.get("problem_statement"))
    instance = text_in(problem, "id") or re.sub(r"\.(traj|json|gz|zst)\b", "", path.name)
    model = as_text(as_dict(as_dict(config.get("agent")).get("model")).get("name"))
    issue = _ISSUE.search(next((text_of(m.get("content")) for m in _history(run) if _is_task(m)), ""))
    labels = {"instance": instance[-100:], "model": model, "environment": text_in(run, "environment")}
    # Nothing in the file tells runs of the same task apart, so its location does.
    own = path_digest(path)
    return st.TranscriptHead(
        f"{instance}-{own}",
        NAME,
        goal=issue[1].strip().partition("\n")[0][:GOAL_MAX] if issue else "",
        labels=labels,
        name=instance,
    )


def _history(run: dict[str, Any]) -> list[dict[str, Any]]:
    return dicts_in(run.get("history"))


def _is_task(item: dict[str, Any]) -> bool:
    return (
        item.get("role") == "user" and item.get("is_demo") is not True and item.get("message_type") != "demonstration"
    )


class _RunReader:
    def __init__(self, run: dict[str, Any]) -> None:
        self._run = run
        self._steps = as_list(run.get("trajectory"))
        self._next = 0
        self._files = OpenFiles()
        self._call: st.CallStep | None = None
        self._action = self._said = ""
        self._is_begun = False
        self._places: dict[bytes, int] = {}
        """The items of the history, encoded, with their index."""
        # A demonstration on its own is the run. One that is shown to a model comes before the run.
        self._is_demo = not any(m.get("role") == "assistant" and m.get("is_demo") is not True for m in _history(run))

    def records(self) -> Iterator[tuple[st.SourceRecord, int]]:
        history = as_list(self._run.get("history"))
        for number, item in enumerate(history):
            if isinstance(item, dict) and item.get("role") == "assistant" and not self._is_shown(item):
                # A useless reply may be missing from the history: its step stands alone.
                match = self._step_of(item)
                while match is not None and self._next < match:
                    yield self._step_alone()
                yield self._reply_record(number, item), len(str(item))
                if match is not None:
                    yield self._step_record(self._steps[match]), len(str(self._steps[match]))
                continue
            yield self._item(number, item), len(str(item))
        while self._next < len(self._steps):
            yield self._step_alone()
        rest = {k: v for k, v in self._run.items() if k not in ("history", "trajectory") or not isinstance(v, list)}
        # It is rewritten with each step. What it says at the end is imported once it says so.
        raw = msgspec.json.encode(rest)
        yield st.SourceRecord(f"info-{digest(raw)}", tuple(self._ending_steps()), rest=rest), len(raw)

    # The history

    def _is_shown(self, item: dict[str, Any]) -> bool:
        """Whether an item belongs to a demonstration that the model was shown."""
        is_demo = item.get("is_demo") is True or item.get("message_type") == "demonstration"
        return is_demo and not self._is_demo

    def _step_of(self, item: dict[str, Any]) -> int | None:
        action = text_in(item, "action").strip()
        for at in range(self._next, len(self._steps)):
            if as_text(as_dict(self._steps[at]).get("action")).strip() == action:
                return at
        return None

    def _reply_record(self, number: int, item: dict[str, Any]) -> st.SourceRecord:
        id = f"h{number}"
        steps = self._reply(id, item, text_of(item.get("content")), text_in(item, "action"))
        rest = without_fields(item, ("content",))
        if len(as_list(item.get("tool_calls"))) == 1:
            del rest["tool_calls"]
        for same in ("thought", "action"):
            # They repeat the content, or say how it was parsed: kept only if they say more.
            if rest.get(same) is not None and as_text(rest[same]).strip() in text_of(item.get("content")):
                del rest[same]
        return st.SourceRecord(id, tuple(steps), rest=rest)

    def _item(self, number: int, item: Any) -> st.SourceRecord:
        id = f"h{number}"
        if not isinstance(item, dict):
            return st.SourceRecord(id, rest=item, broken=f"item {number} of the history is not an object")
        content, text = item.get("content"), text_of(item.get("content"))
        rest = without_fields(item, ("content",))
        match item.get("role"):
            case "system":
                return st.SourceRecord(id, (st.MessageStep("system", content, name="instructions"),), rest=rest)
            case "user" | "assistant" if self._is_shown(item):
                return st.SourceRecord(id, (st.MessageStep("user", content, name="demonstration"),), rest=rest)
            case "user" if not self._is_begun:
                self._is_begun = True
                return self._task(id, content, rest)
            case "user" | "tool" if self._call is not None:
                return st.SourceRecord(id, (self._result(self._call, text, {}, {}),), rest=rest)
            case "user" if not self._is_observed(text):
                return st.SourceRecord(id, (st.MessageStep("user", content, name="meta"),), rest=rest)
        # The step has the same observation, without the shell prompt after it.
        return st.SourceRecord(id, rest=item)

    def _task(self, id: str, content: Any, rest: dict[str, Any]) -> st.SourceRecord:
        issue = _ISSUE.search(content) if isinstance(content, str) else None
        steps = task_steps(content, issue)
        if issue is not None and len(steps) > 1:
            rest["prompt_at"] = [issue.start(1), issue.end(1)]
        return st.SourceRecord(id, steps, rest=rest)

    def _is_observed(self, text: str) -> bool:
        """Whether a message is the observation of the last imported step."""
        if self._next == 0:
            return False
        observation = as_text(as_dict(self._steps[self._next - 1]).get("observation")).strip()
        return observation in text if observation else True

    # The steps

    def _step_alone(self) -> tuple[st.SourceRecord, int]:
        """A step whose reply is not in the history: it holds both."""
        number, step = self._next, self._steps[self._next]
        fields = as_dict(step)
        steps: list[st.Step] = []
        if fields and text_in(fields, "action").strip():
            steps += self._reply(f"t{number}", fields, text_in(fields, "response"), text_in(fields, "action"))
        elif text_in(fields, "response"):
            steps += self._reply(f"t{number}", {}, text_in(fields, "response"), "")
        record = self._step_record(step)
        return msgspec.structs.replace(record, steps=(*steps, *record.steps)), len(str(step))

    def _step_record(self, step: Any) -> st.SourceRecord:
        """The step of the action that was just requested."""
        id = f"t{self._next}"
        self._next += 1
        if not isinstance(step, dict):
            return st.SourceRecord(id, rest=step, broken=f"step {id[1:]} is not an object")
        state = step.get("state")
        state = as_dict(json_or_text(state) if isinstance(state, str) else state)
        steps: tuple[st.Step, ...] = ()
        if self._call is not None:
            steps = (self._result(self._call, text_in(step, "observation"), step, state),)
        rest = {
            k: self._without_history(v) if k in ("messages", "query") else v
            for k, v in step.items()
            if not steps or not self._is_held(k, v)
        }
        return st.SourceRecord(id, steps, rest=rest)

    def _is_held(self, key: str, value: Any) -> bool:
        """Whether the reply and its result already hold a field of a step. Sometimes it differs from the history."""
        if not isinstance(value, str):
            return False
        held = {"observation": value, "action": self._action, "response": self._said, "thought": self._said}
        return key in held and value.strip() in held[key]

    def _without_history(self, messages: Any) -> Any:
        """The model's input at a step: items of the history by number, others unchanged."""
        if not isinstance(messages, list):
            return messages
        if not self._places:
            history = as_list(self._run.get("history"))
            self._places = {msgspec.json.encode(item): number for number, item in reversed(list(enumerate(history)))}
        return [self._places.get(msgspec.json.encode(message), message) for message in messages]

    def _reply(self, id: str, item: dict[str, Any], text: str, action: str) -> list[st.Step]:
        calls = calls_of(item, id)[:1]
        if calls:
            calls = [msgspec.structs.replace(calls[0], id=f"{id}.0")]
        elif action.strip():
            tool = action.split()[0]
            tool = tool if tool in _TOOLS else "bash"
            data = {"command": action.strip("\n")}
            calls = [st.CallStep(f"{id}.0", tool, data, effect_of(tool, data), group=id)]
        self._call = calls[0] if calls else None
        self._action, self._said = action, text
        return [st.ReplyStep(id, blocks_of(text, calls)), *calls]

    def _result(self, call: st.CallStep, text: str, step: dict[str, Any], state: dict[str, Any]) -> st.ResultStep:
        self._call = None
        outcome = _outcome(call, text)
        files = self._files.changes(call, self._action, text, state) if outcome == "succeeded" else ()
        return st.ResultStep(
            call.id,
            text,
            outcome,
            error="" if outcome == "succeeded" else text[: st.ERROR_MAX],
            files=files,
            cost=Cost(duration_us=duration(step.get("execution_time"))),
        )

    # The end

    def _ending_steps(self) -> Iterator[st.Step]:
        info = as_dict(self._run.get("info"))
        status = text_in(info, "exit_status")
        if not status:
            return
        stats = as_dict(info.get("model_stats"))
        usage = Usage(input=count_in(stats, "tokens_sent"), output=count_in(stats, "tokens_received"))
        cost = micros(stats.get("instance_cost"))
        if usage.is_known or cost:
            yield st.CostStep("", usage, cost)
        is_done = status.startswith("submitted")
        yield st.TurnEndStep("completed" if is_done else "failed", "" if is_done else status[: st.ERROR_MAX])
        yield st.FinishStep(status[:100])


def _outcome(call: st.CallStep, text: str) -> st.Outcome:
    if _TIMED_OUT.search(text[:2000]):
        return "timed_out"
    if _BLOCKED.search(text[:2000]):
        return "denied"
    if call.tool in EDITS or call.tool == "open":
        return "failed" if REFUSED.match(text.lstrip()) else "succeeded"
    return "failed" if _FAILED.search(text[:4000]) else "succeeded"
