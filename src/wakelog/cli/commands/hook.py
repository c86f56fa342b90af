"""`wakelog hook`: what agents run. Called by them it never comes here (cli/__init__.py); this is its help and `--drain`."""

from __future__ import annotations

import click

from wakelog.cli.context import CommandContext, common
from wakelog.hooks import spool


@click.command("hook")
@click.argument("agent", required=False, type=click.Choice(spool.AGENTS))
@click.argument("rest", nargs=-1, type=click.UNPROCESSED)
@click.option("--brief", is_flag=True, help="At the start of a session, print a short brief of earlier work.")
@common
def hook_command(ctx: CommandContext, agent: str | None, rest: tuple[str, ...], brief: bool) -> None:
    """Write down what a coding agent tells its hooks. Agents run this; `wakelog enable` sets it up. It reads JSON from
    stdin, prints nothing, and always succeeds.

    \b
    Example:
      echo '{"session_id": "…", "hook_event_name": "Stop"}' | wakelog hook claude-code
    """
    if agent is not None:
        spool.run_hook([agent, *rest, *(["--brief"] if brief else [])])
        return
    raise click.UsageError("name the agent")
