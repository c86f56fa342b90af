"""GitHub Copilot in VS Code: the file that the command `Chat: Export Chat…` writes, usually `chat.json`.

One document holds the chat as a list of requests, each with the user's message and what was shown in response. With
an agent, `result.metadata` also has the rounds of the model: its texts, its calls with their arguments, and their
results. These are read if they are there, and the shown parts otherwise. A request is two records, because it says when
it was made and how long the response took. Attached files and other context stay in the second one as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from wakelog.importers import steps as st
from wakelog.importers.common.amounts import read_usage
from wakelog.importers.common.chat import call_block, json_or_text, text_block, thinking_block
from wakelog.importers.common.file_changes import file_change
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import (
    RecordIds,
    Sample,
    bad_transcript,
    home_files,
    json_digest,
    path_digest,
    read_document,
    storable,
)
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, as_list, count_in, dicts_in, text_in, without_fields
from wakelog.model.values import Value

NAME = "copilot-chat"
TITLE = "GitHub Copilot"
find_in_home = home_files()
_FAILED = re.compile(r"\s*(?:ERROR\b|Error:|Command exited with code [1-9])")
_CALL = "toolInvocationSerialized"


def recognises(sample: Sample) -> bool:
    return sample.first == b"{" and sample.has(b'"responderUsername"', b'"requests"')


def transcripts(path: Path) -> Iterator[st.Transcript]:
    chat = read_document(path)
    if not isinstance(chat, dict) or not isinstance(chat.get("requests"), list):
        raise bad_transcript(f"{path} is not a chat of Copilot", "it is JSON, but has no list of requests")
    origin = text_in(chat, "sessionId") or f"{path.stem}-{path_digest(path)}"
    yield st.Transcript(st.TranscriptHead(origin, NAME, goal=text_in(chat, "customTitle")), partial(_records, chat))


def _records(chat: dict[str, Any]) -> Iterator[tuple[st.SourceRecord, int]]:
    ids, start = RecordIds(), microseconds(chat.get("creationDate"))
    yield st.SourceRecord("start", (), start, storable(without_fields(chat, ("requests",)))), 0
    for number, request in enumerate(chat["requests"]):
        if not isinstance(request, dict):
            yield st.SourceRecord(f"{number}", rest=storable(request), broken=f"request {number} is not an object"), 0
            continue
        id = ids.unique(text_in(request, "requestId") or f"{number}.{json_digest(storable(request), 8)}")
        message, at = request.get("message"), microseconds(request.get("timestamp"))
        words = message if isinstance(message, str) else text_in(as_dict(message), "text")
        yield st.SourceRecord(id, (st.PromptStep(words),) if words else (), at, storable(message)), len(words)
        elapsed = count_in(as_dict(as_dict(request.get("result")).get("timings")), "totalElapsed") * 1000
        steps = tuple(_response(id, request))
        # The response of the last request may still be coming.
        is_partial = number == len(chat["requests"]) - 1 and not request.get("result")
        rest = storable(without_fields(request, ("message",)))
        yield st.SourceRecord(f"{id}.response", steps, at and at + elapsed, rest, is_partial=is_partial), 0


def _response(id: str, request: dict[str, Any]) -> Iterator[st.Step]:
    result = as_dict(request.get("result"))
    metadata = as_dict(result.get("metadata"))
    model = text_in(metadata, "resolvedModel") or text_in(request, "modelId").removeprefix("copilot/")
    shown = {text_in(part, "toolCallId"): part for part in dicts_in(request.get("response"))}
    rounds = dicts_in(metadata.get("toolCallRounds"))
    has_rounds = any(text_in(r, "response") or as_list(r.get("toolCalls")) for r in rounds)
    replies = list(
        _rounds(id, rounds, metadata, shown) if has_rounds else _shown(id, dicts_in(request.get("response")))
    )
    for number, (blocks, calls) in enumerate(replies):
        counts = metadata if number == len(replies) - 1 else {}
        usage = read_usage(counts, input="promptTokens", output="outputTokens")
        group = f"{id}.{number}"
        yield st.ReplyStep(group, blocks, model=model, usage=usage)
        for call, answer in calls:
            yield st.CallStep(call.id, call.tool, call.input, call.effect, group=group)
            yield answer
    error = text_in(as_dict(result.get("errorDetails")), "message")
    if request.get("isCanceled") is True:
        yield st.TurnEndStep("interrupted")
    elif error:
        yield st.TurnEndStep("failed", error[: st.ERROR_MAX])
    elif result:
        yield st.TurnEndStep()


Reply = tuple[list[dict[str, Value]], list[tuple[st.CallStep, st.ResultStep]]]


def _rounds(id: str, rounds: list[dict[str, Any]], fields: dict[str, Any], shown: dict[str, Any]) -> Iterator[Reply]:
    """The replies as the model gave them."""
    results = as_dict(fields.get("toolCallResults"))
    for number, each in enumerate(rounds):
        blocks: list[dict[str, Value]] = []
        thought = as_dict(each.get("thinking")).get("text")
        if thinking := "\n".join(map(str, as_list(thought))) or (thought if isinstance(thought, str) else ""):
            blocks.append(thinking_block(thinking))
        if response := text_in(each, "response"):
            blocks.append(text_block(response))
        calls = []
        for place, call in enumerate(dicts_in(each.get("toolCalls"))):
            tool, arguments = text_in(call, "name") or "unknown", json_or_text(call.get("arguments"))
            key = text_in(call, "id")
            part = as_dict(shown.get(key) or shown.get(key.partition("__vscode-")[0]))
            ask = st.CallStep(key or f"{id}.{number}.{place}", tool, arguments, effect_of(tool, arguments))
            calls.append((ask, _answer(ask, _text(results.get(key)) or _output(part), part)))
            blocks.append(call_block(ask.id, tool))
        if blocks:
            yield blocks, calls


def _shown(id: str, parts: list[dict[str, Any]]) -> Iterator[Reply]:
    """The replies as the user saw them: a text, and the calls after it."""
    blocks: list[dict[str, Value]] = []
    calls: list[tuple[st.CallStep, st.ResultStep]] = []
    for number, part in enumerate(parts):
        kind, said = text_in(part, "kind"), _said(part)
        if said and calls:
            yield blocks, calls
            blocks, calls = [], []
        if kind == "thinking" and said:
            blocks.append(thinking_block(said))
        elif said and blocks and blocks[-1]["type"] == "text":
            blocks[-1] = text_block(f"{blocks[-1]['text']}{said}")
        elif said:
            blocks.append(text_block(said))
        elif kind in (_CALL, "textEditGroup"):
            path = text_in(as_dict(part.get("uri")), "fsPath") or text_in(as_dict(part.get("uri")), "path")
            tool = (text_in(part, "toolId") or "unknown") if kind == _CALL else "edit"
            data = {"path": path} if kind != _CALL else _input(part)
            ask = st.CallStep(text_in(part, "toolCallId") or f"{id}.part{number}", tool, data, effect_of(tool, data))
            calls.append((ask, _answer(ask, _output(part), part)))
            blocks.append(call_block(ask.id, tool))
    if blocks:
        yield blocks, calls


def _said(part: dict[str, Any]) -> str:
    kind, value = text_in(part, "kind"), part.get("value")
    if kind == "inlineReference":
        target = as_dict(part.get("inlineReference"))
        return f"`{text_in(part, 'name') or text_in(target, 'name') or Path(text_in(target, 'path')).name}`"
    if kind not in ("", "markdownContent", "markdownVuln", "thinking"):
        return ""
    value = as_dict(part.get("content")).get("value") if value is None else value
    return value if isinstance(value, str) else "".join(v for v in as_list(value) if isinstance(v, str))


def _input(part: dict[str, Any]) -> dict[str, Value]:
    data = as_dict(part.get("toolSpecificData"))
    line = as_dict(data.get("commandLine"))
    if command := text_in(line, "userEdited") or text_in(line, "original") or text_in(data, "command"):
        return {"command": command}
    given = storable(data.get("rawInput"))
    return given if isinstance(given, dict) else {"message": _message(part.get("invocationMessage"))}


def _output(part: dict[str, Any]) -> str:
    data, details = as_dict(part.get("toolSpecificData")), as_dict(part.get("resultDetails"))
    output = details.get("output")
    texts = [output] if isinstance(output, str) else [text_in(o, "value") for o in dicts_in(output)]
    shown = text_in(as_dict(data.get("terminalCommandOutput")), "text")
    return "\n".join(filter(None, texts)) or shown or _message(part.get("pastTenseMessage"))


def _message(value: object) -> str:
    return value if isinstance(value, str) else text_in(as_dict(value), "value")


def _text(value: object) -> str:
    """The text of a result, which may be a tree of what was rendered for the model."""
    if isinstance(value, list):
        return "".join(map(_text, value))
    if not isinstance(value, dict):
        return value if isinstance(value, str) else ""
    if "text" in value:
        return ("\n" if value.get("lineBreakBefore") is True else "") + text_in(value, "text")
    inner = next((value[key] for key in ("content", "value", "node", "children") if key in value), None)
    return _text(inner).removeprefix("\n" if "content" in value else "")


def _answer(ask: st.CallStep, output: str, part: dict[str, Any]) -> st.ResultStep:
    confirmed = part.get("isConfirmed")
    state = as_dict(as_dict(part.get("toolSpecificData")).get("terminalCommandState"))
    if confirmed is False or as_dict(confirmed).get("type") == 0:
        return st.ResultStep(ask.id, output, "denied", error=output[: st.ERROR_MAX])
    is_error = as_dict(part.get("resultDetails")).get("isError") is True or count_in(state, "exitCode") > 0
    if is_error or _FAILED.match(output):
        return st.ResultStep(ask.id, output, "failed", error=output[: st.ERROR_MAX])
    return st.ResultStep(ask.id, output, files=tuple(_files(ask)))


def _files(ask: st.CallStep) -> Iterator[FileChanged]:
    data = as_dict(ask.input)
    if ask.effect != "write":
        return
    if ask.tool == "create_file":
        yield file_change(text_in(data, "filePath"), after=text_in(data, "content"), change="created", action=ask.id)
        return
    named = [data, *dicts_in(data.get("replacements"))]
    paths = [text_in(each, "filePath") or text_in(each, "path") for each in named]
    paths += re.findall(r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.+)$", text_in(data, "input"))
    for path in dict.fromkeys(filter(None, paths)):
        yield file_change(path, action=ask.id)
