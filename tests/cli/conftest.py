"""Runs the command line in this process and catches what it writes."""

import functools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cli.processes import Started
from wakelog.cli import context
from wakelog.cli.app import run
from wakelog.store import open as open_store


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def data(self) -> Any:
        return self.json["data"]

    @property
    def records(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]

    @property
    def error(self) -> Any:
        return json.loads(self.err)["error"]


Cli = Callable[..., Result]
FOLDERS = ("WAKELOG_CACHE", "WAKELOG_DATA")
"""Those of the tests, and not of whoever runs them."""


@pytest.fixture
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No settings of whoever runs the tests: UTC, 100 columns, no colour."""
    for name in (
        *filter(lambda n: n.startswith(("WAKELOG_", "CLICOLOR")) and n not in FOLDERS, os.environ),
        "NO_COLOR",
        "FORCE_COLOR",
        "CI",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "40")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def cli(plain_terminal: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """`cli("log", "fix-auth", columns=60)`: one command line, run here. `now` is what time it takes it to be."""

    def call(*args: str, columns: int = 100, now: int | None = None, env: dict[str, str] | None = None) -> Result:
        capfd.readouterr()
        with monkeypatch.context() as patched:
            patched.setenv("COLUMNS", str(columns))
            patched.setattr(sys, "argv", ["wakelog", *args])
            for name, value in (env or {}).items():
                patched.setenv(name, value)
            if now is not None:
                patched.setattr(context, "open_store", functools.partial(open_store, clock=lambda: now))
            code = run(list(args))
        sys.stdout.flush()
        caught = capfd.readouterr()
        return Result(code, caught.out, caught.err)

    return call


@pytest.fixture
def started() -> Iterator[Started]:
    """Processes that must not outlive the test."""
    running: Started = []
    yield running
    for process in running:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr, process.stdin):
            if pipe:
                pipe.close()
