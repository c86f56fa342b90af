"""The bundled demos, built once; each test gets a copy it may destroy."""

import functools
import shutil
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog.cli.demo import DAY_US, DEMOS, build
from wakelog.store import Store

NOW_US = DAY_US + 12 * 3600 * 1_000_000
SMALL = [name for name in DEMOS if name != "big"]


@pytest.fixture(scope="session")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store with every demo but the big one."""
    path = tmp_path_factory.mktemp("move") / "demo"
    with wakelog.open(path) as store:
        for name in SMALL:
            build(name, store.engine, at_us=NOW_US if DEMOS[name].is_live else DAY_US)
    return path


@pytest.fixture
def folder(demos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_terminal: None) -> Path:
    """A copy, in a place of its own with an empty home; it is the store by default."""
    shutil.copytree(demos, tmp_path / "demo")
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("WAKELOG_STORE", "demo")
    return tmp_path


@pytest.fixture
def move(cli: Cli, folder: Path) -> Cli:
    """`cli` at the copy, some hours after the stories took place."""
    return functools.partial(cli, now=NOW_US)


@pytest.fixture
def store(folder: Path) -> Store:
    """The same store through the library."""
    return wakelog.open(folder / "demo", clock=lambda: NOW_US)
