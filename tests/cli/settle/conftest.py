"""A store of its own for each test, since settling writes; and a command line that looks at it."""

import functools
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.settle import world


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settle") / "demo"
    with pytest.MonkeyPatch.context() as monkeypatch:
        world.build(path, monkeypatch)
    return path


@pytest.fixture
def desk(cli: Cli, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`cli`, at a copy of the store, as ada, an hour later."""
    shutil.copytree(built, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", "demo")
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "ada")
    return functools.partial(cli, now=world.NOW_US)
