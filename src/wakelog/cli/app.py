"""The command tree: which commands there are, and where each lives.

Commands are loaded when they are called, so that `wakelog --version` and a shell's completion cost next to nothing.
Each command parses, calls one verb, and renders.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

import wakelog
from wakelog.cli.errors import FAULT, exit_code, show_error, show_fault
from wakelog.errors import WakelogError

# name → (module below wakelog.cli.commands, short help). Sections are shown in this order by `wakelog help -a`.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "look": {
        "status": ("status", "Where the newest session stands, and what is pending."),
        "ls": ("ls", "The sessions of this store."),
        "log": ("log", "A session turn by turn, newest first."),
        "show": ("show", "One turn, event or commit in full."),
        "state": ("state", "The state, or one key of it, at any point."),
        "diff": ("diff", "What changed between two points, by whom and why."),
        "compare": ("compare", "Attempts, forks or sessions side by side; where they part."),
        "attempts": ("compare", "The tries of a turn, and what made them differ."),
        "files": ("diff", "The files changed in the last turns."),
        "blame": ("state", "Who last wrote each key of the state."),
        "why": ("why", "Back to where something came from, and how that is known."),
        "taint": ("why", "Forward to what rests on a source, and its effects."),
        "context": ("context", "What the model saw at a point, or would be shown now."),
        "brief": ("context", "The handoff for the next run, machine or agent."),
        "search": ("search", "Find words in everything said, done and decided."),
        "query": ("search", "Read-only SQL over the documented views."),
        "tail": ("tail", "Events as they come."),
        "ps": ("ps", "Sessions that are live, waiting or in trouble."),
        "pending": ("pending", "Calls and questions that wait for somebody."),
        "watch": ("watch", "Rules over the live log: flag what somebody should see."),
        "cost": ("cost", "What was spent, each amount counted once."),
    },
    "move": {
        "rewind": ("rewind", "Move the view back; nothing is removed."),
        "undo": ("rewind", "Take back the newest rewind."),
        "redo": ("rewind", "Take back the newest undo."),
        "fork": ("fork", "A new session sharing the history up to a point."),
        "adopt": ("fork", "Take a fork's result back into its parent."),
        "resume": ("life", "Continue a session, or tell how to."),
        "replay": ("replay", "Run recorded turns again, against recorded results."),
        "compact": ("context", "Let a summary stand for a part of the conversation."),
        "expand": ("context", "Take a compaction back."),
        "reconcile": ("pending", "Say what became of a call that was cut off."),
        "approve": ("pending", "Let a call that waits run."),
        "deny": ("pending", "Refuse a call that waits."),
        "answer": ("pending", "Answer a question the agent asked."),
        "abandon": ("pending", "Give a pending call up."),
        "checkpoint": ("checkpoint", "Name a point."),
        "note": ("checkpoint", "A remark on an event or a session."),
        "budget": ("cost", "What a session may spend, and what is left."),
        "flag": ("watch", "What rules and people point at."),
        "pause": ("life", "Nothing new takes effect until resumed."),
        "close": ("life", "End a session, settling open calls."),
        "reopen": ("life", "Bring a closed or archived session back."),
        "archive": ("life", "Put a closed session away."),
        "delete": ("life", "End a session for good; a tombstone stays."),
    },
    "trust": {
        "verify": ("verify", "Was it altered? Integrity, completeness, scope."),
        "anchor": ("verify", "The head, to be kept elsewhere."),
        "endorse": ("why", "Say that events can be trusted."),
        "invalidate": ("why", "Say that steps were wrong; see what rests on them."),
        "redact": ("erase", "Find secrets already stored, and erase them."),
        "erase": ("erase", "Erase the content of events, here and in forks."),
        "hold": ("hold", "Forbid erasing, pruning and deleting."),
    },
    "data": {
        "export": ("export", "Write a session to a file."),
        "import": ("export", "Take in a bundle, verified."),
        "gc": ("gc", "Apply retention: say what would go, then do it."),
        "store": ("store", "What is in this store, and where."),
    },
    "connect": {
        "serve": ("serve", "This store over HTTP."),
        "key": ("serve", "Who may use the server, and for what."),
        "conformance": ("conformance", "Does a server keep to the protocol?"),
        "mcp": ("mcp", "Serve this store to an agent over MCP."),
        "proxy": ("mcp", "Record the tool calls of any MCP server."),
    },
    "meta": {
        "demo": ("demo", "Sessions to play with, in a scratch store."),
        "doctor": ("doctor", "Check this installation and store."),
        "config": ("config", "Settings, and where each comes from."),
        "completion": ("help", "Shell completion for bash, zsh or fish."),
        "help": ("help", "Help on wakelog, or on one command; -a lists all."),
    },
}
SHORT = ("status", "log", "show", "diff", "why", "search", "rewind", "resume", "verify", "demo")
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
                command: click.Command = getattr(module, f"{name}_command")
                return command
        return None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            close = _nearest(args[0], self.list_commands(ctx))
            raise click.UsageError(exc.message + (f" Did you mean {close}?" if close else ""), ctx) from exc

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        everything = bool(ctx.meta.get("wakelog.all"))
        for title, section in SECTIONS.items():
            rows = [(name, text) for name, (_, text) in section.items() if everything or name in SHORT]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if not everything:
            formatter.write_text("all commands: wakelog help -a")


def _nearest(word: str, names: list[str]) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(word, names, 1)), "")


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(wakelog.__version__, "-V", "--version", prog_name="wakelog")
@click.option(
    "--store", "store_url", metavar="PATH", help="The store (default: WAKELOG_STORE, or the nearest .wakelog)."
)
@click.pass_context
def app(ctx: click.Context, store_url: str | None) -> None:
    """Session state for AI agents: what happened, what changed, why, and was it altered."""
    ctx.meta["wakelog.store"] = store_url
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


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
