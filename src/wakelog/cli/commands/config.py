"""`wakelog config`: settings, and where each value comes from."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.render.table import say_table
from wakelog.cli.shell_completion import complete_setting
from wakelog.cli.text import inert_line
from wakelog.config import settings as config
from wakelog.config.settings import write_setting


@click.group("config", invoke_without_command=True)
@click.pass_context
def config_command(ctx: click.Context) -> None:
    """List, read and change settings. The first of these wins: an option, a WAKELOG_… variable, wakelog.toml (or
    [tool.wakelog] in pyproject.toml) in the nearest folder upward, the user's config.toml.

    Examples:
      wakelog config list --show-origin
      wakelog config set retention.keep 90d
      wakelog config get store.path
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_settings)


@config_command.command("list")
@click.option("--show-origin", is_flag=True, help="Show where each value comes from.")
@common
def list_settings(ctx: CommandContext, show_origin: bool = False) -> None:
    """List all settings with their values.

    Example:
      wakelog config list --show-origin
    """
    settings = list(config.load().values())
    data = [{**msgspec.to_builtins(f), "about": config.SETTINGS[f.key].doc} for f in settings]

    def human() -> None:
        rows = []
        for setting in settings:
            origin = " ".join(filter(None, (setting.origin, setting.where))) if show_origin else ""
            about = "" if show_origin else config.SETTINGS[setting.key].doc
            rows.append((setting.key, _value_text(ctx, setting), origin, about))
        say_table(ctx, "setting | value 16 | from 12 | about 12 -1", rows, titles=False)

    ctx.answer("config", data, human)


@config_command.command("get")
@click.argument("key", shell_complete=complete_setting)
@common
def get(ctx: CommandContext, key: str) -> None:
    """Show the value of one setting.

    Example:
      wakelog config get retention.keep
    """
    if key not in config.SETTINGS:
        config.check(key, "", "config get")
    setting = config.load()[key]
    ctx.answer("config-value", msgspec.to_builtins(setting), _value_text(ctx, setting))


@config_command.command("set")
@click.argument("key", shell_complete=complete_setting)
@click.argument("value")
@click.option("--user", "where", flag_value="user", help="Write to the user's config.toml.")
@click.option("--here", "where", flag_value="here", help="Write to wakelog.toml in this folder.")
@common
def set_value(ctx: CommandContext, key: str, value: str, where: str | None) -> None:
    """Write a setting to the project's file if there is one, else to the user's. Comments in the file stay.

    Examples:
      wakelog config set retention.max_size 20GB --user
      wakelog config set store.path .wakelog --here
    """
    project = config.project_file()
    if key in config.SETTINGS and config.SETTINGS[key].is_personal and where is None:
        where = "user"
    if where == "here":
        file = Path.cwd() / config.PROJECT_FILE
    else:
        file = project if project is not None and where != "user" else config.user_file()
    setting = write_setting(file, key, value)
    now = config.load()[key]
    overridden = now.origin == "environment" or (now.where and Path(now.where) != file)
    data = {"key": key, "value": setting, "file": str(file), "in_force": not overridden}

    def human() -> None:
        ctx.say(f"{key} = {inert_line(str(setting).lower() if isinstance(setting, bool) else str(setting))}  in {file}")
        if overridden:
            ctx.say(f"  not in force: {now.where} says {inert_line(str(now.value))}")

    ctx.answer("config-set", data, human)


@config_command.command("path")
@common
def path(ctx: CommandContext) -> None:
    """List the files that settings are read from. The first one wins.

    Example:
      wakelog config path
    """
    project, user = config.project_file(), config.user_file()
    files = [("project", project, True)] if project else []
    files.append(("user", user, user.is_file()))
    data = [{"origin": origin, "file": str(file), "exists": exists} for origin, file, exists in files]

    def human() -> None:
        for origin, file, exists in files:
            ctx.say(f"{origin:<9}{file}{'' if exists else '  (not there)'}")

    ctx.answer("config-path", data, human)


def _value_text(ctx: CommandContext, setting: config.SettingValue) -> str:
    if setting.key == "store.path" and not setting.value:
        return ctx.url
    return str(setting.value).lower() if isinstance(setting.value, bool) else str(setting.value)
