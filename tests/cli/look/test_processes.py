"""Real processes: following, terminals, and reading while another process writes."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.processes import ENV, WAKELOG, Started, read_line, start
from wakelog.store import open as open_store

WRITER = """
import sys
from wakelog.store import open as open_store
with open_store(sys.argv[1]) as store:
    session = store.session("busy")
    print("ready", flush=True)
    number = 0
    while True:
        number += 1
        with session.turn(user=f"turn {number}") as turn:
            session.fact(f"key {number % 50}", number)
            session.decide(f"choice {number}", because="it is next")
"""


@pytest.mark.parametrize("scope", [("hello",), ("--all",)])
def test_tail_follows_and_flushes_each_record(tmp_path: Path, started: Started, scope: tuple[str, ...]) -> None:
    with open_store(tmp_path) as store:
        session = store.session("hello")
        process = start(started, *WAKELOG, "tail", "-f", *scope, "--ndjson", "--store", str(tmp_path))
        assert json.loads(read_line(process))["kind"] == "session.opened"
        for number in range(3):
            session.note(f"note {number}")
            record = json.loads(read_line(process))
            assert (record["seq"], record["summary"]) == (number + 2, f"note {number}")
        if scope == ("--all",):
            store.session("another")
            assert json.loads(read_line(process))["seq"] == 1
            session.fork(name="child")
            assert json.loads(read_line(process))["kind"] == "session.forked"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=180) == 130
    assert process.stderr
    assert "Traceback" not in process.stderr.read()


def test_tail_follows_only_what_was_asked_for(tmp_path: Path, started: Started) -> None:
    with open_store(tmp_path) as store:
        session = store.session("hello")
        process = start(started, *WAKELOG, "tail", "-f", "--errors", "-n", "5", "--ndjson", "--store", str(tmp_path))
        session.note("nothing wrong")
        with pytest.raises(RuntimeError), session.turn(user="x"):
            raise RuntimeError("boom")
        record = json.loads(read_line(process))
        assert (record["kind"], record["outcome"]) == ("turn.ended", "failed")


def test_terminated_follower_ends_at_once(tmp_path: Path, started: Started) -> None:
    with open_store(tmp_path) as store:
        store.session("hello")
    process = start(started, *WAKELOG, "tail", "-f", "--store", str(tmp_path))
    assert "session" in read_line(process)
    process.terminate()
    assert process.wait(timeout=180) in (143, -signal.SIGTERM)


def _on_terminal(
    *args: str, out: bool = False, err: bool = False, env: dict[str, str] | None = None
) -> tuple[str, str]:
    """What a command writes to stdout and stderr when those are terminals."""
    ends: dict[str, Any] = {}
    for name, wanted in (("stdout", out), ("stderr", err)):
        ends[name] = pty.openpty() if wanted else os.pipe()
        if not wanted:
            ends[name] = ends[name]
    process = subprocess.Popen(
        [*WAKELOG, *args],
        stdin=subprocess.DEVNULL,
        stdout=ends["stdout"][1],
        stderr=ends["stderr"][1],
        env=ENV | (env or {}),
    )
    texts = []
    for name in ("stdout", "stderr"):
        os.close(ends[name][1])
    for name in ("stdout", "stderr"):
        data = b""
        while True:
            try:
                piece = os.read(ends[name][0], 65536)
            except OSError:  # a terminal whose other end is closed
                break
            if not piece:
                break
            data += piece
        os.close(ends[name][0])
        texts.append(data.decode())
    process.wait(timeout=180)
    return texts[0], texts[1]


def test_suggestions_go_to_a_terminal_on_stderr_and_nowhere_else(demo: Path) -> None:
    at = ("--store", str(demo), "--no-pager")
    for command in (("status",), ("log", "fix-auth"), ("ls",), ("diff", "fix-auth"), ("show", "fix-auth@1"), ("ps",)):
        out, err = _on_terminal(*command, *at, err=True)
        assert "next: wakelog" in err, command
        assert "next:" not in out
    out, err = _on_terminal("status", *at)
    assert err == ""
    assert _on_terminal("status", *at, "-q", err=True)[1] == ""
    assert _on_terminal("status", *at, "--json", err=True)[1] == ""


def test_terminals_get_colour_and_dumb_ones_do_not(demo: Path) -> None:
    at = ("--store", str(demo), "--no-pager")
    assert "\x1b[" in _on_terminal("log", "fix-auth", *at, out=True, env={"TERM": "xterm"})[0]
    assert "\x1b[" not in _on_terminal("log", "fix-auth", *at, out=True, env={"TERM": "dumb"})[0]
    assert "\x1b[" not in _on_terminal("log", "fix-auth", *at, out=True, env={"TERM": "xterm", "NO_COLOR": "1"})[0]


@pytest.mark.parametrize("command", [("log", "fix-auth"), ("log", "no-such-session")])
def test_suggestions_and_errors_have_colour_where_answers_have_it(demo: Path, command: tuple[str, str]) -> None:
    at = (*command, "--store", str(demo), "--no-pager")
    assert "\x1b[" in _on_terminal(*at, err=True, env={"TERM": "xterm"})[1]
    for env in ({"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}):
        err = _on_terminal(*at, err=True, env=env)[1]
        assert err
        assert "\x1b[" not in err
    for asked in (["--color", "never"], ["--color=never"]):
        assert "\x1b[" not in _on_terminal(*at, *asked, err=True, env={"TERM": "xterm"})[1]
    assert "\x1b[" in _on_terminal(*at, "--color", "always", err=True, env={"TERM": "dumb"})[1]


def test_raw_bytes_on_a_terminal_are_inert(demo: Path) -> None:
    out, _ = _on_terminal("show", "-s", "-", "--raw", "--store", str(demo), out=True)
    assert "\u202e" not in out
    assert "\u009b" not in out


def test_a_terminal_without_unicode_is_no_reason_to_fail(demo: Path) -> None:
    env = ENV | {"PYTHONIOENCODING": "ascii"}
    for args in (("log", "fix-auth", "--graph"), ("ls",), ("ps",), ("state", "-s", "-"), ("log", "-s", "-", "--json")):
        done = subprocess.run([*WAKELOG, *args, "--store", str(demo)], capture_output=True, env=env, timeout=180)
        assert done.returncode == 0, done.stderr
        assert done.stdout.isascii()
        if "--json" in args:
            json.loads(done.stdout)


LOOKS = (
    ("status", "--json"),
    ("ls", "--json"),
    ("log", "--json"),
    ("log", "-p", "-n", "3"),
    ("log", "--events", "--json"),
    ("show", "--json"),
    ("state", "--json"),
    ("diff", "--json"),
    ("blame", "/facts", "--json"),
    ("search", "next", "--json"),
    ("query", "select count(*) from events", "--json"),
    ("tail", "--ndjson"),
    ("tail", "--all", "--ndjson"),
    ("ps", "--json"),
)


def test_every_command_answers_while_another_process_writes(cli: Cli, tmp_path: Path, started: Started) -> None:
    writer = start(started, sys.executable, "-c", WRITER, str(tmp_path))
    assert read_line(writer) == "ready\n"
    for args in LOOKS:
        done = cli(*args, "--store", str(tmp_path))
        assert done.code in (0, 1) if args[0] == "search" else done.code == 0, (args, done.err)
        assert done.err == ""
    assert writer.poll() is None, "the readers stopped the writer"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_full_disk_under_the_output_is_told_and_is_no_fault(demo: Path, form: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*WAKELOG, "ls", "--store", str(demo), *form], env=ENV, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 6
    assert "the output cannot be written: No space left on device" in done.stderr
    assert "should not happen" not in done.stderr
