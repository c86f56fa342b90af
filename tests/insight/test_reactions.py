"""How the user reacts to the turn before: what counts as a correction, and when it sets a goal of its own."""

import pytest

from tests.insight.turns import Scene
from wakelog.insight.blocks import Finding
from wakelog.insight.rules import Carry, derive

_REJECTED = "The user doesn't want to proceed with this tool use."


def _after(first: Scene, words: str) -> dict[str, Finding]:
    """What is found in the user's words after a turn, by kind."""
    carry = Carry()
    derive(first.done(), carry)
    return {f.kind: f for f in derive(Scene(1).user(words).done(), carry)}


def _worked(said: str = "I changed the file.") -> Scene:
    return Scene(0).user("make the page fast").edits("app.py").says(said)


@pytest.mark.parametrize("words", ["done", "Wow, you even made the icon look like a home. Wonderful."])
def test_words_that_ask_for_nothing_carry_the_goal(words: str) -> None:
    assert _after(_worked("Please restart the server."), words)["goal"].detail == "carried"


def test_the_button_of_an_editor_carries_the_goal() -> None:
    assert _after(_worked(), '@agent Continue: "Continue to iterate?"')["goal"].detail == "carried"


def test_a_praise_with_an_order_is_a_goal() -> None:
    assert _after(_worked(), "Awesome, add a test for it.")["goal"].detail == ""


def test_yes_at_the_start_of_a_session_that_was_cut_carries_a_goal_that_is_not_there() -> None:
    goal = _after(Scene(0).says("It works. Want me to run the tests?"), "yes")["goal"]
    assert (goal.detail, goal.reason) == ("carried", None)


def test_a_correction_is_a_goal_also_if_it_answers_a_question() -> None:
    found = _after(_worked("I wrote a script for it. Shall I run it?"), "no, i mean the other script")
    assert found["goal"].detail == ""
    assert "correction" in found


def test_a_no_with_a_reason_rejects_what_was_offered() -> None:
    found = _after(_worked("Want me to start the build?"), "No, the machine is too small for a build.")
    assert "correction" in found
    assert "correction" not in _after(_worked("Want me to start the build?"), "no")


def test_words_in_place_of_a_call_redirect() -> None:
    first = Scene(0).user("make the page fast").runs("rm -r cache", _REJECTED, fails=True)
    assert "redirect" in _after(first, "Please look at the queries")


@pytest.mark.parametrize(
    "words",
    ["$ app\nzsh: command not found: app", "All dates are the same, can we find out why?", "there's some bugs."],
)
def test_a_report_after_work_is_one(words: str) -> None:
    assert "failure_report" in _after(_worked(), words)


def test_a_pasted_log_before_any_work_is_no_report() -> None:
    assert "failure_report" not in _after(Scene(0).user("hi").says("Hello!"), "$ app\nError: no route")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("then I get connect errors", "failure_report"),
        ("it is duplicating the header of the tables", "failure_report"),
        ("the submit button is not enabled", "failure_report"),
        ('[{"code": "2322", "severity": 8, "message": "Type null is not assignable"}]', "failure_report"),
        ("when I build it:\nsrc/a.ts:32:7 - error TS2740: Type is missing", "failure_report"),
        ("the backlight is too much bright", "correction"),
        ("I am not a fan of these borders", "correction"),
    ],
)
def test_what_is_not_as_it_should_be_after_work_is_a_reaction(words: str, kind: str) -> None:
    assert kind in _after(_worked(), words)


def test_a_no_in_a_list_of_wishes_is_no_correction() -> None:
    words = "Build a tool for briefs. It makes tasks. Points to consider: speed. No authentication is required."
    assert "correction" not in _after(_worked(), words)


def test_the_same_words_again_set_no_goal() -> None:
    carry = Carry()
    for turn in range(3):
        found = derive(Scene(turn + 1).user("It's been an hour and you still failed").edits().done(), carry)
        assert [f.detail for f in found if f.kind == "goal"] == ["carried" if turn else ""]
