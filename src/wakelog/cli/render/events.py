"""Events: as one line for people, and as the full commit record in JSON."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from wakelog.cli.context import CommandContext
from wakelog.cli.render.call_lines import asked_calls, call_words, said_by_model
from wakelog.cli.render.event_texts import event_text
from wakelog.cli.render.money import cost_words, plain_cost
from wakelog.cli.render.values import fetch_value, preview, text_of
from wakelog.cli.text import clock, fit, fit_path, glyph, iso, join_facts, other_time, pad, place_of_turn, width
from wakelog.errors import CorruptLogError
from wakelog.importers.writer.hook_capture import CAPTURE
from wakelog.log import Log
from wakelog.log.deleted_origins import ORIGIN
from wakelog.log.reader import Entry
from wakelog.model.agent_words import ASIDES, is_aside, strip_agent_tags
from wakelog.model.ids import Seq
from wakelog.model.payloads import as_ref, without_bytes
from wakelog.model.values import Value
from wakelog.session import Session

Tools = dict[str, str]
"""action → tool, because outcomes name only the action."""

_BAD = ("action.failed", "action.timed_out", "action.uncertain", "flag.raised", "budget.reached", "gap.noted")
_OUTCOMES = ("succeeded", "failed", "timed_out", "uncertain", "denied", "approved", "abandoned")


class EventLine(msgspec.Struct, frozen=True):
    """An event as a glyph, a word for the actor or thing, and a text. Not yet inert."""

    sign: str
    word: str
    text: str
    style: dict[str, Any] = {}
    tail: tuple[str, ...] = ()
    """Numbers to show after the text: time taken, tokens, money, lines."""
    path: str = ""
    """A path in the text. It is cut in the middle, because the end tells files apart."""
    about: str = ""
    """What the text begins with, a command say. It is cut before what follows it: its result."""
    has_kept_tail: bool = False

    @property
    def whole(self) -> str:
        return join_facts((self.text, *self.tail))

    def fitted(self, columns: int) -> str:
        """The whole line cut to `columns`. The numbers after a call or a file stay, if they take a third at most."""
        tail = join_facts(self.tail) if self.has_kept_tail else ""
        room = columns - width(f" · {tail}") if tail else columns
        if room < columns * 2 // 3 or not (tail or self.path or self.about):
            return fit(self.whole, columns)
        return join_facts((self._fitted_text(room), tail))

    def _fitted_text(self, room: int) -> str:
        text = self.text
        if self.path and self.path in text:
            before = text.partition(self.path)[0]
            text = text.replace(self.path, fit_path(self.path, max(8, room - width(before))), 1)
        elif self.about and text.startswith(self.about):
            rest = text.removeprefix(self.about)
            text = fit(self.about, max(room - width(rest), room // 2)) + rest
        return fit(text, room)


def line_of(session: Session[Any], entry: Entry, tools: Tools) -> EventLine:
    """An event on one line."""
    if entry.kind.startswith("action."):
        return _action_line(session, entry, tools)
    body = entry.body
    if entry.kind == "message.added":
        text = "(erased)" if "$erased" in body else preview(session, entry, body.get("content"))
        if is_aside(body):
            word = ASIDES[text_of(body["name"])]
            return EventLine("note", word, strip_agent_tags(text) or "(nothing)", {"dim": True})
        return EventLine("call" if body.get("role") == "user" else "note", text_of(body.get("role", "")), text)
    word, text = event_text(session, entry)
    sign = "note"
    if is_error(entry):
        sign = "failed"
    elif entry.kind in ("turn.ended", "session.closed"):
        sign = "done"
    style = {"fg": "red"} if sign == "failed" else {"dim": True} if entry.kind in _QUIET else {}
    path = text_of(body.get("path", "")) if entry.kind == "file.changed" else ""
    return EventLine(sign, word, text, style, _tail(entry.kind, body), path, has_kept_tail=bool(path))


def is_error(entry: Entry) -> bool:
    """True if the event reports something that went wrong."""
    body = entry.body
    if entry.kind in _BAD:
        return entry.kind != "flag.raised" or body.get("severity") in ("error", "alarm")
    return (
        bool(body.get("error"))
        or (entry.kind == "turn.ended" and body.get("outcome", "completed") != "completed")
        or (entry.kind == "action.recorded" and body.get("outcome", "succeeded") != "succeeded")
    )


def outcome_of(entry: Entry) -> str | None:
    """The outcome, for events that end something."""
    kind, body = entry.kind, entry.body
    room, _, verb = kind.partition(".")
    if room == "action" and verb in _OUTCOMES:
        return verb
    defaults = {
        "action.recorded": "succeeded",
        "turn.ended": "completed",
        "session.closed": "completed",
        "subagent.returned": "completed",
        "action.reconciled": None,
        "action.evidence": None,
    }
    return text_of(body.get("outcome") or defaults[kind]) if kind in defaults and body else None


def _action_line(session: Session[Any], entry: Entry, tools: Tools) -> EventLine:
    body, verb = entry.body, entry.kind.partition(".")[2]
    tool = session.history.tool_of(entry, tools) or text_of(body.get("action", "action"))
    if not body:
        return EventLine("note", tool, f"{verb} (pruned)")
    if verb == "requested" and body.get("effect") == "model" and body.get("context_hash"):
        spans = [f"e{a}" if a == b else f"e{a}..e{b}" for a, b in entry.header.derived_from]
        shown = f"is shown {', '.join(spans[:4])}{glyph('more') * (len(spans) > 4)}" if spans else "is asked"
        return EventLine("call", tool, ", ".join(filter(None, (shown, model_params(body, tool)))))
    if verb == "requested":
        text = preview(session, entry, body.get("input")) or text_of(body.get("params") or "model call")
        text = "(erased)" if "$erased" in body else text
        if body.get("approval"):
            return EventLine("warn", tool, f"waits for approval  {text}", {"fg": "yellow"})
        return EventLine("call", tool, text)
    if verb == "started":
        attempt = body.get("attempt", 1)
        return EventLine("note", tool, "started" + (f", attempt {attempt}" if attempt != 1 else ""), {"dim": True})
    failed, about = is_error(entry), ""
    text = _outcome_text(session, entry)
    if verb == "recorded" and body.get("effect") == "model":
        text = text if failed else said_by_model(session, entry, text) or asked_calls(session, entry) or text
    elif verb == "recorded":
        about, result = call_words(session, entry, strip_agent_tags(text), is_error=failed)
        text = " → ".join(filter(None, (about, result)))
    text = f"{text}, will be tried again" if body.get("retry") else text
    sign = "warn" if verb == "uncertain" else "failed" if failed else "done"
    style = {"fg": "yellow" if verb == "uncertain" else "red"} if failed else {}
    return EventLine(sign, tool, text, style, tuple(cost_words(body.get("cost"))), about=about, has_kept_tail=True)


def model_params(body: dict[str, Value], tool: str = "") -> str:
    """The settings of a model call, such as `max_tokens 99`; without the model's name if `tool` is the same."""
    params = body.get("params")
    items = params.items() if isinstance(params, dict) else ()
    return ", ".join(f"{k} {text_of(v)}" for k, v in items if not (k == "model" and v == tool))


