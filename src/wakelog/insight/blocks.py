"""Blocks: what the rules read. A turn is a list of texts and calls, in order.

A text is identified by its event and its number in that event. An insight stores a span inside a text; the words
themselves stay in the log.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from wakelog.model.ids import Seq
from wakelog.model.values import Value

Speaker = Literal["user", "agent", "thinking"]

RULES_VERSION: Final = 26
"""The version of the rules that make findings (rules.py)."""
RESULT: Final = -1
"""As the block of a span: the result of a call, as it is read (`Did.output`)."""


class SpokenText(msgspec.Struct, frozen=True, gc=False):
    """One text: the user's words, the agent's words, or the agent's thinking."""

    seq: Seq
    block: int
    """Which text of that event it is, from 0."""
    who: Speaker
    text: str
    is_queued: bool = False
    """Whether the user said it while the agent was at work."""

    def span(self, start: int, end: int) -> TextSpan:
        return TextSpan(self.seq, self.block, start, end)


class Did(msgspec.Struct, frozen=True):
    """One call of a tool that has ended."""

    seq: Seq
    tool: str
    effect: str
    input: Value
    outcome: str
    """As in the action machine: `succeeded`, `failed`, `timed_out`, `uncertain`, `denied`, `abandoned`."""
    output: str = ""
    """The result or the error, as text."""
    files: tuple[str, ...] = ()
    """The files that it changed, as recorded."""
    batch: Seq = 0
    """The model's answer that requested it. Calls of one batch ran in parallel."""

    @property
    def has_failed(self) -> bool:
        return self.outcome in ("failed", "timed_out", "denied")


Block = SpokenText | Did


class TurnBlocks(msgspec.Struct, frozen=True):
    """One turn, or one attempt of it, in order."""

    turn: int
    blocks: tuple[Block, ...]
    is_over: bool = True


class TextSpan(msgspec.Struct, frozen=True, gc=False, order=True):
    """Some words of a text: characters `start` to `end` of the text `block` of the event `seq`."""

    seq: Seq
    block: int
    start: int
    end: int


class Finding(msgspec.Struct, frozen=True):
    """What a rule found: positions only. The surfaces read the words from the log."""

    kind: str
    span: TextSpan
    """The words that say it. A finding about a call without words has an empty span at the call."""
    reason: TextSpan | None = None
    score: int = 0
    """How certain the rules are, compared with others of the same kind."""
    calls: tuple[Seq, ...] = ()
    """The calls it is about: the effect of a decision; or the new call and the failed one that it replaces."""
    detail: str = ""
    """A word of the rules, such as `test pass` for a check. Never a word from the log."""
