"""A store of its own for each test, since watching writes; and a command line that looks at it."""

import functools
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.guard import world


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("guard") / "demo"
    with pytest.MonkeyPatch.context() as monkeypatch:
        world.build(path, monkeypatch)
    return path


@pytest.fixture
def guard(cli: Cli, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`cli`, at a copy of the store, an hour and more after its last event."""
    shutil.copytree(built, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", "demo")
    return functools.partial(cli, now=world.NOW_US)