def _outcome_text(session: Session[Any], entry: Entry) -> str:
    body, verb = entry.body, entry.kind.partition(".")[2]
    error = body.get("error")
    if isinstance(error, dict):
        parts = (text_of(error.get("type", "error")), strip_agent_tags(text_of(error.get("message", ""))))
        return ": ".join(part for part in parts if part)
    summary = text_of(body.get("output_summary") or "")
    if not summary or summary.startswith("{"):  # old summaries can be raw JSON
        summary = preview(session, entry, body.get("output")) or summary
    if "$erased" in body:
        summary = "(erased)"
    elif verb in ("succeeded", "recorded") and (summary or not is_error(entry)):
        return summary or "succeeded"
    word = verb.replace("_", " ") if verb != "recorded" else text_of(body.get("outcome", ""))
    if verb == "reconciled":
        word = f"reconciled: {text_of(body.get('outcome', ''))}"
    why = text_of(body.get("why") or "")
    by = f" by {text_of(body['by'])}" if body.get("by") else ""
    return word + by + (f": {why}" if why else "") + (f" {summary}" if summary else "")


def _tail(kind: str, body: dict[str, Value]) -> tuple[str, ...]:
    if kind == "file.changed" and (body.get("added") or body.get("removed")):
        return (f"+{body.get('added', 0)} {glyph('minus')}{body.get('removed', 0)}",)
    return tuple(cost_words(body.get("cost")))


_QUIET = (
    *("turn.started", "lease.taken", "lease.released", "labels.set"),
    *("session.opened", "resource.touched", "items.kept", "records.imported"),
)
_TIMED = ("turn.", "message.", "action.", "file.", "subagent.")
_IMPORTED: WeakKeyDictionary[Log, bool] = WeakKeyDictionary()


