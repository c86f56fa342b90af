"""`wakelog record`: runs a command, and records its model calls."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wakelog.child_process import SignalForwarding, end_like
from wakelog.cli.context import CommandContext, common

if TYPE_CHECKING:
    from wakelog.instruments.lanes import FileCapture, LaneName
    from wakelog.instruments.recorder import ConversationRecorder
    from wakelog.session import Session
    from wakelog.store import Store

_RUNNERS = ("python", "node", "bun", "deno", "uv", "uvx", "npx", "ruby", "bash", "sh", "env", "time")
"""Commands that run another one; the session is named after that one."""
_CODE = frozenset({"-c", "-lc", "-e", "--eval"})
"""Options with code, which may hold a key and is no name."""
_SCRIPTS = (".py", ".js", ".mjs", ".ts", ".rb", ".sh")


@click.command("record", context_settings={"ignore_unknown_options": True})
@click.option("--name", metavar="N", help="Name the session after this (default: the command).")
@click.option("--into", metavar="SESSION", help="Record into this session (default: a new one for each run).")
@click.option("--files", is_flag=True, help="Also record what tools change in the project's folder.")
@click.option(
    "--env",
    "also",
    multiple=True,
    metavar="NAME[=URL]",
    help="Also redirect this variable with a model's base URL; URL is used if it is not set (repeat).",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@common
def record_command(
    ctx: CommandContext,
    name: str | None,
    into: str | None,
    files: bool,
    also: tuple[str, ...],
    command: tuple[str, ...],
) -> None:
    """Run a command, and record every model call that it makes.

    The command needs no change. It is started with OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL and
    similar variables set to an address on this machine. What it sends there is forwarded to the provider, or to what
    the variable held before, and the answer comes back unchanged. Recorded are messages, answers, tools that the model
    asked for, and what they cost; never a key. A client that does not read these variables is not seen.

    If the store fails, the traffic continues, and the gap is recorded when the store is back. The exit code is that of
    the command.

    Examples:
      wakelog record -- python agent.py
      wakelog record --name nightly -- ./run-evals.sh
      wakelog record --env GROQ_BASE_URL=https://api.groq.com -- python agent.py
    """
    from wakelog.instruments.endpoints import Endpoints
    from wakelog.instruments.lanes import FileCapture, LaneName
    from wakelog.instruments.proxy import ModelProxy
    from wakelog.instruments.recorder import ConversationRecorder

    endpoints = Endpoints(os.environ, dict(_pair(text) for text in also))
    lane_name, capture = LaneName(name or program_of(command), os.getpid()), FileCapture() if files else None
    opener = _Sessions(ctx, lane_name, into, capture).open
    recorder = ConversationRecorder(opener, source="record", is_ours=into is None, holds_answers=files, warn=ctx.warn)
    with SignalForwarding(shares_terminal=True) as signals:
        with ModelProxy(endpoints, recorder) as proxy:
            child = signals.start(command, env=endpoints.variables(proxy.address, os.environ))
            code = child.wait()
        recorder.close()
    if not ctx.quiet:
        click.echo(_summary(ctx, recorder), err=True)
    raise click.exceptions.Exit(end_like(code))


class _Sessions:
    """Opens the sessions to record into."""

    def __init__(self, ctx: CommandContext, name: LaneName, into: str | None, capture: FileCapture | None) -> None:
        self._ctx, self._name, self._into, self._capture = ctx, name, into, capture
        self._store: Store | None = None

    def open(self, number: int) -> Session[Any]:
        """Runs in the recorder's thread, and again after a failure: the store may come back."""
        self._store = self._store or self._ctx.new_store()
        into = self._into if number == 1 or self._into is None else f"{self._into}-{number}"
        session: Session[Any] = self._store.session(into or self._name(number), agent=self._name.program)
        if self._capture is not None:
            self._capture.start(session)
        return session


def program_of(command: Sequence[str]) -> str:
    """The name of a command: that of the script for an interpreter, else its own."""
    name = Path(command[0]).stem
    while name.rstrip("0123456789.") in _RUNNERS:
        rest = [word for word in command[1:] if not word.startswith("-") and "=" not in word and word != "run"]
        if not rest:
            break
        script = next((word for word in rest if Path(word).suffix in _SCRIPTS), rest[0])
        at = command.index(script)
        if _CODE.intersection(command[:at]):
            break
        command, name = command[at:], Path(script).stem
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[:60].strip("-.") or "command"


def _pair(text: str) -> tuple[str, str]:
    name, _, url = text.partition("=")
    return name, url


def _summary(ctx: CommandContext, recorder: ConversationRecorder) -> str:
    sessions = recorder.sessions
    if not sessions:
        return "wakelog: no model call was seen; does the command read OPENAI_BASE_URL, ANTHROPIC_BASE_URL or the like?"
    store = f" --store {ctx.given_url}" if ctx.given_url else ""
    more = f" and {len(sessions) - 1} more" if len(sessions) > 1 else ""
    name = sessions[0].name
    return f"wakelog: recorded in {name}{more}; look at it with: wakelog{store} log {name}"
