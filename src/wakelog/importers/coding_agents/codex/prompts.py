"""Decides which messages with the user's role in a rollout come from the user.

Codex puts its own context into user messages: instructions, the environment, notices. A `user_message` event right
after a message says that the user wrote it. So messages wait until that event, or something else, comes. In files
without such events the text itself must tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from wakelog.importers.coding_agents.codex.calls import plain_content
from wakelog.importers.common.chat import blocks_text
from wakelog.importers.steps import MessageStep, PromptStep, Step
from wakelog.model.values import Value

_CONTEXT = re.compile(
    r"\s*(?:# AGENTS\.md\b|<(?P<tag>[a-z][a-z_ -]*)(?:\s[^>]*)?>(?:.*</(?P=tag)>\s*$)|<environment_context>"
    r"|<user_instructions>|<permissions instructions>|<INSTRUCTIONS>)",
    re.DOTALL,
)
_REQUEST = "## My request for Codex:"


class PromptQueue:
    """Messages that wait until it is known who wrote them."""

    def __init__(self, *, is_mirrored: bool) -> None:
        self._is_mirrored = is_mirrored
        """Whether this version of Codex writes events beside its messages."""
        self._waiting: list[tuple[str, Value]] = []
        self._has_events = False
        self._last = ""
        """The last prompt, until something else comes."""

    def add(self, role: str, content: Any) -> Iterator[Step]:
        plain = plain_content(content)
        if self._is_mirrored:
            self._waiting.append((role, plain))
        elif role == "user" and not is_context(blocks_text(plain)):
            if blocks_text(plain) != self._last or not self._last:
                yield from self._prompt(plain, "", is_queued=False)
        else:
            yield _context_message(role, plain)

    def confirm(self, content: Any, turn: str, *, is_queued: bool) -> Iterator[Step]:
        """Handles the event that says what the user wrote."""
        self._has_events = True
        plain = plain_content(content)
        place = self._place_of(blocks_text(plain))
        if place >= 0:
            said, plain = plain, self._waiting.pop(place)[1]
            plain, added = _without_context(plain, said)
            self._waiting += [("user", added)] if added else []
        if place >= 0 or not self._last or blocks_text(plain) != self._last:
            yield from self._prompt(plain, turn, is_queued=is_queued)
        yield from self._flush_contexts()

    def _place_of(self, text: str) -> int:
        """The message with the text of an event. Without one, the last that does not look like context, since an event
        may leave out what an editor added. -1 if there is none."""
        texts = [(i, blocks_text(content)) for i, (role, content) in enumerate(self._waiting) if role == "user"]
        same = max((i for i, each in texts if each.strip() == text.strip()), default=-1)
        return same if same >= 0 else max((i for i, each in texts if not is_context(each)), default=-1)

    def settle(self, turn: str) -> Iterator[Step]:
        """Something else came, so the waiting messages are context. If the file has no such event so far, the last one
        that does not look like context started the turn."""
        place = -1 if self._has_events else self._place_of("")
        if place >= 0:
            yield from self._prompt(self._waiting.pop(place)[1], turn, is_queued=False)
        yield from self._flush_contexts()
        self._last = ""

    def _flush_contexts(self) -> Iterator[Step]:
        yield from (_context_message(role, content) for role, content in self._waiting)
        self._waiting.clear()

    def _prompt(self, content: Value, turn: str, *, is_queued: bool) -> Iterator[Step]:
        self._last = blocks_text(content)
        setup, words = _split_request(content)
        yield MessageStep("user", words, name="queued") if is_queued else PromptStep(words, id=turn)
        # After the prompt, though the model read it before: it belongs to the turn that the prompt starts.
        if setup:
            yield MessageStep("user", setup, name="context", trust="unverified")


def is_context(text: str) -> bool:
    return bool(_CONTEXT.match(text))


def _context_message(role: str, content: Any) -> MessageStep:
    if role == "user":
        return MessageStep("user", content, name="context", trust="unverified")
    return MessageStep("system", content, name="context")


def _without_context(content: Value, said: Value) -> tuple[Value, str]:
    """Splits off the context that Codex put into the same message as the user's words."""
    if not isinstance(content, str) or not isinstance(said, str) or not said.strip() or said.strip() not in content:
        return content, ""
    added = content.replace(said.strip(), "", 1).strip()
    return (said, added) if added and is_context(added) else (content, "")


def _split_request(content: Any) -> tuple[str, Value]:
    """Splits off what an editor put before the request."""
    if isinstance(content, list):
        first = content[0] if content else None
        if not isinstance(first, dict) or not isinstance(first.get("text"), str):
            return "", content
        setup, words = _split_request(first["text"])
        return setup, [first | {"text": words}, *content[1:]] if setup else content
    if not isinstance(content, str) or not content.lstrip().startswith("# ") or _REQUEST not in content:
        return "", content
    setup, _, words = content.partition(_REQUEST)
    return (setup.strip(), words.strip()) if words.strip() else ("", content)
