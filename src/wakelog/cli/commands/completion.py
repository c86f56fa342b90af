"""`wakelog completion`: shell completion for bash, zsh or fish."""

from __future__ import annotations

import sys

import click
from click.shell_completion import get_completion_class

from wakelog.cli.context import Context, common

SHELLS = ("bash", "zsh", "fish")
_HOW = {
    "bash": 'eval "$(wakelog completion bash)"      in ~/.bashrc',
    "zsh": 'eval "$(wakelog completion zsh)"       in ~/.zshrc',
    "fish": "wakelog completion fish | source       in ~/.config/fish/config.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@common
def completion_command(ctx: Context, shell: str) -> None:
    """Prints a script that makes the shell complete commands, options, sessions, turns, state keys and checkpoints.

    \b
    Examples:
      eval "$(wakelog completion bash)"      in ~/.bashrc
      eval "$(wakelog completion zsh)"       in ~/.zshrc
      wakelog completion fish | source       in ~/.config/fish/config.fish
    """
    script = source(shell)
    ctx.answer("completion", {"shell": shell, "script": script}, lambda: ctx.say(script.rstrip("\n")))
    if sys.stdout.isatty():
        # To somebody who looks at it. A shell that evaluates it at every start has heard it already.
        ctx.suggest(_HOW[shell])


def source(shell: str) -> str:
    """Click's script for our command."""
    from wakelog.cli.app import app

    found = get_completion_class(shell)
    assert found is not None, shell
    maker = found(app, {}, "wakelog", "_WAKELOG_COMPLETE")
    # Not maker.source(): for bash that runs bash to ask its version, and prints a warning where there is none.
    return maker.source_template % maker.source_vars()
