"""Whatever the signals of whoever starts the tests, the children of tests have the default ones."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.signals import default_for_children

ROOT = Path(__file__).resolve().parents[1]
TELL = (
    "import json, signal; print(json.dumps([[int(s) for s in signal.valid_signals() if signal.getsignal(s) == "
    "signal.SIG_IGN], [int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])]]))"
)
START = f"""
import signal, subprocess, sys
from tests.signals import default_for_children
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
if sys.argv[1:]:
    with default_for_children():
        subprocess.run([sys.executable, "-c", {TELL!r}], check=True)
        signal.raise_signal(signal.SIGTERM)  # still ignored here
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
else:
    subprocess.Popen([sys.executable, "-c", {TELL!r}]).wait()
"""


def _told(*args: str) -> list[list[int]]:
    done = subprocess.run(
        [sys.executable, "-c", START, *args], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    found: list[list[int]] = json.loads(done.stdout)
    return found


def test_children_neither_ignore_nor_block_what_their_parent_does() -> None:
    ignored, blocked = _told()
    assert {signal.SIGINT, signal.SIGHUP, signal.SIGTERM} <= set(ignored)
    assert signal.SIGINT in blocked, "else the test shows nothing"
    ignored, blocked = _told("with")
    assert set(ignored) <= {signal.SIGPIPE, signal.SIGXFSZ}  # which are Python's own
    assert blocked == []


def test_these_tests_run_that_way() -> None:
    ignored, blocked = json.loads(subprocess.run([sys.executable, "-c", TELL], capture_output=True, check=True).stdout)
    assert set(ignored) <= {signal.SIGPIPE, signal.SIGXFSZ}
    assert blocked == []


def test_what_was_not_ignored_is_left_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    with default_for_children():
        assert signal.getsignal(signal.SIGINT) is before
