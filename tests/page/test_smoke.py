"""The page opens, shows a session of a store, and finds its way. Everything else about it is in the slow tests."""

from pathlib import Path

import wakelog
from tests.page.conftest import Open
from wakelog.http.server import serving
from wakelog.http.state import Settings


def test_the_page_opens_and_shows_what_is_in_the_store(open_page: Open, tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        session = store.session("fix-auth")
        with session.turn(user="find the login bug"):
            session.fact("cause", "a cookie that ends too soon")
    with serving(Settings(url=str(tmp_path / "store"), rate=0), launch_scope="read") as running:
        reader = open_page(running, "/search?q=cookie")
        reader.sees("a cookie that ends too soon")
        reader.link("Live", exact=True).click()
        reader.waits_for_path("^/live$")
        assert "key=" not in reader.page.url
