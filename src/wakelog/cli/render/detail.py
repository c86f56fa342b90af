"""Turns, commits and events in full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from wakelog.cli.context import CommandContext
from wakelog.cli.render.call_lines import words_of
from wakelog.cli.render.events import Tools, has_time, line_of, model_params, outcome_of, show_line, text_room
from wakelog.cli.render.flags import flags_by_event
from wakelog.cli.render.money import usage_words
from wakelog.cli.render.sessions import handle, title
from wakelog.cli.render.turns import TurnSummary
from wakelog.cli.render.values import fetch_value, is_short, scalar, text_of, tree
from wakelog.cli.text import (
    clock,
    count,
    duration,
    fit,
    fold_list,
    glyph,
    inert,
    inert_line,
    join_facts,
    money,
    other_time,
    pad,
    place_of_turn,
    size,
    take_columns,
    width,
)
from wakelog.log.reader import Entry
from wakelog.model.agent_words import is_aside
from wakelog.model.document import agent_ops
from wakelog.model.ids import Seq
from wakelog.model.parts import content_text
from wakelog.model.payloads import as_ref
from wakelog.model.readable import format_value
from wakelog.model.short_text import pluralize
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.timeline.selectors import Range

if TYPE_CHECKING:
    from wakelog.files.file_diff import FileDiff

_LONG = {"message.added": ("content",)}
_WITH_OUTPUT = ("input", "output", "answer", "content", "summary", "before", "after")
_SHOWN_BY_DIFF = ("before", "after", "before_hash", "after_hash", "before_mode", "after_mode", "missing")
_SHOWN_AS_FACTS = frozenset(
    {"delta", "why", "tool", "action", "input_hash", "output_summary", "outcome", "cost", "effect", "occurred_at"}
)
_MARGIN = 14
MAX_BYTES = 4096
"""How much of a value is shown, unless somebody asks for more or less."""
WORDS_MAX = 1200
"""How much of what was asked, and of the last answer, is shown with a turn."""
_MAX_MESSAGES = 12
"""How many messages of a model's window are shown with the call."""


def turn_lines(
    ctx: CommandContext,
    session: Session[Any],
    row: TurnSummary | None,
    commit: dict[str, Any] | None,
    span: Range,
    entries: Iterable[Entry],
    tools: Tools,
    about: Iterable[str] = (),
    *,
    with_output: bool,
    limit: int,
) -> Iterator[str]:
    """A heading, the lines `about`, then one line an event, with its messages below. `with_output` adds inputs and
    outputs."""
    if row is not None:
        yield from _turn_heading(ctx, session, row)
        yield from about
    elif commit is not None:
        yield f"{title(ctx, session)}  commit c:{commit['hash'][:12]}  e{commit['first']}..e{commit['last']}"
        yield ctx.style(f"  after c:{commit['prev'][:12]}, id {inert_line(commit['id'])}", dim=True)
    else:
        yield f"{title(ctx, session)}  e{span.first}..e{span.last}"
    yield ""
    flags = flags_by_event(session)
    events = list(entries)
    answer = _last_words(session, events) if row is not None else 0
    for number, entry in enumerate(events):
        if row is not None and entry.kind == "turn.started":
            if row.attempts > 1:
                yield ctx.style(f"  attempt {entry.header.attempt} of {row.attempts}", bold=True)
            if not _is_told(ctx, session, row, events[number : number + 2]):
                yield show_line(ctx, session, entry, tools, turn=False, flags=flags)
                yield from _value_lines(ctx, session, entry, "input", _short(limit), one_line=True)
            continue
        if entry.kind == "action.started" and entry.body.get("attempt", 1) == 1:
            continue  # the request is shown
        if row is not None and (entry.kind == "items.kept" or _is_bookkeeping(entry)):
            continue  # the events around it are shown
        yield show_line(ctx, session, entry, tools, turn=row is None, flags=flags)
        if entry.seq == answer and not with_output:
            yield from _answer_lines(ctx, session, entry, limit)
            continue
        names = _WITH_OUTPUT if with_output else () if is_aside(entry.body) else _LONG.get(entry.kind, ())
        diff = session.files.change(entry) if with_output else None
        if diff is not None:
            yield from _limited_diff(ctx, session, entry, diff, limit, " " * _MARGIN)
            continue
        for name in names:
            if entry.body.get(name) is not None:
                yield from _value_lines(ctx, session, entry, name, limit, one_line=not with_output)


