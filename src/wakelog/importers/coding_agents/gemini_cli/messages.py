"""Reads a message of Gemini CLI into named steps.

The program rewrites a message when there is more of it: its tokens, its calls, their results. The names are the same in
every version, so each step is imported once. A result may also come as a user message with a `functionResponse`;
whichever comes first is the result of the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from wakelog.importers import steps as st
from wakelog.importers.common.amounts import edited_lines, tokens
from wakelog.importers.common.chat import call_block, image_block, join_texts, text_block, thinking_block
from wakelog.importers.common.file_changes import TrackedFiles, diff_counts, file_change, replace_text
from wakelog.importers.common.tools import effect_of, is_shell
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, as_list, as_text, dicts_in, text_in
from wakelog.model.usage import Usage
from wakelog.model.values import Value

_CONTEXT = re.compile(r"\s*(?:<session_context>|<hook_context>|This is the Gemini CLI\. We are setting up the context)")
_SNAPSHOT = "<state_snapshot>"
_EXIT = re.compile(r"^Exit Code: (-?\d{1,9})\s*$", re.MULTILINE)
_DENIED = re.compile(
    r"did not allow|rejected by the user|user (?:denied|declined|rejected)|denied by policy", re.IGNORECASE
)
_CREATED = re.compile(r"(?:Successfully )?created", re.IGNORECASE)
_MODEL = ("gemini", "model", "assistant")
_LAST_CALL = "complete_task"
"""The call with which a sub-agent ends its work."""


class MessageReader:
    """Reads the messages of one transcript, in order."""

    def __init__(self, children: frozenset[str], *, is_agent: bool = False) -> None:
        """`is_agent` says that the transcript is of a sub-agent."""
        self._children = children
        self._last_call = _LAST_CALL if is_agent else ""
        self._asked: dict[str, tuple[str, Value]] = {}
        self._held: dict[str, dict[str, Any]] = {}
        """Results that came before their calls."""
        self._files = TrackedFiles()

    def steps(self, id: str, message: dict[str, Any]) -> list[st.NamedStep]:
        kind = message.get("type")
        if kind == "user":
            return list(self._user(id, message))
        if kind in _MODEL:
            return list(self._model(id, message))
        text = text_of(message.get("content"))
        return [(f"{id}/note", st.MessageStep("system", text, name=str(kind)))] if kind and text else []

    def _user(self, id: str, message: dict[str, Any]) -> Iterator[st.NamedStep]:
        content, display_content = message.get("content"), message.get("displayContent")
        for part in _parts(content):
            response = part.get("functionResponse")
            if isinstance(response, dict):
                yield from self._response(response)
        text = text_of(content)
        words = _user_content(content)
        if not words:
            return
        if _SNAPSHOT in text:
            yield f"{id}/summary", st.CompactionStep(text)
        elif _CONTEXT.match(text):
            yield f"{id}/context", st.MessageStep("user", words, name="context", trust="unverified")
        elif display_content and text_of(display_content) and text_of(display_content) != text:
            yield f"{id}/prompt", st.PromptStep(_user_content(display_content), id=id)
            yield f"{id}/context", st.MessageStep("user", words, name="context", trust="unverified")
        else:
            yield f"{id}/prompt", st.PromptStep(words, id=id)

    def answer(self, call: str, record: dict[str, Any]) -> Iterator[st.ResultStep]:
        """The result of a call that a message asked for, if it comes as a record of its own."""
        if call in self._asked:
            yield self._result(call, record)

    def _response(self, response: dict[str, Any]) -> Iterator[st.NamedStep]:
        call = str(response.get("id") or "")
        if call in self._asked:
            yield f"answer/{call}", self._result(call, {"result": [{"functionResponse": response}]})
        elif call:
            self._held[call] = response

    def _model(self, id: str, message: dict[str, Any]) -> Iterator[st.NamedStep]:
        model = text_in(message, "model")
        usage = _usage(message.get("tokens"))

        def reply(*blocks: dict[str, Value]) -> st.ReplyStep:
            return st.ReplyStep(id, list(blocks), model=model, usage=usage)

        thoughts = [thinking_block(t) for t in _thoughts(message.get("thoughts"))]
        if thoughts:
            yield f"{id}/thoughts", reply(*thoughts)
        if text := text_of(message.get("content")):
            yield f"{id}/text", reply(text_block(text))
        calls = list(_calls(id, message))
        for call, name, value, _ in calls:
            self._asked[call] = name, value
            yield f"mention/{call}", reply(call_block(call, name))
            yield f"ask/{call}", st.CallStep(call, name, value, effect_of(name, value), group=id)
        if usage.is_known:
            yield f"{id}/used/{usage.tokens_in}/{usage.tokens_out}", reply()
        for call, _, _, record in calls:
            held = self._held.pop(call, None)
            if record.get("result") is None and held:
                record = record | {"result": [{"functionResponse": held}]}
            if record.get("result") or record.get("status") in ("success", "error", "cancelled"):
                result = self._result(call, record)
                yield f"answer/{call}", result
                if self._asked[call][0] == self._last_call and result.outcome == "succeeded":
                    yield f"end/{call}", st.TurnEndStep()

    def _result(self, call: str, record: dict[str, Any]) -> st.ResultStep:
        tool, value = self._asked[call]
        output, is_error = _output(record.get("result"))
        display = record.get("resultDisplay")
        if output is None and isinstance(display, str):
            output = display
        text = as_text(output)
        outcome = _outcome(tool, text, record.get("status"), is_error)
        files = self._changes(tool, value, text, display) if outcome == "succeeded" else ()
        agent = record.get("agentId")
        return st.ResultStep(
            call,
            output,
            outcome,
            error="" if outcome == "succeeded" else text[: st.ERROR_MAX],
            files=tuple(files),
            child=agent if isinstance(agent, str) and agent in self._children else "",
        )

    def _changes(self, tool: str, given: Value, text: str, display: Any) -> Iterator[FileChanged]:
        path = given.get("file_path") or given.get("path") if isinstance(given, dict) else None
        if tool not in ("write_file", "replace", "edit") or not isinstance(path, str) or not path:
            return
        shown = as_dict(display)
        before, after = shown.get("originalContent"), shown.get("newContent")
        before = before if isinstance(before, str) else self._files.text(path)
        old, new = given.get("old_string"), given.get("new_string")
        lines = None
        if tool == "write_file":
            after = after if isinstance(after, str) else given.get("content")
        elif not isinstance(after, str) and isinstance(old, str) and isinstance(new, str):
            after = replace_text(before, old, new) if before is not None else None
            lines = edited_lines([(old, new)])
        after = after if isinstance(after, str) else None
        is_new = bool(_CREATED.match(text)) or shown.get("isNewFile") is True or (tool != "write_file" and old == "")
        if isinstance(shown.get("fileDiff"), str):
            lines = diff_counts(shown["fileDiff"])
        if before is not None and after is not None:
            lines = None
        self._files.track(path, after)
        yield file_change(path, before=before, after=after, change="created" if is_new else "modified", lines=lines)


def _calls(id: str, message: dict[str, Any]) -> Iterator[tuple[str, str, Value, dict[str, Any]]]:
    """The calls of a message: id, tool, input and its record. Calls from the history have no record."""
    seen = set()
    for number, record in enumerate(as_list(message.get("toolCalls"))):
        if isinstance(record, dict):
            call = str(record.get("id") or f"{id}-{number}")
            seen.add(call)
            yield call, str(record.get("name") or "unknown"), record.get("args"), record
    for number, part in enumerate(_parts(message.get("content"))):
        function_call = part.get("functionCall")
        if isinstance(function_call, dict):
            call = str(function_call.get("id") or f"{id}-part{number}")
            if call not in seen:
                seen.add(call)
                yield call, str(function_call.get("name") or "unknown"), function_call.get("args"), {}


def _outcome(tool: str, text: str, status: Any, is_error: bool) -> st.Outcome:
    if status in ("cancelled", "error") or is_error:
        if _DENIED.search(text[:400]):
            return "denied"
        return "cancelled" if status == "cancelled" else "failed"
    if is_shell(tool):
        # The tool reports success whenever the command ran. The exit code says how it ended.
        codes = _EXIT.findall(text)
        return "failed" if codes and int(codes[-1]) != 0 else "succeeded"
    return "succeeded"


def _output(result: Any) -> tuple[Value, bool]:
    """The output of a call, as a string if it is only text, and whether it is an error."""
    parts = _parts(result)
    responses = [p["functionResponse"] for p in parts if isinstance(p.get("functionResponse"), dict)]
    if not responses:
        return (result if result else None), False
    response = responses[0].get("response")
    more = [_block(p) for p in parts if "functionResponse" not in p]
    if isinstance(response, dict):
        for key, is_error in (("output", False), ("error", True)):
            if len(response) == 1 and isinstance(response.get(key), str):
                text = response[key]
                return ([text_block(text), *more] if more else text), is_error
        return ([{"type": "json", "json": response}, *more] if more else response), "error" in response
    return response, False


def _user_content(content: Any) -> Value:
    """The user's own content: text as a string, images as blocks."""
    if isinstance(content, str):
        return content if content.strip() else None
    blocks = [_block(p) for p in _parts(content) if "functionResponse" not in p and "functionCall" not in p]
    blocks = [b for b in blocks if not isinstance(b.get("text"), str) or b["text"].strip()]
    return join_texts(blocks) or None


