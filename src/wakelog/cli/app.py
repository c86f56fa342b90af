"""The command tree: which commands there are, and where each lives.

Commands are loaded when they are called, so that `wakelog --version` and a shell's completion cost next to nothing.
Each command parses, calls one verb, and renders.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from typing import Any

import click

import wakelog
from wakelog.cli.errors import FAULT, exit_code, show_error, show_fault
from wakelog.errors import WakelogError

# name → (module below wakelog.cli.commands, short help). Sections are shown in this order by `wakelog help -a`.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Look at sessions": {
        "status": ("status", "Show a session's status and pending calls."),
        "ls": ("ls", "List the sessions of this store."),
        "log": ("log", "Show a session turn by turn, newest first."),
        "show": ("show", "Show one turn, event or commit in full."),
        "calls": ("calls", "List calls: tool, input, outcome, time, cost, changes."),
        "state": ("state", "Show the state, or one key of it, at any point."),
        "diff": ("diff", "Show what changed between two points, by whom and why."),
        "compare": ("compare", "Compare attempts, forks or sessions; find where they differ."),
        "attempts": ("compare", "List the attempts at a turn, and how they differ."),
        "files": ("diff", "List the files changed in the last turns."),
        "blame": ("state", "Show who last wrote each key of the state."),
        "why": ("why", "Show where something came from, and how that is known."),
        "insight": ("insight", "Show what the agent decided, derived from its words."),
        "taint": ("why", "Show everything influenced by a source."),
        "context": ("context", "Show what the model saw at a point, or would see now."),
        "brief": ("context", "Write the handoff for the next run, machine or agent."),
        "known": ("known", "Ask what earlier sessions knew about a thing."),
        "preferences": ("preferences", "Show, add and remove the preferences of people."),
        "patterns": ("patterns", "Show what sessions do again and again."),
        "plans": ("plans", "List, endorse and run plans made from proven chains."),
        "compare-cohorts": ("patterns", "Compare two sets of sessions: what differs."),
        "search": ("search", "Find words in everything said, done and decided."),
        "query": ("search", "Run read-only SQL over the documented views."),
        "tail": ("tail", "Stream events live."),
        "ps": ("ps", "List sessions that are live, waiting or in trouble."),
        "pending": ("pending", "List calls and questions that wait for a person."),
        "watch": ("watch", "Watch live sessions and flag problems."),
        "cost": ("cost", "Show what was spent; every amount counts once."),
        "rollup": ("rollup", "Sum up work by turn, phase, session, project or day."),
        "git": ("git", "Link commits in git to the turns behind them."),
    },
    "Go back, fork and settle": {
        "rewind": ("rewind", "Move the view back; nothing is removed."),
        "undo": ("rewind", "Revert the newest rewind."),
        "redo": ("rewind", "Revert the newest undo."),
        "op": ("op", "List the operations on a session, and go back to one."),
        "fork": ("fork", "Create a session that shares the history up to a point."),
        "adopt": ("fork", "Take the result of a fork back into its parent."),
        "resume": ("life", "Continue a session, and show its status."),
        "replay": ("replay", "Run recorded turns again, against recorded results."),
        "bisect": ("bisect", "Find the first bad turn, in a few tests."),
        "compact": ("context", "Replace a part of the conversation with a summary."),
        "expand": ("context", "Revert a compaction."),
        "reconcile": ("pending", "Record the outcome of a call that was interrupted."),
        "approve": ("pending", "Approve a call that waits."),
        "deny": ("pending", "Deny a call that waits."),
        "answer": ("pending", "Answer a question that the agent asked."),
        "abandon": ("pending", "Give up on a pending call."),
        "checkpoint": ("checkpoint", "Name a point."),
        "note": ("checkpoint", "Add a note to an event or a session."),
        "accept": ("insight", "Record a derived decision as a real one."),
        "budget": ("cost", "Show or set what a session may spend."),
        "flag": ("watch", "List, raise and clear flags."),
        "pause": ("life", "Pause a session until it is resumed."),
        "close": ("life", "End a session, and settle its open calls."),
        "cancel": ("life", "Stop a session, and its sub-agents, for a reason."),
        "reopen": ("life", "Reopen a closed or archived session."),
        "archive": ("archive", "Archive a closed session, or sessions as Parquet."),
        "delete": ("life", "Delete a session permanently; a tombstone stays."),
    },
    "Check and protect": {
        "verify": ("verify", "Check whether a session was altered."),
        "anchor": ("anchor", "Export head hashes, signed if you like, for later tamper checks."),
        "anchor-key": ("anchor", "Make a key that signs anchors."),
        "audit": ("audit", "Write a report for auditors: what happened, and is it intact."),
        "endorse": ("why", "Record that events can be trusted."),
        "invalidate": ("why", "Record that steps were wrong; show what depends on them."),
        "redact": ("erase", "Find stored secrets, and erase them."),
        "erase": ("erase", "Erase the content of events, here and in forks."),
        "hold": ("hold", "Protect sessions from erasing, pruning and deleting."),
    },
    "Import, export and store": {
        "export": ("export", "Write a session to a file."),
        "import": ("imports", "Import transcripts of coding agents, and bundles."),
        "gc": ("gc", "Apply retention: show what would go, then do it."),
        "store": ("store", "Inspect, check, copy and back up the store."),
    },
    "Connect agents and programs": {
        "enable": ("enable", "Record a coding agent: Claude Code, Codex or Gemini CLI."),
        "disable": ("enable", "Stop recording a coding agent."),
        "hook": ("hook", "Record what a coding agent reports (run by its hooks)."),
        "ui": ("ui", "Open the web page on this store."),
        "serve": ("serve", "Serve this store over HTTP."),
        "project": ("project", "Keep the index up to date, alone or with others."),
        "key": ("serve", "Manage the keys of the server."),
        "conformance": ("conformance", "Check a server against the protocol."),
        "mcp": ("mcp", "Serve this store to an agent over MCP."),
        "proxy": ("mcp", "Record the tool calls of any MCP server."),
        "record": ("record", "Run a command, and record its model calls."),
        "webhooks": ("webhooks", "Send flags, approvals and failures to other programs."),
        "otel": ("otel", "Send sessions to OpenTelemetry, and receive them."),
    },
    "Set up and learn": {
        "demo": ("demo", "Create sessions to play with, in a scratch store."),
        "doctor": ("doctor", "Check this installation and store."),
        "config": ("config", "List, read and change settings."),
        "schema": ("schema", "Print the JSON Schemas of what is written as JSON."),
        "completion": ("help", "Print shell completion for bash, zsh or fish."),
        "help": ("help", "Show help on wakelog, or on one command; -a lists all."),
    },
}
SHORT = (
    *("status", "ls", "log", "show", "diff", "why", "search", "rewind", "undo", "resume", "verify"),
    *("import", "enable", "ui", "demo"),
)
"""What `wakelog --help` shows: enough for the first day."""
ALIASES = {"st": "status", "branch": "fork", "fsck": "verify", "reset": "rewind"}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in SECTIONS.values() for name in section]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        name = ALIASES.get(name, name)
        for section in SECTIONS.values():
            if name in section:
                module = importlib.import_module(f"wakelog.cli.commands.{section[name][0]}")
                command: click.Command = getattr(module, f"{name.replace('-', '_')}_command")
                _keep_examples(command)
                return command
        return None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            import difflib

            close = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            raise click.UsageError(exc.message + (f" Did you mean {close[0]}?" if close else ""), ctx) from exc

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        everything = bool(ctx.meta.get("wakelog.all"))
        for title, section in SECTIONS.items():
            rows = [(name, text) for name, (_, text) in section.items() if everything or name in SHORT]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if not everything:
            formatter.write_paragraph()
            formatter.write_text("All commands: wakelog help -a. Try it without your own data: wakelog demo.")


def _keep_examples(command: click.Command) -> None:
    """Marks the examples in a help text, so that click does not fill their lines like those of a paragraph."""
    command.help = re.sub(r"\n\n(\s*)(?=Examples?:\n)", "\n\n\\1\b\n\\1", command.help or "")
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        _keep_examples(each)


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(wakelog.__version__, "-V", "--version", prog_name="wakelog")
@click.option(
    "--store",
    "store_url",
    metavar="PATH",
    help="Use this store (default: WAKELOG_STORE, the nearest .wakelog, or your own).",
)
@click.pass_context
def app(ctx: click.Context, store_url: str | None) -> None:
    """Look at and control sessions of AI agents: what happened, what changed, why, and whether it was altered."""
    ctx.meta["wakelog.store"] = store_url
    if ctx.invoked_subcommand is None:
        words = _first_words() if sys.stdin.isatty() and sys.stdout.isatty() else ""
        if not words:
            click.echo(ctx.get_help())
        else:
            ctx.exit(run([*(["--store", store_url] if store_url else []), words]))


def _first_words() -> str:
    """What a person means who only says `wakelog`: where things stand, or, where there is nothing yet, what could be
    brought in. Empty when there is neither."""
    from wakelog.store.url import chosen_url, user_store

    if chosen_url() or user_store(must_exist=True):
        return "status"
    from wakelog.importers.found import find_transcripts

    return "import" if find_transcripts() else ""


def run(args: list[str] | None = None) -> int:
    """Runs a command line and returns its exit code. Whatever goes wrong is told in one shape."""
    try:
        code = app.main(args, prog_name="wakelog", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.Abort:
        return 130
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader went away (head, less): nothing is wrong, and nothing more is to be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (WakelogError, click.ClickException) as exc:
        show_error(exc, sys.argv[1:] if args is None else args)
        return exit_code(exc)
    except Exception as exc:
        show_fault(exc)
        return FAULT
