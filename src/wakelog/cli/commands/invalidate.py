"""`wakelog invalidate`: say that steps were wrong, and see what rests on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.render.provenance import plain_touched, say_wrapped, subject, touched_lines
from wakelog.cli.render.sessions import handle, title
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import fit, inert
from wakelog.errors import InvalidInputError
from wakelog.provenance.blast_radius import Blast, Kept
from wakelog.provenance.taint import ITEMS
from wakelog.session import Session

SHOWN = 12


@click.command("invalidate")
@click.argument("whats", metavar="EVENT|TURN|KEY...", nargs=-1, required=True, shell_complete=complete_selector)
@click.option("-m", "--why", "why", default="", metavar="TEXT", help="What was wrong; kept in the log.")
@click.option("--by", default="", metavar="NAME", help="Who says so.")
@click.option("--dry-run", is_flag=True, help="Only show what rests on it.")
@click.option("-n", "items", type=click.IntRange(0), default=ITEMS, show_default=True, help="How many; 0: all.")
@common
def invalidate_command(ctx: Context, whats: tuple[str, ...], why: str, by: str, dry_run: bool, items: int) -> None:
    """Records that steps were wrong, and shows what rests on them and what of the present state does not. Nothing is
    taken back: from now on they, and all that rests on them, count as untrusted.

    \b
    Examples:
      wakelog invalidate injection@e9 --dry-run
      wakelog invalidate -s injection e9 e10 -m "the page was poisoned" --by ada
    """
    session, targets = one_session(ctx, whats)
    found = session.trust.invalidate(targets, by=by, why=why, dry_run=dry_run, items=items)
    ctx.answer("invalidate", _plain(session, found), lambda: _say(ctx, session, found))
    if found.rests:
        ctx.suggest(f"wakelog why -s {handle(session)} e{found.rests[0].seq}", f"wakelog rewind -s {handle(session)} …")


def one_session(ctx: Context, whats: tuple[str, ...]) -> tuple[Session[Any], list[str]]:
    """The session that all the arguments are about, and what of it. A session named once is meant for the rest."""
    session: Session[Any] | None = None
    targets = []
    for text in whats:
        named, what = subject(ctx, text)
        is_named = what != text
        if session is not None and is_named and named.id != session.id:
            raise InvalidInputError("one such event is of one session", kind="across-sessions", hint="call it twice")
        session = named if session is None else session
        targets.append(what)
    assert session is not None
    return session, targets


def _plain(session: Session[Any], found: Blast) -> dict[str, Any]:
    return {
        "session": session.id,
        "name": session.name or None,
        "seq": found.seq or None,
        "targets": list(found.targets),
        "rests": [plain_touched(item) for item in found.rests],
        "resting": [_plain_kept(kept) for kept in found.resting],
        "safe": [_plain_kept(kept) for kept in found.safe],
        "unknown": [_plain_kept(kept) for kept in found.unknown],
        "reached": found.reached,
        "limits": list(found.limits),
    }


def _plain_kept(kept: Kept) -> dict[str, Any]:
    return {**msgspec.to_builtins(kept), "seq": kept.seq or None}


def _say(ctx: Context, session: Session[Any], found: Blast) -> None:
    seqs = " ".join(f"e{seq}" for seq in found.targets[:8]) + (" …" if len(found.targets) > 8 else "")
    done = f"invalidated by e{found.seq}" if found.seq else "would be invalidated"
    ctx.say(f"{title(ctx, session)}  {seqs} {done}")
    ctx.say(ctx.style("rests on it", bold=True) + ("" if found.rests else "  nothing that is known"))
    for line in touched_lines(ctx, found.rests):
        ctx.say(line)
    for limit in found.limits:
        say_wrapped(ctx, f"  {limit} (-n 0 for all)", dim=True)
    _say_kept(ctx, "still in the state", found.resting)
    _say_kept(ctx, "safe", found.safe)
    _say_kept(ctx, "nobody can say: written where the history was pruned", found.unknown)
    unsure = sum(1 for kept in found.safe if kept.known == "unknown")
    if unsure:
        say_wrapped(ctx, f"  of {unsure} of the safe ones nothing tells what they rest on", fg="yellow")
    if not found.seq:
        ctx.say("This was a dry run: nothing was written.")


def _say_kept(ctx: Context, words: str, kept: Iterable[Kept]) -> None:
    kept = list(kept)
    if not kept:
        return
    ctx.say(f"{ctx.style(words, bold=True)} ({len(kept)})")
    for each in kept[:SHOWN]:
        place = f"e{each.seq}" if each.seq else ""
        name = "" if each.part == "decision" else inert(each.name, lines=False)
        ctx.say(fit(f"  {each.part:<9} {place:<7} {name}", ctx.columns).rstrip())
    if len(kept) > SHOWN:
        ctx.say(f"  and {len(kept) - SHOWN} more (--json shows all)")
