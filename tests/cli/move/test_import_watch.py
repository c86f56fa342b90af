"""`wakelog import --watch`: follows what a program writes, whatever the program does with its file meanwhile."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import WAKELOG, Started, read_line, start

ABOUT = {"sessionId": "s1", "projectHash": "p", "startTime": "2026-01-05T10:00:00.000Z"}


def session(*prompts: str) -> str:
    """A document of Gemini CLI, which it writes anew each time."""
    messages: list[dict[str, Any]] = []
    for number, words in enumerate(prompts):
        at = f"2026-01-05T10:00:{number:02}.000Z"
        messages.append({"id": f"u{number}", "timestamp": at, "type": "user", "content": words})
        messages.append({"id": f"g{number}", "timestamp": at, "type": "gemini", "content": f"{words}!", "thoughts": []})
    return json.dumps({**ABOUT, "messages": messages})


def write(path: Path, text: str) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(text)
    os.replace(beside, path)


@pytest.mark.skipif(sys.platform == "win32", reason="ended by Ctrl-C")
def test_a_file_is_followed_through_damage_and_absence(tmp_path: Path, started: Started) -> None:
    path = tmp_path / "session-1.json"
    write(path, session("One"))
    watch = start(started, *WAKELOG, "import", str(path), "--watch", "--store", str(tmp_path / "store"))
    assert ", 1 new turn, " in read_line(watch)
    assert "Watching" in read_line(watch)
    write(path, session("One", "Two")[:-9])
    assert "session-1.json: is not JSON" in read_line(watch)
    assert "is the file complete?" in read_line(watch)
    path.unlink()
    write(path, session("One", "Two"))
    assert ", 1 new turn, " in read_line(watch)
    path.write_text("")
    write(path, session("One", "Two", "Three"))
    assert ", 1 new turn, " in read_line(watch)
    watch.send_signal(signal.SIGINT)
    assert watch.wait(60) == 0
