"""The command tree: which commands there are, and where each lives.

Commands are loaded when they are called, so that `wakelog --version` and a shell's completion cost next to nothing.
Each command parses, calls one verb, and renders.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

import wakelog
from wakelog.cli.command_table import ALIASES, SECTIONS, SHORT, offered
from wakelog.cli.errors import FAULT, exit_code, show_error, show_fault
from wakelog.errors import WakelogError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        commands = [CompletionItem(name, help=text) for name, text in offered(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]  # its options; no command is loaded

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
    from wakelog.importers.discovery import find_transcripts

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
