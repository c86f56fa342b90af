"""Rebuilds Claude Code's content blocks from events: the model's texts and calls, and the results of calls.

The log stores a call's input with the call, not in the answer that requested it, and file contents with the changes.
Here they are put together again. Tool results have the shape that Claude Code writes, as far as the log has the data.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any

from wakelog.log.reader import Entry
from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.json_fields import as_dict, as_text
from wakelog.model.parts import Asked, Image, Text, Thinking, is_answer, parts_of, text_of
from wakelog.session import Session
from wakelog.timeline.messages import content_of

ENDS = frozenset({"action.recorded", "action.succeeded", "action.failed", "action.timed_out", "action.reconciled"})
_NUMBER = re.compile(r"^\s*\d+(?:→|\t)", re.MULTILINE)

Block = dict[str, Any]


class CallBlocks:
    """The calls and file changes of a session by action, and the blocks made from them."""

    def __init__(self, session: Session[Any], entries: Iterable[Entry]) -> None:
        self._log = session.log
        self._requests: dict[str, Entry] = {}
        self._changes: dict[str, list[Entry]] = {}
        self._images: dict[str, Entry] = {}
        self.model_actions: set[str] = set()
        for entry in entries:
            action = str(entry.body.get("action", ""))
            if entry.kind in BEGIN_KINDS:
                self._requests[action] = entry
                if entry.body.get("effect") == "model":
                    self.model_actions.add(action)
            elif entry.kind == "file.changed" and action:
                self._changes.setdefault(action, []).append(entry)
            elif entry.kind == "artefact.recorded":
                self._images[str(entry.body.get("name", ""))] = entry

    def input_of(self, action: str) -> Any:
        entry = self._requests.get(action)
        return content_of(self._log, entry, "input") if entry is not None else None

    def is_model(self, entry: Entry) -> bool:
        return str(entry.body.get("action", "")) in self.model_actions

    def reply_blocks(self, entry: Entry) -> list[Block]:
        """The blocks of a model's answer, with the inputs of its calls."""
        answer = content_of(self._log, entry, "output")
        stored = answer.get("content") if isinstance(answer, dict) and is_answer(answer) else None
        if isinstance(stored, list):
            return [self._with_input(dict(block)) for block in stored if isinstance(block, dict)]
        blocks: list[Block] = []
        for part in parts_of(answer):
            if isinstance(part, Thinking):
                blocks.append(part.block)
            elif isinstance(part, Asked):
                blocks.append(
                    self._with_input({"type": "tool_use", "id": part.id, "name": part.name, "input": part.input})
                )
            elif isinstance(part, Text):
                blocks.append({"type": "text", "text": part.text})
        return blocks

    def _with_input(self, block: Block) -> Block:
        if block.get("type") != "tool_use" or block.get("input") is not None:
            return block
        given = self.input_of(str(block.get("id", "")))
        return {**block, "input": given if isinstance(given, dict) else {} if given is None else {"input": given}}

    def content(self, entry: Entry, field: str) -> Any:
        """The content of a message: a text, or blocks with their images."""
        value = content_of(self._log, entry, field)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(b, dict) and "type" in b for b in value):
            return [self._with_image(b) for b in value]
        return "\n".join(p.text if isinstance(p, Text) else "(an image)" for p in parts_of(value) if _shows(p))

    def _with_image(self, block: Block) -> Block:
        """Puts an image back into its block. The log stores each image once, by its hash."""
        source = block.get("source")
        if block.get("type") != "image" or not isinstance(source, dict) or source.get("type") != "sha256":
            return block
        entry = self._images.get(f"image-{str(source.get('sha256', ''))[:12]}")
        data = content_of(self._log, entry, "content") if entry is not None else None
        if not isinstance(data, bytes):
            return {"type": "text", "text": "(an image)"}
        packed = base64.b64encode(data).decode()
        return {"type": "image", "source": {"type": "base64", "media_type": source["media_type"], "data": packed}}

    def result(self, entry: Entry) -> Block | None:
        """The result of a call; None if there is none."""
        body = entry.body
        failed = entry.kind in ("action.failed", "action.timed_out") or body.get("outcome", "succeeded") != "succeeded"
        output = content_of(self._log, entry, "output") if body.get("output") is not None else None
        if output is None and failed:
            error = body.get("error")
            output = error.get("message") if isinstance(error, dict) else None
            if not output:
                return None
        if isinstance(output, list) and all(isinstance(b, dict) and "type" in b for b in output):
            content: Any = [self._with_image(b) for b in output]
        else:
            content = "" if output is None else text_of(output)
        block = {"tool_use_id": str(body.get("action", "")), "type": "tool_result", "content": content}
        return block | {"is_error": True} if failed else block

    def details(self, block: Block, kept: Any, action: str = "") -> Any:
        """The structured result that belongs to a result block. `kept` is what the import kept of it, or None. `action`
        is the call, if the block has another id for it."""
        action, text = action or block["tool_use_id"], as_text(block["content"])
        data = as_dict(self.input_of(action))
        changes = self._changes.get(action, [])
        if not isinstance(kept, dict):
            if block.get("is_error"):
                return f"Error: {text}"
            if not changes:
                return text or block["content"]
            kept = {"filePath": _path(changes[0])}
        if changes and "filePath" in kept:
            return kept | self._changed(changes[0], data)
        if kept.get("type") == "text" and "file_path" in data:
            return kept | {"file": _read_file(data, text)}
        return kept | {"stdout": text, "stderr": ""} if "interrupted" in kept else kept

    def _changed(self, entry: Entry, data: dict[str, Any]) -> dict[str, Any]:
        """The file before and after an edit, as old and new string if that gives the same result."""
        sides = {side: entry.body.get(side) is not None for side in ("before", "after")}
        before = content_of(self._log, entry, "before") if sides["before"] else None
        after = content_of(self._log, entry, "after") if sides["after"] else None
        results: dict[str, Any] = {"originalFile": before if isinstance(before, str) else None}
        old, new = data.get("old_string"), data.get("new_string")
        if isinstance(old, str) and isinstance(new, str):
            count = -1 if data.get("replace_all") else 1
            applied = before.replace(old, new, count) if isinstance(before, str) and old in before else None
            if after is None or applied == after or (not old and new == after):
                return results | {"oldString": old, "newString": new}
        if not isinstance(after, str):
            return results | ({"content": data["content"]} if isinstance(data.get("content"), str) else {})
        is_new = entry.body.get("change", "modified") == "created"
        return results | {"type": "create" if is_new else "update", "content": after}


def _shows(part: object) -> bool:
    return isinstance(part, Text | Image)


def _path(change: Entry) -> str:
    path, folder = str(change.body.get("path", "")), str(change.body.get("folder", ""))
    return path if path.startswith("/") or not folder else f"{folder.rstrip('/')}/{path}"


def _read_file(data: dict[str, Any], text: str) -> dict[str, Any]:
    plain = _NUMBER.sub("", text)
    count, start = plain.count("\n") + 1, data.get("offset")
    start = start if isinstance(start, int) else 1
    fields = {"numLines": count, "startLine": start, "totalLines": start + count - 1}
    return {"filePath": data["file_path"], "content": plain, **fields}
