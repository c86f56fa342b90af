"""Derived items on every surface of the command line: marked, with the event to accept, never as if recorded."""

from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog.model import events as ev
from wakelog.model.events.base import Failure

CHOICE = "I'll stream it instead of buffering it, so that memory stays flat."
MARK = "~ derived by rules"


def _call(action: str, tool: str, given: Any, output: Any, effect: Any = "external", **more: Any) -> ev.ActionRecorded:
    return ev.ActionRecorded(action=action, tool=tool, effect=effect, input=given, output=output, **more)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Path:
    monkeypatch.chdir(tmp_path)
    with wakelog.open(tmp_path / ".wakelog") as opened:
        session = opened.session("uploads")
        with session.turn("uploads over 10 MB fail, find out why"):
            session.message("assistant", "Found the bug: the body is read at once. " + CHOICE)
            session.append(_call("1", "Edit", {"file_path": "upload.py"}, "ok", "write"))
            session.append(_call("2", "Bash", {"command": "pytest -q | tail -1"}, "1 failed, 2 passed"))
        with session.turn("thanks"):
            session.message("assistant", "You are welcome.")
    return tmp_path


def test_insight_quotes_marks_and_explains(store: Path, cli: Cli) -> None:
    said = cli("insight", "uploads@1")
    [decision] = [line for line in said.lines if line.strip().startswith("decision")]
    assert f'~ "{CHOICE}"' in decision
    assert decision.endswith("e4")
    assert "test ✗ fail" in said.out
    assert "upload.py" in said.out
    assert MARK in said.lines[-1]


def test_show_diff_log_and_why_tell_it_with_the_mark(store: Path, cli: Cli) -> None:
    for command in (("show", "uploads@1"), ("diff", "uploads@1"), ("log", "uploads", "-p"), ("why", "uploads@e5")):
        said = cli(*command).out
        assert f'~ "{CHOICE}"' in said, command
        assert MARK in said, command


def test_programs_read_that_it_is_derived(store: Path, cli: Cli) -> None:
    items = cli("insight", "uploads@1", "--json").data["items"]
    assert {item["known"] for item in items} == {"derived"}
    shown = cli("show", "uploads@1", "--json").data["insight"]["items"]
    assert shown == items
    assert [i["quote"] for i in cli("diff", "uploads@1", "--json").data["derived"]] == [CHOICE]
    assert cli("diff", "uploads@1", "--json").data["decisions"] == [], "nothing was recorded"
    records = cli("insight", "uploads@1", "--ndjson").records
    assert [r["kind"] for r in records] == ["goal", "decision", "file", "check"]


def test_accept_records_it_and_the_mark_is_gone(store: Path, cli: Cli) -> None:
    said = cli("accept", "e4", "-s", "uploads")
    assert said.code == 0
    assert "decision.made" in said.out
    assert "decision " not in cli("insight", "uploads@1").out
    made = cli("state", "/decisions_made", "-s", "uploads", "--json").data["value"]
    [decision] = made.values()
    assert (decision["choice"], decision["evidence"]) == (CHOICE, [4, 5])


def test_accepting_nothing_is_an_error_that_names_what_there_is(store: Path, cli: Cli) -> None:
    said = cli("accept", "e6", "-s", "uploads")
    assert said.code == 3
    assert "insight-not-found" in said.err
    assert "e4 (decision)" in said.err


def test_search_finds_derived_decisions(store: Path, cli: Cli) -> None:
    said = cli("search", "buffering", "--kind", "decision")
    assert said.code == 0
    assert "~ decision, derived by rules" in said.out
    assert "uploads@1 e4" in said.out
    assert cli("search", "buffering", "--kind", "fact").code == 1
    [hit] = cli("search", "buffering", "--kind", "decision", "--json").data["derived"]
    assert hit["item"]["seq"] == 4


