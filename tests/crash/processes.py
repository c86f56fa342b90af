"""Child processes for the crash tests: started apart, talking through their standard output, always reaped.

A child runs one function of children.py: `python -m tests.crash.children name '{"argument": …}'`.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import wakelog

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(wakelog.__file__).resolve().parents[1]
PATIENCE_S = 100.0
"""How long a child may say nothing before a test calls it hung. Nothing here is measured by it."""


@contextlib.contextmanager
def child(
    function: str, *, stdin: int = subprocess.DEVNULL, module: str = "tests.crash.children", **arguments: Any
) -> Iterator[subprocess.Popen[str]]:
    """Runs a function of children.py in a process and session of its own; kills what is left of it in the end."""
    command = [sys.executable, "-m", module, function, json.dumps(arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(ROOT)])}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)


def finish(process: subprocess.Popen[str], *, killed: bool = False) -> list[str]:
    """Waits for a child and returns what it said. It must have ended well, or by `kill -9` if `killed`."""
    out, err = _all_of(process)
    wanted = -signal.SIGKILL if killed else 0
    assert process.returncode == wanted, f"child ended with {process.returncode}, not {wanted}:\n{out[-500:]}\n{err}"
    # What was cut off in the middle of a line was not said.
    return [line.rstrip("\n") for line in out.splitlines(keepends=True) if line.endswith("\n")]


def _all_of(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What a child said until it ended. One that goes on saying something is slow, on a busy machine, and not hung."""
    said = None
    while True:
        try:
            return process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired as exc:
            if exc.output == said:
                raise
            said = exc.output


def run(function: str, **arguments: Any) -> list[str]:
    with child(function, **arguments) as process:
        return finish(process)


def run_all(calls: list[tuple[str, dict[str, Any]]], *, rounds: int = 1) -> list[list[str]]:
    """Runs functions in several processes at once. In each round all of them wait for each other and begin together."""
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(child(name, stdin=subprocess.PIPE, **call)) for name, call in calls]
        said: list[list[str]] = [[] for _ in running]
        for _ in range(rounds):
            for process, lines in zip(running, said, strict=True):
                lines += _until_ready(process)
            for process in running:
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
        return [lines + finish(process) for process, lines in zip(running, said, strict=True)]


def _until_ready(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    while (line := process.stdout.readline()) != "ready\n":
        assert line, f"the child ended early: {process.communicate(timeout=PATIENCE_S)[1]}"
        lines.append(line.rstrip("\n"))
    return lines
