"""`wakelog mcp`: the server through which an agent keeps its own session."""

from __future__ import annotations

import click

from wakelog.cli.context import Context, common
from wakelog.errors import UnsupportedError


@click.command("mcp")
@click.option("--read-only", is_flag=True, help="Leave out every tool that writes.")
@click.option("--http", "address", metavar="HOST:PORT", help="Serve Streamable HTTP at /mcp instead of stdio.")
@common
def mcp_command(ctx: Context, read_only: bool, address: str | None) -> None:
    """Serve this store over MCP, on stdin and stdout, to an agent that keeps its own session.

    \b
    claude mcp add wakelog -- wakelog mcp
    codex mcp add wakelog -- wakelog mcp
    wakelog mcp --http 127.0.0.1:8722

    Over HTTP it listens on loopback names only and checks Host and Origin; put a server with keys in front of it
    to open it up.
    """
    try:
        from wakelog.mcp.server import run_http, run_stdio
    except ImportError as exc:
        raise UnsupportedError(
            "the MCP server needs the mcp package", kind="missing-extra", hint="pip install 'wakelog[mcp]'"
        ) from exc
    store = ctx.new_store()
    if address is None:
        run_stdio(store, read_only=read_only)
        return
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise click.UsageError(f"{address!r} is not HOST:PORT")
    run_http(store, host or "127.0.0.1", int(port), read_only=read_only)
