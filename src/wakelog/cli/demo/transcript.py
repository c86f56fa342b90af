"""A session of Claude Code as that program writes it, imported: nobody declared a decision, a fact or a file.

The lines have the shape of a real transcript: answers split over several lines, calls with structured results, an edit
that was refused, a person who corrects the agent.
"""

from __future__ import annotations

import datetime
import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from wakelog.cli.demo.scene import LABEL, Scene
from wakelog.importers.coding_agents.claude_code import transcript as claude_code
from wakelog.importers.writer.session_writer import SessionWriter

SESSION = "5a1e7c02-6a0d-4f7b-9c55-0d6c1c7b8e21"
NAME = "claude-5a1e7c02"
FOLDER = "/home/ada/shop"
MODEL = "claude-sonnet-4-5-20250929"

UPLOAD = """from pathlib import Path


def save(request, folder: Path) -> Path:
    body = request.read()
    target = folder / request.name
    target.write_bytes(body)
    return target
"""
STREAMED = """from pathlib import Path


def save(request, folder: Path) -> Path:
    target = folder / request.name
    with target.open("wb") as file:
        while chunk := request.read(65536):
            file.write(chunk)
    return target
"""
PROXY = "client_max_body_size 10m;\n"
PROXY_RAISED = "client_max_body_size 64m;\n"


class _Lines:
    """The lines of a transcript, each half a minute after the one before."""

    def __init__(self, at_us: int) -> None:
        self._at = at_us
        self._count = 0
        self._last: str | None = None
        self.lines: list[dict[str, Any]] = []

    def _line(self, kind: str, **more: Any) -> None:
        self._count += 1
        self._at += 30_000_000
        uuid = f"{self._count:08x}-0000-4000-8000-000000000000"
        when = datetime.datetime.fromtimestamp(self._at / 1e6, datetime.UTC)
        self.lines.append(
            {
                "parentUuid": self._last,
                "isSidechain": False,
                "userType": "external",
                "cwd": FOLDER,
                "sessionId": SESSION,
                "version": "2.1.38",
                "gitBranch": "main",
                "type": kind,
                **more,
                "uuid": uuid,
                "timestamp": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            }
        )
        self._last = uuid

    def prompt(self, text: str) -> None:
        self._line("user", message={"role": "user", "content": text})

    def reply(self, number: int, *blocks: dict[str, Any], tokens: int = 120) -> None:
        """One answer, written as a line for each block, as the program does."""
        for block in blocks:
            stop = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
            message = {
                "id": f"msg_{number:02}",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": [block],
                "stop_reason": stop if block is blocks[-1] else None,
                "usage": {"input_tokens": 12, "cache_read_input_tokens": 18_000, "output_tokens": tokens},
            }
            self._line("assistant", message=message, requestId=f"req_{number:02}")

    def result(self, call: str, content: str, structured: Any = None, *, is_error: bool = False) -> None:
        block = {"tool_use_id": call, "type": "tool_result", "content": content, "is_error": is_error}
        self._line("user", message={"role": "user", "content": [block]}, toolUseResult=structured or content)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": "c2ln"}


