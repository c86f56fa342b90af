"""What anchors say about sessions and about the store, in lines."""

from __future__ import annotations

from wakelog.cli.context import CommandContext
from wakelog.cli.text import clock, inert_line
from wakelog.store.anchors import AnchoredSession, AnchorReport, DatedAnchor


def show_anchored(ctx: CommandContext, each: AnchoredSession | None) -> None:
    """The lines of one session: which anchors hold, since when, and what does not."""
    if each is None:
        ctx.say(f"    {'anchors':<13}none: it was not anchored yet")
        return
    if each.held is not None and each.since is not None:
        first = f" since {_when(ctx, each.since)} (e{each.since.seq})" if each.since != each.held else ""
        holds = f"e{each.held.seq} holds, anchored {_when(ctx, each.held)}; {_which(each)}{first}"
        ctx.say(f"    {'anchors':<13}{holds}")
    if each.verdict == "holds":
        ctx.say(f"    {'':<13}{each.told}")
        return
    style = {} if each.ok else {"fg": "red"}
    ctx.say(f"    {each.verdict:<13}{ctx.style(inert_line(each.told), **style)}")
    if each.failed is not None:
        ctx.say(f"    {'':<13}e{each.failed.seq} was anchored {_when(ctx, each.failed)}, and that no longer holds")


def _which(each: AnchoredSession) -> str:
    return "the only anchor" if each.anchors == 1 else f"{each.anchors} anchors"


def show_log(ctx: CommandContext, found: AnchorReport) -> None:
    """The lines about the log of anchors, and about the store as a whole."""
    mark = ctx.style("✔", fg="green") if found.ok else ctx.style("✗", fg="red", bold=True)
    rounds = f"{found.rounds} round{'s' * (found.rounds != 1)}"
    newest = f", the newest {clock(found.newest_at, utc=ctx.utc, long=True)}" if found.rounds else ""
    ctx.say(f"{mark} anchors in {inert_line(found.place)}: {rounds}{newest}")
    for fault in filter(None, (found.log_fault, *found.kept_faults)):
        ctx.say(f"    {ctx.style(inert_line(fault), fg='red')}")
    for kept in found.kept:
        ctx.say(f"    {'kept':<13}agrees with the receipt of {clock(kept.at, utc=ctx.utc, long=True)}")
    if not found.rounds and not found.log_fault:
        ctx.say("    it is empty, so it proves nothing")
    elif not found.kept and not found.kept_faults:
        ctx.say(f"    {'kept':<13}no receipt given: a log of anchors that was cut off would not be seen (--kept)")
    if (back := found.rolled_back) is not None:
        after, before = (clock(each, utc=ctx.utc, long=True) for each in (back.after, back.before))
        went_on = ", and went on from there" if back.went_on else ""
        told = f"the store is as it was between {after} and {before}{went_on}: {back.sessions} sessions lost events"
        ctx.say(f"    {'rolled back':<13}{ctx.style(told, fg='red')}")


def _when(ctx: CommandContext, anchor: DatedAnchor) -> str:
    return clock(anchor.at, utc=ctx.utc, long=True)
