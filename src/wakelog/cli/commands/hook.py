"""`wakelog hook`: records what agents report, and imports it with `--drain`.

When an agent runs it, cli/__init__.py writes to the spool without loading this file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wakelog.cli.context import CommandContext, common, open_store
from wakelog.cli.errors import NO
from wakelog.cli.text import inert, inert_line
from wakelog.hooks import spool
from wakelog.model.short_text import pluralize

if TYPE_CHECKING:
    from wakelog.hooks.intake import IntakeReport


@click.command("hook")
@click.argument("agent", required=False, type=click.Choice(spool.AGENTS))
@click.argument("rest", nargs=-1, type=click.UNPROCESSED)
@click.option("--drain", is_flag=True, help="Import what hooks wrote, and report the result.")
@click.option("--brief", is_flag=True, help="Print a short brief of earlier work at the start of a session.")
@common
def hook_command(ctx: CommandContext, agent: str | None, rest: tuple[str, ...], drain: bool, brief: bool) -> int:
    """Record what a coding agent reports to its hooks. Agents run this; `wakelog enable` sets it up. It reads JSON from
    stdin, prints nothing, and always succeeds.

    What hooks write waits in a spool, and the next wakelog command imports it; --drain does only that.

    Examples:
      wakelog hook --drain
      echo '{"session_id": "…", "hook_event_name": "Stop"}' | wakelog hook codex
    """
    if agent is not None:
        spool.run_hook([agent, *rest, *(["--brief"] if brief else [])])
        return 0
    if not drain:
        raise click.UsageError("name the agent, or use --drain")
    from wakelog.hooks.intake import take_in

    report = take_in(open_store, into=ctx.given_url)
    ctx.answer("intake", report, lambda: _show(ctx, report))
    return NO if report.troubles else 0


def _show(ctx: CommandContext, report: IntakeReport) -> None:
    ctx.say(f"{pluralize(report.records, 'record')} imported: {', '.join(map(inert, report.sessions)) or 'no session'}")
    if report.waiting:
        ctx.say(f"{report.waiting} wait for records that follow")
    if report.deleted:
        ctx.say(f"{report.deleted} belong to deleted sessions and were left out")
    if report.broken:
        ctx.say(f"{report.broken} could not be read")
    for trouble in report.troubles:
        ctx.warn(inert_line(trouble))