def _call(id: str, name: str, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def _edit(path: str, before: str, after: str, old: str, new: str) -> dict[str, Any]:
    lines = [f"-{line}" for line in old.splitlines()] + [f"+{line}" for line in new.splitlines()]
    return {
        "filePath": path,
        "oldString": old,
        "newString": new,
        "originalFile": before,
        "structuredPatch": [{"oldStart": 1, "newStart": 1, "lines": lines}],
        "replaceAll": False,
    }


def lines(at_us: int) -> list[dict[str, Any]]:
    """The records of the session, as they stand in its file."""
    out = _Lines(at_us)
    out.prompt("Uploads over 10 MB fail with a 413. Find out why and fix it, please.")
    out.reply(
        1, _text("I'll look at how uploads are handled."), _call("t1", "Grep", pattern="client_max_body_size|read\\(")
    )
    out.result("t1", "deploy/nginx.conf:3:client_max_body_size 10m;\nshop/upload.py:5:    body = request.read()")
    out.reply(
        2,
        _thinking("The proxy limit is 10m, which is exactly where it fails. Raising it is the smallest change to try."),
        _text("The proxy allows 10 MB, so I'll raise its limit first, because that is where the 413 comes from."),
        _call("t2", "Edit", file_path=f"{FOLDER}/deploy/nginx.conf", old_string="10m", new_string="64m"),
    )
    out.result(
        "t2",
        f"The file {FOLDER}/deploy/nginx.conf has been updated.",
        _edit(f"{FOLDER}/deploy/nginx.conf", PROXY, PROXY_RAISED, "10m", "64m"),
    )
    out.reply(3, _call("t3", "Bash", command="python -m pytest -q tests/test_upload.py"))
    out.result(
        "t3",
        "Exit code 1\nE  MemoryError: cannot allocate 41943040 bytes\n1 failed, 4 passed in 2.31s",
        "Error: Exit code 1",
        is_error=True,
    )
    out.reply(
        4,
        _text(
            "That had no effect on the failure itself: the 413 is gone, but the worker now runs out of memory. "
            "The fix is to stream the body to disk instead of reading it at once, so that memory stays flat."
        ),
        _call("t4", "Write", file_path=f"{FOLDER}/shop/upload.py", content=STREAMED),
    )
    out.result("t4", "File has not been read yet. Read it first before writing to it.", None, is_error=True)
    out.reply(5, _call("t5", "Read", file_path=f"{FOLDER}/shop/upload.py"))
    out.result(
        "t5",
        UPLOAD,
        {"type": "text", "file": {"filePath": f"{FOLDER}/shop/upload.py", "content": UPLOAD, "numLines": 8}},
    )
    out.reply(6, _call("t6", "Write", file_path=f"{FOLDER}/shop/upload.py", content=STREAMED))
    out.result(
        "t6",
        f"The file {FOLDER}/shop/upload.py has been updated.",
        {
            "type": "update",
            "filePath": f"{FOLDER}/shop/upload.py",
            "content": STREAMED,
            "originalFile": UPLOAD,
        },
    )
    out.reply(7, _call("t7", "Bash", command="python -m pytest -q tests/test_upload.py"))
    out.result("t7", "5 passed in 2.18s", {"stdout": "5 passed in 2.18s", "stderr": "", "interrupted": False})
    out.reply(
        8,
        _text(
            "Uploads are streamed now, and all five tests pass. The proxy limit is 64 MB; nothing larger gets through."
        ),
        tokens=60,
    )
    out.prompt("No, please don't touch the proxy: ops owns that file. Put it back and tell me what to ask them for.")
    out.reply(
        9,
        _text("Understood. I'll restore the proxy configuration and leave the limit to ops."),
        _call("t8", "Edit", file_path=f"{FOLDER}/deploy/nginx.conf", old_string="64m", new_string="10m"),
    )
    out.result(
        "t8",
        f"The file {FOLDER}/deploy/nginx.conf has been updated.",
        _edit(f"{FOLDER}/deploy/nginx.conf", PROXY_RAISED, PROXY, "64m", "10m"),
    )
    out.reply(
        10,
        _text(
            "The proxy file is back as it was. Ask ops for `client_max_body_size 64m;` in deploy/nginx.conf, line 3."
        ),
        tokens=70,
    )
    return out.lines


def build_transcript(scene: Scene) -> None:
    """Imports the session from a file, as `wakelog import` does."""
    scene.store.engine.claim(NAME, scene.id_of(NAME))
    with tempfile.TemporaryDirectory(prefix="wakelog-demo-") as folder:
        path = Path(folder) / f"{SESSION}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines(scene.start)), encoding="utf-8")
        for transcript in claude_code.transcripts(path):
            head = msgspec.structs.replace(transcript.head, labels={**transcript.head.labels, LABEL: scene.name})
            writer = SessionWriter(
                scene.store, head, format=claude_code.NAME, source=f"~/.claude/projects/shop/{path.name}", stat=(0, 0)
            )
            for record, weight in transcript.read():
                writer.take(record, weight)
            writer.close(is_quiet=True)
