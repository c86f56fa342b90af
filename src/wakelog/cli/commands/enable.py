"""`wakelog enable` and `disable`: start and stop recording a coding agent."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.options import yes_option
from wakelog.cli.text import inert_line
from wakelog.hooks.agents import AGENTS, HookedAgent, Scope, agent_named, own_command, project_root
from wakelog.hooks.installation import FileChange, apply, plan_disable, plan_enable

_SCOPES: tuple[tuple[Scope, str], ...] = (
    ("user", "Change it for all your projects."),
    ("project", "Change it for this project, in a file that is usually committed."),
    ("local", "Change it for this project, in a file of your own (claude-code)."),
)


def _scope_options(function: Any) -> Any:
    for scope, text in reversed(_SCOPES):
        function = click.option(f"--{scope}", "scope", flag_value=scope, help=text)(function)
    return function


@click.command("enable")
@click.argument("names", metavar="AGENT...", nargs=-1, required=True, shell_complete=lambda *_: [*AGENTS])
@_scope_options
@click.option("--mcp", is_flag=True, help="Give the agent the wakelog tools too (MCP server).")
@click.option("--brief", is_flag=True, help="Show the agent a short brief of earlier work when it starts.")
@click.option("--dry-run", is_flag=True, help="Show the change, and write nothing.")
@yes_option
@common
def enable_command(
    ctx: CommandContext, names: tuple[str, ...], scope: Scope | None, mcp: bool, brief: bool, dry_run: bool, yes: bool
) -> int:
    """Record a coding agent: claude-code, codex or gemini. wakelog adds itself to the agent's hooks, shows the exact
    change first, and asks. From then on every session of that agent is in your store. All your projects are recorded,
    unless you choose --project or --local.

    The hook only writes down what the agent tells it. It prints nothing, never stops a call, and takes a few
    milliseconds besides Python's own start. The next wakelog command imports what it wrote.

    `wakelog disable AGENT` reverts the change. `wakelog doctor` shows whether recording works.

    Examples:
      wakelog enable claude-code
      wakelog enable codex gemini --mcp
      wakelog enable claude-code --project --dry-run
    """
    agents = [agent_named(name) for name in dict.fromkeys(names)]
    project = project_root()
    url = ctx.given_url
    store = str(Path(url).absolute()) if url and ":" not in url else url
    changes = [
        change
        for agent in agents
        for change in plan_enable(agent, scope or "user", project, mcp=mcp, brief=brief, store=store)
    ]
    return _apply_changes(ctx, "enable", changes, agents, dry_run=dry_run, yes=yes)


@click.command("disable")
@click.argument("names", metavar="[AGENT]...", nargs=-1, shell_complete=lambda *_: [*AGENTS])
@click.option("--all", "everything", is_flag=True, help="Disable every agent.")
@_scope_options
@click.option("--dry-run", is_flag=True, help="Show the change, and write nothing.")
@yes_option
@common
def disable_command(
    ctx: CommandContext, names: tuple[str, ...], everything: bool, scope: Scope | None, dry_run: bool, yes: bool
) -> int:
    """Stop recording a coding agent: remove what `wakelog enable` added to its settings, and nothing else. A file that
    was not changed since is restored byte for byte. What was recorded stays.

    Examples:
      wakelog disable claude-code
      wakelog disable --all
    """
    if bool(names) == everything:
        raise click.UsageError("name the agents, or use --all")
    agents = [*AGENTS.values()] if everything else [agent_named(name) for name in dict.fromkeys(names)]
    changes = plan_disable(agents, project_root(), scope)
    return _apply_changes(ctx, "disable", changes, agents, dry_run=dry_run, yes=yes)


def _apply_changes(
    ctx: CommandContext, verb: str, changes: list[FileChange], agents: list[HookedAgent], *, dry_run: bool, yes: bool
) -> int:
    real = [change for change in changes if change.is_change]
    for line in (line for change in real for line in _diff(change)) if ctx.is_for_people else ():
        color = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        ctx.say(ctx.style(inert_line(line.rstrip("\n")), fg=color))
    if real and not dry_run:
        files = "this file" if len(real) == 1 else f"these {len(real)} files"
        ctx.confirm(f"Change {files}?", yes=yes)
    if not dry_run:
        apply(changes, enables=verb == "enable")
    lines = _outcome(verb, agents, real, dry_run)
    after = [agent.after for agent in agents if agent.after and verb == "enable" and not dry_run]
    data = {
        "agents": [agent.name for agent in agents],
        "files": [{"agent": c.agent, "file": str(c.file), "diff": "".join(_diff(c))} for c in real],
        "done": not dry_run,
        "next": after,
    }
    ctx.answer(verb, data, [*lines, *after])
    if verb == "enable" and not dry_run:
        ctx.suggest("wakelog doctor", f"wakelog disable {agents[0].name}")
    return 0 if real or verb == "enable" else NO


def _outcome(verb: str, agents: list[HookedAgent], real: list[FileChange], dry_run: bool) -> list[str]:
    titles = ", ".join(agent.title for agent in agents)
    if not real:
        return [f"{titles}: already {verb}d." if verb == "enable" else f"{titles}: not enabled, nothing to remove."]
    if dry_run:
        return ["Nothing was written."]
    if verb == "disable":
        return [f"{titles}: no longer recorded. What was recorded stays in the store."]
    lines = [f"{titles}: recorded from the next session on. To undo: wakelog disable {agents[0].name}"]
    if own_command() != ("wakelog",):
        lines.append(f"The command is {own_command()[0]}, because wakelog is not on your PATH; keep it there.")
    return lines


def _diff(change: FileChange) -> list[str]:
    old, new = (None if text is None else text.splitlines(keepends=True) for text in (change.before, change.after))
    names = ("/dev/null" if old is None else str(change.file), "/dev/null" if new is None else str(change.file))
    lines = difflib.unified_diff(old or [], new or [], *names)
    return [line if line.endswith("\n") else line + "\n" for line in lines]
