"""`wakelog watch` as a process of its own: over a store that others write, killed and started again."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from wakelog.store import open as open_store

WAKELOG = [sys.executable, "-m", "wakelog"]
ENV = {
    k: v for k, v in os.environ.items() if not k.startswith(("WAKELOG_", "CLICOLOR")) and k not in ("NO_COLOR", "CI")
}
ENV |= {"TZ": "UTC", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
SESSIONS, ROUNDS = 3, 8

WRITER = f"""
import sys
from wakelog.model import events as ev
from wakelog.store import open as open_store
with open_store(sys.argv[1]) as store:
    for round in range({ROUNDS}):
        for number in range({SESSIONS}):
            session = store.session(f"busy-{{number}}")
            for step in range(3):
                action = f"{{round}}-{{step}}"
                session.append(ev.ActionRequested(action=action, tool="search", effect="read", input=round))
                session.append(ev.ActionFailed(action=action, error=ev.Failure("io")))
        print(round, flush=True)
        sys.stdin.readline()
"""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that must not outlive the test."""
    running: list[subprocess.Popen[str]] = []
    yield running
    for process in running:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr, process.stdin):
            if pipe:
                pipe.close()


def _start(started: list[subprocess.Popen[str]], *command: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=ENV)
    started.append(process)
    return process


def _read(process: subprocess.Popen[str], within_s: float = 180) -> str:
    """The next line a process writes; one that says nothing in time is killed, which ends the line."""
    assert process.stdout
    timer = threading.Timer(within_s, process.kill)
    timer.start()
    try:
        return process.stdout.readline()
    finally:
        timer.cancel()


def test_a_watcher_that_is_killed_again_and_again_misses_nothing_and_says_nothing_twice(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    url = str(tmp_path / "store")
    open_store(url).close()
    writer = _start(started, sys.executable, "-c", WRITER, url)
    assert writer.stdin
    for round in range(ROUNDS):
        assert _read(writer) == f"{round}\n"
        watcher = _start(started, *WAKELOG, "watch", "--store", url, "--ndjson")
        # In some rounds it is killed in the middle of writing, in others once it has said something.
        for _ in range(round % (SESSIONS + 1)):
            line = _read(watcher)
            assert line, watcher.stderr and watcher.stderr.read()
            assert json.loads(line)["flag"].startswith("repeated-failure:search:")
        watcher.send_signal(signal.SIGKILL)
        watcher.wait()
        writer.stdin.write("\n")
        writer.stdin.flush()
    assert writer.wait(180) == 0

    last = subprocess.run([*WAKELOG, "watch", "--once", "--store", url, "--json"], env=ENV, capture_output=True)
    assert last.returncode == 1
    assert len(json.loads(last.stdout)["data"]) == SESSIONS * ROUNDS
    with open_store(url) as store:
        for number in range(SESSIONS):
            session = store.resume(f"busy-{number}")
            raised = [(e.body["flag"], e.header.cause) for e in session.events(kind="flag.raised")]
            assert len(raised) == len(set(raised)) == ROUNDS
            assert session.verify().ok


def test_a_watcher_pauses_what_another_process_is_doing(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    url = str(tmp_path / "store")
    open_store(url).close()
    watcher = _start(started, *WAKELOG, "watch", "--store", url, "--pause", "--ndjson")
    worker = f"""
import sys
from wakelog import NotAllowedError
from wakelog.store import open as open_store
with open_store({url!r}) as store:
    session = store.session("looping")
    search = session.tool(effect="read")(lambda q: "0 results")
    send = session.tool(name="send")(lambda text: "sent")
    try:
        with session.turn("find the owner"):
            for _ in range(6):
                session.call(search, {{"q": "owner"}})
            print("searched", flush=True)
            sys.stdin.readline()
            send("hello")
    except NotAllowedError as exc:
        print(exc.kind, flush=True)
"""
    running = _start(started, sys.executable, "-c", worker)
    assert _read(running) == "searched\n"
    found = json.loads(_read(watcher))
    assert found["flag"].startswith("loop:")
    assert found["has_paused"] is True
    assert running.stdin
    running.stdin.write("\n")
    running.stdin.flush()
    assert _read(running) == "session-paused\n"


def test_ctrl_c_ends_it_quietly(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    url = str(tmp_path / "store")
    with open_store(url) as store:
        store.session("a", limits={"tokens": 0})
    watcher = _start(started, *WAKELOG, "watch", "--store", url)
    assert "budget:tokens" in _read(watcher)
    watcher.send_signal(signal.SIGINT)
    _, err = watcher.communicate(timeout=180)
    assert (watcher.returncode, err.strip()) == (130, "")
