"""The user's words: goals without wrappers, corrections, preferences; and what only looks like one."""

import pytest

from tests.insight.turns import Scene
from wakelog.insight.blocks import Finding
from wakelog.insight.rules import Carry, derive

FIRST = "Add a login page to the shop"


def _second(words: str, said: str = "I added the page.") -> tuple[Scene, list[Finding]]:
    carry = Carry()
    derive(Scene(1).user(FIRST).says(said).done(), carry)
    scene = Scene(2).user(words)
    return scene, derive(scene.done(), carry)


@pytest.mark.parametrize(
    ("prompt", "goal"),
    [
        ("Fix the bug\n", "Fix the bug"),
        (
            "# Context from my IDE setup:\n\n## Open tabs:\n- a.md\n\n## My request for Codex:\nIs this done?\n",
            "Is this done?",
        ),
        ("We solve it. Here's the issue text:\nISSUE:\nIt rounds down\n\nINSTRUCTIONS:\nNow go.", "It rounds down"),
        ("<pr_description>\nConsider the following PR description:\nIt crashes\n</pr_description>\n<x>", "It crashes"),
        ("<command-name>/do</command-name>\n<command-args>make it fast</command-args>", "make it fast"),
        ("<system-reminder>be nice</system-reminder>\nrename it", "rename it"),
        ("Say what `dep add <issue> <other>` does", "Say what `dep add <issue> <other>` does"),
    ],
)
def test_the_goal_is_what_the_user_wrote_without_wrappers(prompt: str, goal: str) -> None:
    scene = Scene().user(prompt)
    [found] = [f for f in derive(scene.done(), Carry()) if f.kind == "goal"]
    assert scene.quote(found) == goal


@pytest.mark.parametrize(
    "prompt",
    [
        "Your task is to create a detailed summary of the conversation so far, paying attention to requests.",
        "[Request interrupted by user]",
        "<command-name>/exit</command-name>",
        "/exit",
        "/model opus",
        "  \n",
        "Hey there!",
    ],
)
def test_a_prompt_without_words_sets_no_goal(prompt: str) -> None:
    assert not [f for f in derive(Scene().user(prompt).done(), Carry()) if f.kind == "goal"]


@pytest.mark.parametrize(
    "words", ["yes", "ok, continue", "go ahead please", "Thanks!", "Yes, please proceed with that.", "ok, lets"]
)
def test_words_that_only_go_on_carry_the_goal(words: str) -> None:
    _, found = _second(words, "Shall I write the tests too?")
    [goal] = [f for f in found if f.kind == "goal"]
    assert goal.detail == "carried"
    assert goal.reason is not None
    assert goal.reason.seq == 1000, "the goal that stands is the first turn's"


@pytest.mark.parametrize(
    "words",
    [
        "My account is ada_17.",
        "I'm sorry, but I don't remember the number.",
        "I don't have it here. Can you still help me with that?",
        "Okay, I'll look for it. Could you hold on for a moment?",
        "Thank you! You too have a great day!",
    ],
)
def test_words_that_only_tell_what_is_known_carry_the_goal(words: str) -> None:
    _, found = _second(words)
    assert [f.detail for f in found if f.kind == "goal"] == ["carried"]


def test_a_request_behind_what_is_known_sets_a_goal() -> None:
    _, found = _second("My account is ada_17. Add a dark theme.")
    assert [f.detail for f in found if f.kind == "goal"] == [""]


def test_an_answer_to_what_the_agent_asked_sets_no_goal() -> None:
    _, found = _second("My user id is ada_17.", "Could you please provide your user id?")
    assert [f.detail for f in found if f.kind == "goal"] == ["carried"]


@pytest.mark.parametrize(
    "words", ["how are they sorted?", "Also add a logout button", "Instead of a page we should use a dialog"]
)
def test_a_new_wish_sets_a_new_goal_even_after_a_question(words: str) -> None:
    _, found = _second(words, "Shall I write the tests too?")
    assert [f.detail for f in found if f.kind == "goal"] == [""]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("No, that's wrong. The button belongs into the footer.", "correction"),
        ("You removed the old link, put it back.", "correction"),
        ("Instead of a page we should use a dialog", "redirect"),
        ("I think there is some confusion. The page is for the admin.", "correction"),
        ("let's only add the button for now, but leave the rest", "redirect"),
        ("It is still not working. No data is showing up", "failure_report"),
        ("No teams are loading into the pane now", "failure_report"),
        ("Well, now I get a 401 unauthorized when I open it", "failure_report"),
        ("so, that seems to have failed to resolve the issue.", "failure_report"),
        ('Now it is:\n\n"""\nsrc/db.ts(1,88): error TS2307: cannot find module\n"""', "failure_report"),
    ],
)
def test_how_the_user_took_it_is_told_apart(words: str, kind: str) -> None:
    _, found = _second(words)
    assert [f.kind for f in found if f.kind in ("correction", "redirect", "failure_report")] == [kind]


