"""Writes a session as one HTML page, without scripts and without network access; all recorded text is escaped.

The page shows the turns in order: what the user asked, what the agent said and did, and file changes as diffs. A call
and its outcome are one row. Long texts and the model's thoughts are folded. Derived information is marked with ~, and
untrusted text with its source. The list of turns is written last, because the events are read only once.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.exporters.claude_blocks import ENDS
from wakelog.exporters.page_frame import page_head
from wakelog.exporters.page_frame import safe as _safe
from wakelog.exporters.prose import prose
from wakelog.log.reader import Entry
from wakelog.model.agent_words import ASIDES, is_aside, numbered_lines, strip_agent_tags
from wakelog.model.call_gist import call_gist
from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.json_fields import dicts_in
from wakelog.model.parts import Text as TextPart
from wakelog.model.parts import content_text, is_answer, parts_of, text_of
from wakelog.model.readable import arguments_text
from wakelog.session import Session
from wakelog.timeline.messages import content_of, is_input_said

SHORT_MAX = 600
"""Texts up to this many characters are shown unfolded."""
GIST_MAX = 100
"""How many characters of a folded text are shown in its title."""
TEXT_MAX = 200_000
"""How many characters of a text are on the page at most."""
_KINDS = {"approach_change": "change", "dead_end": "dead end", "failure_report": "failure report"}
_NOTES = {
    "decision.made": ("decision", "choice", "because"),
    "fact.recorded": ("fact", "key", "value"),
    "dead_end.noted": ("dead end", "tried", "learned"),
    "goal.set": ("goal", "goal", ""),
    "note.added": ("note", "text", ""),
    "gap.noted": ("gap", "missed", ""),
    "flag.raised": ("flag", "flag", "message"),
    "checkpoint.named": ("checkpoint", "name", ""),
    "history.rewound": ("rewound", "mode", "why"),
    "subagent.spawned": ("sub-agent", "task", ""),
}

Mask = Callable[[str], str]


def html_page(session: Session[Any], entries: Iterable[Entry], mask: Mask = str) -> Iterator[str]:
    """The page, in parts. `mask` is applied to every recorded text before it is cut."""
    name = mask(str(session))
    yield from page_head(name)
    yield f"<header>\n<h1>{_safe(name)}</h1>\n"
    yield from _about(session, mask)
    yield "</header>\n"
    page = _Page(session, mask)
    yield from page.body(entries)
    yield "</main>\n"
    yield from page.turns()
    yield "</body>\n</html>\n"


def _about(session: Session[Any], mask: Mask) -> Iterator[str]:
    head = session.head
    try:
        document = session.log.state()
    except CorruptLogError:  # a damaged session may have no state
        document = {"labels": {}, "goal": None}
    if document["goal"] is not None:
        yield f'<p class="goal">{_safe(mask(text_of(document["goal"])))}</p>\n'
    facts = [("status", head.status), ("turns", f"{head.turn:,}"), ("events", f"{head.seq:,}")]
    facts += [(name, mask(text_of(value))) for name, value in document["labels"].items() if name != "origin"]
    facts.append(("session", session.id))
    rows = "".join(
        f"<div><dt>{_safe(name.replace('_', ' '))}</dt><dd>{_safe(value)}</dd></div>" for name, value in facts
    )
    yield f'<dl class="facts">{rows}</dl>\n'


class _Page:
    def __init__(self, session: Session[Any], mask: Mask) -> None:
        self._session = session
        self._mask = mask
        self._log = session.log
        self._tools: dict[str, str] = {}
        self._requests: dict[str, Entry] = {}
        """Requests without an outcome so far."""
        self._turns: list[tuple[str, str, str]] = []

    def turns(self) -> Iterator[str]:
        """The list of turns."""
        if len(self._turns) > 1:
            rows = "".join(
                f'<li><a href="#{id}"><b>{point}</b> {_safe(title)}</a></li>' for id, point, title in self._turns
            )
            yield f'<nav aria-label="Turns"><ol>{rows}</ol></nav>\n'

    def body(self, entries: Iterable[Entry]) -> Iterator[str]:
        for entry in entries:
            if entry.kind == "turn.started":
                yield from self._unanswered()
                yield from self._turn(entry)
            elif not entry.record.body:
                yield self._row(entry, "gone", "the content was pruned")
            else:
                yield from self._event(entry)
        yield from self._unanswered()

    def _unanswered(self) -> Iterator[str]:
        for entry in self._requests.values():
            yield self._call(entry, "no outcome")
        self._requests.clear()

    def _read(self, entry: Entry, field: str) -> Any:
        return _masked(content_of(self._log, entry, field), self._mask)

    def _turn(self, entry: Entry) -> Iterator[str]:
        number, attempt = entry.header.turn, entry.header.attempt
        again = f", attempt {attempt}" if attempt > 1 else ""
        title = " ".join(_words(self._read(entry, "input")).split()) if entry.body.get("input") is not None else ""
        point = f"@{number}.{attempt}" if attempt > 1 else f"@{number}"
        self._turns.append((f"t{number}-{attempt}", point, title[:80] or _time(entry)))
        yield f'<h2 id="t{number}-{attempt}">Turn {number}{again}<small>{_time(entry)}</small></h2>\n'
        if entry.body.get("input") is not None and not is_input_said(self._log, entry):
            yield self._speech(entry, "user", "You", _words(self._read(entry, "input")))
        yield from self._derived(number)

    def _derived(self, turn: int) -> Iterator[str]:
        try:
            items = self._session.insight(f"@{turn}").items
        except (NotFoundError, CorruptLogError):
            return
        rows = [i for i in items if (i.quote or i.note) and i.kind not in ("goal", "check", "file")]
        if rows:
            inside = "".join(
                f"<li><b>~ {_safe(_KINDS.get(i.kind, i.kind))}</b>"
                + (f" {_safe(self._mask(i.note))}" if i.note else "")
                + (f" “{_safe(self._mask(i.quote))}”" if i.quote and not i.open_items else "")
                + (f" <i>why</i> “{_safe(self._mask(i.reason))}”" if i.reason and i.reason != i.quote else "")
                + f' <a href="#e{i.seq}">e{i.seq}</a></li>'
                for i in rows
            )
            yield f'<ul class="derived" title="derived by rules from words in the log">{inside}</ul>\n'

    def _event(self, entry: Entry) -> Iterator[str]:
        body, kind = entry.body, entry.kind
        if kind in BEGIN_KINDS:
            self._tools[text_of(body.get("action", ""))] = text_of(body.get("tool", ""))
        if kind == "message.added":
            yield self._message(entry)
        elif kind == "file.changed":
            yield self._change(entry)
        elif kind in ENDS and self._tool(entry) == "model":
            yield from self._answer(entry)
        elif kind == "action.requested" and body.get("effect") != "model":
            self._requests[text_of(body.get("action", ""))] = entry
        elif kind in ENDS:
            yield self._call(entry, request=self._requests.pop(text_of(body.get("action", "")), None))
        elif kind == "history.compacted":
            yield self._fold(entry, "summary", _words(self._read(entry, "summary")))
        elif kind in _NOTES:
            word, *names = _NOTES[kind]
            text = self._mask(": ".join(text_of(self._read(entry, n)) for n in names if n and body.get(n)))
            yield self._row(entry, word, text)
        elif kind == "turn.ended" and body.get("outcome", "completed") != "completed":
            yield self._row(entry, "turn", text_of(body["outcome"]), bad=True)

    def _tool(self, entry: Entry) -> str:
        if entry.body.get("effect") == "model":
            return "model"
        tool = self._session.history.tool_of(entry, self._tools)
        cause = entry.header.cause
        is_model = entry.kind != "action.recorded" and cause and self._log.entry(cause).body.get("effect") == "model"
        return "model" if is_model else tool

    def _message(self, entry: Entry) -> str:
        body = entry.body
        text = _words(self._read(entry, "content"))
        if is_aside(body):
            return self._fold(entry, ASIDES[text_of(body["name"])], strip_agent_tags(text))
        role = text_of(body.get("role", ""))
        who = {"user": "You", "assistant": "Agent"}.get(role, role)
        if name := self._mask(text_of(body.get("name", ""))):
            role, who = ("other" if role == "user" else role), name
        return self._speech(entry, role, who, text)

    def _answer(self, entry: Entry) -> Iterator[str]:
        answer = self._read(entry, "output") if entry.body.get("output") is not None else None
        if answer is None:
            if "error" in entry.body:
                yield self._call(entry)
            return
        thought = _thoughts(answer)
        if is_answer(answer):
            text = "\n".join(part.text for part in parts_of(answer) if isinstance(part, TextPart))
        else:
            text = _words(answer)
        if thought:
            # Quotes link to the answer, so it needs an id even if it has only thoughts.
            yield self._fold(entry, "thinking", thought, named=not text.strip())
        if text.strip():
            yield self._speech(entry, "assistant", "Agent", text)

    def _call(self, entry: Entry, result: str = "", request: Entry | None = None) -> str:
        body = entry.body
        bad = entry.kind in ("action.failed", "action.timed_out") or body.get("outcome", "succeeded") != "succeeded"
        parts = []
        asking = request or entry
        input = self._read(asking, "input") if asking.body.get("input") is not None else None
        if input is not None:
            parts.append(f"<h4>input</h4>{_pre(arguments_text(input))}")
        output = ""
        if body.get("output") is not None:
            output = strip_agent_tags(_words(self._read(entry, "output")))
            parts.append(f"<h4>output</h4>{_pre(output)}")
        elif isinstance(error := body.get("error"), dict):
            output = self._mask(f"{text_of(error.get('type', ''))}: {text_of(error.get('message', ''))}")
            parts.append(f"<h4>error</h4>{_pre(output)}")
        lines = numbered_lines(output) or output.count("\n") + bool(output)
        result = result or ("failed" if bad else f"{lines} line{'s' if lines != 1 else ''}" if output else "")
        tool, about = self._mask(self._tool(entry)) or "call", call_gist(input)
        head = f"<b>{_safe(tool)}</b> <code>{_safe(about)}</code> <small>{result}</small>"
        head += self._trust(entry) + _number(entry)
        state = ' class="bad"' if bad else ""
        if request is not None:
            parts.insert(0, f'<a id="e{request.seq}"></a>')
        return f'<details id="e{entry.seq}"{state}><summary>{head}</summary>{"".join(parts)}</details>\n'

    def _change(self, entry: Entry) -> str:
        body, path = entry.body, self._mask(text_of(entry.body.get("path", "")))
        counts = f"+{body.get('added', 0)} −{body.get('removed', 0)}"
        head = f"{_safe(text_of(body.get('change', 'modified')))} <code>{_safe(path)}</code>"
        diff = self._session.files.change(entry)
        text = self._mask(diff.text) if diff is not None else ""
        rows = _diff_rows(text) if text else ""
        if not rows:
            why = diff.note if diff is not None else "its content was not captured"
            return self._row(entry, "file", f"{path} {counts}  ({why})")
        opened = " open" if len(text) <= 4 * SHORT_MAX else ""
        small = f"<small>{counts}</small>{_number(entry)}"
        return (
            f'<details id="e{entry.seq}" class="file"{opened}><summary>{head} {small}</summary>'
            f'<pre class="diff">{rows}</pre></details>\n'
        )

    def _speech(self, entry: Entry, role: str, who: str, text: str) -> str:
        style = role if role in ("user", "assistant") else "other"
        front = f"<b>{_safe(who)}</b>{self._trust(entry)}{_place(entry)}"
        text = text.strip("\n")
        shown = prose(text, _safe) if len(text) <= 10 * SHORT_MAX else _folded(text)
        return f'<section class="{style}" id="e{entry.seq}"><header>{front}</header>{shown}</section>\n'

    def _fold(self, entry: Entry, word: str, text: str, *, named: bool = True) -> str:
        line = " ".join(text.replace("**", "").split())
        gist = line if len(line) <= GIST_MAX else f"{line[:GIST_MAX]} …"
        head = f"<b>{_safe(word)}</b> {_safe(gist)}{self._trust(entry)}{_number(entry)}"
        id = f' id="e{entry.seq}"' if named else ""
        return f'<details class="aside"{id}><summary>{head}</summary>{_pre(text)}</details>\n'

    def _trust(self, entry: Entry) -> str:
        header = entry.header
        if header.trust == "trusted":
            return ""
        source = self._mask(header.source or header.actor)
        return f' <mark title="where this is from">{_safe(header.trust)}, {_safe(source)}</mark>'

    def _row(self, entry: Entry, word: str, text: str, *, bad: bool = False) -> str:
        style = "row bad" if bad else "row"
        return (
            f'<p class="{style}" id="e{entry.seq}"><b>{_safe(word)}</b> {_safe(text[:TEXT_MAX])}{_place(entry)}</p>\n'
        )


def _masked(value: Any, mask: Mask) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: _masked(item, mask) for key, item in value.items()}
    return [_masked(item, mask) for item in value] if isinstance(value, list) else value


def _pre(text: str) -> str:
    if len(text) > TEXT_MAX:
        text = f"{text[:TEXT_MAX]}\n… {len(text) - TEXT_MAX:,} more characters"
    return f"<pre>{_safe(text)}</pre>"


def _folded(text: str) -> str:
    beginning = prose(text[: 2 * SHORT_MAX] + " …", _safe)
    return f"{beginning}<details><summary>all {len(text):,} characters</summary>{_pre(text)}</details>"


def _words(value: Any) -> str:
    return content_text(value) or text_of(value)


def _thoughts(answer: Any) -> str:
    blocks = answer.get("content") if isinstance(answer, dict) else None
    thinking = dicts_in(blocks)
    return "\n\n".join(b["thinking"] for b in thinking if isinstance(b.get("thinking"), str) and b["thinking"].strip())


def _diff_rows(text: str) -> str:
    marks = {"+": "ins", "-": "del"}
    rows = []
    for line in text[:TEXT_MAX].splitlines():
        mark = marks.get(line[:1])
        rows.append(f"<{mark}>{_safe(line)}</{mark}>" if mark else f"<span>{_safe(line)}</span>")
    return "\n".join(rows)


def _number(entry: Entry) -> str:
    """The event's number without a link, for a title that folds when it is clicked."""
    return f' <span class="place">e{entry.seq}</span>'


def _place(entry: Entry) -> str:
    return f' <a class="place" href="#e{entry.seq}">e{entry.seq}</a>'


def _time(entry: Entry) -> str:
    at = datetime.datetime.fromtimestamp(entry.happened_at / 1e6, datetime.UTC)
    return at.strftime("%Y-%m-%d %H:%M UTC")
