"""`wakelog help` and `completion`: show help, and print scripts for shell completion."""

from __future__ import annotations

import sys

import click
from click.shell_completion import CompletionItem, get_completion_class

from wakelog.cli.command_table import matching_commands
from wakelog.cli.context import CommandContext, common

SHELLS = ("bash", "zsh", "fish")
_HOW = {
    "bash": 'eval "$(wakelog completion bash)"      in ~/.bashrc',
    "zsh": 'eval "$(wakelog completion zsh)"       in ~/.zshrc',
    "fish": "wakelog completion fish | source       in ~/.config/fish/config.fish",
}


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name, help=text) for name, text in matching_commands(incomplete)]


@click.command("help")
@click.option("-a", "--all", "everything", is_flag=True, help="List all commands.")
@click.argument("words", nargs=-1, metavar="[COMMAND]...", shell_complete=_names)
@common
def help_command(ctx: CommandContext, everything: bool, words: tuple[str, ...]) -> None:
    """Show help on wakelog, or on one command.

    Examples:
      wakelog help -a
      wakelog help rewind
    """
    at = click.get_current_context().parent
    assert at is not None
    at.meta["wakelog.all"] = everything
    command = at.command
    for word in words:
        if not isinstance(command, click.Group):
            raise click.UsageError(f"{command.name} has no command {word!r}.", at)
        _, found, _ = command.resolve_command(at, [word])
        assert found is not None
        command = found
        at = click.Context(command, info_name=word, parent=at)
    text = command.get_help(at)
    names = command.list_commands(at) if isinstance(command, click.Group) else []
    data = {"command": " ".join(words) or None, "text": text, "commands": names}
    ctx.answer("help", data, text)


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@common
def completion_command(ctx: CommandContext, shell: str) -> None:
    """Print a script that completes commands, options, sessions, turns, state keys and checkpoints in your shell.

    Examples:
      eval "$(wakelog completion bash)"      in ~/.bashrc
      eval "$(wakelog completion zsh)"       in ~/.zshrc
      wakelog completion fish | source       in ~/.config/fish/config.fish
    """
    script = source(shell)
    ctx.answer("completion", {"shell": shell, "script": script}, script.rstrip("\n"))
    if sys.stdout.isatty():
        # A hint for a reader. A shell that runs this at every start does not need it.
        ctx.suggest(_HOW[shell])


def source(shell: str) -> str:
    """The completion script that click makes for our command."""
    from wakelog.cli.app import app

    completion_class = get_completion_class(shell)
    assert completion_class is not None, shell
    maker = completion_class(app, {}, "wakelog", "_WAKELOG_COMPLETE")
    # Not maker.source(): for bash that runs bash to learn its version, and warns if there is none.
    return maker.source_template % maker.source_vars()