def _is_bookkeeping(entry: Entry) -> bool:
    """True if an adapter changed its own data only, and gave no reason."""
    return entry.kind == "state.patched" and not entry.body.get("why") and not agent_ops(entry.delta)


def _limited_diff(
    ctx: CommandContext, session: Session[Any], entry: Entry, diff: FileDiff, limit: int, indent: str
) -> Iterator[str]:
    from wakelog.cli.render.files import diff_lines

    left = limit
    lines = list(diff_lines(ctx, diff, indent=indent, names=False))
    for number, line in enumerate(lines):
        left -= len(line.encode())
        if limit and left < 0 and number:
            yield indent + _rest(ctx, session, entry, sum(len(later.encode()) for later in lines[number:]))
            return
        yield line


def _turn_heading(ctx: CommandContext, session: Session[Any], row: TurnSummary) -> Iterator[str]:
    front = _heading_front(ctx, session, row)
    yield f"{ctx.style(front, bold=True)}  {fit(row.title, ctx.columns - width(front) - 2)}"
    is_timed = has_time(session, row.started_at, row.stored_at)
    took = duration(row.ended_at - row.started_at) if row.ended_at else "not ended"
    facts = [
        row.outcome,
        clock(row.started_at, utc=ctx.utc, long=True) + other_time(row.started_at, row.stored_at) if is_timed else "",
        took if is_timed else "no times recorded",
        f"{row.attempts} attempts" if row.attempts > 1 else "",
        pluralize(row.tool_calls, "tool") if row.tool_calls else "",
        f"+{row.added} {glyph('minus')}{row.removed}" if row.files else "",
        f"{count(row.spent.tokens_out)} out" if row.spent.tokens_out else "",
        money(row.spent.usd_micros) if row.spent.usd_micros else "",
        "" if row.in_view else "rewound",
        f"{glyph('warn')} {', '.join(row.untrusted)}" if row.untrusted else "",
        f"unverified: {', '.join(row.unverified[:4])}{glyph('more') if len(row.unverified) > 4 else ''}"
        if row.unverified
        else "",
    ]
    yield from fold_list("  ", [fit(fact, ctx.columns - 2) for fact in facts if fact], ctx.columns)


def _heading_front(ctx: CommandContext, session: Session[Any], row: TurnSummary) -> str:
    return f"{fit(str(session), ctx.columns // 3)} {place_of_turn(row.turn, row.attempts)}"


def _is_told(ctx: CommandContext, session: Session[Any], row: TurnSummary, events: list[Entry]) -> bool:
    """Whether the heading, or the second of these events, shows all of the input of the first."""
    asked, *following = events
    if any(e.kind == "message.added" and e.body.get("role") == "user" for e in following):
        return True
    text = text_of(fetch_value(session, asked, asked.body.get("input"), 0) or "").strip()
    return "\n" not in text and width(text) <= ctx.columns - width(_heading_front(ctx, session, row)) - 2


def _last_words(session: Session[Any], events: list[Entry]) -> Seq:
    """The event with the model's last words in a turn, if no call came after them; else 0."""
    for entry in reversed(events):
        if entry.kind.startswith("action."):
            is_model = entry.kind == "action.recorded" and entry.body.get("effect") == "model"
            return entry.seq if is_model and words_of(fetch_value(session, entry, entry.body.get("output"))) else 0
    return 0


def _answer_lines(ctx: CommandContext, session: Session[Any], entry: Entry, limit: int) -> Iterator[str]:
    """The words of a model's answer, unless the event's line shows all of them."""
    text = words_of(fetch_value(session, entry, entry.body.get("output"), 0))
    if "\n" not in text.strip() and width(text) <= text_room(ctx, turn=False) - 20:
        return
    yield from _text_lines(ctx, session, entry, *_cut(text, _short(limit)))


def _short(limit: int) -> int:
    """The limit for words that are read on the way to the events."""
    return min(limit, WORDS_MAX) if limit == MAX_BYTES else limit


