"""`wakelog redact`: find secrets already stored, and erase the events that hold them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import click
import msgspec

from wakelog.cli.commands.erase import erase_all, refuse_any_held, say_left
from wakelog.cli.context import Context, common
from wakelog.cli.progress import Progress
from wakelog.cli.shell_completion import complete_session
from wakelog.cli.text import inert
from wakelog.model.events import Event
from wakelog.model.ids import SessionId
from wakelog.redaction import redact_event
from wakelog.session import Session
from wakelog.store.erasure import Erased, Found, erase_everywhere, scan

SHOWN = 40


@click.command("redact")
@click.argument("session", required=False, default="", shell_complete=complete_session)
@click.option("-A", "--all", "everything", is_flag=True, help="All sessions of the store.")
@click.option("--dry-run", is_flag=True, help="Only say what was found.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common
def redact_command(ctx: Context, session: str, everything: bool, dry_run: bool, yes: bool) -> None:
    """Looks through stored events for secrets (keys, tokens, passwords), says what kind is where without showing it,
    and erases those events. A secret that was stored should also be changed where it is used.

    \b
    Examples:
      wakelog redact fix-bug --dry-run
      wakelog redact --all --yes
    """
    if everything:
        sessions = [ctx.store.resume(h.session) for h in ctx.store.sessions()]
    else:
        sessions = [ctx.session(session)]
    found = _scan(ctx, sessions)
    seqs: dict[SessionId, list[int]] = {}
    for each in found:
        seqs.setdefault(each.session, []).append(each.seq)
    if not ctx.json and not ctx.ndjson:
        _show(ctx, found)
    left = Erased({}, ())
    if found and not dry_run:
        refuse_any_held(ctx.store.engine, seqs)
        ctx.confirm(f"Erase {len(found)} events for good?", yes=yes)
        logs = {s.session: session.log for session in sessions for s in session.log.segments}
        why = "a secret was found in it"
        left = erase_all(ctx.store, logs, seqs, partial(erase_everywhere, ctx.store, why=why, by="wakelog redact"))
    data = {
        "found": msgspec.to_builtins(found),
        "sessions": len(sessions),
        "erased": bool(found) and not dry_run,
        "names": left.names,
        "pending": left.pending,
    }

    def human() -> None:
        if not found:
            ctx.say(f"No secrets were found in {len(sessions)} {'session' if len(sessions) == 1 else 'sessions'}.")
        elif dry_run:
            ctx.say("This was a dry run: nothing was erased.")
        else:
            ctx.say(f"Erased {len(found)} events. Change the secrets where they are used: they were stored in clear.")
            say_left(ctx, left)

    ctx.answer("redact", data, human)


def _scan(ctx: Context, sessions: list[Session[Any]]) -> list[Found]:
    out: dict[tuple[str, int], Found] = {}
    with Progress(ctx, "scanned events", sum(s.head.seq for s in sessions)) as progress:

        def counted(event: Event) -> Iterable[str]:
            progress()
            return redact_event(event)[1]

        for session in sessions:
            # Forks share events; each is listed once, where it stands.
            out.update({(f.session, f.seq): f for f in scan(session.log, counted)})
    return list(out.values())


def _show(ctx: Context, found: list[Found]) -> None:
    last = ""
    for each in found[:SHOWN]:
        if each.session != last:
            ctx.say(ctx.style(inert(ctx.name_of(each.session), lines=False), bold=True))
            last = each.session
        where = f"@{each.turn}" if each.turn else ""
        ctx.say(f"  e{each.seq:<7}{where:<6}{each.kind:<20}{inert(', '.join(each.markers), lines=False)}")
    if len(found) > SHOWN:
        ctx.say(f"  and {len(found) - SHOWN} more")
