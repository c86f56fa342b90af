"""Real git repositories, real shells, and a session that captures what they do."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from wakelog.files.capture import Capture, Picture
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.store import Store

Shell = Callable[[str], str]


def record_changes(log: Log, capture: Capture, picture: Picture, *, action: str = "") -> list[ev.FileChanged]:
    """Appends what has changed since a picture, as one commit."""
    changes = capture.changes(picture, action=action)
    if changes:
        log.append(*(EventDraft(change, actor="tool") for change in changes))
    return changes


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the user's git settings and store."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [n for n in os.environ if n.startswith(("GIT_", "WAKELOG_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("WAKELOG_GIT_LABELS", "false")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.com")


def run(command: str, folder: Path) -> str:
    """What a shell prints."""
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository, which is also the working folder."""
    folder = tmp_path / "repo"
    folder.mkdir()
    run("git init -q; mkdir -p .git/info; echo .wakelog > .git/info/exclude", folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def shell(repo: Path) -> Shell:
    return lambda command: run(command, repo)


@pytest.fixture(params=["sqlite", ON_POSTGRES])
def store(request: pytest.FixtureRequest, repo: Path, tmp_path: Path) -> Iterator[Store]:
    url = postgres_url(request, tmp_path) if request.param == "postgres" else repo / ".wakelog"
    with wakelog.open(url) as opened:
        yield opened


@pytest.fixture
def session(store: Store) -> Session[Any]:
    return store.session("s")


class Agent:
    """A session whose shell is captured: `agent("sed -i …")` is a turn with one call."""

    def __init__(self, session: Session[Any], folder: Path) -> None:
        self.session = session
        self.folder = folder
        session.files.capture(folder, folder=folder)
        self.shell: Callable[[str], str] = session.tool(self._shell, name="shell")  # type: ignore[call-overload]

    def _shell(self, command: str) -> str:
        return run(command, self.folder)

    def __call__(self, command: str) -> int:
        """Runs a turn and returns its number."""
        with self.session.turn(command) as turn:
            self.shell(command)
            return turn.number


@pytest.fixture
def agent(session: Session[Any], repo: Path) -> Agent:
    return Agent(session, repo)


def tree(folder: Path) -> dict[str, tuple[str, bytes, int]]:
    """Every file below a folder with type, content and permissions, without git's files and ours."""
    out: dict[str, tuple[str, bytes, int]] = {}
    for place, folders, names in os.walk(os.fsencode(folder)):
        folders[:] = [name for name in folders if name not in (b".git", b".wakelog")]
        for name in [*names, *(f for f in folders if os.path.islink(os.path.join(place, f)))]:
            path = os.path.join(place, name)
            key = os.fsdecode(os.path.relpath(path, os.fsencode(folder)))
            if os.path.islink(path):
                out[key] = ("link", os.readlink(path), 0)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    out[key] = ("file", file.read(), os.stat(path).st_mode & 0o777)
    return out


def git_state(folder: Path) -> dict[str, bytes]:
    """All bytes of a repository's own files."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted((folder / ".git").rglob("*")) if p.is_file()}