def _value_lines(
    ctx: CommandContext, session: Session[Any], entry: Entry, name: str, limit: int, *, one_line: bool
) -> Iterator[str]:
    """A value below its event's line; nothing if the line shows all of it."""
    text, left = _limited(session, entry, entry.body[name], limit)
    if one_line and not left and "\n" not in text.strip("\n") and width(text) <= text_room(ctx, turn=False) - 20:
        return
    if not one_line:
        yield ctx.style(f"{' ' * _MARGIN}{name}", dim=True)
    yield from _text_lines(ctx, session, entry, text, left)


def _text_lines(ctx: CommandContext, session: Session[Any], entry: Entry, text: str, left: int) -> Iterator[str]:
    """A text below its event's line, of which `left` bytes are left out."""
    margin = " " * _MARGIN
    for line in _wrap(text, ctx.columns - _MARGIN - 2):
        yield f"{margin}{ctx.style(glyph('line'), dim=True)} {line}"
    if left:
        yield f"{margin}{_rest(ctx, session, entry, left)}"


def _rest(ctx: CommandContext, session: Session[Any], entry: Entry, left: int) -> str:
    name = handle(session)
    more = f"{glyph('more')} {size(left)} more: wakelog show -s {name} e{entry.seq} --max-bytes 0"
    if len(more) > ctx.columns - 17:
        more = f"{glyph('more')} {size(left)} more (e{entry.seq} --max-bytes 0)"
    return ctx.style(more, dim=True)


def _limited(session: Session[Any], entry: Entry, value: Value, limit: int) -> tuple[str, int]:
    """A value as text of at most `limit` bytes, and how many were left out."""
    # A payload is fetched whole even when only its beginning is shown: storage has no parts.
    return _cut(format_value(fetch_value(session, entry, value, 0)), limit)


def _cut(text: str, limit: int) -> tuple[str, int]:
    data = text.encode()
    if not limit or len(data) <= limit:
        return text, 0
    return data[:limit].decode(errors="ignore"), len(data) - limit


