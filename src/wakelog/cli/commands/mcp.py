"""`wakelog mcp`: the server through which an agent keeps its own session."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import click

from wakelog.cli.context import Context, common
from wakelog.errors import UnsupportedError

if TYPE_CHECKING:
    from wakelog.store import Store


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
    if importlib.util.find_spec("mcp") is None:
        raise UnsupportedError(
            "the MCP server needs the mcp package", kind="missing-extra", hint="pip install 'wakelog[mcp]'"
        )
    if address is None:
        _serve_stdio(ctx, read_only)
        return
    from wakelog.mcp.server import run_http

    host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise click.UsageError(f"{address!r} is not HOST:PORT")
    run_http(lambda create: _open(ctx, create), host or "127.0.0.1", int(port), read_only=read_only)


def _serve_stdio(ctx: Context, read_only: bool) -> None:
    from wakelog.mcp.stdio_front import Front

    front = Front.on_stdio(read_only=read_only)
    if front.greet():
        # Only now: it takes longer to load than some clients wait for their first answer.
        from wakelog.mcp.server import run_stdio

        run_stdio(lambda create: _open(ctx, create), front, read_only=read_only)


def _open(ctx: Context, create: bool) -> Store:
    return ctx.new_store() if create else ctx.store