def has_time(session: Session[Any], happened_at: int, stored_at: int) -> bool:
    """True if it is known when something happened. For a transcript without times only the time of import is known."""
    log = session.log
    if log not in _IMPORTED:  # read once: the first event of an imported session says so
        _IMPORTED[log] = False
        with contextlib.suppress(CorruptLogError):
            labels = log.part("labels")
            # What a framework's adapter or hooks record, they record as it happens.
            _IMPORTED[log] = ORIGIN in labels and "framework" not in labels and CAPTURE not in labels
    return happened_at != stored_at or not _IMPORTED[log]


def show_line(
    ctx: CommandContext,
    session: Session[Any],
    entry: Entry,
    tools: Tools,
    *,
    name: str = "",
    turn: bool = True,
    flags: Mapping[Seq, str] | None = None,
) -> str:
    """One event on one line, cut to the terminal; with the session's `name` in front, with or without the turn. It is
    marked if it is untrusted, or if one of the `flags` is about it. "unverified" is not marked here, because it applies
    to most lines; the turn shows it."""
    line, header = line_of(session, entry, tools), entry.header
    place = pad(f"e{entry.seq}", 7)
    other = other_time(entry.happened_at, header.at)
    when = clock(entry.happened_at, utc=ctx.utc, long=True)[11:] + other
    if entry.kind.startswith(_TIMED) and not has_time(session, entry.happened_at, header.at):
        when = " " * len(when)
    front = [ctx.style(place, fg="cyan"), ctx.style(when, dim=True)]
    if turn:
        front.append(pad(place_of_turn(header.turn, header.attempt), 5 - len(other)))
    column = _word_columns(ctx)
    if name:
        front.insert(0, pad(name, column))
    room = text_room(ctx, named=bool(name), turn=turn) - len(other)
    about = (flags or {}).get(entry.seq) or (header.source or header.trust if header.trust == "untrusted" else "")
    mark = f"  {glyph('warn')}" if about else ""
    if about and room >= 20:
        mark += f" {fit(about, max(4, room // 3 - 4))}"
    text = line.fitted(room - width(mark))
    return " ".join(
        [
            *front,
            sign(ctx, line.sign) + " " + pad(line.word, column),
            ctx.style(text, **line.style) + ctx.style(mark, fg="yellow"),
        ]
    ).rstrip()


def text_room(ctx: CommandContext, *, named: bool = False, turn: bool = True) -> int:
    """How many columns `show_line` has for the text of an event."""
    column = _word_columns(ctx)
    return ctx.columns - len("e123456 12:34:56 ") - 6 * turn - (column + 1) * named - len("* ") - column - 1


def _word_columns(ctx: CommandContext) -> int:
    return 14 if ctx.columns >= 90 else 10 if ctx.columns >= 56 else 7


def sign(ctx: CommandContext, name: str) -> str:
    """A glyph in its colour."""
    colors = {"done": "green", "failed": "red", "warn": "yellow", "open": "blue", "paused": "yellow"}
    return ctx.style(glyph(name), fg=colors[name]) if name in colors else glyph(name)


def brief(session: Session[Any], entry: Entry, tools: Tools) -> dict[str, Any]:
    """An event in a list of events (JSON)."""
    header = entry.header
    return {
        "session": session.id,
        "seq": entry.seq,
        "timestamp": iso(entry.happened_at),
        "stored_at": iso(header.at),
        "kind": entry.kind,
        "turn": header.turn or None,
        "attempt": header.attempt if header.turn else None,
        "actor": header.actor,
        "tool": session.history.tool_of(entry, tools) or None,
        "outcome": outcome_of(entry),
        "summary": line_of(session, entry, tools).text[:500],
        "source": header.source or None,
        "trust": header.trust,
    }


def record(session: Session[Any], entry: Entry, tools: Tools, limit: int) -> dict[str, Any]:
    """The full commit record of an event (JSON). Payloads up to `limit` bytes are included, larger ones only named."""
    body, header = entry.body, entry.header
    fields = {
        k: without_bytes(fetch_value(session, entry, v, limit)) if as_ref(v) else v
        for k, v in body.items()
        if k != "delta"
    }
    return {
        **brief(session, entry, tools),
        "action": text_of(body["action"]) if body.get("action") else None,
        "input_hash": body.get("input_hash") or None,
        "output_summary": body.get("output_summary") or None,
        "why": body.get("why") or body.get("because") or None,
        "cause": header.cause or None,
        "derived_from": [list(pair) for pair in header.derived_from],
        "delta": entry.delta,
        "cost": plain_cost(body.get("cost")),
        "hash": entry.hash.hex(),
        "commit": entry.commit_id,
        "intact": entry.is_intact,
        "body": fields,
    }
