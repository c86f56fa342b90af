"""`wakelog ui`: opens the web page on this store."""

from __future__ import annotations

import sys
import webbrowser

import click

from wakelog.cli.background_intake import background_intake
from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import extra_needed
from wakelog.errors import UnsupportedError
from wakelog.web.assets import require_page
from wakelog.web.entry import entry_address

HOST, PORT = "127.0.0.1", 8426


@click.command("ui")
@click.option("--write", "may_write", is_flag=True, help="Allow changes: approve, answer, rewind, fork, name, note.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Listen on this port (default: {PORT}, or any free one).")
@click.option("--no-open", is_flag=True, help="Show the address, and open no browser.")
@common
def ui_command(ctx: CommandContext, may_write: bool, port: int | None, no_open: bool) -> None:
    """Open the web page on this store in your browser, until stopped. Only this machine can reach it, and only with the
    key in the address, which is valid for this run. Without --write nothing can be changed.

    Examples:
      wakelog ui
      wakelog ui --write
      wakelog ui --no-open --port 0 --json
    """
    check_page()
    if ctx.url.startswith(("http://", "https://")):
        raise UnsupportedError(
            "this store is on a server, which serves the page itself", kind="unsupported", hint=f"open {ctx.url}"
        )
    open_page(ctx, ctx.url, may_write=may_write, port=port, no_open=no_open)


def check_page() -> None:
    """Raises UnsupportedError if this installation has no page."""
    require_page()


def open_page(
    ctx: CommandContext, url: str, *, may_write: bool = False, port: int | None = None, no_open: bool = False
) -> None:
    """Serves the page of a store and opens a browser on it, until stopped."""
    with extra_needed("the page", "ui"):
        from wakelog.http import server as serving
        from wakelog.http.state import Server, Settings
    server = Server(Settings(url=url), launch_scope="write" if may_write else "read")
    sock = serving.listen_near(HOST, PORT) if port is None else serving.listen(HOST, port)
    base = serving.url_of(HOST, sock)
    address = entry_address(base, server.launch_token)
    serving.log_to_stderr(as_json=not sys.stderr.isatty(), verbose=False)

    def human() -> None:
        ctx.say(f"{url} is at {address}")
        ctx.say(f"  {'changes are allowed' if may_write else 'read-only; --write allows changes'}; stop with Ctrl-C")

    ctx.answer("ui", {"url": base, "address": address, "store": url, "write": may_write}, human)
    ctx.flush()
    if not no_open:
        # With a ticket instead of the key, because other users can see the browser's arguments.
        webbrowser.open(entry_address(base, server.tickets.make(server.launch_token)))
    with background_intake():
        serving.run(server, sock)
