"""`wakelog help`: the same as --help, and with -a all commands."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from wakelog.cli.context import Context, common


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from wakelog.cli.app import SECTIONS

    about = {name: text for section in SECTIONS.values() for name, (_, text) in section.items()}
    return [CompletionItem(name, help=text) for name, text in about.items() if name.startswith(incomplete)]


@click.command("help")
@click.option("-a", "--all", "everything", is_flag=True, help="All commands.")
@click.argument("words", nargs=-1, metavar="[COMMAND]...", shell_complete=_names)
@common
def help_command(ctx: Context, everything: bool, words: tuple[str, ...]) -> None:
    """Help on wakelog, or on one command.

    \b
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
    ctx.answer("help", data, lambda: ctx.say(text))
