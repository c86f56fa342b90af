"""The calls of a session as a table, one row per call: when, which tool, its input, its outcome, what it changed.

`model.calls` folds a call's events; this file adds the other columns. The **delta** of a call lists the state paths
(not the values) that its own events and the events they caused changed, without the bookkeeping of calls. An erased or
pruned call still has a row, which says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import msgspec

from wakelog.codec.canonical import hash_value
from wakelog.errors import CorruptLogError
from wakelog.log import Log
from wakelog.log.damage import Hole
from wakelog.log.reader import Entry
from wakelog.model.call_gist import call_gist
from wakelog.model.calls import Call, Calls
from wakelog.model.document import agent_ops
from wakelog.model.ids import Seq
from wakelog.model.json_fields import text_in
from wakelog.model.payloads import as_ref
from wakelog.model.trust import Trust, distrust
from wakelog.timeline.messages import content_of
from wakelog.timeline.slices import tool_of

_BOOKKEEPING = ("/pending_actions", "/tools_used", "/budget", "/status", "/turn")
"""Parts of the state that every call touches."""
INPUT_MAX = 64 * 1024
"""A larger input is not fetched to summarize it."""


class CallDelta(msgspec.Struct, frozen=True):
    """One change of the state, and the event that made it."""

    op: str
    path: str
    seq: Seq


class CallRow(msgspec.Struct, frozen=True):
    """One call of a tool or a model."""

    seq: Seq
    """The event that requested it."""
    settled: Seq
    """The event that settled it; 0 while it is open."""
    at: int
    """When it was requested, in microseconds, by the caller's clock."""
    turn: int
    attempt: int
    action: str
    tool: str
    effect: str
    about: str
    """Its input in a few words."""
    input_hash: str
    """The recorded hash, else the hash of the recorded input; empty if there is no input or it is large."""
    outcome: str
    """How it ended; while it is open, its status: requested, waiting, running, uncertain."""
    tries: int
    duration_us: int
    """The reported duration, else the time from start to end; 0 while it is open."""
    tokens: int
    usd_micros: int
    """0 when no money was reported."""
    delta: tuple[CallDelta, ...]
    summary: str
    """Its result or error, in a line."""
    why: str
    approved_by: str
    """Who approved or denied it; empty when no approval was asked for."""
    trust: Trust
    source: str
    in_view: bool
    gone: str
    """`erased` or `pruned` when the content of its request is no longer there."""


class _Row(Call):
    """A call while its events are read, with the values of its row."""

    at: int = 0
    began: int = 0
    ended: int = 0
    about: str = ""
    tokens: int = 0
    usd_micros: int = 0
    duration_us: int = 0
    delta: tuple[CallDelta, ...] = ()
    summary: str = ""
    why: str = ""
    approved_by: str = ""
    trust: Trust = "trusted"
    source: str = ""
    gone: str = ""


def call_table(log: Log, entries: Iterable[Entry]) -> list[CallRow]:
    """The calls that these events request, oldest first."""
    builder = _TableBuilder(log)
    for entry in entries:
        builder.take(entry)
    return builder.rows(log.view())


def readable_calls(log: Log) -> tuple[list[CallRow], list[Hole]]:
    """The calls of a damaged session whose request can be read, and what cannot be read. All count as in view, because
    rewinds may be among what is lost."""
    builder = _TableBuilder(log)
    holes: list[Hole] = []
    for entry in log.entries(on_hole=holes.append):
        with contextlib.suppress(CorruptLogError):  # its input may be lost with another commit
            builder.take(entry)
    return builder.rows([(1, log.head().seq)]), holes


class _TableBuilder:
    def __init__(self, log: Log) -> None:
        self.log = log
        self.calls: Calls[_Row] = Calls(_Row)
        self.owner: dict[Seq, _Row] = {}
        """The call that each event belongs to. Events caused by such an event belong to the same call."""
        self.tools: dict[str, str] = {}

    def rows(self, view: list[tuple[Seq, Seq]]) -> list[CallRow]:
        return [_finish_row(row, view) for row in self.calls.by_request.values()]

    def take(self, entry: Entry) -> None:
        header, body = entry.header, entry.body
        row = self.calls.take(entry.seq, entry.kind, header, body)
        if row is None:
            row = self.owner.get(header.cause)
            if row is None or entry.kind.startswith(("message.", "turn.", "action.")):
                return
        self.owner[entry.seq] = row
        row.delta += _delta(entry)
        if distrust(header.trust) >= distrust(row.trust) and header.trust != "trusted":
            row.trust, row.source = header.trust, header.source or row.source
        if row.request == entry.seq:
            self._add_request(row, entry)
        if entry.kind == "action.started":
            row.began = entry.happened_at
        if entry.kind in ("action.approved", "action.denied"):
            row.approved_by = text_in(body, "by") or header.actor
        cost = body.get("cost")
        if isinstance(cost, dict):
            row.tokens += cost.get("tokens_in", 0) + cost.get("tokens_out", 0)
            row.usd_micros += cost.get("usd_micros", 0)
            row.duration_us += cost.get("duration_us", 0)
        row.why = text_in(body, "why") or row.why
        if entry.kind.startswith("action."):
            row.summary = _summary(entry) or row.summary
            if row.settled == entry.seq:
                row.ended = entry.happened_at

    def _add_request(self, row: _Row, entry: Entry) -> None:
        row.at = row.began = entry.happened_at
        row.tool = row.tool or tool_of(self.log, entry, self.tools)
        if not entry.record.body:
            row.gone = "pruned"
            return
        row.gone = "" if entry.is_intact else "erased"
        ref = as_ref(entry.body.get("input"))
        if not row.gone and (ref is None or ref.size <= INPUT_MAX):
            value = content_of(self.log, entry, "input")
            row.about = call_gist(value)
            if not row.input_hash and value is not None and not isinstance(value, bytes):
                row.input_hash = hash_value(value)


def _delta(entry: Entry) -> tuple[CallDelta, ...]:
    ops = agent_ops(entry.delta) if entry.record.body else []
    paths = [(str(op["op"]), str(op["path"])) for op in ops]
    return tuple(CallDelta(op, path, entry.seq) for op, path in paths if not path.startswith(_BOOKKEEPING))


def _summary(entry: Entry) -> str:
    error = entry.body.get("error")
    if isinstance(error, dict):
        return text_in(error, "message") or text_in(error, "type")
    return text_in(entry.body, "output_summary")


def _finish_row(row: _Row, view: list[tuple[Seq, Seq]]) -> CallRow:
    is_over = row.status == "done"
    return CallRow(
        seq=row.request,
        settled=row.settled,
        at=row.at,
        turn=row.turn,
        attempt=row.attempt,
        action=row.action,
        tool=row.tool,
        effect=row.effect,
        about=row.about,
        input_hash=row.input_hash,
        outcome=(row.outcome or "abandoned") if is_over else row.status,
        tries=row.tries,
        duration_us=row.duration_us or (max(0, row.ended - row.began) if is_over else 0),
        tokens=row.tokens,
        usd_micros=row.usd_micros,
        delta=row.delta,
        summary=row.summary,
        why=row.why,
        approved_by=row.approved_by,
        trust=row.trust,
        source=row.source,
        in_view=any(first <= row.request <= last for first, last in view),
        gone=row.gone,
    )
