"""Lines that Claude Code writes in the user's name: who wrote the words, and what they say.

A person's prompt, a notice of the program, and what a command printed all come as messages of the user. `origin` says
who wrote one, in newer versions; otherwise the words do.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from wakelog.importers.steps import Outcome
from wakelog.model.json_fields import as_dict, text_in

INTERRUPTED = "[Request interrupted by user"
Written = Literal["prompt", "interrupt", "notice", "meta", "command"]
"""What a line is: a notice makes the agent work like a prompt, but no person wrote it. The last two are for reading."""

_PROGRAMS = frozenset({"task-notification", "auto-continuation", "coordinator", "peer", "scheduled"})
"""Origins of a message that no person typed."""
_NOTICE = re.compile(r"\s*<(task-notification|teammate-message|cross-session-message|scheduled-task)\b")
_ASIDE = re.compile(
    r"\s*<(local-command-stdout|local-command-stderr|local-command-caveat|bash-input|bash-stdout|bash-stderr"
    r"|system-reminder|user-memory-input)>"
)
_COMMAND = re.compile(r"\s*<command-(name|message)>")
_NAME = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_ARGS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_BUILT_IN = re.compile(
    r"<command-name>/?(clear|compact|model|config|cost|login|logout|mcp|resume|status|help|exit|doctor|memory|hooks"
    r"|permissions|agents|vim|theme|terminal-setup|context|usage|plugin|ide|add-dir|export|rename|fast)\s*</command-name>"
)
"""Commands of the program itself. No model sees them, so they do not start a turn."""
_TASK = re.compile(r"<task-id>\s*([^<\s]+)\s*</task-id>")
_STATUS = re.compile(r"<status>\s*(\w+)\s*</status>")
_RESULT = re.compile(r"<result>(.*)</result>", re.DOTALL)
_ENDS: dict[str, Outcome] = {
    "completed": "succeeded",
    "failed": "failed",
    "killed": "cancelled",
    "stopped": "cancelled",
}


def written_as(value: dict[str, Any], text: str) -> Written:
    """What a line with these words is. `value` is the line, or another record that says where the words come from."""
    if text.lstrip().startswith(INTERRUPTED):
        return "interrupt"
    if text_in(as_dict(value.get("origin")), "kind") in _PROGRAMS or _NOTICE.match(text):
        return "notice"
    if value.get("isMeta"):
        return "meta"
    if _ASIDE.match(text) or (_COMMAND.match(text) and _BUILT_IN.search(text)):
        return "command"
    return "prompt"


def typed_words(words: Any) -> Any:
    """A prompt as the user typed it: the program wraps a slash command in tags."""
    name = _NAME.search(words) if isinstance(words, str) and _COMMAND.match(words) else None
    if name is None:
        return words
    args = _ARGS.search(words)
    return f"{name[1]} {args[1] if args else ''}".strip()


class EndedTask(msgspec.Struct, frozen=True):
    """A task in the background that has ended, how, and what it said."""

    id: str
    outcome: Outcome
    result: str


def ended_task(text: str) -> EndedTask | None:
    """The task that a notice reports as ended."""
    task, status, result = _TASK.search(text), _STATUS.search(text), _RESULT.search(text)
    outcome = _ENDS.get(status[1]) if status else None
    return EndedTask(task[1], outcome, result[1] if result else "") if task and outcome else None
