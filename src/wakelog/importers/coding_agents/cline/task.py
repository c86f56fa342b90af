"""Cline: a folder for each task, with `api_conversation_history.json` and `ui_messages.json`.

The first is the conversation as the model API had it, a list of Anthropic messages; each is a record. The second is
what the user saw: the times and usage of each request come from there. Cline is an extension of editors, so its folder
is in theirs.

Before native tool calls, the model wrote its calls as XML into its text, one per reply, and their results came back as
text that starts with `[tool for '…'] Result:`. With some providers, native calls get their results as such texts too.
All ways are read (calls.py). Roo Code and Kilo Code are forks of Cline and keep the same files.
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
from wakelog.importers.coding_agents.cline.calls import (
    USER_WORDS,
    TextResults,
    outcome_of,
    plain_text,
    result_of,
    words_in,
    xml_call,
)
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
_EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code")
_IN_EDITOR = tuple(f"User/globalStorage/{extension}/tasks/*/{FILE}" for extension in _EXTENSIONS)
find_in_home = home_files(
    *(f"{data}/{editor}/{place}" for data in USER_DATA for editor in _EDITORS for place in _IN_EDITOR),
    f".cline/data/tasks/*/{FILE}",
)
_ENVIRONMENT = re.compile(r"<environment_details>.*?</environment_details>", re.DOTALL)
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\) Files")
_DONE = ("attempt_completion", "plan_mode_respond")
"""Calls that only inform the user: the agent has stopped."""


def recognises(sample: Sample) -> bool:
    # Another name does not matter, if the conversation begins as Cline begins it.
    return sample.first == b"[" and (
        sample.path.name == FILE or sample.has(b'"role"', b"<task>", b"<environment_details>")
    )


def transcripts(path: Path) -> Iterator[st.Transcript]:
    seen = path.with_name(SEEN)
    stat = stat_of(*(each for each in (path, seen) if each.is_file()))
    head = st.TranscriptHead(path.resolve().parent.name if path.name == FILE else path.stem, NAME)
    yield st.Transcript(head, partial(_records, path), stat)


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
    results: dict[int, SeenRequest] = {}
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
        results[place] = SeenRequest(microseconds(entry.get("ts")), usage, micros(metrics.get("cost")), model)
    return results


class _Reader:
    def __init__(self, requests: dict[int, SeenRequest]) -> None:
        self._requests = requests
        self._asks: list[st.CallStep] = []
        """The calls of the last reply that wait for their results."""
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
        model_info = as_dict(message.get("modelInfo"))
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
                kept.append(call_block(asks[-1].id, tool))
        usage, cost = _usage_and_cost(message, request)
        yield st.ReplyStep(
            id,
            kept,
            model=text_in(model_info, "modelId") or (request.model if request else ""),
            usage=usage,
            cost_micros=cost,
            is_last=not asks or asks[-1].tool in _DONE,
        )
        self._asks = [ask for ask in asks if ask.tool not in _DONE]
        for ask in asks:
            yield ask
            if ask.tool in _DONE:
                yield st.ResultStep(ask.id, None)

    def _user(self, blocks: list[dict[str, Any]]) -> Iterator[st.Step]:
        asked: list[str] = []
        other: list[dict[str, Value]] = []
        output = TextResults()
        for block in blocks:
            if block.get("type") == "tool_result":
                ask = next((a for a in self._asks if a.id == text_in(block, "tool_use_id")), None)
                if ask is not None:
                    self._asks.remove(ask)
                    yield result_of(ask, block.get("content"), self._folder, is_error=block.get("is_error") is True)
                asked += words_in(plain_text(block.get("content")))
                continue
            text = text_in(block, "text")
            if block.get("type") != "text":
                other.append(block)
                continue
            if (match := _FOLDER.search(text)) and match[1] != self._folder:
                self._folder = match[1]
                yield st.LabelsStep({"project": self._folder})
            asked += words_in(text)
            text = USER_WORDS.sub("", _ENVIRONMENT.sub("", text)).strip()
            if text:
                output.take(text, self._asks)
        for ask, texts in output.found:
            result = "\n".join(filter(None, texts))
            yield result_of(ask, result, self._folder, is_error=outcome_of(result) == "failed")
        yield from self._other_steps(asked, output.other, other)

    def _other_steps(self, asked: list[str], notices: list[str], other: list[dict[str, Value]]) -> Iterator[st.Step]:
        """Reads the rest of a message after the results of calls: notices of Cline, and the user's input."""
        for text in notices:
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
