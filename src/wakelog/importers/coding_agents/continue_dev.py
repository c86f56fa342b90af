"""Continue: `~/.continue/sessions/<session>.json`, one document, of its editors' extensions and of its command line.

The document is rewritten as it grows. A reply has its calls with it, and each call the state it is in: the result is
added there. The steps of a reply are named, so each is imported once. There are no times in it, so the time of a record
is that of the file in which it is first seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakelog.importers import steps as st
from wakelog.importers.common.amounts import micros, tokens
from wakelog.importers.common.chat import (
    call_block,
    join_texts,
    json_or_text,
    listed_records,
    text_block,
    text_of,
    thinking_block,
)
from wakelog.importers.common.file_changes import TrackedFiles, file_change
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import (
    Sample,
    digest,
    home_files,
    json_digest,
    read_object,
    stat_of,
)
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, dicts_in, text_in, without_fields
from wakelog.model.usage import Usage
from wakelog.model.values import Value

NAME = "continue"
TITLE = "Continue"
_HELD = ("content", "toolCalls", "usage")
_OUTCOMES: dict[str, st.Outcome] = {"done": "succeeded", "errored": "failed", "canceled": "denied"}
"""States of a call that is over. A user who does not want a call cancels it."""


def find_in_home(home: Path) -> Iterator[Path]:
    for path in home_files(".continue/sessions/*.json")(home):
        if path.name != "sessions.json":  # the list of all sessions
            yield path


def recognises(sample: Sample) -> bool:
    return sample.first == b"{" and sample.has(b'"sessionId"', b'"workspaceDirectory"', b'"history"')


def transcripts(path: Path) -> Iterator[st.Transcript]:
    session = read_object(path, "a session of Continue")
    title = text_in(session, "title")
    labels = {"project": text_in(session, "workspaceDirectory").removeprefix("file://"), "title": title[:200]}
    head = st.TranscriptHead(text_in(session, "sessionId") or path.stem, NAME, labels=labels)
    changed = stat_of(path)[1]
    yield st.Transcript(head, lambda: listed_records(session.get("history"), "entry", _Reader(changed).record))


class _Reader:
    def __init__(self, at: int) -> None:
        self._at = at
        self._files = TrackedFiles()

    def record(self, number: int, item: dict[str, Any]) -> st.SourceRecord:
        message = as_dict(item.get("message"))
        # What a message says does not change; the states of its calls do.
        own = f"{number}.{json_digest(without_fields(message, ('usage',)), 8)}"
        named = [(f"{own}/{name}", step) for name, step in self._steps(own, item, message)]
        id = f"{own}.{digest(repr([name for name, _ in named]), 6)}"
        rest: dict[str, Value] = {**item, "message": without_fields(message, _HELD)} if named else item
        states = [without_fields(state, ("toolCall", "parsedArgs", "output")) for state in _states(item)]
        if named and states:
            rest = without_fields(rest, ("toolCallState",)) | {"toolCallStates": states}
        return st.named_record(id, named, self._at, rest)

    def _steps(self, own: str, item: dict[str, Any], message: dict[str, Any]) -> Iterator[st.NamedStep]:
        content = join_texts(message.get("content"))
        match message.get("role"):
            case "user" if content:
                yield "prompt", st.PromptStep(content, id=own)
            case "assistant":
                yield from self._reply(own, item, message)
            case "thinking" if text_of(content):
                yield "thinking", st.ReplyStep(own, [thinking_block(text_of(content))])
            case "system" if content:
                yield "system", st.MessageStep("system", content, name="context")

    def _reply(self, own: str, item: dict[str, Any], message: dict[str, Any]) -> Iterator[st.NamedStep]:
        states = list(_states(item))
        asked = {text_in(call, "id"): call for call in dicts_in(message.get("toolCalls"))}
        asked |= {text_in(s, "toolCallId"): as_dict(s.get("toolCall")) for s in states if text_in(s, "toolCallId")}
        calls: list[st.CallStep] = []
        for id, call in asked.items():
            function = as_dict(call.get("function"))
            tool, arguments = text_in(function, "name") or "unknown", json_or_text(function.get("arguments"))
            calls.append(
                st.CallStep(id or f"{own}-{len(calls)}", tool, arguments, effect_of(tool, arguments), group=own)
            )
        blocks = [text_block(text)] if (text := text_of(message.get("content"))) else []
        blocks += [call_block(call.id, call.tool) for call in calls]
        usage, cost, model = _usage(as_dict(message.get("usage")))
        is_last = not calls
        yield "reply", st.ReplyStep(own, blocks, model=model, usage=usage, cost_micros=cost, is_last=is_last)
        for ask in calls:
            yield f"ask/{ask.id}", ask
        by_id = {ask.id: ask for ask in calls}
        for state in states:
            step, outcome = by_id.get(text_in(state, "toolCallId")), _OUTCOMES.get(text_in(state, "status"))
            if step is not None and outcome is not None:
                yield f"answer/{step.id}", self._result(step, outcome, state)

    def _result(self, ask: st.CallStep, outcome: st.Outcome, state: dict[str, Any]) -> st.ResultStep:
        text = "\n".join(text_in(part, "content") for part in dicts_in(state.get("output")))
        files = tuple(self._changes(ask, text)) if outcome == "succeeded" else ()
        return st.ResultStep(ask.id, text, outcome, "" if outcome == "succeeded" else text[: st.ERROR_MAX], files)

    def _changes(self, ask: st.CallStep, text: str) -> Iterator[FileChanged]:
        data = as_dict(ask.input)
        path = text_in(data, "filepath") or text_in(data, "file_path") or text_in(data, "path")
        if ask.effect != "write" or not path:
            return
        before = self._files.text(path)
        content = data.get("content") if isinstance(data.get("content"), str) else data.get("contents")
        after = content if isinstance(content, str) else None
        self._files.track(path, after)
        is_new = "created" in text.lower() or ask.tool.lower() in ("create_new_file", "builtin_create_new_file")
        yield file_change(path, before=before, after=after, change="created" if is_new else "modified")


def _states(item: dict[str, Any]) -> list[dict[str, Any]]:
    """The states of a reply's calls. Older versions have one call a reply."""
    return dicts_in(item.get("toolCallStates")) or dicts_in([item.get("toolCallState")])


def _usage(data: dict[str, Any]) -> tuple[Usage, int, str]:
    cached = tokens(as_dict(data.get("prompt_tokens_details")).get("cached_tokens"))
    tokens_in = tokens(data.get("prompt_tokens"))
    usage = Usage(input=max(0, tokens_in - cached), cache_read=cached, output=tokens(data.get("completion_tokens")))
    cents = data.get("cost_cents")
    return usage, micros(cents / 100 if isinstance(cents, int | float) else 0), text_in(data, "model")
