"""What happens around a page while it is read: other tabs, a server that dies, a slow line, a session that grows."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.page.conftest import Open
from tests.page.reader import Reader
from tests.ports import free_port
from wakelog.http.server import RunningServer, serving
from wakelog.http.state import Settings

Error = pytest.importorskip("playwright.sync_api").Error
pytestmark = pytest.mark.slow


@pytest.fixture
def store_copy(stories: Path, tmp_path: Path) -> str:
    shutil.copytree(stories, tmp_path / "store")
    return str(tmp_path / "store")


def test_two_tabs_show_the_same_and_each_keeps_its_place(open_page: Open, writing: RunningServer) -> None:
    one = open_page(writing, "/live")
    one.sees("nightly-31")
    two = one.context.new_page()
    one.watch(two)
    two.goto(f"{writing.url}/s/fix-bug/@6")
    two.get_by_text("12 passed").first.wait_for()
    with wakelog.open(writing.url, key=writing.key) as store:
        store.resume("nightly-31").life.pause(why="seen in two places")
    row = one.page.get_by_role("row").filter(has=one.page.get_by_role("link", name="nightly-31", exact=True))
    row.get_by_text("paused").wait_for()
    assert two.url.endswith("/@6")
    two.close()


def test_a_page_outlives_its_server_and_finds_it_again(open_page: Open, store_copy: str) -> None:
    port = free_port()
    with serving(Settings(url=store_copy, rate=0), port=port, launch_scope="read") as first:
        reader = open_page(first, "/live")
        reader.sees("nightly-31")
        key = first.key
    reader.sees(re.compile("connection is lost"))
    assert reader.page.get_by_text("nightly-31").first.is_visible(), "what was read stays"
    with serving(Settings(url=store_copy, rate=0), port=port, launch_scope="read") as second:
        assert second.key != key
        # Another run has another key: the page asks for it, and goes on with it.
        reader.running = second
        reader.page.goto(f"{second.url}/live#key={second.key}")
        reader.page.reload()
        reader.sees("nightly-31")
    reader.errors.clear()


class Line:
    """A line to the server that holds back what it is told to, until it is let go."""

    def __init__(self, reader: Reader, pattern: str) -> None:
        self.reader = reader
        self.held: list[Any] = []
        self.is_slow = True
        reader.page.route(re.compile(pattern), self._take)

    def _take(self, route: Any) -> None:
        if self.is_slow:
            self.held.append(route)
        else:
            route.continue_()

    def wait_until_it_holds(self) -> None:
        for _ in range(1000):
            if self.held:
                return
            self.reader.page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")
        raise AssertionError("nothing was asked")

    def let_go(self) -> None:
        self.is_slow = False
        for route in self.held:
            # What the page has given up meanwhile cannot be answered any more.
            with contextlib.suppress(Error):
                route.continue_()
        self.held.clear()


def test_on_a_slow_line_the_page_says_that_it_waits_and_then_shows_it(open_page: Open, reading: RunningServer) -> None:
    reader = open_page(reading, "/")
    line = Line(reader, "/v1/sessions/.*/verify")
    reader.page.goto(f"{reading.url}/s/fix-bug/verify")
    line.wait_until_it_holds()
    reader.sees(re.compile("Verifying…"))
    line.let_go()
    reader.sees("✔ intact")


def test_an_older_answer_never_replaces_a_newer_one(open_page: Open, reading: RunningServer) -> None:
    reader = open_page(reading, "/search")
    reader.page.locator("input[type=search]:focus").wait_for()
    line = Line(reader, r"/v1/search\?q=fix")
    reader.types("fix")
    line.wait_until_it_holds()
    reader.press("Control+a")
    reader.types("customer")
    reader.sees(re.compile("customer"))
    line.let_go()
    reader.settle()
    assert reader.page.locator("mark").first.inner_text().lower().startswith("customer")
    assert reader.page.locator("input[type=search]").input_value() == "customer"


def test_a_session_that_grows_is_shown_as_it_grows_and_the_reader_is_not_moved(
    open_page: Open, writing: RunningServer
) -> None:
    reader = open_page(writing, "/s/fix-bug/@2?view=compact")
    reader.sees("read the failing test")
    reader.settle()
    grid = reader.page.get_by_label("Events").locator("[role=grid], [role=feed]").first
    before = grid.evaluate("(each) => each.scrollTop")
    with wakelog.open(writing.url, key=writing.key) as store:
        session = store.resume("fix-bug")
        for number in range(30):
            session.note(f"remark {number}")
    reader.sees(re.compile(r"↓ \d+ new|\b15[0-9] events"))
    assert grid.evaluate("(each) => each.scrollTop") == before


def test_back_and_forward_lead_through_what_was_selected(open_page: Open, reading: RunningServer) -> None:
    reader = open_page(reading, "/cost")
    reader.sees("money, estimated")
    reader.button("model", exact=True).click()
    reader.waits_for_path("by=model")
    reader.button("7 days", exact=True).click()
    reader.waits_for_path("since=7d")
    reader.link("Live", exact=True).click()
    reader.waits_for_path("^/live")
    reader.page.go_back()
    reader.waits_for_path("by=model&since=7d")
    assert reader.button("model", exact=True).get_attribute("aria-pressed") == "true"
    reader.page.go_back()
    reader.waits_for_path("by=model$")
    assert reader.button("All", exact=True).get_attribute("aria-pressed") == "true"
    reader.page.go_forward()
    reader.waits_for_path("since=7d")


def test_what_is_not_there_is_told_and_never_a_blank_page(open_page: Open, reading: RunningServer) -> None:
    reader = open_page(reading, "/")
    for path, words in (
        ("/s/nobody", "nobody"),
        ("/s/fix-bug/@99", "@99"),
        ("/s/fix-bug/why?of=e9999", "9999|event"),
        ("/compare?a=fix-bug&b=nobody", "nobody"),
    ):
        reader.page.goto(reading.url + path)
        alert = reader.page.get_by_role("alert").first
        alert.wait_for()
        assert re.search(words, alert.inner_text()), path
