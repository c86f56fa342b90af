"""`wakelog why`, `taint`, `invalidate` and `endorse`: where things came from, and what depends on them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.options import at_option, limit_option
from wakelog.cli.render.events import Tools, show_line
from wakelog.cli.render.insight import WHY, insight_lines, reasons_for
from wakelog.cli.render.provenance import (
    asked_line,
    plain_why,
    say_taint_across,
    say_why_across,
    say_wrapped,
    touched_lines,
    why_lines,
)
from wakelog.cli.render.results import SessionResult, plain, shape, shows
from wakelog.cli.render.sessions import handle, title
from wakelog.cli.selectors import Place, find_subject, find_subject_in, find_subjects
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import fit, glyph, inert_line
from wakelog.insight.items import Insight
from wakelog.provenance.across_sessions import TaintAcross
from wakelog.provenance.blast_radius import Blast, Kept
from wakelog.provenance.taint import ITEMS, Part, Taint
from wakelog.provenance.why import DEPTH, STEPS, Why
from wakelog.session import Session
from wakelog.store.line_commits import LineCommit

MAX_KEPT = 12
MAX_ENDORSED = 20


@click.command("why")
@click.argument(
    "words", nargs=-1, required=True, metavar="[SEL] EVENT|TURN|KEY|FILE[:LINE]", shell_complete=complete_selector
)
@at_option
@click.option(
    "--depth", type=click.IntRange(0), default=DEPTH, show_default=True, help="Show at most N levels; 0 shows all."
)
@limit_option(STEPS, "Show at most N events; 0 shows all.", name="steps")
@click.option("--wide", is_flag=True, help="Assume that unrecorded windows held earlier turns too.")
@click.option("-A", "--all", "across", is_flag=True, help="Continue in other sessions: sub-agents, adopted forks.")
@common
def why_command(
    ctx: CommandContext, words: tuple[str, ...], at: str, depth: int, steps: int, wide: bool, across: bool
) -> int:
    """Show where something came from: an event, a turn, a key of the state, a file or one line of it.

    Each link says how it is known: recorded; matched (the same text is in both); derived (it was in the window of the
    same turn); or unknown. The exit code is 1 when nothing is known.

    SEL names the session, and with a point (fix-bug@5) the question is asked as of then. FILE:LINE alone means the line
    of the file on this disk, followed back through all sessions that changed it. With SEL it means the line of the file
    as that session left it, and only that session is asked.

    Examples:
      wakelog why src/auth/session.py:4
      wakelog why injection@e14
      wakelog why fix-bug src/auth/session.py:4
      wakelog why fix-bug@5 /data/plan/1/status
    """
    if len(words) > 2:
        raise click.UsageError("why asks about one thing, as in: wakelog why fix-bug /facts/port")
    place = find_subject_in(ctx, words[0], words[1], at) if len(words) == 2 else find_subject(ctx, words[0], at)
    session = place.session
    if across:
        if at or (place.at is not None and place.line is None):
            raise click.UsageError("-A asks about now: leave out --at")
        beyond = session.trust.why_across(place.line.change if place.line else place.text, wide=wide)
        ctx.answer("why-across", plain(beyond), lambda: say_why_across(ctx, beyond))
        return 0 if any(session.answer.steps for session in beyond.sessions) else NO
    why = session.why(place.text, at=place.at, depth=depth, steps=steps, wide=wide)
    why, git = (place.line.answer_about_line(why), place.line.git) if place.line else (why, None)
    reasons = reasons_for(session, [step.seq for step in why.steps])
    data = {**plain_why(session, why), "git": plain(git), "derived": plain(reasons.items if reasons else ())}
    ctx.answer("why", data, lambda: _say(ctx, session, why, git, reasons), records=data["steps"])
    _suggest(ctx, place, why)
    return 0 if why else NO


def _suggest(ctx: CommandContext, place: Place, why: Why) -> None:
    if why.steps:
        name, worst = handle(place.session), next((o for o in why.origins if o.trust != "trusted"), None)
        more = [f"wakelog taint -s {name} e{worst.seqs[0]}"] if worst else []
        ctx.suggest(f"wakelog show -s {name} e{why.steps[0].seq}", *more)
    elif place.line is None and why.target.way in ("older", "elsewhere"):
        ctx.suggest(f"wakelog why {place.text}")


def _say(ctx: CommandContext, session: Session[Any], why: Why, git: LineCommit | None, reasons: Insight | None) -> None:
    target, exposure = why.target, why.exposure
    ctx.say(f"{title(ctx, session)}  why {fit(target.what, ctx.columns // 2)}")
    if asked := asked_line(ctx, session, why):
        ctx.say(asked)
    if git is not None:
        commit = f'{git.commit[:10]} "{git.subject}"'
        if git.session:
            say_wrapped(ctx, f"  found by git blame: {commit}", dim=True)
        elif target.way == "lines":
            say_wrapped(ctx, f"  git has it since {commit}", dim=True)
        else:
            text = f"  the line is of {commit}, and no session is known to be behind it; this is what the log has"
            say_wrapped(ctx, text, fg="yellow")
    way = {"lines": "found by following its lines back", "newest change": "found as the newest change of the file"}
    note = ": ".join(part for part in (way.get(target.way, ""), target.note) if part)
    if note:
        say_wrapped(ctx, f"  {note}", dim=True)
    if exposure is not None and exposure.trust != "trusted":
        worst = _seqs(exposure.worst, 4)
        say_wrapped(ctx, f"  {glyph('warn')} exposure: {exposure.trust} ({exposure.known}), by {worst}", fg="yellow")
    ctx.say_all(why_lines(ctx, session, why))
    if why.unknown:
        say_wrapped(ctx, f"unknown: there is no record of where {_seqs(why.unknown, 8)} came from")
    for limit in why.limits:
        say_wrapped(ctx, f"{limit} (--depth 0 -n 0 for all)" if "are shown" in limit else limit, dim=True)
    ctx.say_all(insight_lines(ctx, reasons, WHY, files=False) if reasons and reasons.items else ())


def _seqs(seqs: tuple[int, ...], most: int) -> str:
    return " ".join(f"e{seq}" for seq in seqs[:most]) + (f" {glyph('more')}" if len(seqs) > most else "")


@click.command("taint")
@click.argument("source", metavar="[SOURCE|EVENT|TURN|KEY|FILE]", default="", shell_complete=complete_selector)
@click.option(
    "--trust",
    type=click.Choice(["unverified", "untrusted"]),
    default="unverified",
    show_default=True,
    help="Without a source: show what depends on input with this trust or less.",
)
@click.option("--sinks", is_flag=True, help="Show only calls with effects.")
@click.option("--decisions", is_flag=True, help="Show only decisions.")
@at_option
@limit_option(ITEMS, name="items")
@click.option("--wide", is_flag=True, help="Assume that unrecorded windows held earlier turns too.")
@click.option("-A", "--all", "across", is_flag=True, help="Continue in other sessions: sub-agents, forks, adoptions.")
@click.option("--everywhere", is_flag=True, help="Look in all sessions of the store, the newest first.")
@common
def taint_command(
    ctx: CommandContext,
    source: str,
    trust: Any,
    sinks: bool,
    decisions: bool,
    at: str,
    items: int,
    wide: bool,
    across: bool,
    everywhere: bool,
) -> int:
    """Show everything influenced by a source: decisions, facts, data, files and calls with effects, each with the path
    to it.

    SOURCE is a pattern over recorded sources, such as 'web:*'. Where no source is recorded, `user` and `tool:NAME` are
    sources. Without SOURCE: everything influenced by unverified or untrusted input. The exit code is 1 when there is
    nothing.

    Examples:
      wakelog taint 'web:*' --sinks -s injection
      wakelog taint --decisions -s injection
      wakelog taint injection@e9
      wakelog taint 'web:*' --everywhere
    """
    chosen: list[Part] = [*(("effect",) if sinks else ()), *(("decision",) if decisions else ())]
    parts = chosen or None
    if everywhere:
        if at or ctx.names_session or across:
            raise click.UsageError("--everywhere asks about all sessions as they are now: leave out -s, -A and --at")
        return _answer_across(ctx, ctx.store.taint(source, trust=trust, parts=parts, wide=wide))
    place = find_subject(ctx, source, at)
    session, source, point = place.session, place.text, place.at
    if place.line is not None:
        source, point = place.line.change, None
    if across:
        if point is not None:
            raise click.UsageError("-A asks about now: leave out --at")
        return _answer_across(ctx, session.trust.taint_across(source or None, trust=trust, parts=parts, wide=wide))
    taint = session.trust.taint(source or None, trust=trust, at=point, parts=parts, items=items, wide=wide)
    human = partial(_say_taint, ctx, session, taint, source)
    ctx.answer("taint", SessionResult(session, taint), human, records=taint.items)
    if taint.items:
        ctx.suggest(f"wakelog why -s {handle(session)} e{taint.items[-1].seq}")
    return 0 if taint else NO


def _answer_across(ctx: CommandContext, taint: TaintAcross) -> int:
    ctx.answer("taint-across", plain(taint), lambda: say_taint_across(ctx, taint))
    return 0 if taint else NO


shape(Taint, "at of=target.what kind=target.kind roots root_count sources items counts reached beyond limits")
shape(Blast, "seq? targets rests resting safe unknown reached limits")


def _say_taint(ctx: CommandContext, session: Session[Any], taint: Taint, source: str) -> None:
    what = f"taint {source}" if source else f"influenced by {taint.target.what} input"
    ctx.say(f"{title(ctx, session)}  {fit(what, ctx.columns // 2)}")
    if not taint.root_count:
        ctx.say("nothing came from that source" if source else f"nothing that came in is {taint.target.what} or worse")
        return
    roots = " ".join(f"e{seq}" for seq in taint.roots[:6])
    roots += f" +{taint.root_count - 6}" if taint.root_count > 6 else ""
    named = ", ".join(taint.sources[:4]) + (f" +{len(taint.sources) - 4}" if len(taint.sources) > 4 else "")
    ctx.remark(fit(f"  from {named or 'it'}: {roots}", ctx.columns))
    ctx.say_all(touched_lines(ctx, taint.items))
    counts = ", ".join(f"{n} {part}{'s' if n > 1 and part != 'data' else ''}" for part, n in taint.counts.items())
    say_wrapped(ctx, f"influenced: {counts or 'nothing of that kind'} {glyph('dot')} {taint.reached} events in all")
    if taint.beyond:
        say_wrapped(ctx, f"{taint.beyond} more may, as it could still have been in later windows (--wide shows them)")
    for limit in taint.limits:
        say_wrapped(ctx, f"{limit} (-n 0 for all)", dim=True)


@click.command("invalidate")
@click.argument("whats", metavar="EVENT|TURN|KEY...", nargs=-1, required=True, shell_complete=complete_selector)
@click.option("-m", "--why", default="", metavar="TEXT", help="Say what was wrong; kept in the log.")
@click.option("--by", default="", metavar="NAME", help="Say who found it.")
@click.option("--dry-run", is_flag=True, help="Show what depends on it, and write nothing.")
@limit_option(ITEMS, name="items")
@common
def invalidate_command(
    ctx: CommandContext, whats: tuple[str, ...], why: str, by: str, dry_run: bool, items: int
) -> None:
    """Record that steps were wrong, and show what depends on them and what does not. Nothing is undone: from now on
    these steps, and everything that depends on them, count as untrusted.

    Examples:
      wakelog invalidate injection@e9 --dry-run
      wakelog invalidate -s injection e9 e10 -m "the page was poisoned" --by ada
    """
    session, targets = find_subjects(ctx, whats)
    blast = session.trust.invalidate(targets, by=by, why=why, dry_run=dry_run, items=items)
    ctx.answer("invalidate", SessionResult(session, blast))
    if blast.rests:
        ctx.suggest(f"wakelog why -s {handle(session)} e{blast.rests[0].seq}", f"wakelog rewind -s {handle(session)} …")


shape(Kept, "part name seq? known")


@shows(Blast)
def _say_invalidate(ctx: CommandContext, session: Session[Any], blast: Blast) -> None:
    seqs = " ".join(f"e{seq}" for seq in blast.targets[:8]) + (" …" if len(blast.targets) > 8 else "")
    done = f"invalidated by e{blast.seq}" if blast.seq else "would be invalidated"
    ctx.say(f"{title(ctx, session)}  {seqs} {done}")
    ctx.say(ctx.style("depends on it", bold=True) + ("" if blast.rests else "  nothing that is known"))
    ctx.say_all(touched_lines(ctx, blast.rests))
    for limit in blast.limits:
        say_wrapped(ctx, f"  {limit} (-n 0 for all)", dim=True)
    _say_kept(ctx, "still in the state", blast.resting)
    _say_kept(ctx, "safe", blast.safe)
    _say_kept(ctx, "unknown: written where the history was pruned", blast.unknown)
    unsure = sum(1 for kept in blast.safe if kept.known == "unknown")
    if unsure:
        say_wrapped(ctx, f"  the origin of {unsure} of the safe ones is unknown", fg="yellow")
    if not blast.seq:
        ctx.say("This was a dry run: nothing was written.")


def _say_kept(ctx: CommandContext, words: str, kept: Iterable[Kept]) -> None:
    kept = list(kept)
    if not kept:
        return
    ctx.say(f"{ctx.style(words, bold=True)} ({len(kept)})")
    for item in kept[:MAX_KEPT]:
        place = f"e{item.seq}" if item.seq else ""
        name = "" if item.part == "decision" else inert_line(item.name)
        ctx.say(fit(f"  {item.part:<9} {place:<7} {name}", ctx.columns).rstrip())
    if len(kept) > MAX_KEPT:
        ctx.say(f"  and {len(kept) - MAX_KEPT} more (--json shows all)")


@click.command("endorse")
@click.argument("whats", metavar="EVENT|TURN|KEY...", nargs=-1, required=True, shell_complete=complete_selector)
@click.option("-m", "--why", default="", metavar="TEXT", help="Say what it was checked against; kept in the log.")
@click.option("--by", default="", metavar="NAME", help="Say who checked it.")
@click.option("--dry-run", is_flag=True, help="Show what would be trusted, and write nothing.")
@common
def endorse_command(ctx: CommandContext, whats: tuple[str, ...], why: str, by: str, dry_run: bool) -> None:
    """Record that a person checked events and trusts them. From now on they count as trusted, and so does everything
    that depends on nothing else that is untrusted. `wakelog invalidate` reverts it.

    Examples:
      wakelog endorse injection@e12 --by ada -m "checked against the DNS guide"
      wakelog endorse -s injection /facts/spf --dry-run
    """
    session, targets = find_subjects(ctx, whats)
    endorsement = session.trust.endorse(targets, by=by, why=why, dry_run=dry_run)
    data = {**msgspec.to_builtins(endorsement), "name": session.name or None, "seq": endorsement.seq or None}

    def human() -> None:
        seqs = " ".join(f"e{seq}" for seq in endorsement.targets[:8]) + (" …" if len(endorsement.targets) > 8 else "")
        done = f"endorsed by e{endorsement.seq}" if endorsement.seq else "would be endorsed"
        ctx.say(f"{title(ctx, session)}  {seqs} {done}")
        ctx.say("trusted more than before:" if endorsement.raised else "nothing is trusted more than before")
        tools: Tools = {}
        for seq in endorsement.raised[:MAX_ENDORSED]:
            ctx.say(show_line(ctx, session, session.log.entry(seq), tools))
        if len(endorsement.raised) > MAX_ENDORSED:
            ctx.say(f"and {len(endorsement.raised) - MAX_ENDORSED} more (--json shows all)")
        if not endorsement.seq:
            ctx.say("This was a dry run: nothing was written.")

    ctx.answer("endorse", data, human)
    ctx.suggest(f"wakelog taint -s {handle(session)}")
