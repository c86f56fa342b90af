"""`wakelog endorse`: say that events can be trusted."""

from __future__ import annotations

import click
import msgspec

from wakelog.cli.commands.invalidate import one_session
from wakelog.cli.context import Context, common
from wakelog.cli.render.events import Tools, show_line
from wakelog.cli.render.sessions import handle, title
from wakelog.cli.shell_completion import complete_selector

SHOWN = 20


@click.command("endorse")
@click.argument("whats", metavar="EVENT|TURN|KEY...", nargs=-1, required=True, shell_complete=complete_selector)
@click.option("-m", "--why", "why", default="", metavar="TEXT", help="What it was checked against; kept in the log.")
@click.option("--by", default="", metavar="NAME", help="Who says so.")
@click.option("--dry-run", is_flag=True, help="Only show what would be trusted.")
@common
def endorse_command(ctx: Context, whats: tuple[str, ...], why: str, by: str, dry_run: bool) -> None:
    """Records that somebody looked at events and trusts them. From now on they count as trusted, and so does what rests
    on nothing else that is not. A later invalidation takes it back.

    \b
    Examples:
      wakelog endorse injection@e12 --by ada -m "checked against the DNS provider's own guide"
      wakelog endorse -s injection /facts/spf --dry-run
    """
    session, targets = one_session(ctx, whats)
    found = session.trust.endorse(targets, by=by, why=why, dry_run=dry_run)
    data = {**msgspec.to_builtins(found), "name": session.name or None, "seq": found.seq or None}

    def human() -> None:
        seqs = " ".join(f"e{seq}" for seq in found.targets[:8]) + (" …" if len(found.targets) > 8 else "")
        done = f"endorsed by e{found.seq}" if found.seq else "would be endorsed"
        ctx.say(f"{title(ctx, session)}  {seqs} {done}")
        ctx.say("trusted more than before:" if found.raised else "nothing is trusted more than before")
        tools: Tools = {}
        for seq in found.raised[:SHOWN]:
            ctx.say(show_line(ctx, session, session.log.entry(seq), tools))
        if len(found.raised) > SHOWN:
            ctx.say(f"and {len(found.raised) - SHOWN} more (--json shows all)")
        if not found.seq:
            ctx.say("This was a dry run: nothing was written.")

    ctx.answer("endorse", data, human)
    ctx.suggest(f"wakelog taint -s {handle(session)}")
