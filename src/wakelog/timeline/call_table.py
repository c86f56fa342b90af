"""The calls of a session as a table, one row a call: when, which tool, with what, what came of it, what it changed.

A call's events are folded by `model.calls`; this adds what a reader wants in a row. The **delta** of a call is what its
own events and the events that they caused did to the state, without the bookkeeping of calls themselves: its paths, not
its values. A value is one `show` away. What was erased or pruned is a row that says so.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wakelog.codec.canonical import hash_value
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.call_gist import call_gist
from wakelog.model.calls import Call, Calls
from wakelog.model.document import told_ops
from wakelog.model.ids import Seq
from wakelog.model.json_fields import text_in
from wakelog.model.payloads import as_ref
from wakelog.model.trust import Trust, distrust
from wakelog.timeline.messages import content_of
from wakelog.timeline.slices import tool_of

_OWN_BOOKS = ("/pending_actions", "/tools_used", "/budget", "/status", "/turn")
"""Parts of the state that every call touches."""
INPUT_MAX = 64 * 1024
"""A larger input is not fetched to say what it is about."""


class CallDelta(msgspec.Struct, frozen=True):
    """One change of the state, and the event that made it."""

    op: str
    path: str
    seq: Seq


class CallRow(msgspec.Struct, frozen=True):
    """One call of a tool or a model."""

    seq: Seq
    """The event that asked for it."""
    settled: Seq
    """The event that settled it; 0 while it is open."""
    at: int
    """When it was asked for, in microseconds, as the caller tells it."""
    turn: int
    attempt: int
    action: str
    tool: str
    effect: str
    about: str
    """What it was asked with, in a few words."""
    input_hash: str
    """As it was recorded, else of the input as it is recorded; empty when there is none, or it is large."""
    outcome: str
    """How it ended; while it is open, where it stands: requested, waiting, running, uncertain."""
    tries: int
    duration_us: int
    """What was reported, else the time between its beginning and its end; 0 while it is open."""
    tokens: int
    usd_micros: int
    """0 when no money was reported."""
    delta: tuple[CallDelta, ...]
    summary: str
    """What came of it, in a line."""
    why: str
    approved_by: str
    """Who approved or denied it, by name where one was given; empty when nobody was asked."""
    trust: Trust
    source: str
    in_view: bool
    gone: str
    """`erased` or `pruned` when the content of its request is no longer there."""


class _Row(Call):
    """A call with what its row needs."""

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
    """The calls that these events ask for, oldest first."""
    work = _Table(log)
    for entry in entries:
        work.take(entry)
    view = log.view()
    return [_finished(row, view) for row in work.calls.by_request.values()]


class _Table:
    def __init__(self, log: Log) -> None:
        self.log = log
        self.calls: Calls[_Row] = Calls(_Row)
        self.owner: dict[Seq, _Row] = {}
        """Which call an event belongs to, so that what it causes belongs there too."""
        self.tools: dict[str, str] = {}

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
            self._ask(row, entry)
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

    def _ask(self, row: _Row, entry: Entry) -> None:
        row.at = row.began = entry.happened_at
        row.tool = row.tool or tool_of(self.log, entry, self.tools)
        if not entry.record.body:
            row.gone = "pruned"
            return
        row.gone = "" if entry.is_intact else "erased"
        ref = as_ref(entry.body.get("input"))
        if not row.gone and (ref is None or ref.size <= INPUT_MAX):
            given = content_of(self.log, entry, "input")
            row.about = call_gist(given)
            if not row.input_hash and given is not None and not isinstance(given, bytes):
                row.input_hash = hash_value(given)


def _delta(entry: Entry) -> tuple[CallDelta, ...]:
    ops = told_ops(entry.delta) if entry.record.body else []
    paths = [(str(op["op"]), str(op["path"])) for op in ops]
    return tuple(CallDelta(op, path, entry.seq) for op, path in paths if not path.startswith(_OWN_BOOKS))


def _summary(entry: Entry) -> str:
    error = entry.body.get("error")
    if isinstance(error, dict):
        return text_in(error, "message") or text_in(error, "type")
    return text_in(entry.body, "output_summary")


def _finished(row: _Row, view: list[tuple[Seq, Seq]]) -> CallRow:
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
