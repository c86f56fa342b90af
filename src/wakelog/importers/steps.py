"""What a transcript says, in a few words that every format is read into.

A reader of a format yields one `SourceRecord` for each record of the file, in the file's order, whatever it is: a line,
a message, a step. Its `steps` say what happened; most records have one, and one that says nothing new has none. What
the steps do not hold stays in `rest`, as it was, so that nothing of the file is lost.

Readers are pure: they know nothing of stores, and give the same steps for the same file every time. writer/
makes events of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from wakelog.model.events import Cost, Effect, FileChanged
from wakelog.model.usage import Usage
from wakelog.model.values import Value

ERROR_MAX = 2000
"""So much is kept of what a failed call or turn says of itself."""
Outcome = Literal["succeeded", "failed", "timed_out", "denied", "cancelled", "interrupted"]


class PromptStep(msgspec.Struct, frozen=True, gc=False):
    """A person's words that begin a turn. `id` is the tool's own name of the turn, if it has one."""

    content: Value
    id: str = ""


class MessageStep(msgspec.Struct, frozen=True, gc=False):
    """A message that begins no turn: injected context, a system prompt, a queued prompt (`name` tells which)."""

    role: str
    content: Value
    name: str = ""
    trust: Literal["trusted", "unverified"] = "trusted"


class ReplyStep(msgspec.Struct, frozen=True, gc=False):
    """What a model said in one answer. A tool may write one answer in several records: they have the same `id`, and
    `usage` is what the whole answer has used so far, so that it is counted once."""

    id: str
    content: list[dict[str, Value]]
    """Content blocks: text, thinking, tool_use {id, name}; the input of a call is in its `CallStep`."""
    model: str = ""
    usage: Usage = Usage()
    cost_micros: int = 0
    """What the answer cost, where the tool says so; else it is reckoned from the usage."""
    stop_reason: str = ""
    is_last: bool = False
    """The agent stopped after it: the turn is over unless more comes."""
    inside: str = ""
    """The call that it was made for, if it was not the agent's own."""


class CallStep(msgspec.Struct, frozen=True, gc=False):
    """A call that was asked for. `group` is the id of the reply that asked for it, with others perhaps."""

    id: str
    tool: str
    input: Value
    effect: Effect = "external"
    group: str = ""
    inside: str = ""


class ResultStep(msgspec.Struct, frozen=True, gc=False):
    """What came of a call, and the files it changed."""

    id: str
    output: Value
    outcome: Outcome = "succeeded"
    error: str = ""
    files: tuple[FileChanged, ...] = ()
    cost: Cost = Cost()
    child: str = ""
    """The transcript of the sub-agent that it was, by origin."""


class TurnEndStep(msgspec.Struct, frozen=True, gc=False):
    """The turn ended, as far as the tool says so."""

    outcome: Literal["completed", "failed", "interrupted"] = "completed"
    error: str = ""


class RewindStep(msgspec.Struct, frozen=True, gc=False):
    """The person went back: what follows goes on from the record `to`."""

    to: str


class CompactionStep(msgspec.Struct, frozen=True, gc=False):
    """What was said before is now stood for by a summary."""

    summary: Value


class LabelsStep(msgspec.Struct, frozen=True, gc=False):
    """Something that is known of the session from here on: branch, model, agent version …"""

    labels: dict[str, str]


class GapStep(msgspec.Struct, frozen=True, gc=False):
    """Something that the transcript does not hold though it happened."""

    what: str


class CostStep(msgspec.Struct, frozen=True, gc=False):
    """Use that is told apart from any reply."""

    model: str
    usage: Usage
    cost_micros: int = 0


class StateDeltaStep(msgspec.Struct, frozen=True, gc=False):
    """A change of the program's own state: operations of a stored delta, with paths below the root of that state."""

    delta: list[dict[str, Value]]


class NoteStep(msgspec.Struct, frozen=True, gc=False):
    """What was said about the run by no part of it: a verdict, a score."""

    text: str


class FinishStep(msgspec.Struct, frozen=True, gc=False):
    """The run is over for good."""

    outcome: str = "completed"


Step = (
    PromptStep
    | MessageStep
    | ReplyStep
    | CallStep
    | ResultStep
    | TurnEndStep
    | RewindStep
    | CompactionStep
    | LabelsStep
    | GapStep
    | CostStep
    | StateDeltaStep
    | NoteStep
    | FinishStep
)


class SourceRecord(msgspec.Struct, frozen=True, gc=False):
    """One record of a transcript. Its `id` is the tool's own where it has one, and is the same in every reading."""

    id: str
    steps: tuple[Step, ...] = ()
    at: int = 0
    """When it happened, in microseconds; 0 when the tool does not say."""
    rest: Value | msgspec.Raw = None
    """What the steps do not hold, as it was; the whole record where there are none, best as the bytes that it was."""
    lane: str = ""
    """The sub-agent whose record it is, by origin, where a file holds those of several."""
    broken: str = ""
    """Why the record could not be read; then `rest` is all there is of it."""
    is_partial: bool = False
    """The file ends in the middle of it: it may still be being written."""
    step_ids: tuple[str, ...] = ()
    """For a record that the tool writes again when there is more of it: a name for each step. A step that an earlier
    version gave is not taken again."""


class TranscriptHead(msgspec.Struct, frozen=True, gc=False):
    """What is known of a transcript before its records are read."""

    origin: str
    """The tool's own id of the session; unique among the transcripts of its format."""
    agent: str
    """The tool: `claude-code`, `codex` …"""
    goal: str = ""
    labels: dict[str, str] = {}
    parent: str = ""
    """For a sub-agent's transcript, the origin of the one that it belongs to."""
    name: str = ""
    """The session's name after the tool's prefix, unless another session has it; else the origin tells it."""


class Transcript(msgspec.Struct, frozen=True):
    """One session in a file. `read` reads its records from the first; with each, how many bytes of the file it is."""

    head: TranscriptHead
    read: Callable[[], Iterator[tuple[SourceRecord, int]]]
    stat: tuple[int, int] | None = None
    """Size and time of change, where these are not the file's: it holds many sessions, or this one is in many files."""
    keeps: str = ""
    """For records that an adapter goes on with: the format of its items. The session has the head's name, as it is."""
