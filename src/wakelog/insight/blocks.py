"""Blocks: what the rules read. A turn is a list of things said and things done, in order.

A text has a place that can be found again: the event, and which text of that event it is. A span inside it is what an
insight keeps; the words themselves stay in the log.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from wakelog.model.ids import Seq
from wakelog.model.values import Value

Speaker = Literal["user", "agent", "thinking"]

RULES_VERSION: Final = 13
"""Of the rules that make findings (rules.py)."""


class SpokenText(msgspec.Struct, frozen=True, gc=False):
    """One text: the user's words, the agent's, or what it thought."""

    seq: Seq
    block: int
    """Which text of that event it is, from 0."""
    who: Speaker
    text: str


class Did(msgspec.Struct, frozen=True):
    """One call of a tool that is over."""

    seq: Seq
    tool: str
    effect: str
    input: Value
    outcome: str
    """As in the action machine: `succeeded`, `failed`, `timed_out`, `uncertain`, `denied`, `abandoned`."""
    output: str = ""
    """What came back, or the error, as text."""
    files: tuple[str, ...] = ()
    """The files that are recorded as changed by it."""
    batch: Seq = 0
    """The model's answer that asked for it: calls of one batch ran side by side."""

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
    """What a rule found: places only. Whoever shows it reads the words from the log."""

    kind: str
    span: TextSpan
    """The words that say it. A finding about a call that no words announce has an empty span at the call."""
    reason: TextSpan | None = None
    score: int = 0
    """How sure the rules are, within one kind: more is surer."""
    calls: tuple[Seq, ...] = ()
    """The calls it is about: the effect of a decision, the failed call and the one that came instead."""
    detail: str = ""
    """A word of the rules' own: `test pass` of a check. Never a word out of the log."""
