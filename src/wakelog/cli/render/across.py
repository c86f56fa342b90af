"""Answers that go over several sessions: one block for each, with the joint that led there."""

from __future__ import annotations

from wakelog.cli.context import CommandContext
from wakelog.cli.render.provenance import say_wrapped, touched_lines
from wakelog.cli.text import inert_line
from wakelog.provenance.across import Crossing, TaintAcross, WhyAcross

_JOINTS = {
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
SHOWN = 10


def say_taint_across(ctx: CommandContext, found: TaintAcross) -> None:
    for each in found.sessions:
        _heading(ctx, each.name or each.session, each.via, _JOINTS)
        ctx.say_all(touched_lines(ctx, each.items) if each.items else ["  nothing of that kind here"])
    count = sum(len(each.items) for each in found.sessions)
    sessions = len(found.sessions)
    say_wrapped(ctx, f"influenced by {inert_line(found.what)}: {count} in {sessions} session{'s' * (sessions != 1)}")
    _limits(ctx, found.limits)


def say_why_across(ctx: CommandContext, found: WhyAcross) -> None:
    for each in found.sessions:
        _heading(ctx, each.name or each.session, each.via, _BACK)
        for origin in each.answer.origins[:SHOWN]:
            seqs = " ".join(f"e{seq}" for seq in origin.seqs[:6])
            may = ", may" if origin.may else ""
            trust = f", {origin.trust}" if origin.trust != "trusted" else ""
            ctx.say(f"  from {inert_line(origin.source)}: {seqs}  ({origin.known}{may}{trust})")
        if not each.answer.origins:
            ctx.say("  no origin is known here")
    _limits(ctx, found.limits)


def _heading(ctx: CommandContext, name: str, via: Crossing | None, words: dict[str, str]) -> None:
    how = ""
    if via is not None and via.how in words:
        how = "  " + words[via.how].format(origin_seq=via.origin_seq, seq=via.seq) + f" ({via.known})"
    ctx.say(ctx.style(inert_line(name), bold=True) + ctx.style(how, dim=True))


def _limits(ctx: CommandContext, limits: tuple[str, ...]) -> None:
    for limit in limits:
        say_wrapped(ctx, limit, dim=True)
