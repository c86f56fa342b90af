"""Real agents, offline: a home of its own for each, with a model on loopback, and how each is started.

They are not part of what is installed for tests. `WAKELOG_CLAUDE`, `WAKELOG_CODEX`, `WAKELOG_GEMINI`,
`WAKELOG_OPENCODE`, `WAKELOG_PI`, `WAKELOG_GOOSE` and `WAKELOG_KIMI` name the programs; without one its tests are
skipped.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TIMEOUT_S = 180
PROMPT = "please make the file"


def program(name: str) -> str:
    found = os.environ.get(f"WAKELOG_{name.upper()}", "")
    if not found:
        pytest.skip(f"WAKELOG_{name.upper()} does not name the real program")
    return found


class Machine:
    """A home of its own, where an agent is enabled and runs."""

    def __init__(self, folder: Path, url: str) -> None:
        self.home, self.project, self.data = folder / "home", folder / "project", folder / "data"
        self.url = url
        self.home.mkdir()
        self.project.mkdir()
        self.env = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "WAKELOG_DATA": str(self.data),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-mock-nothing",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_API_KEY": "mock-nothing",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def wakelog(self, *args: str) -> str:
        return self.run(sys.executable, "-m", "wakelog", *args)

    def spooled(self) -> list[dict[str, Any]]:
        lines = [line for path in (self.data / "spool").glob("*.log") for line in path.read_text().splitlines()]
        return [json.loads(line.split(" ", 6)[6]) for line in lines if line]

    # How each agent is started

    def set_up(self, agent: str) -> str:
        """Tells an agent where its model is, and turns its hooks on where it has some; its program."""
        found = program(agent)
        if agent == "codex":
            (self.home / ".codex").mkdir()
            (self.home / ".codex" / "config.toml").write_text(
                'model = "mock"\nmodel_provider = "mock"\n\n[model_providers.mock]\nname = "mock"\n'
                f'base_url = "{self.url}/v1"\nwire_api = "responses"\n'
            )
        elif agent == "gemini":
            (self.home / ".gemini").mkdir()
            settings = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
            (self.home / ".gemini" / "settings.json").write_text(settings)
        elif agent == "pi":
            folder = self.home / ".pi" / "agent"
            folder.mkdir(parents=True)
            mock = {"baseUrl": self.url, "api": "anthropic-messages", "apiKey": "mock", "models": [{"id": "mock-1"}]}
            (folder / "models.json").write_text(json.dumps({"providers": {"mock": mock}}))
            return found
        elif agent == "goose":
            self.env |= {"GOOSE_PROVIDER": "anthropic", "GOOSE_MODEL": "claude-sonnet-4-5", "GOOSE_MODE": "auto"}
            self.env |= {"ANTHROPIC_HOST": self.url, "GOOSE_DISABLE_KEYRING": "1"}
            return found
        elif agent == "kimi":
            (self.home / ".kimi-code").mkdir()
            (self.home / ".kimi-code" / "config.toml").write_text(
                'default_model = "mock-1"\n\n[providers.mock]\ntype = "anthropic"\n'
                f'base_url = "{self.url}"\napi_key = "mock"\n\n'
                '[models.mock-1]\nprovider = "mock"\nmodel = "mock-1"\nmax_context_size = 100000\n'
            )
            return found
        elif agent == "opencode":
            options = {"baseURL": f"{self.url}/v1", "apiKey": "mock"}
            config = {
                "provider": {"anthropic": {"options": options, "models": {"claude-sonnet-4-5": {}}}},
                "model": "anthropic/claude-sonnet-4-5",
                "permission": {"bash": "allow"},
            }
            (self.project / "opencode.json").write_text(json.dumps(config))
            self.env |= {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
            return found
        self.wakelog("enable", {"claude": "claude-code"}.get(agent, agent), "--yes")
        return found


CODEX_RUNS = (
    *("--enable", "multi_agent"),
    "--skip-git-repo-check",
    "--dangerously-bypass-approvals-and-sandbox",
    "--dangerously-bypass-hook-trust",
)
CLAUDE_RUNS = ("--allowedTools", "Bash", "Agent", "--model", "claude-sonnet-4-5")


def prompted(agent: str, program: str, prompt: str) -> list[str]:
    """The command that gives an agent one prompt, without a terminal."""
    return {
        "claude": [program, "-p", prompt, *CLAUDE_RUNS],
        "codex": [program, "exec", *CODEX_RUNS, prompt],
        "gemini": [program, "--yolo", "-p", prompt],
        "opencode": [program, "run", "--continue", prompt],
        "goose": [program, "run", *(("--resume",) if prompt != PROMPT else ()), "--text", prompt],
        "kimi": [program, "--continue", "--prompt", prompt],
        "pi": [program, "--provider", "mock", "--model", "mock-1", "--continue", "-p", prompt],
    }[agent]


def resumed(agent: str, program: str, command: list[str], prompt: str) -> list[str]:
    """A command that `wakelog resume` printed, without a terminal and with a prompt. Codex has a command of its own for
    that, which takes the same id."""
    return {
        "claude": [program, *command[1:], "-p", prompt, *CLAUDE_RUNS],
        "codex": [program, "exec", "resume", *CODEX_RUNS, command[-1], prompt],
        "gemini": [program, *command[1:], "--yolo", "-p", prompt],
    }[agent]
