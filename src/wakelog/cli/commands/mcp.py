"""`wakelog mcp` and `proxy`: serve this store to an agent, and record the calls of any MCP server."""

from __future__ import annotations

import importlib.util
import os
import time
from typing import TYPE_CHECKING, Any

import click

from wakelog.child_process import end_like
from wakelog.cli.context import CommandContext, common
from wakelog.errors import missing_extra

if TYPE_CHECKING:
    from wakelog.mcp.recorder import TrafficRecorder
    from wakelog.model.events import Trust
    from wakelog.session import Session
    from wakelog.store import Store

DURABLE_WAIT_S = 1.0
"""How long a call may wait until its intent is stored. Passing the call on matters more than the record."""


@click.command("mcp")
@click.option("--read-only", is_flag=True, help="Leave out every tool that writes.")
@click.option("--http", "address", metavar="HOST:PORT", help="Serve Streamable HTTP at /mcp instead of stdio.")
@common
def mcp_command(ctx: CommandContext, read_only: bool, address: str | None) -> None:
    """Serve this store over MCP, on stdin and stdout, to an agent that keeps its own session.

    Over HTTP it listens on loopback only and checks Host and Origin. To open it up, put a server with keys in front.

    Examples:
      claude mcp add wakelog -- wakelog mcp
      codex mcp add wakelog -- wakelog mcp
      wakelog mcp --http 127.0.0.1:8722
    """
    if importlib.util.find_spec("mcp") is None:
        raise missing_extra("the MCP server needs the mcp package", "mcp")
    if address is None:
        _serve_stdio(ctx, read_only)
        return
    from wakelog.mcp.server import run_http

    host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise click.UsageError(f"{address!r} is not HOST:PORT")
    run_http(
        lambda create: _open(ctx, create),
        host or "127.0.0.1",
        int(port),
        read_only=read_only,
        take_in=ctx.take_in_hooks,
    )


def _serve_stdio(ctx: CommandContext, read_only: bool) -> None:
    from wakelog.mcp.stdio_front import Front

    front = Front.on_stdio(read_only=read_only)
    if front.greet():
        # Imported after the first answer, because loading takes longer than some clients wait.
        from wakelog.mcp.server import run_stdio

        run_stdio(lambda create: _open(ctx, create), front, read_only=read_only, take_in=ctx.take_in_hooks)


def _open(ctx: CommandContext, create: bool) -> Store:
    return ctx.new_store() if create else ctx.store


@click.command("proxy", context_settings={"ignore_unknown_options": True})
@click.option("--name", metavar="N", help="Name the server (default: its command or host).")
@click.option("--into", metavar="SESSION", help="Record into this session (default: a new one for each launch).")
@click.option(
    "--trust",
    type=click.Choice(["trusted", "unverified", "untrusted"]),
    default="unverified",
    show_default=True,
    help="Set how far to trust its results.",
)
@click.option("--durable", is_flag=True, help="Pass a tool call on only when its intent is stored (or after 1 s).")
@click.option("--url", metavar="URL", help="Record the server at this Streamable HTTP endpoint, instead of a command.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8723, show_default=True, help="With --url: listen on this port."
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@common
def proxy_command(
    ctx: CommandContext,
    name: str | None,
    into: str | None,
    trust: Trust,
    durable: bool,
    url: str | None,
    port: int,
    command: tuple[str, ...],
) -> None:
    """Record the tool calls of any MCP server. Bytes pass through unchanged.

    If the store fails, traffic continues, and the gap is recorded when the store is back.

    Examples:
      wakelog proxy --name files -- npx @modelcontextprotocol/server-filesystem .
      wakelog proxy --name search --url http://127.0.0.1:3001/mcp --port 8723
    """
    if bool(command) == bool(url):
        raise click.UsageError("give a command after --, or --url")
    name = name or (os.path.basename(command[0]) if command else _host(url or ""))

    def open_session() -> Session[Any]:
        # Runs in the recorder's thread, and again after a failure: the store may come back.
        made = into or f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        return ctx.new_store().session(made, agent=f"proxy:{name}")

    from wakelog.mcp.recorder import TrafficRecorder

    recorder = TrafficRecorder(open_session, name=name, trust=trust, closes=not into)
    if url:
        _serve_http(url, port, recorder)
        return
    from wakelog.mcp.stdio_proxy import run_proxy

    code = run_proxy(command, recorder, wait_s=DURABLE_WAIT_S if durable else 0.0)
    raise click.exceptions.Exit(end_like(code))


def _host(url: str) -> str:
    from urllib.parse import urlsplit

    return urlsplit(url).hostname or "server"


def _serve_http(url: str, port: int, recorder: TrafficRecorder) -> None:
    try:
        import uvicorn

        from wakelog.mcp.http_proxy import HttpProxy
    except ImportError as exc:
        raise missing_extra("the HTTP proxy needs uvicorn and httpx2", "mcp") from exc
    app: Any = HttpProxy(url, recorder)
    try:
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", lifespan="on", server_header=False)
    finally:
        recorder.close()
