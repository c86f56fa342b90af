"""wakelog as a process of its own, for tests that follow, kill and restart it."""

import os
import subprocess
import sys
import threading

WAKELOG = [sys.executable, "-m", "wakelog"]
ENV = {
    k: v for k, v in os.environ.items() if not k.startswith(("WAKELOG_", "CLICOLOR")) and k not in ("NO_COLOR", "CI")
}
ENV |= {"TZ": "UTC", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}

Started = list[subprocess.Popen[str]]


def start(started: Started, *command: str) -> subprocess.Popen[str]:
    """Starts a command; the fixture `started` ends it with the test."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=ENV)
    started.append(process)
    return process


def read_line(process: subprocess.Popen[str], within_s: float = 180) -> str:
    """The next line that a process writes. A process that is silent for too long is killed, which ends the line."""
    assert process.stdout
    timer = threading.Timer(within_s, process.kill)
    timer.start()
    try:
        return process.stdout.readline()
    finally:
        timer.cancel()
