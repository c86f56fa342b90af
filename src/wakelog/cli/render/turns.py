"""The list of turns in `log`: one row a turn, collected in one pass, and the lines below each row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from wakelog.cli.context import CommandContext
from wakelog.cli.render.changes import change_lines
from wakelog.cli.render.event_texts import label_changes
from wakelog.cli.render.events import has_time, is_error
from wakelog.cli.render.insight import WHY, derive_insight, insight_lines
from wakelog.cli.render.money import Spent, plain_cost
from wakelog.cli.render.results import shape
from wakelog.cli.render.sessions import handle, short_id, status_words
from wakelog.cli.render.table import Cell, Row, lay_out
from wakelog.cli.render.values import preview, text_of
from wakelog.cli.text import clock, count, duration, fit, fit_path, glyph, money, other_time, width
from wakelog.log.reader import Entry
from wakelog.model.agent_words import is_aside, strip_agent_tags
from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.document import decision_words
from wakelog.model.ids import Seq
from wakelog.model.short_text import pluralize
from wakelog.model.turns import count_event
from wakelog.session import Session
from wakelog.session.status import URGENT, SessionCondition

BEHAVIOUR_LABELS = ("model", "branch", "repo", "agent_version", "system_prompt", "tools")
"""Labels whose change may change how an agent behaves."""


KeptTotals = dict[int, list[dict[str, int]]]
"""The totals of pruned turns, by turn, one for each attempt."""


class TurnSummary(msgspec.Struct):
    """A turn in numbers. Lines and files are those of the newest attempt; money and calls are those of all attempts."""

    turn: int
    first: Seq
    started_at: int
    """When it happened, if that is known, else when it was stored. Likewise `ended_at`."""
    stored_at: int
    begin: Seq = 0
    """The first event of the newest attempt."""
    last: Seq = 0
    ended_at: int | None = None
    attempts: int = 1
    outcome: str = "open"
    in_view: bool = True
    input: str = ""
    decision: str = ""
    first_tool: str = ""
    tool_calls: int = 0
    model_calls: int = 0
    errors: int = 0
    events: int = 0
    files: dict[str, tuple[int, int]] = {}
    added: int = 0
    removed: int = 0
    spent: Spent = msgspec.field(default_factory=Spent)
    untrusted: list[str] = []
    unverified: list[str] = []
    """The sources of unverified data."""
    flags: list[str] = []
    """The raised flags about one of its events."""
    changed: list[str] = []
    """Changes of BEHAVIOUR_LABELS in or before the turn, in words."""

    @property
    def title(self) -> str:
        """What the turn is about: its input, else its first decision or tool."""
        return self.input.strip() or self.decision or self.first_tool


def gather(session: Session[Any], entries: Iterable[Entry], at: Seq | None = None) -> Iterator[TurnSummary]:
    """The turns among the events, oldest first. Keeps one turn in memory at a time."""
    view = session.log.view(at)
    totals: KeptTotals = {}
    row: TurnSummary | None = None
    changed: list[str] = []
    for entry in entries:
        number = entry.header.turn
        if entry.kind == "labels.set":
            changed += label_changes(session, entry, only=BEHAVIOUR_LABELS)
        if not number:
            continue
        if row is None or row.turn != number:
            if row is not None:
                yield _finish(row, view, totals)
            if not totals and not entry.record.body:
                for total in session.log.pruned_totals():
                    totals.setdefault(total["turn"], []).append(total)
            row = TurnSummary(number, entry.seq, entry.happened_at, entry.header.at, begin=entry.seq)
        _count(session, row, entry)
        row.changed, changed = [*row.changed, *changed], []
    if row is not None:
        yield _finish(row, view, totals)


def _finish(row: TurnSummary, view: list[tuple[Seq, Seq]], totals: KeptTotals) -> TurnSummary:
    row.in_view = any(first <= row.begin <= last for first, last in view)
    for total in totals.get(row.turn, ()):
        row.tool_calls += total["tool_calls"]
        row.model_calls += total["model_calls"]
        row.errors += total["tool_errors"]
        row.spent.tokens_in += total["tokens"] - total["tokens_out"]
        row.spent.tokens_out += total["tokens_out"]
        row.spent.usd_micros += total["usd_micros"]
        row.spent.duration_us += total["duration_us"]
        if total["attempt"] == row.attempts:
            row.added += total["added"]
            row.removed += total["removed"]
    return row


def _words(session: Session[Any], entry: Entry, field: str) -> str:
    words = preview(session, entry, entry.body.get(field))
    return strip_agent_tags(words) if is_aside(entry.body) else words


def _count(session: Session[Any], row: TurnSummary, entry: Entry) -> None:
    header, body, kind = entry.header, entry.body, entry.kind
    if kind == "turn.started":
        row.attempts, row.begin, row.outcome, row.ended_at = header.attempt, entry.seq, "open", None
        row.files, row.added, row.removed = {}, 0, 0
    count_event(
        row,
        entry.seq,
        kind,
        body,
        at=entry.happened_at,
        effect=text_of(body.get("effect", "")),
        outcome=text_of(body.get("outcome", "completed")),
        summary=lambda: _words(session, entry, "input" if kind == "turn.started" else "content"),
        is_pruned=not entry.record.body,
    )
    if kind == "decision.made" and not row.decision and "choice" in body:
        row.decision = decision_words(body)
    elif kind == "file.changed":
        path = text_of(body.get("path", ""))
        added, removed = row.files.get(path, (0, 0))
        row.files[path] = (added + body.get("added", 0), removed + body.get("removed", 0))
    elif kind in BEGIN_KINDS and body.get("effect") != "model":
        row.first_tool = row.first_tool or text_of(body.get("tool", ""))
    if "cost" in body:
        row.spent.add(body["cost"])
    if kind != "turn.ended" and is_error(entry):
        row.errors += 1
    if header.trust == "untrusted" and (header.source or header.trust) not in row.untrusted[:8]:
        row.untrusted.append(header.source or header.trust)
    elif header.trust == "unverified" and header.source and header.source not in row.unverified[:8]:
        row.unverified.append(header.source)


_LOOKS = {
    "completed": ("done", "green"),
    "failed": ("failed", "red"),
    "interrupted": ("failed", "yellow"),
    "open": ("open", "blue"),
}

COLUMNS = " |  |  | 24 | -2 | > -4 | > -5 | > -6 | > -3 | 11"


def spine_row(ctx: CommandContext, session: Session[Any], row: TurnSummary, today: str) -> Row:
    """A turn as cells for COLUMNS: position, time, glyph, title, attempts, tools, lines, tokens, money, marks."""
    sign, color = _LOOKS.get(row.outcome, ("done", "white"))
    spent = row.spent
    lines = f"+{row.added} {glyph('minus')}{row.removed}" if row.added or row.removed else ""
    marks = [f"{glyph('warn')} {name}" for name in (*row.flags[:2], *row.untrusted[:2])]
    if not row.in_view:
        marks.insert(0, f"{glyph('back')} rewound")
    if row.outcome in ("interrupted", "open"):
        marks.insert(0, row.outcome)
    dim = {} if row.in_view else {"dim": True}
    when = time_of(row.started_at, today, utc=ctx.utc) + other_time(row.started_at, row.stored_at)
    return (
        Cell(f" @{row.turn}", {"fg": "cyan"}),
        Cell(when if has_time(session, row.started_at, row.stored_at) else glyph("dash"), {"dim": True}),
        Cell(glyph(sign), {"fg": color}),
        Cell(row.title, dim),
        Cell(f"{glyph('times')}{row.attempts} attempts" if row.attempts > 1 else "", {"fg": "yellow"}),
        Cell(pluralize(row.tool_calls, "tool") if row.tool_calls else "", dim),
        Cell(lines, dim),
        Cell(f"{count(spent.tokens_out)} out" if spent.tokens_out else "", dim),
        Cell(money(spent.usd_micros) if spent.usd_micros else "", dim),
        Cell("  ".join(marks), {"fg": "yellow"}),
    )


def time_of(at_us: int, today: str, *, utc: bool) -> str:
    """The time of day, with the date in front when it is not `today` (YYYY-MM-DD), and the year when it is not this."""
    whole = clock(at_us, utc=utc, long=True)
    return whole[11:16] if whole.startswith(today) else whole[5:16] if whole[:4] == today[:4] else whole[:16]


shape(
    TurnSummary,
    "turn attempts outcome in_view first last started_at:iso stored_at:iso ended_at:iso? input? decision? events"
    " tools=tool_calls"
    " model_calls errors files cost untrusted flags changed",
    files=lambda row: [{"path": path, "added": a, "removed": r} for path, (a, r) in row.files.items()],
    cost=lambda row: plain_cost(msgspec.to_builtins(row.spent)),
)


class TurnsLook(msgspec.Struct, frozen=True):
    """How turns are shown."""

    patch: bool = False
    stat: bool = False
    oneline: bool = False
    insight: bool = False
    graph: bool = False
    reverse: bool = False


def header_line(ctx: CommandContext, session: Session[Any], condition: SessionCondition) -> str:
    """The session in one line: name, turns, time, money, id, status."""
    document, head = condition.document, condition.head
    started = session.log.entry(1)
    turns = document["turn"]["number"]
    facts = [
        pluralize(turns, "turn") if turns else pluralize(condition.seq, "event"),
        duration(max(0, condition.at - started.happened_at))
        if has_time(session, started.happened_at, started.header.at)
        else "no times recorded",
        money(spent) if (spent := document["budget"]["spent"].get("usd_micros", 0)) else "",
        short_id(session.id),
        f"fork of {short_id(head.fork.parent)} at e{head.fork.at}" if head.fork else "",
    ]
    need = f" {glyph('dot')} {condition.need}" if condition.need in URGENT else ""
    if flags := len(document["flags"]):
        need += f" {glyph('dot')} {glyph('warn')} {pluralize(flags, 'flag')}"
    name = fit(str(session), ctx.columns // 3)
    room = ctx.columns - width(name) - len(condition.status) - len(need) - 6
    rest = fit("  ".join(fact for fact in facts if fact), max(1, room))
    return f"{ctx.style(name, bold=True)}  {rest}  {status_words(ctx, condition.status)}{ctx.style(need, fg='yellow')}"


def say_spine(
    ctx: CommandContext,
    session: Session[Any],
    condition: SessionCondition,
    rows: Sequence[TurnSummary],
    look: TurnsLook,
    older: tuple[int, int] | None,
    first: TurnSummary | None,
) -> None:
    """Prints the turns in the order given. `older` are the turns left out; `first` is the very first turn, shown to say
    where the session started."""
    marks = _marks(ctx, session, condition, rows) if look.graph else []
    everything = [*rows, *([first] if first else [])]
    lines = dict(zip((r.turn for r in everything), _lines(ctx, session, everything, look), strict=True))
    if look.reverse:
        _say_older(ctx, session, older, first, lines, look)
    pending = marks if look.reverse else marks[::-1]
    for row in rows:
        while pending and (pending[0][0] < row.first if look.reverse else pending[0][0] > row.last):
            ctx.say(pending.pop(0)[1])
        ctx.say(lines[row.turn])
        ctx.say_all(_detail_lines(ctx, session, row, look))
        inside = [mark for mark in pending if row.first <= mark[0] <= row.last]
        pending = [mark for mark in pending if mark not in inside]
        ctx.say_all(line for _, line in inside)
    ctx.say_all(line for _, line in pending)
    if not look.reverse:
        _say_older(ctx, session, older, first, lines, look)


def _say_older(
    ctx: CommandContext,
    session: Session[Any],
    older: tuple[int, int] | None,
    first: TurnSummary | None,
    lines: dict[int, str],
    look: TurnsLook,
) -> None:
    if not older:
        return
    low, high = (older[0] + 1 if first else older[0]), older[1]
    count = high - low + 1
    name = handle(session)
    more = f"  {glyph('more')}   {pluralize(count, 'turn')} (wakelog log {name}@{low}..@{high})"
    parts = [ctx.style(more, dim=True)] if count > 0 else []
    if first:
        parts = [lines[first.turn], *parts] if look.reverse else [*parts, lines[first.turn]]
    ctx.say_all(parts)


def _lines(ctx: CommandContext, session: Session[Any], rows: Sequence[TurnSummary], look: TurnsLook) -> Iterator[str]:
    today = clock(session.log.clock(), utc=ctx.utc, long=True)[:10]
    cells = [spine_row(ctx, session, row, today) for row in rows]
    heading = COLUMNS
    if look.oneline:
        cells = [(c[0], c[2], c[3]) for c in cells]
        heading = " |  | 16"
    if not look.graph:
        yield from lay_out(ctx, heading, cells, titles=False)
        return
    for row, line in zip(rows, lay_out(ctx, heading, cells, titles=False, limit=ctx.columns - 2), strict=True):
        yield f" {glyph('line' if row.in_view else 'gone')}{line}"


def _detail_lines(ctx: CommandContext, session: Session[Any], row: TurnSummary, look: TurnsLook) -> Iterator[str]:
    for text in row.changed if not look.oneline else ():
        yield ctx.style(fit(f"      {glyph('note')} {text}", ctx.columns), fg="yellow")
    if look.stat:
        for path, (added, removed) in list(row.files.items())[:50]:
            lines = f"  +{added} {glyph('minus')}{removed}"
            yield f"        {fit_path(path, ctx.columns - 8 - width(lines))}{lines}"
    if look.patch:
        diff = session.diff(row.begin - 1, row.last)
        yield from change_lines(ctx, diff, row.files, indent="      ")
    if look.insight and row.outcome != "open":
        insight = derive_insight(session, f"@{row.turn}")
        yield from insight_lines(ctx, insight, WHY, indent="      ", files=not look.patch) if insight else ()
    if look.patch or look.insight:
        yield ""


# Marks: what happened between turns


def _marks(
    ctx: CommandContext, session: Session[Any], condition: SessionCondition, rows: Sequence[TurnSummary]
) -> list[tuple[Seq, str]]:
    """(seq, line) for forks, rewinds, checkpoints and changes of status, in the range of the rows."""
    low, high = min(r.first for r in rows), max(r.last for r in rows)
    if max(r.turn for r in rows) == condition.document["turn"]["number"]:
        high = condition.seq
    results: list[tuple[Seq, str]] = []
    kinds = ("history", "session", "checkpoint", "gap")
    for entry in session.events(after=low - 1, upto=high, kind=kinds):
        if mark := _mark_text(session, entry):
            results.append((entry.seq, _mark_line(ctx, *mark, entry.seq)))
    for child in session.log.forks():
        if child.fork and low <= child.fork.at <= high:
            name = child.name or short_id(child.session)
            text = f"{name} forked here, now @{child.turn} {child.status}"
            results.append((child.fork.at, _mark_line(ctx, "fork", text, child.fork.at)))
    return sorted(results, key=lambda mark: mark[0])


def _mark_text(session: Session[Any], entry: Entry) -> tuple[str, str] | None:
    body, kind = entry.body, entry.kind
    why = f": {text_of(body['why'])}" if body.get("why") else ""
    if kind == "history.rewound":
        words = {"retry": "tried again from", "undo": "undone, back to", "adopt": "for a fork, back to"}.get(
            text_of(body.get("mode")), "rewound to"
        )
        to = body.get("to", 0)
        turn = session.log.entry(to).header.turn if isinstance(to, int) and to else 0
        return "back", f"{words} {f'@{turn} ' if turn else ''}e{to}{why}"
    if kind == "history.adopted":
        return "fork", f"adopted {short_id(text_of(body.get('session', '')))} at e{body.get('at')}{why}"
    if kind == "session.forked":
        return "fork", f"forked from {short_id(text_of(body.get('parent', '')))} at e{body.get('at')}{why}"
    if kind == "checkpoint.named":
        return "note", f"checkpoint {text_of(body.get('name', ''))} at e{body.get('at')}"
    if kind == "session.opened":
        return None
    return "note", f"{kind.replace('.', ' ')}{why}"


def _mark_line(ctx: CommandContext, sign: str, text: str, seq: Seq) -> str:
    line = f" {glyph('line')} {glyph(sign)} {fit(text, ctx.columns - 14)}"
    return f"{ctx.style(line, fg='magenta')}  {ctx.style(f'e{seq}', fg='cyan')}"
