"""Arguments and options that several commands share, with the same name and help everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


# Completion reads the store, so it is loaded when a shell asks for it.
def complete_places(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from wakelog.cli.shell_completion import complete_selector

    return list(complete_selector(ctx, param, incomplete))


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from wakelog.cli.shell_completion import complete_session

    return list(complete_session(ctx, param, incomplete))


def place_argument(name: str = "selector", metavar: str = "[SEL]") -> Callable[[Any], Any]:
    """A point or range of a session; without it, the newest session as it is now."""
    return click.argument(name, metavar=metavar, required=False, default="", shell_complete=complete_places)


def json_or_text(text: str) -> Any:
    """The value of an option: parsed if it is JSON, else the text itself."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def limit_option(
    default: int,
    help: str = "Show at most N; 0 shows all.",
    *,
    name: str = "limit",
    least: int = 0,
    most: int | None = None,
) -> Callable[[Any], Any]:
    allowed = click.IntRange(least, most)
    return click.option("-n", name, type=allowed, default=default, show_default=True, metavar="N", help=help)


store_option = click.option(
    "--store",
    "store_url",
    metavar="PATH",
    help="Use this store (default: WAKELOG_STORE, the nearest .wakelog, or your own).",
)
session_argument = click.argument("session", required=False, default="", shell_complete=complete_names)
named_session = click.argument("session", shell_complete=complete_names)
at_option = click.option(
    "--at", default="", metavar="SEL", shell_complete=complete_places, help="Show it as it was at that point."
)
why_option = click.option(
    "-m", "--message", "why", default="", metavar="TEXT", help="Give the reason; kept in the log."
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
force_option = click.option("--force", is_flag=True, help="Replace an existing file.")
all_projects_option = click.option("-A", "--all", "everything", is_flag=True, help="Ask across all projects.")
all_sessions_option = click.option("-A", "--all", "everything", is_flag=True, help="Include all sessions of the store.")
