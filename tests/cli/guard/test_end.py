"""The end of a command: the process does not take itself apart, and nothing is lost."""

import subprocess
import sys

from tests.cli.processes import ENV, WAKELOG

BEFORE = "import atexit, sys, threading, time; sys.argv = ['wakelog', '--version']; from wakelog.cli import command\n"


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BEFORE + code], capture_output=True, text=True, env=ENV)


def test_what_was_to_be_done_at_the_end_is_done() -> None:
    done = run("atexit.register(print, 'the end'); command()")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "the end"


def test_a_thread_that_still_works_is_waited_for() -> None:
    done = run("threading.Timer(0.3, print, ['the end']).start(); command()")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "the end"


def test_objects_are_not_freed() -> None:
    done = run("class Kept:\n    def __del__(self): print('freed')\nkept = Kept(); command()")
    assert done.returncode == 0
    assert "freed" not in done.stdout


def test_the_exit_code_and_the_error_arrive() -> None:
    done = subprocess.run([*WAKELOG, "no-such-command"], capture_output=True, text=True, env=ENV)
    assert done.returncode == 2
    assert "no-such-command" in done.stderr


def test_a_reader_that_went_away_is_no_error() -> None:
    reader = subprocess.Popen([sys.executable, "-c", "pass"], stdin=subprocess.PIPE, env=ENV)
    assert reader.stdin is not None
    reader.wait()
    done = subprocess.run([*WAKELOG, "help", "-a"], stdout=reader.stdin, stderr=subprocess.PIPE, text=True, env=ENV)
    reader.stdin.close()
    assert "Traceback" not in done.stderr
