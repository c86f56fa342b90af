"""Cline's command line, and Cline 4: `~/.cline/data/sessions/<session>/<session>.messages.json`, and `<session>.json`.

The first is one document with the conversation, a list of Anthropic messages with ids, times and usage. The second has
the folder and the title. A result is an object for each thing that was asked for, which says whether it succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.common.amounts import CAMEL_CASE, micros, read_whole_usage
from wakelog.importers.common.chat import call_block, join_texts, json_or_text, listed_records, text_block
from wakelog.importers.common.file_changes import TrackedFiles, file_change
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import Sample, home_files, json_digest, read_beside, read_object, stat_of
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, as_text, dicts_in, text_in, without_fields
from wakelog.model.values import Value

NAME = "cline-sessions"
TITLE = "Cline"
AGENT = "cline"
END = ".messages.json"
find_in_home = home_files(f".cline/data/sessions/*/*{END}")
_INPUT = re.compile(r"<user_input\b[^>]*>\s*(.*?)\s*</user_input>", re.DOTALL)
_DENIED = re.compile(r"denied|rejected|not approved", re.IGNORECASE)


def recognises(sample: Sample) -> bool:
    is_named = sample.path.name.endswith(END) and sample.has(b'"messages"')
    return sample.first == b"{" and (is_named or sample.has(b'"sessionId"', b'"messages"', b'"agent"', b'"origin"'))


def transcripts(path: Path) -> Iterator[st.Transcript]:
    document = read_object(path, "a session of Cline")
    origin = path.name.removesuffix(END) if path.name.endswith(END) else text_in(document, "sessionId")
    beside = path.with_name(f"{origin}.json")
    fields = read_beside(beside)
    version = text_in(as_dict(document.get("origin")), "version")
    title = text_in(as_dict(fields.get("metadata")), "title")
    labels = {"project": text_in(fields, "cwd"), "agent_version": version, "title": title[:200]}
    head = st.TranscriptHead(origin or path.stem, AGENT, labels=labels)
    changed = stat_of(*(each for each in (path, beside) if each.is_file()))
    yield st.Transcript(head, lambda: listed_records(document.get("messages"), "message", _Reader().record), changed)


class _Reader:
    def __init__(self) -> None:
        self._asked: dict[str, st.CallStep] = {}
        self._files = TrackedFiles()

    def record(self, number: int, message: dict[str, Any]) -> st.SourceRecord:
        content = message.get("content")
        blocks = [text_block(content)] if isinstance(content, str) else dicts_in(content)
        own = text_in(message, "id") or str(number)
        id = f"{own}.{json_digest(blocks, 6)}"
        if message.get("role") == "assistant":
            steps = list(self._reply(own, message, blocks))
        elif message.get("role") == "user":
            steps = list(self._user(own, blocks))
        else:
            steps = []
        rest: Value | msgspec.Raw = without_fields(message, ("content",)) if steps else message
        return st.SourceRecord(id, tuple(steps), microseconds(message.get("ts")), rest)

    def _reply(self, own: str, message: dict[str, Any], blocks: list[dict[str, Any]]) -> Iterator[st.Step]:
        said: list[dict[str, Value]] = []
        asks: list[st.CallStep] = []
        for block in blocks:
            if block.get("type") != "tool_use":
                said.append(block)
                continue
            call, tool = text_in(block, "id") or f"{own}-{len(asks)}", text_in(block, "name") or "unknown"
            value = block.get("input")
            asks.append(st.CallStep(call, tool, value, effect_of(tool, value), group=own))
            said.append(call_block(call, tool))
        self._asked |= {ask.id: ask for ask in asks}
        used = as_dict(message.get("metrics"))
        yield st.ReplyStep(
            own,
            said,
            model=text_in(as_dict(message.get("modelInfo")), "id"),
            usage=read_whole_usage(used, **CAMEL_CASE),
            cost_micros=micros(used.get("cost")),
            is_last=not asks,
        )
        yield from asks

    def _user(self, own: str, blocks: list[dict[str, Any]]) -> Iterator[st.Step]:
        other: list[dict[str, Value]] = []
        for block in blocks:
            if block.get("type") != "tool_result":
                other.append(block)
            elif (ask := self._asked.pop(text_in(block, "tool_use_id"), None)) is not None:
                yield self._result(ask, block)
        text = join_texts(other)
        if isinstance(text, str):
            typed = _INPUT.findall(text)
            text = "\n".join(typed) or text.strip()
        if text:
            yield st.PromptStep(text, id=own)

    def _result(self, ask: st.CallStep, block: dict[str, Any]) -> st.ResultStep:
        output = json_or_text(block.get("content"))
        parts = dicts_in(output if isinstance(output, list) else [output])
        has_failed = block.get("is_error") is True or any(part.get("success") is False for part in parts)
        text = "\n".join(filter(None, (as_text(p.get("result") or p.get("error")) for p in parts))) or as_text(output)
        outcome: st.Outcome = "succeeded"
        if has_failed:
            outcome = "denied" if _DENIED.search(text[:400]) else "failed"
        files = tuple(self._changes(ask, text)) if outcome == "succeeded" else ()
        return st.ResultStep(ask.id, output, outcome, "" if outcome == "succeeded" else text[: st.ERROR_MAX], files)

    def _changes(self, ask: st.CallStep, text: str) -> Iterator[FileChanged]:
        data = as_dict(ask.input)
        path, new = text_in(data, "path"), data.get("new_text")
        if ask.tool != "editor" or not path or not isinstance(new, str):
            return
        if "created" in text[:40].lower():
            self._files.track(path, new)
            yield file_change(path, after=new, change="created")
            return
        yield self._files.edit(path, text_in(data, "old_text"), new)
