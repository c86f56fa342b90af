"""A real git repository in a folder, whose commits are made when a test says."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
MINUTE_US = 60_000_000
START_US = 1_793_700_000_000_000


class GitRepository:
    """One branch, `main`, and a clock that moves only on request."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now_us = START_US
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def clock(self) -> int:
        return self.now_us

    def wait(self, minutes: float) -> None:
        self.now_us += int(minutes * MINUTE_US)

    def git(self, *args: str, folder: Path | None = None) -> str:
        when = f"{self.now_us // 1_000_000} +0000"
        own = {
            **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "ada@example.org" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_DATE": when for who in ("AUTHOR", "COMMITTER")},
            **{"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull},
        }
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        done = subprocess.run(
            ["git", *args], cwd=folder or self.folder, env={**env, **own}, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, subject: str) -> str:
        """Commits all files; returns the full hash."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")
