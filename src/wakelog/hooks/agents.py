"""The supported coding agents: their settings files, the hooks to register, and how hooks are written.

Hooks are registered for what an agent's transcript does not record, or records late: what was about to run, what
somebody allowed or denied, how it ended. They are synchronous, so they come in order and none is killed with the agent
that started it. `WorktreeCreate` of Claude Code is never registered: it replaces what the agent does.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from wakelog.errors import InvalidInputError

Scope = Literal["user", "project", "local"]
SERVER = "wakelog"
"""The name of our MCP server in an agent's settings."""


class HookedAgent(msgspec.Struct, frozen=True):
    """One agent: its names, its events, and its hook timeout in its own unit."""

    name: str
    title: str
    events: tuple[str, ...]
    timeout: int
    home: str
    """Its settings folder, in the user's home and in a project."""
    home_variable: str
    hooks_file: str
    mcp_file: str
    scopes: tuple[Scope, ...]
    has_comments: bool = False
    after: str = ""
    """What the user still has to do after `enable`."""

    @property
    def label(self) -> str:
        """Its name among the importers."""
        return "gemini-cli" if self.name == "gemini" else self.name

    @property
    def format(self) -> str:
        """The format of its transcripts."""
        return "codex-rollout" if self.name == "codex" else self.label

    def is_off(self, settings: dict[str, Any]) -> bool:
        """Whether the settings disable all hooks."""
        if self.name == "gemini":
            config = settings.get("hooksConfig")
            return isinstance(config, dict) and config.get("enabled") is False
        return settings.get("disableAllHooks") is True

    def folder(self, environ: Mapping[str, str] | None = None) -> Path:
        """The folder with the user's settings and transcripts."""
        environ = os.environ if environ is None else environ
        if named := environ.get(self.home_variable):
            return Path(named) / self.home if self.name == "gemini" else Path(named)
        return Path(environ.get("HOME") or Path.home()) / self.home

    def settings(self, scope: Scope, project: Path) -> Path:
        """The settings file for hooks."""
        if scope == "user":
            return self.folder() / self.hooks_file
        if scope == "local":
            return project / self.home / "settings.local.json"
        return project / self.home / self.hooks_file

    def mcp_settings(self, scope: Scope, project: Path) -> tuple[Path, tuple[str, ...]]:
        """The settings file for MCP servers, and the path to them inside it."""
        if self.name == "claude-code":
            if scope == "project":
                return project / ".mcp.json", ("mcpServers",)
            beside = self.folder() if os.environ.get(self.home_variable) else self.folder().parent
            file = beside / ".claude.json"
            return file, ("mcpServers",) if scope == "user" else ("projects", str(project), "mcpServers")
        file = (self.folder() if scope == "user" else project / self.home) / self.mcp_file
        return file, ("mcp_servers",) if self.name == "codex" else ("mcpServers",)

    def hook_entry(self, event: str, command: str, *, brief: bool = False) -> dict[str, Any]:
        """The entry to register for an event."""
        line = f"{command} --brief" if brief and event == "SessionStart" else command
        handler: dict[str, Any] = {"type": "command", "command": line, "timeout": self.timeout}
        if self.name == "gemini":
            handler = {"name": "wakelog", **handler}
        return {"hooks": [handler]}


AGENTS = {
    each.name: each
    for each in (
        HookedAgent(
            "claude-code",
            "Claude Code",
            (
                *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
                *("PermissionRequest", "PermissionDenied", "Notification", "SubagentStart", "SubagentStop"),
                *("PreCompact", "PostCompact", "InstructionsLoaded", "ConfigChange", "Stop", "StopFailure"),
                "SessionEnd",
            ),
            5,
            ".claude",
            "CLAUDE_CONFIG_DIR",
            "settings.json",
            ".claude.json",
            ("user", "project", "local"),
        ),
        HookedAgent(
            "codex",
            "Codex",
            (
                *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest", "PreCompact"),
                *("PostCompact", "SubagentStart", "SubagentStop", "Stop", "SessionEnd"),
            ),
            5,
            ".codex",
            "CODEX_HOME",
            "hooks.json",
            "config.toml",
            ("user", "project"),
            after="Codex skips hooks that you have not trusted: start codex, type /hooks, and trust those of wakelog.",
        ),
        HookedAgent(
            "gemini",
            "Gemini CLI",
            ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "Notification", "SessionEnd"),
            5000,
            ".gemini",
            "GEMINI_CLI_HOME",
            "settings.json",
            "settings.json",
            ("user", "project"),
            has_comments=True,
        ),
    )
}

_OURS = re.compile(r"(?:^|[\s/'\"\\])wakelog(?:\.exe)?['\"]?\s+hook\s+(?:claude-code|codex|gemini)\b")


def agent_named(name: str) -> HookedAgent:
    """Finds an agent by name. The InvalidInputError lists the known ones."""
    found = AGENTS.get({"claude": "claude-code", "gemini-cli": "gemini"}.get(name, name))
    if found is None:
        raise InvalidInputError(
            f"there are no hooks for {name!r}", kind="unknown-agent", hint=f"supported: {', '.join(AGENTS)}"
        )
    return found


def is_ours(command: object) -> bool:
    """Whether `enable` wrote this command line."""
    return isinstance(command, str) and _OURS.search(command) is not None


def own_command() -> tuple[str, ...]:
    """The command that starts this wakelog from anywhere: its name if the PATH finds it, otherwise its path."""
    here = Path(sys.prefix) / "bin" / "wakelog"
    found = shutil.which("wakelog")
    if found and (not here.exists() or os.path.realpath(found) == os.path.realpath(here)):
        return ("wakelog",)
    if here.exists():
        return (str(here),)
    return (sys.executable, "-m", "wakelog")


def hook_command(agent: HookedAgent) -> str:
    return shlex.join([*own_command(), "hook", agent.name])


def project_root() -> Path:
    """The folder for project settings: the root of the current repository, or the current folder."""
    here = Path.cwd().absolute()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
