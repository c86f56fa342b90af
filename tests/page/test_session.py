"""A session as it is read: damage is shown and not hidden, links last, keys do what the table says, words are set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import wakelog
from tests.importers.claude import NAME, SESSION, Lines, call, imported, text
from tests.page.conftest import Open
from wakelog.http.server import RunningServer, serving
from wakelog.http.state import Settings

pytestmark = pytest.mark.slow


def test_a_damaged_session_is_read_around_its_damage(open_page: Open, reading: RunningServer) -> None:
    reader = open_page(reading, "/s/tampered")
    reader.sees("The first bad record is e13")
    reader.sees("cannot be read")
    before = reader.page.locator("#event-8")
    before.get_by_text("turn ended").wait_for()
    assert before.locator(".unsure").count() == 0
    after = reader.page.locator("#event-15")
    after.get_by_text("refund-1002").wait_for()
    assert after.locator(".unsure").count() == 1, "what follows cannot be verified, and says so"
    reader.link("Verify", exact=True).click()
    reader.sees(re.compile("first bad record"))


def test_a_permalink_leads_to_its_event_under_any_name(open_page: Open, writing: RunningServer) -> None:
    reader = open_page(writing, "/s/fix-bug/e70")
    reader.sees("12 passed")
    reader.press("y")
    reader.sees("Permalink copied")
    link = str(reader.page.evaluate("() => navigator.clipboard.readText()"))
    assert re.search(r"/x/[0-9a-f]{16}/e70$", link)
    reader.page.goto(link)
    reader.waits_for_path(r"^/s/s_\w+/e70$")
    reader.sees("12 passed")
    reader.go("/x/0123456789abcdef")
    reader.sees("Nothing in this store has this id")


def test_keys_open_and_close_the_details_of_a_row(open_page: Open, reading: RunningServer) -> None:
    reader = open_page(reading, "/s/fix-bug/e70")
    details = reader.page.locator("#event-69 details")
    details.wait_for()
    assert details.get_attribute("open") is None
    for key, is_open in (("l", True), ("h", False), ("Enter", True), ("Space", False), ("o", True), ("z", False)):
        reader.press(key)
        assert (details.get_attribute("open") is not None) == is_open, key
    reader.press("R")
    reader.sees("Resume command copied")
    assert reader.page.evaluate("() => navigator.clipboard.readText()") == "wakelog resume fix-bug"


def test_the_waterfall_shows_the_session_and_then_a_turn(open_page: Open, reading: RunningServer) -> None:
    reader = open_page(reading, "/s/fix-bug?view=waterfall")
    reader.sees(re.compile("^12 turns · "))
    reader.page.get_by_role("grid", name="Waterfall").get_by_text("@6.2").click()
    reader.waits_for_path(r"/@6\.2\?view=waterfall")
    reader.page.get_by_role("grid", name="Waterfall").get_by_text("run_tests").wait_for()


def test_the_waterfall_is_looked_at_closer_by_keys_by_buttons_and_by_hand(
    open_page: Open, reading: RunningServer
) -> None:
    reader = open_page(reading, "/s/fix-bug?view=waterfall").settle()
    bar = reader.page.get_by_role("grid", name="Waterfall").locator(".span").nth(5)
    fit = reader.button("Fit", exact=True)
    width = lambda: float(bar.evaluate("(each) => each.style.width.slice(0, -1)"))  # noqa: E731
    whole = width()
    assert fit.is_disabled()
    reader.press("w")
    assert width() == pytest.approx(2 * whole, rel=0.001)
    reader.button("Zoom out").click()
    assert width() == pytest.approx(whole, rel=0.001)
    strip = reader.page.get_by_title("Drag to look closer").bounding_box()
    assert strip is not None
    for share, act in ((0.25, reader.page.mouse.down), (0.5, reader.page.mouse.up)):
        reader.page.mouse.move(strip["x"] + strip["width"] * share, strip["y"] + 5)
        act()
    assert width() == pytest.approx(4 * whole, rel=0.05)
    left = bar.evaluate("(each) => each.style.left")
    reader.press("d")
    assert bar.evaluate("(each) => each.style.left") != left
    reader.press("0")
    assert fit.is_disabled()
    assert width() == pytest.approx(whole, rel=0.001)


def test_changed_lines_and_texts_are_told_word_by_word(open_page: Open, tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        session = store.session("words")
        with session.turn(user="plan it"):
            session.fact("plan", "write the parser, then the tests")
        with session.turn(user="change it"):
            session.fact("plan", "write the tests, then the parser")
    with serving(Settings(url=str(tmp_path / "store"), rate=0), launch_scope="read") as running:
        reader = open_page(running, "/s/words/@2?tab=diff")
        change = reader.page.locator("li.changed")
        change.wait_for()
        assert change.locator("del mark").all_inner_texts() == ["parser", "tests"]
        assert change.locator("ins mark").all_inner_texts() == ["tests", "parser"]
        assert change.locator("ins").inner_text() == "write the tests, then the parser"


def test_a_search_is_saved_under_a_name_and_forgotten(open_page: Open, reading: RunningServer) -> None:
    reader = open_page(reading, "/?agent=demo-agent&failed=true")
    reader.button("Save search…").click()
    reader.page.get_by_label("Name").fill("my failures")
    reader.button("Save", exact=True).click()
    reader.go("/").settle()
    reader.link("my failures").click()
    reader.waits_for_path(r"^/\?agent=demo-agent&failed=true$")
    reader.button("Forget my failures").click()
    assert reader.page.get_by_text("my failures").count() == 0
    reader.go("/search?q=test").settle()
    reader.button("Save search…").wait_for()


def test_back_and_forward_go_through_what_was_selected(open_page: Open, reading: RunningServer) -> None:
    reader = open_page(reading, "/s/fix-bug")
    turns = reader.page.get_by_role("navigation", name="Turns")
    for number in (2, 5):
        turns.get_by_role("button", name=re.compile(rf"^@{number}\b")).click()
        reader.waits_for_path(rf"/@{number}$")
    reader.page.go_back()
    reader.waits_for_path(r"/@2$")
    reader.page.locator(".bar").get_by_text("read the failing test").wait_for()
    reader.page.go_back()
    reader.waits_for_path(r"/s/fix-bug$")
    reader.page.go_forward()
    reader.waits_for_path(r"/@2$")


def test_long_prompts_are_folded_and_markdown_is_set(open_page: Open, tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        session = store.session("long")
        with session.turn(user="The title\n\n" + "\n".join(f"line {n} of it" for n in range(60))):
            session.message(
                "assistant", "# Plan\n- one `word`\n\n```py\nprint(1)\n```\n\n| a | b |\n|---|---|\n| c | d |\n"
            )
    with serving(Settings(url=str(tmp_path / "store"), rate=0), launch_scope="read") as running:
        reader = open_page(running, "/s/long")
        reader.sees("The title")
        assert reader.page.get_by_text("line 59 of it").count() == 0
        reader.button(re.compile("^Show all")).click()
        reader.sees(re.compile("line 59 of it"))
        grid = reader.page.get_by_role("grid", name="Events")
        grid.locator("code", has_text="word").wait_for()
        grid.locator("pre", has_text="print(1)").wait_for()
        assert grid.locator("td").all_inner_texts() == ["a", "b", "c", "d"]


def test_a_diff_shows_what_was_derived_and_an_accepted_item_is_recorded(
    open_page: Open, writing: RunningServer, reading: RunningServer
) -> None:
    reader = open_page(writing, "/s/claude-5a1e7c02/@1?tab=diff")
    derived = reader.page.get_by_role("region", name="Derived from words in the log")
    derived.get_by_text("after e10 failed: ").wait_for()
    titles = derived.locator("li .muted.tiny").all_inner_texts()
    assert titles == ["~ change", "~ dead end", "~ decision"]
    assert derived.get_by_text("The fix is to stream the body").count() == 1, (
        "shown as the change, not as a decision too"
    )
    assert str(derived.get_by_role("link", name="test ✗ fail").get_attribute("href")).endswith("/e10")
    derived.get_by_role("button", name="Accept the decision of e6").click()
    reader.sees("Recorded, with e6 as evidence")
    derived.get_by_text("The proxy allows 10 MB").wait_for(state="detached")
    with wakelog.open(writing.server.settings.url) as store:
        (decision,) = store.resume("claude-5a1e7c02").state().decisions_made.values()
    assert decision.evidence[0] == 6
    reader = open_page(reading, "/s/claude-5a1e7c02/@2?tab=diff")
    reader.sees("No, please don't touch the proxy: ops owns that file.")
    assert reader.page.get_by_role("button", name="Accept").count() == 0, "nothing is recorded by those who only look"


def test_what_is_derived_from_one_turn_is_not_shown_for_another_whose_own_cannot_be_had(
    open_page: Open, writing: RunningServer
) -> None:
    """Accepting it there would ask for an item of the other turn."""
    reader = open_page(writing, "/s/claude-5a1e7c02/@1?tab=diff")
    derived = reader.page.get_by_role("region", name="Derived from words in the log")
    derived.get_by_text("after e10 failed: ").wait_for()
    reader.page.route("**/insight?**", lambda route: route.abort())
    turns = reader.page.get_by_role("navigation", name="Turns")
    turns.get_by_role("button", name=re.compile(r"^@2\b")).click()
    reader.page.locator(".bar").get_by_text("No, please don't touch").wait_for()
    derived.wait_for(state="detached")


@pytest.mark.parametrize("width", [1440, 1200, 1000])
def test_the_bar_of_a_turn_shows_its_buttons_whole(open_page: Open, writing: RunningServer, width: int) -> None:
    reader = open_page(writing, "/s/claude-5a1e7c02/@1", width=width).settle()
    right = lambda part: (box := part.bounding_box())["x"] + box["width"]  # noqa: E731
    bar = right(reader.button("Rewind…").locator("xpath=.."))
    for name in ("Rewind…", "Fork…", "Note…", "Name…"):
        assert right(reader.button(name)) <= bar, name


def test_calls_and_files_of_a_transcript_are_told_in_words(open_page: Open, tmp_path: Path) -> None:
    """What a search looked for, what happened to a file, and whose note it is, and not the fields they are kept in."""
    lines = Lines()
    lines.prompt("Where is the limit?")
    lines.prompt([text("Read all that there is.")], isMeta=True)
    lines.reply("m1", call("t1", "Grep", pattern="MAX_BYTES", path="/home/ada/shop/src"))
    lines.result("t1", "Found 1 file")
    lines.reply("m2", call("t2", "Edit", file_path="/home/ada/shop/src/limits.py", old_string="1", new_string="2"))
    lines.result(
        "t2",
        "updated",
        {"filePath": "/home/ada/shop/src/limits.py", "oldString": "1", "newString": "2", "originalFile": "1\n"},
    )
    with wakelog.open(tmp_path / "store") as store:
        imported(lines.write(tmp_path / f"{SESSION}.jsonl"), store)
    with serving(Settings(url=str(tmp_path / "store"), rate=0), launch_scope="read") as running:
        reader = open_page(running, f"/s/{NAME}/@1?tab=diff")
        reader.sees('"MAX_BYTES" in /home/ada/shop/src')
        reader.sees("agent's note")
        changed = reader.page.locator("li.changed", has_text="src/limits.py")
        changed.get_by_text("modified", exact=True).wait_for()
        assert "files_modified" not in changed.inner_text()
        assert reader.page.get_by_text('"change"').count() == 0
