"""mini-swe-agent: one JSON document with the messages of a run, or the bare list of them.

The agent has one tool, a shell, and requests it with a code block in its reply. The output of the command comes back as
a user message with `<returncode>`; newer versions use tool calls and tool messages. Each reply holds the whole response
of the model API, with its time, usage and cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.common.amounts import micros
from wakelog.importers.common.chat import blocks_of, calls_of, first_choice, task_steps, text_of
from wakelog.importers.common.shell_writes import shell_writes
from wakelog.importers.common.tools import effect_of, shell_command
from wakelog.importers.source.files import Sample, bad_transcript, digest, home_files, read_document, storable
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, as_list, as_text, text_in, without_fields
from wakelog.model.usage import Usage, usage_of

NAME = "mini-swe-agent"
TITLE = "mini-swe-agent"
find_in_home = home_files(".config/mini-swe-agent/*.traj.json")
_OWN_FIELD = re.compile(rb'"mini_version"\s*:|"trajectory_format"\s*:\s*"mini-swe-agent')
_ACTION = re.compile(r"```(?:bash|sh|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_CODE = re.compile(r"\s*<returncode>\s*(-?\d+)\s*</returncode>\s*")
_OUTPUT = re.compile(r"<output>\n?(.*)</output>\s*", re.DOTALL)
_TIMED_OUT = re.compile(r"The last command <command>.*</command> timed out", re.DOTALL)
_ISSUE = re.compile(
    r"<pr_description>\s*(?:Consider the following PR description:)?\s*(.*?)\s*</pr_description>", re.DOTALL
)
_TASK = re.compile(r"\{\{\s*task\s*\}\}")
_FIELD = re.compile(r"\{[{%].*?[}%]\}", re.DOTALL)
_ROLES = frozenset({"system", "user", "assistant", "tool", "exit"})
GOAL_MAX = 200


def recognises(sample: Sample) -> bool:
    if sample.first not in (b"{", b"["):
        return False
    if _OWN_FIELD.search(sample.start):
        return True
    if not sample.has(b'"role"', b'"content"') or b'"traj"' in sample.start:
        return False
    if sample.path.name.removesuffix(".gz").endswith(".traj.json"):
        return True
    is_list = sample.first == b"["
    return is_list and (sample.has(b"<returncode>") or sample.has(b"```bash", b'"assistant"'))


def transcripts(path: Path) -> Iterator[st.Transcript]:
    given = storable(read_document(path))
    fields = as_dict(given)
    messages = given if isinstance(given, list) else fields.get("messages")
    if not isinstance(messages, list):
        raise bad_transcript(f"{path} has no list of messages", "is the trajectory complete?")
    instance = text_in(fields, "instance_id") or re.sub(r"\.(traj|json|gz|zst)\b", "", path.name)
    yield st.Transcript(_head(path, instance, fields, messages), lambda: _records(fields, messages))


def _head(path: Path, instance: str, fields: dict[str, Any], messages: list[Any]) -> st.TranscriptHead:
    """The ids of the model API tell runs of the same task apart. Without any, the file's location does."""
    ids = (as_text(_response(m).get("id")) for m in messages)
    own = next((id for id in ids if id), "") or str(path.resolve())
    info, config = as_dict(fields.get("info")), as_dict(as_dict(fields.get("info")).get("config"))
    model = text_in(as_dict(config.get("model")), "model_name")
    labels = {"instance": instance, "model": model, "agent_version": text_in(info, "mini_version")}
    first = next((text_of(m.get("content")) for m in messages if as_dict(m).get("role") == "user"), "")
    issue = _find_issue(first, _template(fields))
    return st.TranscriptHead(
        f"{instance}-{digest(own, 8)}",
        NAME,
        goal=issue[1].partition("\n")[0].strip()[:GOAL_MAX] if issue else "",
        labels=labels,
        name=instance,
    )


def _template(fields: dict[str, Any]) -> str:
    """The text that the task was put into, if the trajectory has it."""
    config = as_dict(as_dict(fields.get("info")).get("config"))
    return text_in(as_dict(config.get("agent")), "instance_template")


