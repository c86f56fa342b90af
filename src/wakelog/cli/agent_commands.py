"""How a session goes on in a coding agent: with the agent's own command where the session is the agent's, else with a
prompt that tells it where the session stands."""

from __future__ import annotations

import os
import shlex
from typing import Any

import msgspec

from wakelog.errors import NotFoundError
from wakelog.session import Session

BRIEF_TOKENS = 3000


class Agent(msgspec.Struct, frozen=True):
    """A program: its command, how it takes up a session of its own, and how it begins with a prompt."""

    name: str
    program: str
    resume: tuple[str, ...]
    begin: tuple[str, ...] = ()


AGENTS = {
    "claude": Agent("claude-code", "claude", ("--resume",)),
    "codex": Agent("codex", "codex", ("resume",)),
    "gemini": Agent("gemini-cli", "gemini", ("--resume",), ("--prompt-interactive",)),
}
NATIVE = "native"


class Continuation(msgspec.Struct, frozen=True):
    """The command that goes on with a session."""

    agent: str
    command: list[str]
    folder: str
    """Where it is to be run; empty when that is not known."""
    is_own: bool
    """Whether the agent has the session itself; else it is told where the session stands."""

    @property
    def line(self) -> str:
        """As one types it."""
        command = shlex.join(self.command)
        return f"cd {shlex.quote(self.folder)} && {command}" if self.folder else command


def own_agent(session: Session[Any]) -> str:
    """The agent whose session it is; empty when it is nobody's that is known."""
    labels = session.log.part("labels")
    return next((key for key, agent in AGENTS.items() if labels.get("agent") == agent.name), "")


def continuation(session: Session[Any], wanted: str) -> Continuation:
    """How to go on with a session in an agent."""
    agent, labels = AGENTS[wanted], session.log.part("labels")
    folder = str(labels.get("project") or "")
    origin = str(labels.get("origin") or "")
    if own_agent(session) == wanted and origin and "/" not in origin:
        return Continuation(wanted, [agent.program, *agent.resume, origin], folder, True)
    brief = str(session.brief(BRIEF_TOKENS))
    return Continuation(wanted, [agent.program, *agent.begin, brief], folder, False)


def run(found: Continuation) -> None:
    """Becomes the agent: this process is replaced by it."""
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
