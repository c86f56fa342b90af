"""Finds checks (tests, builds, lints) with their results, and calls that changed files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from wakelog.insight.acts import act_of, checks_in, files_of
from wakelog.insight.blocks import Did, Finding, TextSpan, TurnBlocks
from wakelog.model.command_lines import command_line, shell_commands

_FAILED: Final = re.compile(
    r"^(?:FAIL|FAILED|--- FAIL|ERROR|FAILURES!?)\b|\b[1-9]\d* (?:failed|failures?|failing)\b"
    r"|(?:failures|errors)=[1-9]|error\[E\d+\]|\berror TS\d+|npm ERR!|ELIFECYCLE|BUILD FAILED|Build failed"
    r"|^make(?:\[\d+\])?: \*\*\*|\b[1-9]\d* (?:errors?|problems?|issues)\b(?! fixed)|^error: |^Exit code [1-9]"
    r"|<returncode>[1-9]|^test result: FAILED|✖ [1-9]|^\s+\d+:\d+\s+error\s|^---- \S+ stdout ----",
    re.MULTILINE,
)
_PASSED: Final = re.compile(
    r"\b[1-9]\d* passed\b(?!.*\bfailed\b)|^OK\b|^ok\s|\b0 (?:issues|errors|problems)\b|no issues found|test result: ok"
    r"|All checks passed|Success: no issues",
    re.MULTILINE,
)
_STOPPED: Final = re.compile(r"Sibling tool call errored|^\W*(?:\[Request )?[Ii]nterrupted by (?:the )?user")
_NOT_RUN: Final = re.compile(
    r"command not found|No module named (?:pytest|mypy|ruff|flake8|tox|nose)\b|^missing script:|Missing script:"
    r"|unknown command|no such (?:command|task)|executable file not found|not recognized as an internal",
    re.IGNORECASE | re.MULTILINE,
)


def find_checks(turn: TurnBlocks) -> Iterator[Finding]:
    """Each call that ran a check, as `test pass` or `test+lint fail`."""
    for call in turn.blocks:
        if not isinstance(call, Did) or act_of(call) != "check":
            continue
        names = checks_in(shell_commands(command_line(call.input)))
        result = _result(call)
        if result:
            yield Finding("check", TextSpan(call.seq, 0, 0, 0), calls=(call.seq,), detail=f"{'+'.join(names)} {result}")


def _result(call: Did) -> str:
    """`pass` or `fail`; empty if the check did not run at all."""
    if call.outcome in ("denied", "abandoned") or _STOPPED.search(call.output):
        return ""
    if _NOT_RUN.search(call.output) and not _PASSED.search(call.output):
        return ""
    if call.outcome in ("failed", "timed_out"):
        return "fail"
    if not _FAILED.search(call.output):
        return "pass"
    # The word may be in a test's name or in a summary like "0 failed". A clear pass outweighs such a line.
    has_passed = _PASSED.search(call.output) and not re.search(r"\b[1-9]\d* fail|^FAIL", call.output, re.M)
    return "pass" if has_passed else "fail"


def find_files(turn: TurnBlocks) -> Iterator[Finding]:
    """Each call that changed files."""
    for call in turn.blocks:
        if isinstance(call, Did) and files_of(call):
            yield Finding("file", TextSpan(call.seq, 0, 0, 0), calls=(call.seq,))
