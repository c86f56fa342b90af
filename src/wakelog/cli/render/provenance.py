"""Provenance: the way back to the origins as a tree, and what a source influenced as a list."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from wakelog.cli.context import CommandContext
from wakelog.cli.render.events import Tools, brief, has_time, line_of, sign
from wakelog.cli.render.results import shape
from wakelog.cli.render.sessions import identity
from wakelog.cli.render.table import Cell, Row, lay_out
from wakelog.cli.text import day, fit, glyph, inert_line, iso, join_facts, trust_mark, width
from wakelog.model.short_text import pluralize
from wakelog.provenance.across_sessions import Crossing, TaintAcross, WhyAcross
from wakelog.provenance.event_index import Judgement
from wakelog.provenance.graph import Edge
from wakelog.provenance.taint import Hop, Touched
from wakelog.provenance.why import Origin, Why, WhyStep
from wakelog.session import Session

# What an edge means, read from an event to the one below it in the tree.
_WORDS = {
    "cause": "caused by",
    "answers": "answers",
    "content": "derived from",
    "window": "had in its window",
    "evidence": "gives as evidence",
    "says": "is the message of",
    "made": "made by",
    "sums up": "sums up",
    "repeats": "repeats",
    "about": "is about",
    "model": "after the model call",
    "earlier": "changes",
    "adopted": "taken over with",
    "match": "has text of",
}
_COLORS = {"recorded": "green", "matched": "cyan", "derived": "blue", "unknown": "yellow"}
MAY = "may: it was in a model's window, or before it in the same turn; that it had influence is not known"


def say_wrapped(ctx: CommandContext, text: str, **style: Any) -> None:
    """Prints a sentence, wrapped."""
    margin = " " * (len(text) - len(text.lstrip()))
    for line in textwrap.wrap(inert_line(text), ctx.columns, subsequent_indent=margin):
        ctx.say(ctx.style(line, **style))


# The way back to the origins

_ASKERS = {"user": "you", "agent": "the agent that started it", "program": "the agent's program"}


def asked_line(ctx: CommandContext, session: Session[Any], why: Why) -> str:
    """The turn, and the words that asked for it: `@7 Edit ← "make sessions last a week" (you, 3 Nov)`."""
    asked = why.asked
    if asked is None:
        return ""
    who = _ASKERS[asked.by]
    front = " ".join(filter(None, (f"@{asked.turn}", why.tool, glyph("from"))))
    is_timed = has_time(session, asked.at, session.log.entry(asked.seq).header.at)
    tail = f"({who}, {day(asked.at, ctx.store.clock(), utc=ctx.utc)})" if is_timed else f"({who})"
    words = fit(" ".join(asked.text.split()), max(16, ctx.columns - width(front) - width(tail) - 6))
    quote = ctx.style(f'"{words}"', bold=True)
    return f"{ctx.style(front, fg='cyan')} {quote} {ctx.style(tail, dim=True)}"


def why_lines(ctx: CommandContext, session: Session[Any], why: Why) -> Iterator[str]:
    """The tree, each event below the one that depends on it; then the origins."""
    tools: Tools = {}
    for step in why.steps:
        yield _step_line(ctx, session, step, tools)
        if step.folded:
            yield ctx.style(f"{_indent(ctx, step.depth + 1)}{glyph('more')} {step.folded:,} more, not shown", dim=True)
    yield from _passages(ctx, why)
    if why.origins:
        yield ctx.style("origins", bold=True)
        yield from lay_out(ctx, _ORIGINS, [_origin_row(o) for o in why.origins], titles=False)
        yield from _explain_may(ctx, any(o.may for o in why.origins))
    elif why.steps:
        yield "no origin is known"


def _passages(ctx: CommandContext, why: Why) -> Iterator[str]:
    """Events that contain text of the subject and are not in the tree."""
    shown = {(step.parent, step.seq) for step in why.steps if step.edge == "match"}
    for step in why.steps:
        for edge in step.rests_on if step.depth == 0 else ():
            if edge.kind == "match" and (step.seq, edge.first) not in shown:
                yield fit(f'matched  "{edge.text}" of e{step.seq} is in e{edge.first}', ctx.columns)


def _indent(ctx: CommandContext, depth: int) -> str:
    """The indent, limited so that there is room for the text."""
    return "  " * min(depth, max(2, (ctx.columns - 56) // 2))


def _step_line(ctx: CommandContext, session: Session[Any], step: WhyStep, tools: Tools) -> str:
    line = line_of(session, session.log.entry(step.seq), tools)
    front = _indent(ctx, step.depth)
    plain = width(front) + (len(f"{_WORDS[step.edge]} . {step.known}  ") if step.edge else 0)
    if step.edge:
        words = f"{_WORDS[step.edge]} {glyph('dot')} {step.known}"
        front += ctx.style(words, fg=_COLORS[step.known], dim=step.known == "derived") + "  "
    spot = f"e{step.seq} "
    tail = "".join(f"  {mark}" for mark in _step_marks(step))
    room = max(8, ctx.columns - plain - len(spot) - 2)
    tail = fit(tail, room // 2)
    text = fit(f"{line.word}  {line.whole}" if line.whole else line.word, max(4, room - width(tail)))
    return (
        f"{front}{ctx.style(spot, fg='cyan')}{sign(ctx, line.sign)} {ctx.style(text, **line.style)}"
        f"{ctx.style(tail, fg='yellow')}"
    ).rstrip()


def _step_marks(step: WhyStep) -> Iterator[str]:
    if step.text:
        yield f'"{step.text}"'
    yield from marks_of(step.trust, step.source, step.in_view, step.condition, step.marks)


def marks_of(trust: str, source: str, in_view: bool, condition: str, marks: Iterable[Judgement]) -> Iterator[str]:
    """What a reader must know about an event: judgements, trust, and whether it was rewound or removed."""
    for judgement in list(marks)[-1:]:
        yield f"{judgement.mark} e{judgement.seq}"
    if mark := trust_mark(trust, source):
        yield mark
    if not in_view:
        yield "rewound"
    if condition != "intact":
        yield condition


_ORIGINS = " | 12 |  | 10 | 12 -1"


def _origin_row(origin: Origin) -> Row:
    is_bad = origin.trust != "trusted"
    seqs = " ".join(f"e{seq}" for seq in origin.seqs[:3]) + (f" +{origin.count - 3}" if origin.count > 3 else "")
    way = "" if len(origin.path) < 3 else "by way of " + " ".join(f"e{s}" for s in origin.path[1:-1][:6])
    known = origin.known + (", may" if origin.may else "")
    return (
        Cell(f"  {glyph('warn' if is_bad else 'done')} {origin.trust}", {"fg": "yellow" if is_bad else "green"}),
        Cell(origin.source, {"bold": True}),
        Cell(seqs, {"fg": "cyan"}),
        Cell(known, {"fg": _COLORS[origin.known]}),
        Cell(way, {"dim": True}),
    )


# What a source influenced

_TOUCHED = "8 |  |  | 14 | 8 | 10"


def touched_lines(ctx: CommandContext, items: Iterable[Touched]) -> Iterator[str]:
    """What depends on a source, each followed by the path to it."""
    items = list(items)
    rows = list(lay_out(ctx, _TOUCHED, [_touched_row(item) for item in items], titles=False))
    for item, row in zip(items, rows, strict=True):
        yield row
        if len(item.path) > 1:
            yield ctx.style(fit(f"      {_way(item.path)}", ctx.columns), dim=True)
    yield from _explain_may(ctx, any(item.may for item in items))


def _explain_may(ctx: CommandContext, needed: bool) -> Iterator[str]:
    if needed:
        yield from ctx.wrapped(MAY, "  ")


def _touched_row(item: Touched) -> Row:
    state = item.outcome.replace("_", " ") if item.part == "effect" else "" if item.is_current else "no longer held"
    tail = [state or "", *marks_of(item.trust, "", item.in_view, item.condition, item.marks)]
    return (
        Cell(f"  {item.part}", {"bold": True}),
        f"@{item.turn}" if item.turn else glyph("dash"),
        Cell(f"e{item.seq}", {"fg": "cyan"}),
        item.name,
        Cell(item.known + (", may" if item.may else ""), {"fg": _COLORS[item.known]}),
        Cell(join_facts(tail), {"fg": "yellow"}),
    )


def _way(path: Iterable[Hop]) -> str:
    words = []
    for hop in path:
        text = f' "{hop.text}"' if hop.text else ""
        words.append(f"e{hop.seq}" + (f" ({_WORDS[hop.edge]}{text})" if hop.edge else ""))
    return f" {glyph('arrow')} ".join(words)


# JSON


def plain_why(session: Session[Any], why: Why) -> dict[str, Any]:
    return {
        **identity(session),
        "at": why.at,
        "what": why.target.what,
        "kind": why.target.kind,
        "way": why.target.way or None,
        "note": why.target.note or None,
        "asked": _plain_asked(why),
        "exposure": _plain_exposure(why),
        "steps": list(plain_steps(session, why)),
        "origins": why.origins,
        "unknown": why.unknown,
        "reached": why.reached,
        "limits": why.limits,
    }


def _plain_asked(why: Why) -> dict[str, Any] | None:
    words = why.asked
    if words is None:
        return None
    return {
        "turn": words.turn,
        "seq": words.seq,
        "text": words.text,
        "timestamp": iso(words.at),
        "by": words.by,
        "tool": why.tool or None,
    }


def _plain_exposure(why: Why) -> dict[str, Any] | None:
    if why.exposure is None:
        return None
    return {**msgspec.to_builtins(why.exposure), "call": why.exposure.call or None}


def plain_steps(session: Session[Any], why: Why) -> Iterator[dict[str, Any]]:
    tools: Tools = {}
    for step in why.steps:
        yield {
            **brief(session, session.log.entry(step.seq), tools),
            "parent": step.parent or None,
            "depth": step.depth,
            "edge": step.edge,
            "known": step.known if step.edge else None,
            "text": step.text or None,
            "effective_trust": step.trust,
            "in_view": step.in_view,
            "condition": step.condition,
            "marks": step.marks,
            "rests_on": step.rests_on,
            "folded": step.folded,
        }


shape(Edge, "first last edge=kind known text?")
shape(Hop, "seq edge known text?", known=lambda hop: hop.known if hop.edge else None)
shape(
    Touched,
    "seq part name turn? known may path effective_trust=trust effect? outcome? in_view is_current condition marks",
)


_FORWARD = {
    "forked": "it was forked at e{origin_seq}",
    "adopted": "it was adopted, as e{seq}",
    "spawned": "a sub-agent was given its task at e{origin_seq}",
    "returned": "its result came back as e{seq}",
}
_BACK = {
    "adopted": "e{origin_seq} is a copy of e{seq}",
    "spawned": "its task was given at e{seq}",
    "returned": "e{origin_seq} is its result",
}
MAX_ORIGINS = 10


def say_taint_across(ctx: CommandContext, taint: TaintAcross) -> None:
    for part in taint.sessions:
        _say_heading(ctx, part.name or part.session, part.via, _FORWARD)
        ctx.say_all(touched_lines(ctx, part.items) if part.items else ["  nothing of that kind here"])
    items = sum(len(part.items) for part in taint.sessions)
    say_wrapped(ctx, f"influenced by {inert_line(taint.what)}: {items} in {pluralize(len(taint.sessions), 'session')}")
    _say_limits(ctx, taint.limits)


def say_why_across(ctx: CommandContext, why: WhyAcross) -> None:
    for part in why.sessions:
        _say_heading(ctx, part.name or part.session, part.via, _BACK)
        for origin in part.answer.origins[:MAX_ORIGINS]:
            seqs = " ".join(f"e{seq}" for seq in origin.seqs[:6])
            may = ", may" if origin.may else ""
            trust = f", {origin.trust}" if origin.trust != "trusted" else ""
            ctx.say(f"  from {inert_line(origin.source)}: {seqs}  ({origin.known}{may}{trust})")
        if not part.answer.origins:
            ctx.say("  no origin is known here")
    _say_limits(ctx, why.limits)


def _say_heading(ctx: CommandContext, name: str, via: Crossing | None, words: dict[str, str]) -> None:
    how = ""
    if via is not None and via.how in words:
        how = "  " + words[via.how].format(origin_seq=via.origin_seq, seq=via.seq) + f" ({via.known})"
    ctx.say(ctx.style(inert_line(name), bold=True) + ctx.style(how, dim=True))


def _say_limits(ctx: CommandContext, limits: tuple[str, ...]) -> None:
    for limit in limits:
        say_wrapped(ctx, limit, dim=True)