@pytest.mark.parametrize(
    "words",
    [
        "No, that's all, thank you!",
        "No, thanks.",
        "Can you check if we could use redis instead?",
        "Please add a test",
        "why is it called like this?",
    ],
)
def test_what_only_sounds_like_a_correction_is_none(words: str) -> None:
    _, found = _second(words)
    assert not [f for f in found if f.kind in ("correction", "redirect", "failure_report")]


def test_the_first_words_correct_nothing() -> None:
    found = derive(Scene().user("No, it is still broken, do not touch the tests").done(), Carry())
    assert not [f for f in found if f.kind in ("correction", "redirect", "failure_report")]


def test_a_standing_wish_is_a_preference() -> None:
    scene = Scene().user("Add a button. Always use tabs for indentation.")
    [found] = [f for f in derive(scene.done(), Carry()) if f.kind == "preference"]
    assert scene.quote(found) == "Always use tabs for indentation."


def test_words_that_the_agent_takes_as_a_correction_are_one() -> None:
    carry = Carry()
    derive(Scene(1).user(FIRST).says("I check it when it is saved.").done(), carry)
    scene = Scene(2).user("If two sessions overlap then the order matters. So it has to come first.")
    scene.says("Ah yes, you're absolutely right! I missed that case.").edits()
    [found] = [f for f in derive(scene.done(), carry) if f.kind == "correction"]
    assert scene.quote(found) == "If two sessions overlap then the order matters."


def test_a_question_that_the_agent_finds_right_is_no_correction() -> None:
    carry = Carry()
    derive(Scene(1).user(FIRST).says("I added `edit`.").done(), carry)
    scene = Scene(2).user("what's the source for `edit` ?").says("You're right, there is none.")
    assert not [f for f in derive(scene.done(), carry) if f.kind == "correction"]


@pytest.mark.parametrize(
    "words",
    [
        "push it",
        "follow camelCase and add the number",
        "drivers is not the correct endpoint",
        "I just realized that some files are missing, i will paste them in a folder, can you merge them for me",
    ],
)
def test_an_order_and_a_contradiction_are_a_new_goal_also_after_a_question(words: str) -> None:
    _, found = _second(words, "I found two ways. Which one do you want?")
    assert [f.detail for f in found if f.kind == "goal"] == [""]


@pytest.mark.parametrize("words", ["go ahead and make this change", "@agent Try again", "@logs/run.txt:10-20"])
def test_a_mention_and_a_go_ahead_carry_the_goal(words: str) -> None:
    _, found = _second(words, "Shall I change it?")
    assert [f.detail for f in found if f.kind == "goal"] == ["carried"]


@pytest.mark.parametrize(
    "words",
    [
        "Now explain the second step. Do not modify any files yet.",
        "Implement it. Then run the tests. Stop after that so I can review it.",
        "check if there's code that it's not being used",
    ],
)
def test_a_limit_in_an_order_is_no_correction(words: str) -> None:
    _, found = _second(words)
    assert not [f for f in found if f.kind in ("correction", "redirect", "failure_report")]


@pytest.mark.parametrize(
    "words",
    [
        "Instead of passing the tree at each call site, can we just set up a context object?",
        "it's still too fast, reduce it by another third",
        "remove the directory and forget about that part of it",
    ],
)
def test_what_is_wanted_otherwise_is_a_correction(words: str) -> None:
    _, found = _second(words)
    assert [f for f in found if f.kind in ("correction", "redirect", "failure_report")]


@pytest.mark.parametrize(
    "words", ["pls continue", "next", "go", "y", "2", "both", "wait let me respond", "you stopped", "it works now"]
)
def test_a_nudge_carries_the_goal(words: str) -> None:
    _, found = _second(words)
    assert [f.detail for f in found if f.kind == "goal"] == ["carried"]


def test_a_notice_of_a_harness_is_nobodys_words() -> None:
    notice = (
        "<system_notification>\n<task>\nstatus: success\n</task>\n</system_notification>\n"
        "<user_query>Briefly inform the user about the task result.</user_query>"
    )
    _, found = _second(notice)
    assert not [f for f in found if f.kind == "goal"]
