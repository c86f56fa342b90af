"""What a transcript says, as a few kinds of steps that every format is read into.

The reader of a format yields one `SourceRecord` for each record of the file (a line, a message, a step), in the file's
order. The record's `steps` say what happened. Most records have one step; a record that adds nothing has none. Fields
that the steps do not cover stay unchanged in `rest`, so nothing in the file is lost.

Readers are pure: they know nothing about stores, and return the same steps for the same file every time. writer/ turns
the steps into events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from wakelog.model.events import Cost, Effect, FileChanged
from wakelog.model.usage import Usage
from wakelog.model.values import Value

ERROR_MAX = 2000
"""Maximum length of the error text of a failed call or turn."""
Outcome = Literal["succeeded", "failed", "timed_out", "denied", "cancelled", "interrupted"]


class PromptStep(msgspec.Struct, frozen=True, gc=False):
    """A user's input that starts a turn; None if no person asked for it. `id` is the tool's own id of the turn, if it
    has one."""

    content: Value
    id: str = ""


class MessageStep(msgspec.Struct, frozen=True, gc=False):
    """A message that does not start a turn: injected context, a system prompt, a queued prompt (`name` says which)."""

    role: str
    content: Value
    name: str = ""
    trust: Literal["trusted", "unverified"] = "trusted"


class ReplyStep(msgspec.Struct, frozen=True, gc=False):
    """What a model said in one reply. A tool may write one reply as several records: they share the `id`, and `usage`
    is the total of the whole reply so far, so that it is counted once."""

    id: str
    content: list[dict[str, Value]]
    """Content blocks: text, thinking, tool_use {id, name}. The input of a call is in its `CallStep`."""
    model: str = ""
    usage: Usage = Usage()
    cost_micros: int = 0
    """What the reply cost, if the tool says so. Otherwise it is computed from the usage."""
    stop_reason: str = ""
    is_last: bool = False
    """The agent stopped after this reply: the turn is over unless more follows."""
    inside: str = ""
    """The call that this reply was made for, if it is not the agent's own."""


class CallStep(msgspec.Struct, frozen=True, gc=False):
    """A call that the model requested. `group` is the id of the reply that requested it."""

    id: str
    tool: str
    input: Value
    effect: Effect = "external"
    group: str = ""
    inside: str = ""
    child: str = ""
    """If it is known to have started a sub-agent: the origin of the sub-agent's transcript."""


class ResultStep(msgspec.Struct, frozen=True, gc=False):
    """The result of a call, and the files that the call changed."""

    id: str
    output: Value
    outcome: Outcome = "succeeded"
    error: str = ""
    files: tuple[FileChanged, ...] = ()
    cost: Cost = Cost()
    child: str = ""
    """If the call was a sub-agent: the origin of its transcript."""
    is_launch: bool = False
    """The sub-agent was only started. A `ReturnStep` says how it ended."""
    may_have_run: bool = False
    """It was denied, or stopped while it ran: the program says the same of both."""


class ReturnStep(msgspec.Struct, frozen=True, gc=False):
    """A sub-agent that worked in the background has ended."""

    child: str
    outcome: Outcome = "succeeded"
    output: Value = None


class TurnEndStep(msgspec.Struct, frozen=True, gc=False):
    """The tool says that the turn ended."""

    outcome: Literal["completed", "failed", "interrupted"] = "completed"
    error: str = ""


class RewindStep(msgspec.Struct, frozen=True, gc=False):
    """The user went back: what follows continues from the record `to`."""

    to: str


class CompactionStep(msgspec.Struct, frozen=True, gc=False):
    """A summary replaces the earlier history."""

    summary: Value


class LabelsStep(msgspec.Struct, frozen=True, gc=False):
    """Labels of the session from here on: branch, model, agent version …"""

    labels: dict[str, str]


class GapStep(msgspec.Struct, frozen=True, gc=False):
    """Something that happened but is missing from the transcript."""

    what: str


class CostStep(msgspec.Struct, frozen=True, gc=False):
    """Usage and cost that are reported separately from any reply."""

    model: str
    usage: Usage
    cost_micros: int = 0


class StateDeltaStep(msgspec.Struct, frozen=True, gc=False):
    """A change of the program's own state, as operations of a stored delta. Paths are relative to the root of that
    state."""

    delta: list[dict[str, Value]]


class NoteStep(msgspec.Struct, frozen=True, gc=False):
    """A comment on the run that is not part of it: a verdict, a score."""

    text: str


class FinishStep(msgspec.Struct, frozen=True, gc=False):
    """The run has ended for good."""

    outcome: str = "completed"


Step = (
    PromptStep
    | MessageStep
    | ReplyStep
    | CallStep
    | ResultStep
    | ReturnStep
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
    """One record of a transcript. Its `id` is the tool's own if it has one, and is the same in every reading."""

    id: str
    steps: tuple[Step, ...] = ()
    at: int = 0
    """When it happened, in microseconds. 0 if the tool does not say."""
    rest: Value | msgspec.Raw = None
    """What the steps do not cover, unchanged. Without steps this is the whole record, preferably as raw bytes."""
    lane: str = ""
    """The origin of the sub-agent that the record belongs to, if a file mixes several."""
    broken: str = ""
    """Why the record could not be read. Then `rest` is all there is."""
    is_partial: bool = False
    """The file ends in the middle of this record: it may still be being written."""
    step_ids: tuple[str, ...] = ()
    """Names of the steps, for a record that the tool rewrites as it grows. A step that an earlier version produced is
    not imported again."""


NamedStep = tuple[str, Step]
"""A step of a record that the tool rewrites as it grows. The name is the same in every version."""


def named_record(id: str, named: Sequence[NamedStep], at: int, rest: Value | msgspec.Raw) -> SourceRecord:
    return SourceRecord(id, tuple(step for _, step in named), at, rest, step_ids=tuple(name for name, _ in named))


class TranscriptHead(msgspec.Struct, frozen=True, gc=False):
    """What is known about a transcript before its records are read."""

    origin: str
    """The tool's own id of the session, unique among the transcripts of its format."""
    agent: str
    """The tool: `claude-code`, `codex` …"""
    goal: str = ""
    labels: dict[str, str] = {}
    parent: str = ""
    """For a sub-agent's transcript: the origin of its parent."""
    name: str = ""
    """The session's name after the tool's prefix, if no other session has it. Otherwise the name is made from the
    origin."""


class Transcript(msgspec.Struct, frozen=True):
    """One session in a file. `read` yields its records from the start, each with its size in bytes."""

    head: TranscriptHead
    read: Callable[[], Iterator[tuple[SourceRecord, int]]]
    stat: tuple[int, int] | None = None
    """Size and modification time, if these are not the file's: a file holds many sessions, or a session has many
    files."""
    keeps: str = ""
    """If an adapter continues this session: the format of its items. The session then has exactly the head's name."""
