"""Recorded text is hostile: whatever it holds, it is shown as text, and nothing in it ever runs.

Each text calls a canary. The canary is a function of the page's window, so a script that ran would be noticed wherever
it came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import wakelog
from tests.page.conftest import Open
from wakelog import events as ev
from wakelog.http.server import RunningServer, serving
from wakelog.http.state import Settings

pytestmark = pytest.mark.slow

MARKUP = (
    "<script>canary()</script>",
    "<img src=x onerror=canary()>",
    "<svg onload=canary()><a href='javascript:canary()'>x</a></svg>",
    '"><iframe srcdoc="<script>parent.canary()</script>"></iframe>',
    "<style>*{display:none}</style><base href='//evil.example/'>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "{@html '<img src=x onerror=canary()>'} ${canary()} {{constructor.constructor('canary()')()}}",
    "[x](javascript:canary()) ![x](x onerror=canary()) <javascript:canary()>",
    "</textarea></title></script><script>canary()</script>",
)
CONTROLS = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202egnp.exe\u202c \u2066x\u2069 a\u200bb\u200d\ufeffc \x00\x08 \u2028"
EVIL = "\n".join(MARKUP) + "\n" + CONTROLS
LONG = 5_000_000
NAME = "<img src=x onerror=canary()>"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("hostile")
    with wakelog.open(folder) as store:
        session = store.session(NAME, goal=EVIL, agent=MARKUP[1], labels={"repo": MARKUP[0], "branch": CONTROLS})
        with session.turn(user=EVIL):
            session.message("assistant", EVIL, source=f"web:{MARKUP[1]}", trust="untrusted")
            session.decide(EVIL, because=EVIL, alternatives=[EVIL])
            session.fact(MARKUP[0], EVIL, why=EVIL, source=f"web:{MARKUP[1]}", trust="untrusted")
            session.files.record(f"{MARKUP[1]}/a.py", added=3, why=EVIL)
            error = ev.Failure(MARKUP[0], EVIL)
            given = {MARKUP[0]: EVIL}
            session.append(
                ev.ActionRecorded(action="a", tool=MARKUP[1], input=given, output=EVIL, outcome="failed", error=error)
            )
        with session.turn(user="a long line"):
            session.message("user", "x" * LONG + MARKUP[0])
        session.append(ev.ActionRequested(action=MARKUP[1], tool=MARKUP[1], approval=True, input=EVIL))
        session.append(ev.InputRequested(request="which", prompt=EVIL, options=(MARKUP[0], MARKUP[1])))
        session.monitors.flag(MARKUP[1], EVIL)
        session.checkpoint("here")
        session.note(EVIL)
        other = session.fork("@1", name=MARKUP[7])
        with other.turn(user=EVIL):
            other.fact("k", EVIL)
        evil = session.id
        list(store.index.sessions(limit=1))
    with serving(Settings(url=str(folder), rate=0), launch_scope="write") as running:
        Path(folder / "evil").write_text(f"{evil} {other.id}")
        yield running


def _ids(running: RunningServer) -> tuple[str, str]:
    first, second = Path(running.server.settings.url, "evil").read_text().split()
    return first, second


def _paths(running: RunningServer) -> list[str]:
    one, two = _ids(running)
    tabs = ("state", "diff", "context", "files", "why", "cost", "raw")
    return [
        "/",
        f"/s/{one}",
        *(f"/s/{one}/@1?view={view}" for view in ("reader", "compact", "waterfall", "json")),
        *(f"/s/{one}/@1?tab={tab}" for tab in tabs),
        *(f"/s/{one}/e{seq}" for seq in range(2, 9)),
        f"/s/{one}/@2",
        f"/s/{one}/verify",
        f"/s/{one}/why?of=e5",
        f"/s/{one}/why?of=e5&view=table",
        f"/s/{one}/taint?source=web:*",
        f"/compare?a={one}@1&b={two}@2",
        "/live",
        "/search?q=canary",
        "/cost?by=agent",
        "/audit",
        "/store",
    ]


def test_nothing_recorded_ever_runs_loads_or_leads_away(open_page: Open, hostile: RunningServer) -> None:
    reader = open_page(hostile, "/")
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url))
    for path in _paths(hostile):
        reader.go(path).settle()
        assert not reader.has_canary_sung(), path
        assert reader.page.url.startswith(hostile.url), path
        assert reader.page.locator("iframe, object, embed, base").count() == 0, path
        links = reader.page.eval_on_selector_all("a[href]", "(all) => all.map((each) => each.href)")
        assert [link for link in links if not link.startswith(hostile.url)] == [], path
    away = [url for url in asked if not url.startswith((hostile.url, "data:"))]
    assert away == []


def test_what_steers_and_hides_is_named(open_page: Open, hostile: RunningServer) -> None:
    one, _ = _ids(hostile)
    reader = open_page(hostile, f"/s/{one}/@1?view=reader")
    reader.page.get_by_text("ESC", exact=True).first.wait_for()
    shown = {each.strip() for each in reader.page.locator(".control").all_inner_texts()}
    assert {"ESC", "RLO", "ZWSP", "BOM"} <= shown
    text = reader.page.evaluate("() => document.body.innerText")
    assert not set(text) & set("\x1b\u202e\u2066\u200b\ufeff\x00")


def test_a_line_of_five_megabytes_does_not_hold_the_page_up(open_page: Open, hostile: RunningServer) -> None:
    one, _ = _ids(hostile)
    reader = open_page(hostile, f"/s/{one}/@2")
    reader.sees("a long line")
    reader.settle()
    size = reader.page.evaluate("() => document.body.innerHTML.length")
    assert size < 2_000_000, "the whole line is in the page"
    reader.press("[")
    reader.waits_for_path("/@1")
    assert reader.is_too_wide() <= 0


def test_dialogs_about_hostile_things_are_harmless(open_page: Open, hostile: RunningServer) -> None:
    reader = open_page(hostile, "/live")
    reader.button("Answer…").click()
    reader.page.get_by_role("dialog").wait_for()
    assert not reader.has_canary_sung()
    reader.press("Escape")
    reader.button("Deny…").click()
    reader.page.get_by_role("dialog").wait_for()
    assert not reader.has_canary_sung()
