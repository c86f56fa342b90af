"""The readers as processes that last: each is started once, and asked line by line (`-`).

Starting one takes longer than what it is asked for.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.node import CLIENT, NODE

# -I and -S leave the script alone with the standard library.
READERS = {
    "python": [sys.executable, "-I", "-S", str(Path(__file__).with_name("reader.py"))],
    "typescript": [NODE, str(CLIENT / "src" / "cli.ts")],
}


class LastingReader:
    """One reader, started when it is first asked."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._told: Any = None
        self._code = 0

    def answers(self, commands: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """What it answers to each of the command lines."""
        return [self._ask([str(word) for word in command]) for command in commands]

    def _ask(self, words: list[str]) -> dict[str, Any]:
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(words) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        written = Path(self._told.name).read_text()
        assert written == "", f"the reader wrote to stderr:\n{written}"
        answer: dict[str, Any] = json.loads(line)
        self._code = self._code if answer["ok"] else 1
        return answer

    def _start(self) -> subprocess.Popen[str]:
        self._told = tempfile.NamedTemporaryFile()  # noqa: SIM115 - closed by end()
        self._process = subprocess.Popen(
            [*self._command, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._told, text=True
        )
        return self._process

    def end(self) -> None:
        """Its exit code tells whether all it was asked about held."""
        if self._process is not None:
            with self._process as process, self._told:
                rest, _ = process.communicate(timeout=180)
            assert (rest, process.returncode) == ("", self._code)


LASTING = {name: LastingReader(command) for name, command in READERS.items()}