def _block(part: dict[str, Any]) -> dict[str, Any]:
    if isinstance(part.get("text"), str):
        return text_block(part["text"])
    data = part.get("inlineData")
    if isinstance(data, dict) and isinstance(data.get("data"), str):
        return image_block(str(data.get("mimeType") or ""), data["data"])
    return part


def _parts(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, dict):
        return [content]
    if isinstance(content, str):
        return [{"text": content}]
    if not isinstance(content, list):
        return []
    return [p if isinstance(p, dict) else {"text": p} for p in content if isinstance(p, dict | str)]


def text_of(content: Any) -> str:
    parts = [p for p in _parts(content) if p.get("thought") is not True]
    texts = [p["text"] for p in parts if isinstance(p.get("text"), str)]
    return "\n".join(t for t in texts if t.strip()) if any(t.strip() for t in texts) else ""


def _thoughts(thoughts: Any) -> Iterator[str]:
    for thought in dicts_in(thoughts):
        if text := "\n".join(filter(None, (text_in(thought, "subject"), text_in(thought, "description")))):
            yield text


def _usage(given: Any) -> Usage:
    if not isinstance(given, dict):
        return Usage()
    tokens_in, cached, tool, tokens_out, thought = (
        tokens(given.get(key)) for key in ("input", "cached", "tool", "output", "thoughts")
    )
    return Usage(input=max(0, tokens_in - cached) + tool, cache_read=cached, output=tokens_out, reasoning=thought)
