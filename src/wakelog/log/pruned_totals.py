"""Totals of pruned turns: numbers that are computed before the content goes, and stored in the prune event.

They are counted from the events as the index counts them, with the totals of an earlier prune added. Nothing here is
text: no name, no input, no error. A call that a prune cuts in two is counted where it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.log.reader import Entry, entries_of_kind, fold_at
from wakelog.model.call_subject import is_own_tool, subject_of
from wakelog.model.calls import ANSWERS, BEGIN_KINDS, FAILURES, outcome_of
from wakelog.model.ids import Seq
from wakelog.model.json_fields import text_in
from wakelog.model.totals import MODEL, NO_PHASE, TURN_FIELDS, CallKey, count_call, merge_rows, phase_of
from wakelog.model.turns import count_event
from wakelog.model.values import Value, as_int
from wakelog.state.fold import Fold

if TYPE_CHECKING:
    from wakelog.log.log import Log

Rows = tuple[tuple[int, ...], ...]
_SUMMED = ("tokens", "usd_micros", "duration_us")


class _TurnSum(msgspec.Struct):
    """The totals of one attempt at a turn: the counts of model/turns.py, and its cost."""

    turn: int
    attempt: int
    last: Seq = 0
    at: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    model_calls: int = 0
    added: int = 0
    removed: int = 0
    tokens: int = 0
    tokens_out: int = 0
    usd_micros: int = 0
    duration_us: int = 0
    unpriced: int = 0
    events: int = 0
    ended_at: int | None = None
    outcome: str = ""
    input: str = " "  # no query reads it, so it is trusted


def totals_upto(log: Log, upto: Seq) -> tuple[Rows, Rows]:
    """The totals of a session's own events up to `upto`, as rows of TURN_FIELDS and of CALL_FIELDS."""
    before = _earlier(log, upto)
    turns = [tuple(row) for row in before.body.get("turn_totals") or ()] if before else []
    calls = [tuple(row) for row in before.body.get("call_totals") or ()] if before else []
    start = before.body["upto"] if before else log.segments[-1].first - 1
    counted = _Counted(log, fold_at(log.engine, log.segments, start).fold if start else Fold())
    for entry in log.entries(after=start, upto=upto):
        counted.take(entry)
    turns += [tuple(getattr(each, name) for name in TURN_FIELDS) for each in counted.turns.values()]
    calls += [(*key, *row) for key, row in counted.calls.items()]
    # Of two prunes of one turn, the later one has its last event and the earlier one its beginning.
    return tuple(merge_rows(turns, 2, kept=(2, -3))), tuple(merge_rows(calls, 4))


def _earlier(log: Log, upto: Seq) -> Entry | None:
    """The newest earlier prune of this session."""
    prunes = entries_of_kind(log.engine, log.id, "range.pruned", after=log.segments[-1].first - 1)
    earlier = [entry for entry in prunes if 0 < entry.body.get("upto", 0) < upto]
    return earlier[-1] if earlier else None


class _Counted:
    """Walks the events and folds the state, which says what a call was and what it cost."""

    def __init__(self, log: Log, fold: Fold) -> None:
        self.turns: dict[tuple[int, int], _TurnSum] = {}
        self.calls: dict[CallKey, list[int]] = {}
        self._log = log
        self._fold = fold
        self._last = NO_PHASE
        self._acts: dict[str, tuple[str, str]] = {}

    def take(self, entry: Entry) -> None:
        header, body, kind = entry.header, entry.body, entry.kind
        pending = (self._fold.doc.get("pending_actions") or {}).get(text_in(body, "action"))
        before = _spent(self._fold)
        self._fold.apply(entry.delta)
        tokens, usd_micros, duration_us = (max(0, b - a) for a, b in zip(before, _spent(self._fold), strict=True))
        tool, effect = text_in(body, "tool"), ""
        if kind in BEGIN_KINDS:
            effect = text_in(body, "effect") or "external"
            self._acts[text_in(body, "action")] = self._subject(entry, tool, effect)
        elif not tool and type(pending) is dict:
            tool, effect = text_in(pending, "tool"), text_in(pending, "effect")
        outcome = text_in(body, "outcome") or outcome_of(kind, body)
        has_failed = outcome in FAILURES and kind in ANSWERS
        at = as_int(body.get("occurred_at")) or header.at
        turn = self.turns.setdefault((header.turn, header.attempt), _TurnSum(header.turn, header.attempt))
        turn.at = turn.at or at
        count_event(turn, entry.seq, kind, body, at=at, effect=effect, outcome=outcome, summary=str)
        turn.tool_errors += has_failed and kind != "action.reconciled" and effect != "model"
        cost = body.get("cost")
        told: dict[str, Any] = cost if type(cost) is dict else {}
        turn.tokens += tokens
        turn.tokens_out += min(as_int(told.get("tokens_out")), tokens)
        turn.usd_micros += usd_micros
        turn.duration_us += duration_us
        turn.unpriced += tokens if not usd_micros and not told.get("price") else 0
        if kind == "message.added" and body.get("role") == "user":
            self._last = NO_PHASE
        elif kind in ANSWERS and outcome:
            self._end(header.turn, header.attempt, body, tool, effect, has_failed, duration_us)
        elif kind in ("action.denied", "action.abandoned"):
            self._acts.pop(text_in(body, "action"), None)

    def _end(
        self,
        turn: int,
        attempt: int,
        body: dict[str, Value],
        tool: str,
        effect: str,
        has_failed: bool,
        duration_us: int,
    ) -> None:
        action = text_in(body, "action")
        label, act = self._acts.get(action) or (tool, "run")
        if not body.get("retry"):
            self._acts.pop(action, None)
        if effect != "model" and (is_own_tool(tool) or not label or label.startswith("wakelog")):
            return
        here = (turn, attempt, MODEL if effect == "model" else phase_of(act))
        self._last = count_call(self.calls, self._last, here, has_failed, duration_us)

    def _subject(self, entry: Entry, tool: str, effect: str) -> tuple[str, str]:
        if effect == "model":
            return tool, "run"
        given = entry.body.get("input")
        if type(given) is dict and "$payload" in given:
            try:
                given = self._log.value(entry, given)
            except (NotFoundError, CorruptLogError):
                given = None
        subject = subject_of(tool, effect, given)
        return subject.label, subject.act


def _spent(fold: Fold) -> tuple[int, ...]:
    spent = (fold.doc.get("budget") or {}).get("spent") or {}
    return tuple(as_int(spent.get(name)) for name in _SUMMED)