def _find_issue(text: str, template: str) -> re.Match[str] | None:
    """Where the task is in the first message: between its tags, or where the template has it."""
    parts = _TASK.split(template, maxsplit=1)
    if (match := _ISSUE.search(text)) or len(parts) < 2:
        return match
    # Around it the template may have other fields. What stands between them and the task is in the message as it is.
    before, after = _FIELD.split(parts[0])[-1], _FIELD.split(parts[1])[0].rstrip()
    return re.search(f"{re.escape(before)}(.*?){re.escape(after) or '$'}", text, re.DOTALL) if before or after else None


def _response(message: Any) -> dict[str, Any]:
    return as_dict(as_dict(as_dict(message).get("extra")).get("response"))


def _records(fields: dict[str, Any], messages: list[Any]) -> Iterator[tuple[st.SourceRecord, int]]:
    info = as_dict(fields.get("info"))
    reader = _RunReader(text_in(info, "exit_status"), messages, _template(fields))
    for number, message in enumerate(messages):
        yield reader.record(number, message), len(str(message))
    rest = without_fields(fields, ("messages",))
    if rest or reader.status:
        # It is rewritten with each step. What it says at the end is imported once it says so.
        raw = msgspec.json.encode(rest)
        yield st.SourceRecord(f"info-{digest(raw)}", tuple(_ending(reader, info)), rest=rest), len(raw)


def _ending(reader: _RunReader, info: dict[str, Any]) -> Iterator[st.Step]:
    if not reader.status:
        return
    cost = micros(as_dict(info.get("model_stats")).get("instance_cost"))
    if cost and not reader.is_priced:
        yield st.CostStep("", Usage(), cost)
    is_done = reader.status == "Submitted"
    yield st.TurnEndStep("completed" if is_done else "failed", "" if is_done else reader.status[: st.ERROR_MAX])
    yield st.FinishStep("submitted" if is_done else reader.status[:100])


