"""Cline: a folder for each task, with `api_conversation_history.json` and `ui_messages.json`.

The first is the conversation as the model API had it, a list of Anthropic messages; each is a record. The second is
what the user saw: the times and usage of each request come from there. Cline is an extension of editors, so its folder
is in theirs.

Before native tool calls, the model wrote its calls as XML into its text, one per reply, and their results came back as
text that starts with `[tool for '…'] Result:`. Both ways are read (calls.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from wakelog.errors import WakelogError
from wakelog.importers import steps as st
from wakelog.importers.coding_agents.cline.calls import outcome_of, plain_text, result_of, xml_call, xml_result
from wakelog.importers.common.amounts import micros, read_usage
from wakelog.importers.common.chat import call_block, text_block
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import USER_DATA, Sample, digest, home_files, read_document, stat_of
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.json_fields import as_dict, as_list, dicts_in, text_in, without_fields
from wakelog.model.usage import Usage
from wakelog.model.values import Value

NAME = "cline"
TITLE = "Cline"
FILE, SEEN = "api_conversation_history.json", "ui_messages.json"
_EDITORS = ("Code", "Code - Insiders", "Cursor", "VSCodium", "Windsurf")
_IN_EDITOR = f"User/globalStorage/saoudrizwan.claude-dev/tasks/*/{FILE}"
find_in_home = home_files(
    *(f"{data}/{editor}/{_IN_EDITOR}" for data in USER_DATA for editor in _EDITORS), f".cline/data/tasks/*/{FILE}"
)
_ENVIRONMENT = re.compile(r"<environment_details>.*?</environment_details>", re.DOTALL)
_ASKED = re.compile(r"<(task|feedback|user_message|answer)>\s*(.*?)\s*</\1>", re.DOTALL)
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\) Files")
_DONE = ("attempt_completion", "plan_mode_respond")
"""Calls that only inform the user: the agent has stopped."""


def recognises(found: Sample) -> bool:
    return found.path.name == FILE and found.first == b"["


def transcripts(path: Path) -> Iterator[st.Transcript]:
    seen = path.with_name(SEEN)
    stats = [stat_of(each) for each in (path, seen) if each.is_file()]
    head = st.TranscriptHead(path.parent.name, NAME)
    yield st.Transcript(head, partial(_records, path), (sum(s[0] for s in stats), max(s[1] for s in stats)))


class SeenRequest(msgspec.Struct, frozen=True):
    """A request to the model, as the user saw it: its time and usage."""

    at: int
    usage: Usage = Usage()
    cost_micros: int = 0
    model: str = ""


def _records(path: Path) -> Iterator[tuple[st.SourceRecord, int]]:
    reader = _Reader(_requests(path.with_name(SEEN)))
    messages = read_document(path)
    for number, message in enumerate(as_list(messages)):
        raw = json.dumps(message, sort_keys=True).encode()
        id = f"{number}.{digest(raw, 8)}"
        if isinstance(message, dict):
            yield reader.record(id, number, message), len(raw)
        else:
            yield st.SourceRecord(id, rest=message, broken=f"message {number} is not an object"), len(raw)


def _requests(path: Path) -> dict[int, SeenRequest]:
    """The requests, by the index of their reply in the conversation. An entry says how many messages there were."""
    if not path.is_file():
        return {}
    try:
        seen = as_list(read_document(path))
    except WakelogError:
        return {}  # it is rewritten all the time; the conversation matters
    found: dict[int, SeenRequest] = {}
    for number, entry in enumerate(e for e in seen if as_dict(e).get("say") == "api_req_started"):
        index = entry.get("conversationHistoryIndex")
        try:
            metrics = as_dict(json.loads(text_in(entry, "text") or "{}"))
        except ValueError:
            metrics = {}
        names = {"input": "tokensIn", "cache_read": "cacheReads", "cache_write": "cacheWrites", "output": "tokensOut"}
        usage = read_usage(metrics, **names)
        model = text_in(as_dict(entry.get("modelInfo")), "modelId")
        # The request is shown before its prompt is in the conversation; the reply comes after the prompt.
        place = index + 2 if isinstance(index, int) else 2 * number + 1
        found[place] = SeenRequest(microseconds(entry.get("ts")), usage, micros(metrics.get("cost")), model)
    return found


class _Reader:
    def __init__(self, requests: dict[int, SeenRequest]) -> None:
        self._requests = requests
        self._call = ""
        """The XML call that waits for its result,"""
        self._asks: dict[str, st.CallStep] = {}
        """and all calls that do."""
        self._folder = ""

    def record(self, id: str, number: int, message: dict[str, Any]) -> st.SourceRecord:
        is_answer = message.get("role") == "assistant"
        request = self._requests.get(number if is_answer else number + 1)
        at = microseconds(message.get("ts")) or (request.at if request else 0)
        content = message.get("content")
        blocks = [text_block(content)] if isinstance(content, str) else dicts_in(content)
        if is_answer:
            steps = list(self._reply(id, message, blocks, request))
        elif message.get("role") == "user":
            steps = list(self._user(blocks))
        else:
            return st.SourceRecord(id, (), at, message)
        rest = without_fields(message, ("content",))
        environment = [e for b in blocks for e in _ENVIRONMENT.findall(text_in(b, "text"))]
        if environment:
            rest["environment"] = environment
        return st.SourceRecord(id, tuple(steps), at, rest)

    def _reply(
        self, id: str, message: dict[str, Any], blocks: list[dict[str, Any]], request: SeenRequest | None
    ) -> Iterator[st.Step]:
        about = as_dict(message.get("modelInfo"))
        kept: list[dict[str, Value]] = []
        asks: list[st.CallStep] = []
        for block in blocks:
            if block.get("type") == "tool_use":
                tool, given = text_in(block, "name") or "unknown", block.get("input")
                asks.append(st.CallStep(text_in(block, "id"), tool, given, effect_of(tool, given), group=id))
                kept.append(call_block(asks[-1].id, tool))
                continue
            kept.append(block)
            if block.get("type") == "text" and (call := xml_call(text_in(block, "text"))):
                tool, given = call
                asks.append(st.CallStep(f"{id}.{len(asks)}", tool, given, effect_of(tool, given), group=id))
                self._call = asks[-1].id
                kept.append(call_block(asks[-1].id, tool))
        usage, cost = _usage_and_cost(message, request)
        yield st.ReplyStep(
            id,
            kept,
            model=text_in(about, "modelId") or (request.model if request else ""),
            usage=usage,
            cost_micros=cost,
            is_last=not asks or asks[-1].tool in _DONE,
        )
        for ask in asks:
            yield ask
            if ask.tool in _DONE:
                yield st.ResultStep(ask.id, None)
            else:
                self._asks[ask.id] = ask
        if asks and asks[-1].tool in _DONE:
            self._call = ""

    def _user(self, blocks: list[dict[str, Any]]) -> Iterator[st.Step]:
        asked: list[str] = []
        other: list[dict[str, Value]] = []
        output: list[str] = []
        for block in blocks:
            if block.get("type") == "tool_result":
                if (ask := self._asks.pop(text_in(block, "tool_use_id"), None)) is not None:
                    yield result_of(ask, block.get("content"), self._folder, is_error=block.get("is_error") is True)
                asked += [words for _, words in _ASKED.findall(plain_text(block.get("content")))]
                continue
            text = text_in(block, "text")
            if block.get("type") != "text":
                other.append(block)
                continue
            if (found := _FOLDER.search(text)) and found[1] != self._folder:
                self._folder = found[1]
                yield st.LabelsStep({"project": self._folder})
            asked += [words for _, words in _ASKED.findall(text)]
            text = _ASKED.sub("", _ENVIRONMENT.sub("", text)).strip()
            if text:
                output.append(text)
        yield from self._other_steps(asked, output, other)

    def _other_steps(self, asked: list[str], output: list[str], other: list[dict[str, Value]]) -> Iterator[st.Step]:
        """Reads the rest of a message after the results of native calls: the result of an XML call, notices of Cline,
        and the user's input."""
        ask = self._asks.get(self._call)
        if ask is not None and output and (result := xml_result(ask.tool, output)) is not None:
            del self._asks[self._call]
            self._call = ""
            yield result_of(ask, result, self._folder, is_error=outcome_of(result) == "failed")
            output = []
        for text in output:
            yield st.MessageStep("user", text, name="meta", trust="unverified")
        if asked or other:
            content: Value = asked[0] if len(asked) == 1 and not other else [*map(text_block, asked), *other]
            yield st.PromptStep(content) if asked else st.MessageStep("user", content, name="meta", trust="unverified")


def _usage_and_cost(message: dict[str, Any], request: SeenRequest | None) -> tuple[Usage, int]:
    metrics = as_dict(message.get("metrics"))
    tokens = as_dict(metrics.get("tokens"))
    if not tokens:
        return (request.usage, request.cost_micros) if request else (Usage(), 0)
    usage = read_usage(tokens, input="prompt", cache_read="cached", output="completion")
    return usage, micros(metrics.get("cost"))
