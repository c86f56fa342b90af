"""The demo store, built once, and a command line that looks at it."""

import functools
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.look import world


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store nobody writes to any more."""
    path = tmp_path_factory.mktemp("look") / "demo"
    with pytest.MonkeyPatch.context() as monkeypatch:
        world.build(path, monkeypatch)
    return path


@pytest.fixture
def look(cli: Cli, demo: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`cli`, at the demo store, ten minutes after its last event."""
    monkeypatch.chdir(demo.parent)
    monkeypatch.setenv("WAKELOG_STORE", demo.name)
    return functools.partial(cli, now=world.NOW_US)
