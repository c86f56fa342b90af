"""Every page for every reader: no violation of axe in any theme, no sideways scrolling at 400 %, no motion unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.page.reader import Reader
from wakelog.http.server import RunningServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

PAGES = {
    "sessions": "/",
    "session": "/s/fix-bug",
    "turn": "/s/fix-bug/@6",
    "event": "/s/injection/e9",
    "live": "/live",
    "search": "/search?q=test",
    "search for nothing": "/search?q=zebrafinch",
    "compare": "/compare?a=fix-bug@6.1&b=fix-bug@6.2",
    "compare three": "/compare?a=fix-bug@6.1&b=@6.2&c=fix-bug@5",
    "why": "/s/injection/why?of=e14",
    "why as a table": "/s/injection/why?of=e14&view=table",
    "taint": "/s/injection/taint?source=web:*",
    "sources": "/taint",
    "what a source touched": "/taint?source=web:*",
    "cohorts": "/compare?before=agent=worker-1&after=agent=worker-2",
    "waterfall": "/s/fix-bug?view=waterfall",
    "changed words": "/s/fix-bug/@5?tab=files",
    "cost": "/cost?by=model",
    "audit": "/audit",
    "verify": "/s/fix-bug/verify",
    "verify what was altered": "/s/tampered/verify",
    "store": "/store",
    "help": "/help",
    "lost": "/x/nowhere",
    "no such session": "/s/nobody",
}


@pytest.fixture(scope="module")
def window(browser: Browser, reading: RunningServer) -> Iterator[Callable[..., Reader]]:
    """Windows that are kept: one for each way to look."""
    kept: dict[tuple[tuple[str, Any], ...], Reader] = {}

    def look(path: str, **how: Any) -> Reader:
        way = tuple(sorted(how.items()))
        if way not in kept:
            kept[way] = Reader(browser, reading, **how)
        return kept[way].go(path).settle()

    yield look
    for reader in kept.values():
        reader.close()
        assert not reader.errors


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("theme", ["light", "dark", "contrast"])
def test_axe_finds_no_violation(name: str, theme: str, window: Callable[..., Reader]) -> None:
    reader = window(PAGES[name], theme=theme, for_axe=True)
    assert reader.violations() == []


@pytest.mark.parametrize("name", PAGES)
def test_at_400_percent_nothing_must_be_scrolled_sideways(name: str, window: Callable[..., Reader]) -> None:
    """A window of 1280 pixels at 400 % has the room of 320."""
    reader = window(PAGES[name], width=320, height=256)
    assert reader.is_too_wide() <= 0
    assert reader.page.locator("h1").count() >= 1


@pytest.mark.parametrize("name", ["sessions", "session", "live", "why"])
def test_nothing_moves_for_who_asked_for_calm(name: str, window: Callable[..., Reader]) -> None:
    reader = window(PAGES[name], calm=True)
    moving = reader.page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((each) => {
          const style = getComputedStyle(each);
          const lasts = (text) => text.split(",").some((part) => parseFloat(part) > 0);
          return lasts(style.transitionDuration) || (style.animationName !== "none" && lasts(style.animationDuration));
        }).map((each) => each.className)"""
    )
    assert moving == []
    assert reader.page.evaluate("() => document.getAnimations().length") == 0


@pytest.mark.parametrize("name", PAGES)
def test_everything_that_can_be_pressed_is_large_enough(name: str, window: Callable[..., Reader]) -> None:
    """No control is drawn smaller than 18 pixels, a box to tick. That 24 are free around each is the rule `target-size`
    of axe, above."""
    reader = window(PAGES[name])
    small = reader.page.evaluate(
        """() => [...document.querySelectorAll("button, summary, select, input, [role=tab]")]
          .filter((each) => each.checkVisibility() && each.getBoundingClientRect().width > 0)
          .map((each) => [each, each.getBoundingClientRect()])
          .filter(([, box]) => box.width < 17.5 || box.height < 17.5)
          .map(([each, box]) => `${each.outerHTML.slice(0, 80)} ${box.width}×${box.height}`)"""
    )
    assert small == []
