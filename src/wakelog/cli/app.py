"""The command tree. A command's module is imported when the command is called, so that `wakelog --version` and shell
completion stay fast.
"""

from __future__ import annotations

import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

import click

import wakelog
from wakelog.cli.command_table import ALIASES, FIRST_COMMANDS, OTHER_WORDS, SECTIONS, matching_commands
from wakelog.cli.errors import FAULT, exit_code, refused_write, show_error, show_fault
from wakelog.cli.options import store_option
from wakelog.errors import WakelogError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """A group that imports a command when it is named."""

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

        commands = [CompletionItem(name, help=text) for name, text in matching_commands(incomplete)]
        # The method of Group would load every command; the one of Command adds the options only.
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            import difflib

            close = [OTHER_WORDS[args[0]]] if args[0] in OTHER_WORDS else []
            close = close or difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            raise click.UsageError(exc.message + (f" Did you mean {close[0]}?" if close else ""), ctx) from exc

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        everything = bool(ctx.meta.get("wakelog.all"))
        for title, section in SECTIONS.items():
            rows = [(name, text) for name, (_, text) in section.items() if everything or name in FIRST_COMMANDS]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if not everything:
            formatter.write_paragraph()
            formatter.write_text("All commands: wakelog help -a. Try it without your own data: wakelog demo.")


def _keep_examples(command: click.Command) -> None:
    """Marks the examples in a help text, so that click does not rewrap their lines."""
    command.help = re.sub(r"\n\n(\s*)(?=Examples?:\n)", "\n\n\\1\b\n\\1", command.help or "")
    for child in command.commands.values() if isinstance(command, click.Group) else ():
        _keep_examples(child)


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(wakelog.__version__, "-V", "--version", prog_name="wakelog")
@store_option
@click.pass_context
def app(ctx: click.Context, store_url: str | None) -> None:
    """Look at and control sessions of AI agents: what happened, what changed, why, and whether it was altered."""
    ctx.meta["wakelog.store"] = store_url
    if ctx.invoked_subcommand is None:
        command = _default_command() if sys.stdin.isatty() and sys.stdout.isatty() else ""
        if not command:
            click.echo(ctx.get_help())
        else:
            ctx.exit(run([*(["--store", store_url] if store_url else []), command]))


def _default_command() -> str:
    """What a bare `wakelog` runs: `status`; without a store, `import` if there are transcripts; else nothing."""
    from wakelog.store.url import chosen_url, user_store

    if chosen_url() or user_store(must_exist=True):
        return "status"
    from wakelog.importers.discovery import find_transcripts

    return "import" if find_transcripts() else ""


def run(args: list[str] | None = None) -> int:
    """Runs a command line and returns its exit code. Reports every failure in the same form."""
    try:
        code = app.main(args, prog_name="wakelog", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except (WakelogError, click.ClickException) as exc:
        show_error(exc, sys.argv[1:] if args is None else args)
        return exit_code(exc)
    except Exception as exc:
        refused = refused_write(exc) if isinstance(exc, OSError) else None
        if refused is None:
            show_fault(exc)
            return FAULT
        show_error(refused, sys.argv[1:] if args is None else args)
        return exit_code(refused)
