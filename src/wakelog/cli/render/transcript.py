"""A session as a page to read: Markdown, turn by turn.

What was recorded is quoted, never interpreted: text stands in fences longer than any fence in it, hostile characters
are made visible, and long outputs are cut with a word about how much is missing.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from wakelog.cli.render.call_lines import words_of
from wakelog.cli.render.events import is_error, line_of
from wakelog.cli.render.values import fetched, readable, text_of
from wakelog.cli.text import counted, inert, inert_line, iso
from wakelog.errors import CorruptLogError, WakelogError
from wakelog.log.reader import Entry
from wakelog.model.agent_words import ASIDES, is_aside
from wakelog.model.readable import laid_out
from wakelog.session import Session

LONG = 4000
SHORT = 200
_QUIET = (
    *("turn.ended", "action.started", "budget.spent", "lease.taken", "lease.released"),
    *("labels.set", "items.kept", "records.imported"),
)
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|])")


Mask = Callable[[str], str]


def transcript(session: Session[Any], entries: Iterable[Entry], mask: Mask = str) -> Iterator[str]:
    """The lines of the page. `mask` is put over every recorded text, before it is cut."""
    head = session.head
    yield f"# {_plain(mask(str(session)))}"
    yield ""
    goal = None
    with contextlib.suppress(CorruptLogError):  # of a damaged session the state may not be known
        goal = session.log.state()["goal"]
    if goal is not None:
        yield f"Goal: {_plain(mask(text_of(goal)))}"
        yield ""
    last = head.at
    with contextlib.suppress(WakelogError):  # the last event may be damaged
        last = session.log.entry(head.seq).happened_at
    yield f"Session `{session.id}`, {head.status}, {counted(head.seq, 'event')}, last at {iso(last)}."
    tools: dict[str, str] = {}
    asked = ""
    for entry in entries:
        if asked and not (
            entry.kind == "message.added" and entry.body.get("role") == "user" and not is_aside(entry.body)
        ):
            # No message repeats what the turn began with.
            yield from ("", "**You**", "", *_quoted(asked))
        asked = ""
        if entry.kind == "turn.started":
            yield ""
            attempt = f", attempt {entry.header.attempt}" if entry.header.attempt > 1 else ""
            yield f"## Turn {entry.header.turn}{attempt}"
            if entry.body.get("input") is not None:
                asked = mask(readable(fetched(session, entry, entry.body["input"], 0)))
        elif entry.kind not in _QUIET:
            yield from _event(session, entry, tools, mask)


def _event(session: Session[Any], entry: Entry, tools: dict[str, str], mask: Mask) -> Iterator[str]:
    header = entry.header
    trust = (
        f" ⚠ {header.trust}, from {_plain(mask(header.source or header.actor))}" if header.trust != "trusted" else ""
    )
    if entry.kind == "action.requested" and entry.body.get("effect") == "model":
        return  # what it said follows
    yield ""
    if is_aside(entry.body):
        said = mask(line_of(session, entry, tools).text)[:SHORT]
        yield f"- {ASIDES[entry.body['name']]}: {_plain(said)} (e{entry.seq})"
        return
    if entry.kind == "message.added" and entry.record.body:
        who = {"user": "You", "assistant": "Agent"}.get(str(entry.body.get("role")), str(entry.body.get("role")))
        yield f"**{_plain(who)}**{trust} (e{entry.seq})"
        yield ""
        yield from _quoted(mask(readable(fetched(session, entry, entry.body.get("content"), 0))))
        return
    if entry.kind == "action.recorded" and entry.body.get("effect") == "model" and not is_error(entry):
        answer = fetched(session, entry, entry.body.get("output"), 0)
        if said := words_of(answer).strip():
            yield f"**Agent**{trust} (e{entry.seq})"
            yield ""
            yield from _quoted(mask(said))
            return
    line = line_of(session, entry, tools)
    yield f"- {_plain(mask(line.word))}: {_plain(mask(line.text)[:SHORT])}{trust} (e{entry.seq})"
    for field in ("input", "output") if entry.kind.startswith("action.") else ():
        value = mask(laid_out(fetched(session, entry, entry.body.get(field), 0)))
        if line.text.startswith("→"):
            continue  # an answer that only asks for calls, which follow
        if entry.body.get(field) is not None and (len(value) > SHORT or "\n" in value):
            yield ""
            yield from _fenced(value)


def _quoted(text: str) -> Iterator[str]:
    shown = inert(text)
    yield from (f"> {_plain(each, lines=True)}".rstrip() for each in _cut(shown).splitlines() or [""])


def _fenced(text: str) -> Iterator[str]:
    shown = _cut(inert(text))
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"  {fence}text"
    yield from (f"  {each}" for each in shown.splitlines())
    yield f"  {fence}"


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}\n… {len(text) - LONG:,} more characters"


def _plain(text: str, *, lines: bool = False) -> str:
    """Recorded text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", inert(text) if lines else inert_line(text))
