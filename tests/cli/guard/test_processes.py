"""`wakelog watch` as a process of its own: over a store that others write, killed and started again."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.processes import ENV, WAKELOG, Started, read_line, start
from wakelog.store import open as open_store

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


def test_a_watcher_that_is_killed_again_and_again_misses_nothing_and_says_nothing_twice(
    tmp_path: Path, started: Started
) -> None:
    url = str(tmp_path / "store")
    open_store(url).close()
    writer = start(started, sys.executable, "-c", WRITER, url)
    assert writer.stdin
    for round in range(ROUNDS):
        assert read_line(writer) == f"{round}\n"
        watcher = start(started, *WAKELOG, "watch", "--store", url, "--ndjson")
        # In some rounds it is killed in the middle of writing, in others once it has said something.
        for _ in range(round % (SESSIONS + 1)):
            line = read_line(watcher)
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


def test_a_watcher_pauses_what_another_process_is_doing(tmp_path: Path, started: Started) -> None:
    url = str(tmp_path / "store")
    open_store(url).close()
    watcher = start(started, *WAKELOG, "watch", "--store", url, "--pause", "--ndjson")
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
    running = start(started, sys.executable, "-c", worker)
    assert read_line(running) == "searched\n"
    found = json.loads(read_line(watcher))
    assert found["flag"].startswith("loop:")
    assert found["has_paused"] is True
    assert running.stdin
    running.stdin.write("\n")
    running.stdin.flush()
    assert read_line(running) == "session-paused\n"


def test_ctrl_c_ends_it_quietly(tmp_path: Path, started: Started) -> None:
    url = str(tmp_path / "store")
    with open_store(url) as store:
        store.session("a", limits={"tokens": 0})
    watcher = start(started, *WAKELOG, "watch", "--store", url)
    assert "budget:tokens" in read_line(watcher)
    watcher.send_signal(signal.SIGINT)
    _, err = watcher.communicate(timeout=180)
    assert (watcher.returncode, err.strip()) == (130, "")
