"""Transcripts in the shapes of real ones, made for tests: the words of a program in the user's name, calls without
words, edits with their contents, a result that failed."""

import json
from pathlib import Path
from typing import Any

SESSION = "0b7c1a52-9d1e-4c39-8f0e-5a2d7f3b6c10"
FOLDER = "/home/mira/code/till"
BEFORE = "def total(items):\n    return sum(items)\n"
AFTER = "def total(items):\n    return round(sum(items), 2)\n"


class Lines:
    """The lines of a transcript, a second apart."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def line(self, kind: str, **more: Any) -> None:
        number = len(self.lines)
        self.lines.append(
            {
                "parentUuid": self.lines[-1]["uuid"] if self.lines else None,
                "isSidechain": False,
                "userType": "external",
                "cwd": FOLDER,
                "sessionId": SESSION,
                "version": "2.1.0",
                "gitBranch": "mira/rounding",
                "type": kind,
                **more,
                "uuid": f"{number:08x}-1111-4000-8000-000000000000",
                "timestamp": f"2026-03-01T10:00:{number:02}.000Z",
            }
        )

    def user(self, content: Any, **more: Any) -> None:
        self.line("user", message={"role": "user", "content": content}, **more)

    def answer(self, id: str, *blocks: dict[str, Any], stop: str | None = None) -> None:
        """One answer, a line for each block."""
        for block in blocks:
            message = {"id": id, "type": "message", "role": "assistant", "model": "claude-test", "content": [block]}
            usage = {"input_tokens": 3, "output_tokens": 5}
            self.line("assistant", message={**message, "stop_reason": stop, "usage": usage}, requestId=f"req_{id}")

    def result(self, call: str, content: Any, structured: Any, *, is_error: bool = False) -> None:
        block = {"tool_use_id": call, "type": "tool_result", "content": content}
        self.user([block | {"is_error": True} if is_error else block], toolUseResult=structured)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def till() -> list[dict[str, Any]]:
    """A small session with everything in it that reads badly when nobody cares."""
    made, path = Lines(), f"{FOLDER}/src/total.py"
    made.user(
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>"
    )
    made.user("<local-command-stdout></local-command-stdout>")
    made.line("system", subtype="informational", content="ready", isMeta=False)
    made.user(
        "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>12</command-args>"
    )
    made.user([text("You review code.\nFollow these steps:\n1. look\n2. tell")], isMeta=True)
    made.answer(
        "msg_1",
        {"type": "thinking", "thinking": "Where is <total>?", "signature": "c2ln"},
        call("t1", "Read", file_path=path),
    )
    made.result(
        "t1",
        "     1→def total(items):\n     2→    return sum(items)\n",
        {"type": "text", "file": {"filePath": path, "content": BEFORE}},
    )
    made.answer("msg_2", call("t2", "Edit", file_path=path, old_string="sum(items)", new_string="round(sum(items), 2)"))
    made.result(
        "t2",
        f"The file {path} has been updated.",
        {
            "filePath": path,
            "oldString": "sum(items)",
            "newString": "round(sum(items), 2)",
            "originalFile": BEFORE,
            "structuredPatch": [{"lines": ["-    return sum(items)", "+    return round(sum(items), 2)"]}],
            "replaceAll": False,
        },
    )
    made.answer("msg_3", call("t3", "Bash", command="pytest -q\n"), call("t4", "Grep", pattern="total", path=FOLDER))
    made.result("t3", "<tool_use_error>Exit code 1\n1 failed</tool_use_error>", "Error: Exit code 1", is_error=True)
    made.result("t4", "Found 1 file\nsrc/total.py", {"mode": "files_with_matches", "numFiles": 1})
    made.answer("msg_4", text("Done: totals are rounded & <b>shown</b>."), stop="end_turn")
    made.user("thanks, and now the tax")
    made.answer("msg_5", text("The tax is next."), stop="end_turn")
    return made.lines


def written(lines: list[dict[str, Any]], folder: Path) -> Path:
    path = folder / f"{SESSION}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
