"""A session as a page to read: Markdown, turn by turn.

Recorded text is quoted, never interpreted: it is put in fences longer than any fence in it, hostile characters are made
visible, and long outputs are cut with a note of how much is missing.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from wakelog.cli.render.call_lines import words_of
from wakelog.cli.render.events import is_error, line_of
from wakelog.cli.render.values import fetch_value, readable, text_of
from wakelog.cli.text import inert, inert_line, iso
from wakelog.errors import CorruptLogError, WakelogError
from wakelog.log.reader import Entry
from wakelog.model.agent_words import ASIDES, is_aside
from wakelog.model.readable import format_value
from wakelog.model.short_text import pluralize
from wakelog.session import Session

MAX_TEXT = 4000
MAX_LINE = 200
_QUIET = (
    *("turn.ended", "action.started", "budget.spent", "lease.taken", "lease.released"),
    *("labels.set", "items.kept", "records.imported"),
)
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|])")
Mask = Callable[[str], str]


def transcript(session: Session[Any], entries: Iterable[Entry], mask: Mask = str) -> Iterator[str]:
    """The lines of the page. `mask` is applied to every recorded text before it is cut."""
    head = session.head
    yield f"# {_plain(mask(str(session)))}"
    yield ""
    goal = None
    with contextlib.suppress(CorruptLogError):  # the state of a damaged session may be unreadable
        goal = session.log.state()["goal"]
    if goal is not None:
        yield f"Goal: {_plain(mask(text_of(goal)))}"
        yield ""
    last = head.at
    with contextlib.suppress(WakelogError):  # the last event may be damaged
        last = session.log.entry(head.seq).happened_at
    yield f"Session `{session.id}`, {head.status}, {pluralize(head.seq, 'event')}, last at {iso(last)}."
    tools: dict[str, str] = {}
    asked = ""
    for entry in entries:
        if asked and not (
            entry.kind == "message.added" and entry.body.get("role") == "user" and not is_aside(entry.body)
        ):
            # No message repeats the input of the turn.
            yield from ("", "**You**", "", *_quoted(asked))
        asked = ""
        if entry.kind == "turn.started":
            yield ""
            attempt = f", attempt {entry.header.attempt}" if entry.header.attempt > 1 else ""
            yield f"## Turn {entry.header.turn}{attempt}"
            if entry.body.get("input") is not None:
                asked = mask(readable(fetch_value(session, entry, entry.body["input"], 0)))
        elif entry.kind not in _QUIET:
            yield from _event(session, entry, tools, mask)


def _event(session: Session[Any], entry: Entry, tools: dict[str, str], mask: Mask) -> Iterator[str]:
    header = entry.header
    trust = (
        f" ⚠ {header.trust}, from {_plain(mask(header.source or header.actor))}" if header.trust != "trusted" else ""
    )
    if entry.kind == "action.requested" and entry.body.get("effect") == "model":
        return  # its answer follows
    yield ""
    if is_aside(entry.body):
        text = mask(line_of(session, entry, tools).text)[:MAX_LINE]
        yield f"- {ASIDES[entry.body['name']]}: {_plain(text)} (e{entry.seq})"
        return
    if entry.kind == "message.added" and entry.record.body:
        who = {"user": "You", "assistant": "Agent"}.get(str(entry.body.get("role")), str(entry.body.get("role")))
        yield f"**{_plain(who)}**{trust} (e{entry.seq})"
        yield ""
        if "$erased" in entry.body:
            yield "> (erased)"
        else:
            yield from _quoted(mask(readable(fetch_value(session, entry, entry.body.get("content"), 0))))
        return
    if entry.kind == "action.recorded" and entry.body.get("effect") == "model" and not is_error(entry):
        answer = fetch_value(session, entry, entry.body.get("output"), 0)
        if words := words_of(answer).strip():
            yield f"**Agent**{trust} (e{entry.seq})"
            yield ""
            yield from _quoted(mask(words))
            return
    line = line_of(session, entry, tools)
    yield f"- {_plain(mask(line.word))}: {_plain(mask(line.text)[:MAX_LINE])}{trust} (e{entry.seq})"
    for field in ("input", "output") if entry.kind.startswith("action.") else ():
        value = mask(format_value(fetch_value(session, entry, entry.body.get(field), 0)))
        if line.text.startswith("→"):
            continue  # this answer only asks for calls, which follow
        if entry.body.get(field) is not None and (len(value) > MAX_LINE or "\n" in value):
            yield ""
            yield from _fenced(value)


def _quoted(text: str) -> Iterator[str]:
    yield from (f"> {_plain(line, lines=True)}".rstrip() for line in _cut(inert(text)).splitlines() or [""])


def _fenced(text: str) -> Iterator[str]:
    shown = _cut(inert(text))
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"  {fence}text"
    yield from (f"  {line}" for line in shown.splitlines())
    yield f"  {fence}"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n… {len(text) - MAX_TEXT:,} more characters"


def _plain(text: str, *, lines: bool = False) -> str:
    """Recorded text with Markdown escaped."""
    return _SPECIAL.sub(r"\\\1", inert(text) if lines else inert_line(text))
