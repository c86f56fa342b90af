"""`wakelog flag`: what rules and people point at."""

from __future__ import annotations

from typing import Any

import click

from wakelog.cli.context import Context, common
from wakelog.cli.errors import NO
from wakelog.cli.render.flags import FLAG_COLUMNS, flag_cells, flags_of, plain_flag
from wakelog.cli.render.table import say_table
from wakelog.cli.shell_completion import complete_session
from wakelog.cli.text import inert
from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.session import Session


@click.group("flag")
def flag_command() -> None:
    """A flag points at something in a session that somebody should see. Rules raise them (`wakelog watch`), and so can
    you; each stands until it no longer holds or somebody clears it.

    \b
    Examples:
      wakelog flag ls
      wakelog flag add fix-bug odd-answer -m "who is Bob?" --on e42
      wakelog flag clear fix-bug loop:search:ab12cd34 -m "it was polling"
    """


@flag_command.command("ls")
@click.argument("session", required=False, default="", shell_complete=complete_session)
@click.option("-A", "--all", "everything", is_flag=True, help="Those of closed and archived sessions too.")
@common
def ls(ctx: Context, session: str, everything: bool) -> int:
    """Lists the flags that stand, of all live sessions or of SESSION. Exit code 1 when there is none.

    \b
    Example:
      wakelog flag ls --json
    """
    found = [(s, flag) for s in _sessions(ctx, session, everything) for flag in flags_of(s)]

    def human() -> None:
        if found:
            say_table(ctx, FLAG_COLUMNS, [flag_cells(ctx, s.name or s.id, flag) for s, flag in found])
        else:
            ctx.say("no flag stands")

    ctx.answer("flags", [plain_flag(s, flag) for s, flag in found], human)
    return 0 if found else NO


@flag_command.command("add")
@click.argument("session", shell_complete=complete_session)
@click.argument("name")
@click.option("-m", "--message", "message", default="", metavar="TEXT", help="What there is to see.")
@click.option("--on", "on", default="", metavar="SEL", help="The event it is about: e42, @5.")
@click.option(
    "--severity", type=click.Choice(["info", "warning", "error", "alarm"]), default="warning", show_default=True
)
@common
def add(ctx: Context, session: str, name: str, message: str, on: str, severity: Any) -> None:
    """Raises a flag by hand.

    \b
    Example:
      wakelog flag add fix-bug odd-answer -m "who is Bob?" --on e42
    """
    found = ctx.session(session)
    seq = found.monitors.flag(name, message, severity=severity, on=on or None)
    _tell(ctx, found, name, seq, f"{inert(name, lines=False)} is flagged, as e{seq}")


@flag_command.command("clear")
@click.argument("session", shell_complete=complete_session)
@click.argument("name", metavar="FLAG")
@click.option("-m", "--message", "why", required=True, metavar="TEXT", help="Why it is no longer needed.")
@common
def clear(ctx: Context, session: str, name: str, why: str) -> None:
    """Takes a flag down. What raised it, and that it was cleared and why, stay in the log.

    \b
    Example:
      wakelog flag clear fix-bug loop:search:ab12cd34 -m "it was polling"
    """
    found = ctx.session(session)
    seq = found.monitors.clear_flag(name, why=why)
    _tell(ctx, found, name, seq, f"{inert(name, lines=False)} is cleared, as e{seq}")


def _tell(ctx: Context, session: Session[Any], name: str, seq: int, said: str) -> None:
    data = {"session": session.id, "name": session.name or None, "flag": name, "seq": seq}
    ctx.answer("flag", data, lambda: ctx.say(f"{inert(session.name or session.id, lines=False)}: {said}"))


def _sessions(ctx: Context, session: str, everything: bool) -> list[Session[Any]]:
    if session or ctx.names_session:
        return [ctx.session(session)]
    found, after = [], ""
    while True:
        page = ctx.store.index.sessions(live=None if everything else True, after=after, limit=1000)
        for info in page:
            if info.flags:
                try:
                    found.append(ctx.store.resume(info.id))
                except (NotFoundError, CorruptLogError) as exc:
                    ctx.warn(f"{inert(info.name or info.id, lines=False)} cannot be read: {inert(exc.message)}")
        after = page.next
        if not after:
            return found
