"""Texts that a coding agent writes in the user's name, and the tags that it wraps texts in.

An importer stores such texts as messages of the user, because the model saw them so, with a `name`. No person typed
them, so a conversation shows them apart from what a person asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from wakelog.model.values import Value

NOTICE: Final = "notice"
ASIDES: Final = {
    "meta": "agent's note",
    "context": "context",
    "command": "command",
    "interrupt": "interrupt",
    "queued": "queued",
    NOTICE: "notice",
}
"""Names of messages that are not prompts, and the word shown for each. A notice made the agent work, like a prompt."""

_TAGS: Final = re.compile(
    r"</?(?:tool_use_error|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)|command-(?:name|message"
    r"|args)|system-reminder|user-memory-input|(?:task-notification|teammate-message|cross-session-message"
    r"|scheduled-task)(?:\s[^<>]*)?)>"
)
_TASK: Final = re.compile(
    r"<(task-id|tool-use-id|output-file|status|usage)>.*?</\1>\s*|</?(?:summary|result|note)>", re.DOTALL
)
_MESSAGE: Final = re.compile(r"<command-message>.*?</command-message>\s*", re.DOTALL)
_NUMBERED: Final = re.compile(r"\s*\d+(?:→|\t)")


def is_aside(body: Mapping[str, Value]) -> bool:
    """Whether the agent's program, not a person, wrote a message of the user."""
    return body.get("role") == "user" and body.get("name") in ASIDES


def strip_agent_tags(text: str) -> str:
    """Removes the tags of coding agents from a text; the result may be empty."""
    if "<" not in text:
        return text
    if "<command-name>" in text:  # the message repeats the name
        text = _MESSAGE.sub("", text)
    if "<task-notification>" in text:  # its summary says the rest in words
        text = _TASK.sub("", text)
    return _TAGS.sub("", text).strip()


def numbered_lines(text: str) -> int:
    """Counts the lines of a file listing in which each line starts with its number; 0 for other texts."""
    lines = text.splitlines()
    count = sum(1 for line in lines if _NUMBERED.match(line))
    return count if count and _NUMBERED.match(lines[0]) and count * 2 > len(lines) else 0
