"""`wakelog help`: what the short help promises at its end."""

from collections.abc import Iterator

import click

from tests.cli.conftest import Cli
from wakelog.cli.app import app
from wakelog.cli.command_table import SECTIONS


def test_help_is_the_short_help_and_with_all_every_command_by_section(cli: Cli) -> None:
    short = cli("help")
    assert (short.code, short.out) == (0, cli("--help").out)
    assert "wakelog help -a" in short.out
    everything = cli("help", "-a").out
    for title, section in SECTIONS.items():
        assert f"\n{title}:\n" in everything
        assert all(f"\n  {name} " in everything for name in section)


def test_help_on_a_command_is_its_own_help(cli: Cli) -> None:
    assert cli("help", "rewind").out == cli("rewind", "--help").out
    assert cli("help", "reset").out.splitlines()[0].startswith("Usage: wakelog re")
    assert cli("help", "store", "backup").out == cli("store", "backup", "--help").out
    wrong = cli("help", "rewnd")
    assert wrong.code == 2
    assert "Did you mean rewind?" in wrong.err
    assert cli("help", "rewind", "more").code == 2


def test_no_help_is_wider_than_eighty_columns() -> None:
    def wide(command: click.Command, path: str, parent: click.Context | None = None) -> Iterator[str]:
        ctx = click.Context(command, info_name=path, parent=parent, terminal_width=80, max_content_width=80)
        yield from (f"{path}: {line}" for line in command.get_help(ctx).splitlines() if len(line) > 80)
        if isinstance(command, click.Group):
            for name in command.list_commands(ctx):
                if (inner := command.get_command(ctx, name)) is not None:
                    yield from wide(inner, f"{path} {name}", ctx)

    assert list(wide(app, "wakelog")) == []
