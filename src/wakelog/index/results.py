"""The answers of queries: plain values. Each list says up to which moment it is true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from wakelog.model.ids import Seq, SessionId

T = TypeVar("T")


class AsOf(msgspec.Struct, frozen=True):
    """How far the index had read when it answered: everything stored before the question was asked.

    `cursor` is the place in the engine's feed, `at` the time of the newest event. `damaged` counts sessions that could
    not be read to their end; the `damaged` column of `sessions` says why.
    """

    cursor: str
    at: int
    damaged: int


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some rows of an answer; pass `next` as `after` to go on. Empty: these were the last."""

    rows: tuple[T, ...]
    as_of: AsOf
    next: str = ""

    def __iter__(self) -> Iterator[T]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> T:
        return self.rows[place]


class SessionInfo(msgspec.Struct, frozen=True):
    """A session at a glance. Counts and amounts are its own, without what a fork shares with its parent."""

    id: SessionId
    name: str
    root: SessionId
    parent: SessionId | None
    forked_at: Seq | None
    spawner: str
    agent: str
    status: str
    outcome: str
    goal: str | None
    labels: dict[str, str]
    turn: int
    turns: int
    events: int
    first_at: int
    last_at: int
    tokens: int
    usd_micros: int
    pending: int
    flags: int
    last_error: str
    head: Seq
    damaged: str
    about: str = ""
    """What it is about, in one line: its goal, its title, or the first request."""

    def __str__(self) -> str:
        return self.name or self.id


class SessionCount(msgspec.Struct, frozen=True):
    """How many sessions have a value of a facet."""

    facet: str
    """status, outcome, agent, needs, is, or `label:NAME`."""
    value: str
    count: int


class SessionCounts(msgspec.Struct, frozen=True):
    """How many sessions there are, and how many of each sort: the facets of a list."""

    total: int
    counts: tuple[SessionCount, ...]
    is_cut: bool
    """Whether there are more values of labels than were counted."""
    as_of: AsOf


class TurnInfo(msgspec.Struct, frozen=True):
    """One attempt at a turn, with its totals."""

    session: SessionId
    turn: int
    attempt: int
    first: Seq
    last: Seq
    started_at: int
    ended_at: int | None
    outcome: str
    input: str
    events: int
    tool_calls: int
    tool_errors: int
    model_calls: int
    files: int
    added: int
    removed: int
    tokens: int
    tokens_out: int
    usd_micros: int
    trust: str
    in_view: bool
    attempts: int
    """How many attempts at this turn there are."""


class EventInfo(msgspec.Struct, frozen=True):
    """One event, as its row has it; the log has the rest."""

    session: SessionId
    seq: Seq
    turn: int
    attempt: int
    kind: str
    at: int
    occurred_at: int
    actor: str
    tool: str
    model: str
    effect: str
    action: str
    path: str
    key: str
    outcome: str
    summary: str
    cause: Seq
    trust: str
    source: str
    tokens: int
    tokens_out: int
    usd_micros: int
    duration_us: int
    commit_id: str
    gone: str
    in_view: bool


class ModifiedFile(msgspec.Struct, frozen=True):
    """A file and the sum of its changes; `change` is the newest."""

    session: SessionId
    path: str
    change: str
    changes: int
    added: int
    removed: int
    last: Seq
    turn: int
    at: int


class DecisionInfo(msgspec.Struct, frozen=True):
    session: SessionId
    seq: Seq
    turn: int
    attempt: int
    at: int
    choice: str
    because: str
    alternatives: tuple[str, ...]


class ErrorInfo(msgspec.Struct, frozen=True):
    session: SessionId
    seq: Seq
    turn: int
    attempt: int
    at: int
    tool: str
    type: str
    message: str


class ToolInfo(msgspec.Struct, frozen=True):
    session: SessionId
    tool: str
    calls: int
    errors: int
    last: Seq


class CostRow(msgspec.Struct, frozen=True):
    """What one group cost. Zero means that nothing was reported."""

    key: str
    tokens_in: int
    tokens_out: int
    usd_micros: int
    duration_us: int
    unpriced_tokens: int = 0
    """Tokens without a known cost: none was reported, and there was no price."""


class Costs(msgspec.Struct, frozen=True):
    """What was spent, by group and in total; every amount counts once."""

    by: str
    rows: tuple[CostRow, ...]
    total: CostRow
    as_of: AsOf


class Hit(msgspec.Struct, frozen=True):
    """An event that was found. `snippet` marks what matched with « and »; a smaller `rank` is a better match."""

    session: SessionId
    name: str
    seq: Seq
    turn: int
    attempt: int
    kind: str
    at: int
    tool: str
    trust: str
    in_view: bool
    snippet: str
    rank: float


class Table(msgspec.Struct, frozen=True):
    """The result of a SQL query. `truncated`: there was more than the limits allow."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool
    as_of: AsOf
