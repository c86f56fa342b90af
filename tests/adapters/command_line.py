"""Runs the command line in this process, on what a framework has stored."""

from __future__ import annotations

import contextlib
import io

from wakelog.cli.app import run


def command(*arguments: str, code: int = 0) -> str:
    """What a command writes. Fails where its exit code is another."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
        found = run(list(arguments))
    assert found == code, written.getvalue()
    return written.getvalue()