class _RunReader:
    def __init__(self, status: str, messages: list[Any], template: str) -> None:
        self.status, self._template = status, template
        self.is_priced = False
        """Whether the replies say what they cost."""
        self._count = len(messages)
        self._is_begun = False
        # The first messages have no time; they were written just before the first reply.
        self._at = next((at for at in map(_time, messages) if at), 0)
        self._asked: list[st.CallStep] = []
        self._names: dict[str, str] = {}
        self._known: dict[str, str] = {}

    def record(self, number: int, message: Any) -> st.SourceRecord:
        if not isinstance(message, dict):
            return st.SourceRecord(f"m{number}", rest=message, broken=f"message {number} is not an object")
        role, extra = text_in(message, "role"), as_dict(message.get("extra"))
        steps = list(self._steps(number, message)) if role in _ROLES else []
        if not steps:
            return st.SourceRecord(f"m{number}", rest=message)
        held = ("content", "tool_calls", "tool_call_id") if role != "assistant" else ("content", "tool_calls", "extra")
        rest = without_fields(message, held)
        if role == "assistant" and extra:
            rest["extra"] = _without_content(extra)
        rest |= self._wrapping(message, steps)
        self._at = _time(message) or self._at
        return st.SourceRecord(f"m{number}", tuple(steps), self._at, rest)

    def _wrapping(self, message: dict[str, Any], steps: list[st.Step]) -> dict[str, Any]:
        """Where the steps hold only part of a message's text: how to rebuild the rest."""
        text = text_of(message.get("content"))
        if len(steps) == 2 and isinstance(steps[0], st.PromptStep) and (issue := _find_issue(text, self._template)):
            return {"prompt_at": [issue.start(1), issue.end(1)]}
        if isinstance(steps[0], st.ResultStep) and (code := _CODE.match(text)):
            return {"returncode": code[1], "form": "output" if _OUTPUT.fullmatch(text, code.end()) else "text"}
        return {}

    def _steps(self, number: int, message: dict[str, Any]) -> Iterator[st.Step]:
        content, text = message.get("content"), text_of(message.get("content"))
        match message.get("role"):
            case "system":
                yield st.MessageStep("system", content, name="instructions")
            case "assistant":
                yield from self._reply(number, message)
            case "tool":
                yield self._result(text, content, text_in(message, "tool_call_id"), as_dict(message.get("extra")))
            case "exit":
                yield from self._exit(text, as_dict(message.get("extra")))
            case "user" if not self._is_begun:
                self._is_begun = True
                issue = _find_issue(content, self._template) if isinstance(content, str) else None
                yield from task_steps(content, issue)
            case "user" if self._asked and self._is_result(number, text):
                yield self._result(text, content, "", {})
            case "user":
                yield st.MessageStep("user", content, name="meta")

    def _is_result(self, number: int, text: str) -> bool:
        """A message that is not a command's output complains about a reply. The last message of a submitted run is
        output too."""
        is_end = number == self._count - 1 and self.status == "Submitted"
        return bool(_CODE.match(text) or _TIMED_OUT.match(text)) or is_end

    def _reply(self, number: int, message: dict[str, Any]) -> Iterator[st.Step]:
        extra, response = as_dict(message.get("extra")), _response(message)
        usage = as_dict(response.get("usage"))
        text = text_of(message.get("content"))
        id = f"m{number}"
        calls = calls_of(message, id)
        if not calls and len(results := _ACTION.findall(text)) == 1:
            given = {"command": results[0].strip()}
            calls = [st.CallStep(f"{id}.0", "bash", given, effect_of("bash", given), group=id)]
        # A call without a result was refused by the harness: its complaint is the next message.
        self._asked = [msgspec.structs.replace(a, id=f"{id}.{n}") for n, a in enumerate(calls)]
        self._names = {given.id: call.id for given, call in zip(calls, self._asked, strict=True)}
        choice = first_choice(response)
        said = as_dict(choice.get("message"))
        cost = micros(extra.get("cost")) or micros(usage.get("cost"))
        self.is_priced = self.is_priced or bool(cost)
        yield st.ReplyStep(
            id,
            blocks_of(text, self._asked, text_in(said, "reasoning") or text_in(said, "reasoning_content")),
            model=text_in(response, "model"),
            usage=usage_of({"usage": usage}),
            cost_micros=cost,
            stop_reason=text_in(choice, "finish_reason"),
        )
        yield from self._asked

    def _result(self, text: str, content: Any, given_id: str, extra: dict[str, Any]) -> st.ResultStep:
        id = self._names.get(given_id, "")
        call = next((a for a in self._asked if a.id == id), self._asked[0] if self._asked and not given_id else None)
        if call is not None:
            self._asked.remove(call)
        code = _CODE.match(text)
        status = int(code[1]) if code and len(code[1]) < 9 else extra.get("returncode")
        outcome: st.Outcome = "failed" if isinstance(status, int) and status != 0 else "succeeded"
        if _TIMED_OUT.match(text):
            outcome = "timed_out"
        files: tuple[FileChanged, ...] = ()
        if outcome == "succeeded" and call is not None:
            files = tuple(shell_writes(shell_command(call.input), self._known))
        error = "" if outcome == "succeeded" else text[-st.ERROR_MAX :]
        if code is not None:
            match = _OUTPUT.fullmatch(text, code.end())
            content = match[1] if match else text[code.end() :]
        return st.ResultStep(call.id if call else given_id or "unknown", content, outcome, error, files)

    def _exit(self, text: str, extra: dict[str, Any]) -> Iterator[st.Step]:
        self.status = self.status or text_in(extra, "exit_status")
        if self._asked:
            yield self._result(text, text, "", {"returncode": 0})
        else:
            yield st.MessageStep("user", text, name="exit")


def _time(message: Any) -> int:
    extra = as_dict(as_dict(message).get("extra"))
    return microseconds(_response(message).get("created")) or microseconds(extra.get("timestamp"))


def _without_content(extra: dict[str, Any]) -> dict[str, Any]:
    """The details of a reply, without the content that the reply step holds."""
    response = as_dict(extra.get("response"))
    choices = []
    for choice in as_list(response.get("choices")):
        message = as_dict(as_dict(choice).get("message"))
        rest = without_fields(message, ("content", "role", "tool_calls", "reasoning"))
        choices.append(as_dict(choice) | {"message": rest} if isinstance(choice, dict) else choice)
    return extra | {"response": response | {"choices": choices}} if response else extra
