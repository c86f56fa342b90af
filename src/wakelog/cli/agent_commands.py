"""The command that continues a session in a coding agent: the agent's own resume command if the session is the
agent's, else a prompt with the session's brief."""

from __future__ import annotations

import os
import shlex
from typing import Any

import msgspec

from wakelog.errors import NotFoundError
from wakelog.session import Session

BRIEF_TOKENS = 3000


class Agent(msgspec.Struct, frozen=True):
    """A coding agent: its program, and its options to resume one of its sessions and to start with a prompt."""

    name: str
    program: str
    resume: tuple[str, ...]
    begin: tuple[str, ...] = ()


AGENTS = {
    "claude": Agent("claude-code", "claude", ("--resume",)),
    "codex": Agent("codex", "codex", ("resume",)),
    "gemini": Agent("gemini-cli", "gemini", ("--resume",), ("--prompt-interactive",)),
    "opencode": Agent("opencode", "opencode", ("--session",), ("--prompt",)),
    "copilot": Agent("copilot-cli", "copilot", ("--resume",), ("--interactive",)),
    "qwen": Agent("qwen-code", "qwen", ("--resume",), ("--prompt-interactive",)),
    "goose": Agent("goose", "goose", ("session", "--resume", "--session-id"), ("run", "--interactive", "--text")),
    "kimi": Agent("kimi-code", "kimi", ("--session",), ("--prompt",)),
    "openhands": Agent("openhands", "openhands", ("--resume",), ("--task",)),
    "pi": Agent("pi", "pi", ("--session",)),
}
NATIVE = "native"


class Continuation(msgspec.Struct, frozen=True):
    """The command that continues a session."""

    agent: str
    command: list[str]
    folder: str
    """The folder to run it in; empty if unknown."""
    is_own: bool
    """True if the agent has the session itself; False if it starts with the session's brief."""

    @property
    def line(self) -> str:
        """As one line for a shell."""
        command = shlex.join(self.command)
        return f"cd {shlex.quote(self.folder)} && {command}" if self.folder else command


def own_agent(session: Session[Any]) -> str:
    """The agent that wrote the session; empty if unknown."""
    labels = session.log.part("labels")
    return next((key for key, agent in AGENTS.items() if labels.get("agent") == agent.name), "")


def continuation(session: Session[Any], wanted: str) -> Continuation:
    """The command that continues a session in the agent `wanted`."""
    agent, labels = AGENTS[wanted], session.log.part("labels")
    folder = str(labels.get("project") or "")
    origin = str(labels.get("origin") or "")
    if own_agent(session) == wanted and origin and "/" not in origin:
        return Continuation(wanted, [agent.program, *agent.resume, origin], folder, True)
    brief = str(session.brief(BRIEF_TOKENS))
    return Continuation(wanted, [agent.program, *agent.begin, brief], folder, False)


def run(found: Continuation) -> None:
    """Replaces this process by the agent."""
    if found.folder and os.path.isdir(found.folder):
        os.chdir(found.folder)
    try:
        os.execvp(found.command[0], found.command)
    except OSError as exc:
        raise NotFoundError(
            f"{found.command[0]} cannot be started: {exc.strerror}",
            kind="program-not-found",
            hint=f"install it, or run the command yourself: {found.line[:200]}",
        ) from exc
