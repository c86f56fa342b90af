"""Words that a coding agent writes in the user's name, and the tags that it wraps texts in.

An importer keeps such words as messages of the user, because the model saw them so, and names them. Nobody typed them:
whoever shows a conversation sets them apart from what a person asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from wakelog.model.values import Value

ASIDES: Final = {
    "meta": "agent's note",
    "context": "context",
    "command": "command",
    "interrupt": "interrupt",
    "queued": "queued",
}
"""Names of messages that are no prompt, each with the word that it is shown with."""

_TAGS: Final = re.compile(
    r"</?(?:tool_use_error|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)|command-(?:name|message"
    r"|args)|system-reminder|user-memory-input|task-notification)>"
)
_MESSAGE: Final = re.compile(r"<command-message>.*?</command-message>\s*", re.DOTALL)
_NUMBERED: Final = re.compile(r"\s*\d+(?:→|\t)")


def is_aside(body: Mapping[str, Value]) -> bool:
    """Whether a message of the user was written by the agent's program, and asks for nothing."""
    return body.get("role") == "user" and body.get("name") in ASIDES


def unwrapped(text: str) -> str:
    """A text without the tags of coding agents around its parts; empty where they held nothing."""
    if "<" not in text:
        return text
    if "<command-name>" in text:  # the message repeats the name
        text = _MESSAGE.sub("", text)
    return _TAGS.sub("", text).strip()


def numbered_lines(text: str) -> int:
    """How many lines of a file a text shows, where each stands behind its number; else 0."""
    lines = text.splitlines()
    count = sum(1 for line in lines if _NUMBERED.match(line))
    return count if count and _NUMBERED.match(lines[0]) and count * 2 > len(lines) else 0
