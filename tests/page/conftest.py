"""A browser, and servers on stores of demo sessions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import wakelog
from scripts.browser import find_browser
from tests.cli.conftest import cli, plain_terminal
from tests.page.chromium import what_is_missing
from tests.page.reader import Reader
from wakelog.cli.demo import build
from wakelog.http.server import RunningServer, serving
from wakelog.http.state import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["cli", "plain_terminal"]
STORIES = ("fix-bug", "injection", "crash", "tampered", "transcript", "fleet")
Open = Callable[..., Reader]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a file. Not for longer: its loop runs in this thread while it is open, and no other
    loop can."""
    if missing := what_is_missing():
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with every demo but the big one."""
    folder = tmp_path_factory.mktemp("stories")
    with wakelog.open(folder) as store:
        for name in STORIES:
            build(name, store.engine, at_us=store.clock() if name == "fleet" else None)
        list(store.index.sessions(limit=1))
    return folder


@pytest.fixture(scope="module")
def reading(stories: Path) -> Iterator[RunningServer]:
    """A server for those who only look."""
    with serving(Settings(url=str(stories), rate=0), launch_scope="read") as running:
        yield running


@pytest.fixture
def writing(stories: Path, tmp_path: Path) -> Iterator[RunningServer]:
    """A server on a copy of its own, for tests that change something."""
    folder = tmp_path / "store"
    shutil.copytree(stories, folder)
    with serving(Settings(url=str(folder), rate=0), launch_scope="write") as running:
        yield running


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens a page of a server in a window of its own. What it logs as an error fails the test that did not expect
    it."""
    readers: list[Reader] = []

    def open_one(running: RunningServer, path: str = "/", **window: Any) -> Reader:
        reader = Reader(browser, running, **window)
        readers.append(reader)
        return reader.go(path)

    yield open_one
    for reader in readers:
        reader.close()
    errors = [error for reader in readers for error in reader.errors]
    assert not errors, errors