def _wrap(text: str, columns: int) -> Iterator[str]:
    """The text made inert, with long lines broken."""
    for line in inert(text.rstrip("\n")).expandtabs(4).split("\n"):
        while width(line) > columns:
            room = max(1, len(take_columns(line, columns)))
            cut = line.rfind(" ", room // 2, room)
            cut = cut if cut > 0 else room
            yield line[:cut]
            line = line[cut:].lstrip(" ")
        yield line


def event_lines(ctx: CommandContext, session: Session[Any], entry: Entry, tools: Tools, limit: int) -> Iterator[str]:
    """The whole commit record of one event."""
    header, body = entry.header, entry.body
    line = line_of(session, entry, tools)
    front = f"{fit(str(session), ctx.columns // 3)} e{entry.seq}"
    kind = fit(entry.kind, 24)
    room = max(1, ctx.columns - width(front) - width(kind) - 4)
    yield f"{ctx.style(front, bold=True)}  {ctx.style(kind, fg='cyan')}  {fit(line.text, room)}"
    for name, text in _facts(ctx, session, entry, tools):
        yield f"  {ctx.style(f'{name:<14}', dim=True)} {fit(text, ctx.columns - 17)}"
    if not entry.is_intact:
        yield f"  {ctx.style('the content was erased or pruned; what is left is structure', fg='yellow')}"
    diff = session.files.change(entry)
    window = list(_window_lines(ctx, session, entry))
    yield from window
    for name, value in body.items():
        if diff is not None and name in _SHOWN_BY_DIFF:
            continue
        if name in _SHOWN_AS_FACTS or (window and name in ("input", "params", "context_hash")):
            continue
        yield from _field(ctx, session, entry, name, value, limit)
    if diff is not None:
        yield f"  {ctx.style('diff', dim=True)}"
        yield from _limited_diff(ctx, session, entry, diff, limit, "    ")
    if entry.delta:
        yield f"  {ctx.style('delta', dim=True)}"
        for op in entry.delta[:50]:
            value = f" = {scalar(op['value'], ctx.columns)}" if "value" in op else ""
            yield f"    {fit(op['op'] + ' ' + (op['path'] or '(all)') + value, ctx.columns - 4)}"
        if len(entry.delta) > 50:
            yield f"    {len(entry.delta) - 50} more (--json shows all)"
    if header.kind not in ("session.opened",) and not body:
        yield "  (no body)"


def _facts(ctx: CommandContext, session: Session[Any], entry: Entry, tools: Tools) -> Iterator[tuple[str, str]]:
    header, body = entry.header, entry.body
    zone = " UTC" if ctx.utc else ""
    stored = f"{clock(header.at, utc=ctx.utc, long=True)}{zone}"
    if other_time(entry.happened_at, header.at):
        yield "timestamp", f"{clock(entry.happened_at, utc=ctx.utc, long=True)}{zone} (stored {stored})"
    else:
        yield "timestamp", stored
    if header.turn:
        yield "turn", place_of_turn(header.turn, header.attempt)
    yield "actor", header.actor
    if tool := session.history.tool_of(entry, tools):
        effect = text_of(body.get("effect") or "")
        yield "tool", tool + (f"  ({effect})" if effect else "")
    for name in ("action", "input_hash", "output_summary"):
        if body.get(name):
            yield name, text_of(body[name])
    if outcome := outcome_of(entry):
        yield "outcome", outcome
    if why := body.get("why"):
        yield "why", text_of(why)
    if cost := usage_words(body.get("cost")):
        yield "cost", join_facts(cost)
    if header.cause:
        yield "cause", f"e{header.cause}"
    if header.derived_from:
        yield "derived from", ", ".join(f"e{a}" if a == b else f"e{a}..e{b}" for a, b in header.derived_from)
    mark = f"{glyph('warn')} " if header.trust != "trusted" else ""
    yield "trust", f"{mark}{header.trust}" + (f", from {header.source}" if header.source else "")
    yield "hash", entry.hash.hex()
    yield "commit", entry.commit_id


def _window_lines(ctx: CommandContext, session: Session[Any], entry: Entry) -> Iterator[str]:
    """What a model was asked, if the events in its window are known: the messages, newest last."""
    body = entry.body
    if entry.kind != "action.requested" or body.get("effect") != "model" or not body.get("context_hash"):
        return
    rows: list[tuple[str, str]] = []
    if params := model_params(body):
        rows.append(("params", fit(params, ctx.columns - 17)))
    items = session.context.seen(entry.seq).seen.items
    if len(items) > _MAX_MESSAGES:
        rows.append(("", f"{len(items) - _MAX_MESSAGES:,} older: wakelog context {handle(session)}@e{entry.seq}"))
    for item in items[-_MAX_MESSAGES:]:
        who = item.name if item.kind == "call" else item.role
        text = f" {glyph('arrow')} ".join(filter(None, item.asked_and_said)) if item.kind == "call" else item.text
        front = f"{pad(item.key, 6)} {pad(fit(who, 12), 12)}"
        rows.append(("", f"{front} {fit(inert_line(text[:2000]), max(12, ctx.columns - 18 - width(front)))}"))
    first = next((number for number, (name, _) in enumerate(rows) if not name), -1)
    for number, (name, text) in enumerate(rows):
        label = "messages" if number == first else name
        yield f"  {ctx.style(f'{label:<14}', dim=True)} {text}"


def _field(
    ctx: CommandContext, session: Session[Any], entry: Entry, name: str, value: Value, limit: int
) -> Iterator[str]:
    label = ctx.style(f"{fit(name, 14):<14}", dim=True)
    is_call = name == "input" and isinstance(value, dict) and not is_short(value, ctx.columns - 17)
    if as_ref(value) or isinstance(value, str) or content_text(value) or is_call:
        text, left = _limited(session, entry, value, limit)
        lines = list(_wrap(text, ctx.columns - 17))
        yield f"  {label} {lines[0]}"
        for line in lines[1:]:
            yield f"  {'':<14} {line}"
        if left:
            yield f"  {'':<14} {_rest(ctx, session, entry, left)}"
    elif isinstance(value, dict | list) and not is_short(value, ctx.columns - 17):
        yield f"  {label.rstrip()}"
        yield from tree(value, ctx.columns, 4)
    else:
        yield f"  {label} {scalar(value, ctx.columns - 17)}"
