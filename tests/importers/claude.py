"""Transcripts of Claude Code, made here line by line as that program writes them; and what a store tells of them."""

import datetime
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import wakelog
from wakelog.importers.transcript_import import ImportReport, import_transcript
from wakelog.session import Session
from wakelog.store import Store

SESSION = "5a1e7c02-6a0d-4f7b-9c55-0d6c1c7b8e21"
NAME = "claude-5a1e7c02"
FOLDER = "/home/ada/shop"
MODEL = "claude-sonnet-4-5-20250929"
START = 1_760_000_000_000_000


class Lines:
    """Lines in the order of the file, a second apart, each the child of the one before unless told otherwise."""

    def __init__(self, session: str = SESSION, *, prefix: str = "0", **common: Any) -> None:
        self.lines: list[dict[str, Any]] = []
        self._session, self._prefix, self._common = session, prefix, common
        self.count = 0
        self.last: str | None = None

    def add(self, type: str, *, parent: str | None = "", **more: Any) -> str:
        """A line; its uuid."""
        self.count += 1
        uuid = f"{self._prefix * 4}{self.count:04x}-0000-4000-8000-000000000000"
        when = datetime.datetime.fromtimestamp(START / 1e6 + self.count, datetime.UTC)
        line = {
            "parentUuid": self.last if parent == "" else parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": FOLDER,
            "sessionId": self._session,
            "version": "2.1.38",
            "gitBranch": "main",
            "type": type,
            **self._common,
            **more,
            "uuid": uuid,
            "timestamp": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        self.lines.append(line)
        self.last = uuid
        return uuid

    def prompt(self, content: Any, **more: Any) -> str:
        return self.add("user", message={"role": "user", "content": content}, **more)

    def reply(self, id: str, *blocks: dict[str, Any], tokens: int = 100, stop: str | None = None, **more: Any) -> str:
        """One answer, a line for each block; every line repeats the usage."""
        uuid = ""
        for block in blocks:
            ends = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
            message = {
                "id": id,
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": [block],
                "stop_reason": (stop or ends) if block is blocks[-1] else None,
                "usage": {"input_tokens": 10, "cache_read_input_tokens": 1000, "output_tokens": tokens},
            }
            uuid = self.add("assistant", message=message, requestId=f"req_{id}", **more)
        return uuid

    def result(self, call: str, content: Any, structured: Any = None, *, is_error: bool = False, **more: Any) -> str:
        block = {"tool_use_id": call, "type": "tool_result", "content": content, "is_error": is_error}
        given = content if structured is None else structured
        return self.add("user", message={"role": "user", "content": [block]}, toolUseResult=given, **more)

    def write(self, path: Path, upto: int | None = None) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines[:upto]), encoding="utf-8")
        return path


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def thinking(words: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": "c2ln"}


def call(id: str, name: str, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def live_store() -> Store:
    """A store whose clock stands where the transcripts end: nothing in them is quiet yet."""
    return wakelog.open("memory:", clock=lambda: START)


def imported(path: Path, store: Store | None = None) -> tuple[Store, ImportReport]:
    store = store or live_store()
    return store, import_transcript(store, path)


def bring_in(lines: Lines, folder: Path, store: Store | None = None) -> Session[Any]:
    """The session that some lines become."""
    store, _ = imported(lines.write(folder / f"{SESSION}.jsonl"), store)
    return store.resume(NAME)


def events(session: Session[Any], *kinds: str) -> list[dict[str, Any]]:
    return [entry.body for entry in session.log.entries() if entry.kind in kinds]


def calls(session: Session[Any]) -> list[dict[str, Any]]:
    """What tools were asked for and what came of it, whether that stands in one event or in two."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    open_calls: dict[str, dict[str, Any]] = {}
    for entry in session.log.entries():
        body = entry.body
        if entry.kind in ("action.recorded", "action.requested") and body.get("effect") != "model":
            one = {k: _value(session, entry, body.get(k)) for k in ("action", "tool", "effect", "input", "group")}
            found[body["action"], len(found)] = open_calls[body["action"]] = one
            one["trust"] = None
        if entry.kind in ("action.recorded", "action.succeeded", "action.failed") and body.get("effect") != "model":
            one = open_calls[body["action"]]
            error = body.get("error") or {}
            one["outcome"] = error.get("type") or "succeeded"
            one["output"] = _value(session, entry, body.get("output"))
            one["trust"] = entry.header.trust
        if entry.kind == "action.abandoned":
            open_calls[body["action"]]["outcome"] = "interrupted"
    return sorted(found.values(), key=lambda one: one["action"])


def said(session: Session[Any]) -> list[Any]:
    """All messages in order; the parts of one answer are put together where the first stood."""
    found: list[Any] = []
    replies: dict[str, list[Any]] = {}
    for entry in session.log.entries():
        body = entry.body
        if entry.kind == "turn.started":
            found.append(["prompt", _value(session, entry, body.get("input"))])
        elif entry.kind == "message.added":
            found.append([body["role"], body.get("name"), _value(session, entry, body.get("content"))])
        elif body.get("effect") == "model":
            id = body["action"].split("/")[0]
            if id not in replies:
                replies[id] = ["model", id]
                found.append(replies[id])
            replies[id] += _value(session, entry, body["output"])["content"]
    return found


def seen(session: Session[Any]) -> list[str]:
    """The prompts, summaries and answers that are in view, oldest first."""
    shown = [(m.seq, m.text) for m in session.messages() if m.role in ("assistant", "summary")]
    for first, last in session.log.view():
        for entry in session.log.entries(after=first - 1, upto=last):
            if entry.kind == "turn.started":
                shown.append((entry.seq, str(_value(session, entry, entry.body["input"]))))
    return [words for _, words in sorted(shown)]


def told_of(store: Store) -> dict[str, Any]:
    """What does not depend on how often a file was looked at: messages, calls, files and costs of every session."""
    told: dict[str, Any] = {}
    for info in store.sessions():
        session = store.resume(info.name)
        files = [
            [_value(session, e, e.body.get(k)) for k in ("path", "change", "before", "after", "added", "removed")]
            for e in session.log.entries()
            if e.kind == "file.changed"
        ]
        prompts = {str(each[1]) for each in said(session) if each[0] == "prompt"}
        told[info.name] = {
            "said": said(session),
            "calls": calls(session),
            "files": files,
            "cost": _cost(events(session, "action.recorded", "action.succeeded", "action.failed")),
            "prompts in view": [words for words in seen(session) if words in prompts],
        }
    return told


def _cost(bodies: Iterable[dict[str, Any]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for body in bodies:
        for name, value in body.get("cost", {}).items():
            if isinstance(value, int):
                total[name] = total.get(name, 0) + value
    return total


def _value(session: Session[Any], entry: Any, stored: Any) -> Any:
    return session.log.value(entry, stored)