def test_a_turn_without_anything_to_derive_shows_no_mark(store: Path, cli: Cli) -> None:
    assert MARK not in cli("show", "uploads@2").out
    assert "~" not in cli("diff", "uploads@2").out.partition("\n")[2]


def test_several_turns_are_told_one_by_one(store: Path, cli: Cli) -> None:
    said = cli("insight", "uploads@1..@2").lines
    assert said.index("@1") < said.index("@2")
    assert sum(MARK in line for line in said) == 1


def test_a_change_after_the_users_report_names_no_failed_call(store: Path, cli: Cli) -> None:
    with wakelog.open(store / ".wakelog") as opened:
        session = opened.session("proxy")
        with session.turn("uploads fail"):
            session.append(_call("2", "Edit", {"file_path": "upload.py"}, "ok", "write"))
            session.message("assistant", "I raised the limit.")
        with session.turn("it still does not work"):
            session.message("assistant", "Let me try a different approach: the proxy reads the body first.")
            session.append(_call("3", "Edit", {"file_path": "proxy.py"}, "ok", "write"))
    said = cli("insight", "proxy@2").out
    assert '~ "Let me try a different approach' in said
    assert "failed" not in said


def test_results_and_failures_that_come_again_are_shown_once(tmp_path: Path, cli: Cli) -> None:
    path = "/home/somebody/code/product/services/api/handlers/upload_handler.py"
    with wakelog.open(tmp_path / "other") as opened:
        session = opened.session("again")
        with session.turn("make the tests pass"):
            for n in range(3):
                session.append(_call(f"t{n}", "Bash", {"command": "pytest -q"}, "1 failed"))
                lost = Failure(type="error", message="String not found")
                session.append(_call(f"e{n}", "Edit", {"file_path": path}, None, "write", outcome="failed", error=lost))
            session.append(_call("last", "Bash", {"command": "pytest -q"}, "3 passed"))
    said = cli("insight", "again@1", "--store", str(tmp_path / "other")).out
    assert "test ✗ fail ×3   test ● pass" in said
    assert "upload_handler.py, failed 3 times" in said
    assert path not in said


def test_a_change_after_a_failed_check_names_the_check_and_not_two_tools(tmp_path: Path, cli: Cli) -> None:
    with wakelog.open(tmp_path / "other") as opened:
        session = opened.session("again")
        with session.turn("uploads fail, find out why"):
            session.append(_call("1", "Edit", {"file_path": "proxy.conf"}, "ok", "write"))
            session.append(_call("2", "Bash", {"command": "pytest -q"}, "1 failed"))
            session.message("assistant", "That had no effect. " + CHOICE)
            session.append(_call("3", "Edit", {"file_path": "upload.py"}, "ok", "write"))
    said = cli("insight", "again@1", "--store", str(tmp_path / "other")).out
    assert "after e5 failed: \"I'll stream it instead of buffering it" in said
    assert "Bash → Edit" not in said


def test_each_answer_of_the_user_is_shown_before_its_question(tmp_path: Path, cli: Cli) -> None:
    long = (
        "Which port should the service listen on, " + "given what the proxy in front of it forwards, " * 8 + "and why?"
    )
    asked = {"questions": [{"question": "Use the cache?"}, {"question": "Encrypt it?"}, {"question": long}]}
    output = f'Answered: "Use the cache?"="Yes", "Encrypt it?"="Yes", "{long}"="6379".'
    with wakelog.open(tmp_path / "asked") as opened:
        session = opened.session("cache")
        with session.turn("make it fast"):
            session.append(_call("1", "AskUserQuestion", asked, output, "pure"))
    out = cli("--store", str(tmp_path / "asked"), "show", "cache@1").out
    assert '~ "Yes", to "Use the cache?"' in out
    assert '~ "Yes", to "Encrypt it?"' in out
    assert '~ "6379", to "Which port should' in out
    found = cli("--store", str(tmp_path / "asked"), "search", "6379", "--kind", "decision").out
    assert '"6379", to "Which port' in found
