"""Notebook display: safe, bounded, and ending in the command that shows the same."""

import itertools
from html.parser import HTMLParser

from wakelog.model import events as ev
from wakelog.model.html import BYTES_MAX
from wakelog.store import Store

HIDDEN = "\u202e\x1b\u00ad\u180e\ufff9\u3164\U000e0041"
HOSTILE = f"<script>alert(1)</script>[31m{HIDDEN}"


class Checker(HTMLParser):
    """Fails on what must not be in a cell, and on tags that do not close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "iframe", "img")
        assert not any(name.startswith("on") for name, _ in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(page: str) -> str:
    checker = Checker()
    checker.feed(page)
    assert not checker.open
    assert not set(HIDDEN) & set(page)
    return page


def test_hostile_text_is_inert_in_every_display(store: Store) -> None:
    session = store.session("s", data={HOSTILE: HOSTILE})
    with session.turn(user=HOSTILE) as turn:
        session.fact(HOSTILE, HOSTILE, why=HOSTILE)
        turn.data["x"] = HOSTILE
    for shown in (session, turn, session.diff(), session.state()):
        page = check(shown._repr_html_())
        assert "&lt;script&gt;" in page
    assert "wakelog log s" in session._repr_html_()
    assert "wakelog show s@1" in turn._repr_html_()


def test_a_long_session_is_shown_in_part_and_says_so(store: Store) -> None:
    session = store.session("s")
    for first in range(0, 210, 10):
        turns = ((ev.TurnStarted(input=f"turn {n}"), ev.TurnEnded()) for n in range(first, first + 10))
        session.append(*itertools.chain.from_iterable(turns))
    page = check(session._repr_html_())
    assert "10 older" in page
    assert len(page) < BYTES_MAX * 2


def test_a_comparison_is_shown_step_by_step(store: Store) -> None:
    session = store.session("s")
    for n in range(2):
        with session.turn(user=HOSTILE, retry=n > 0):
            session.decide(f"{HOSTILE} {n}")
    page = check(session.history.compare()._repr_html_())
    assert "differs: choice" in page
    assert "wakelog compare s@1.1 s@1.2" in page
