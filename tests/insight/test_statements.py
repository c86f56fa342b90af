"""Words that only react to what a coding agent did set no goal; what they ask for does."""

import pytest

from tests.insight.turns import Scene
from wakelog.insight.rules import Carry, derive

SAID = "I added the settings page with a toggle for dark mode. All tests pass."


def _goal(words: str, said: str = SAID) -> str:
    carry = Carry()
    derive(Scene(1).user("Add a settings page with dark mode").edits().says(said).done(), carry)
    [goal] = [f for f in derive(Scene(2).user(words).done(), carry) if f.kind == "goal"]
    return goal.detail


@pytest.mark.parametrize(
    "words",
    [
        "same thing",
        "it works now, thanks",
        "Perfect! The toggle feels right now.",
        "It's better but the colors are off",
        "I refreshed it and it is still white",
        "the page is blank",
        "that still loads twice",
        "I tested it on my phone and it worked",
        "Thanks for the page, it helps a lot",
        "run it again",
        "We agreed on that already.",
        "still on it?",
        "I get this:\n\nTypeError: undefined is not a function\n    at Header (header.tsx:12)",
        "click.ClickException: the login needs an id",
        "I got a build error.\n## Error type\nBuild error\n## Output\n./app/row.tsx:42:5",
        "That's wrong. What is going on?",
    ],
)
def test_a_statement_about_what_was_done_carries_the_goal(words: str) -> None:
    assert _goal(words) == "carried"


@pytest.mark.parametrize(
    "words",
    [
        "the footer overlaps the sidebar",
        "done. now the footer",
        "better error messages",
        "same for the admin page",
        "Looks good, ship it to staging and tell me the url",
        "It works, but can you also remember the choice?",
        "it's too dark, use a lighter gray",
        "The page needs a save button",
        "That seems slow. Think about a cache",
        "when i exit the shell why do i lose the theme",
        "I got more questions in questions.md",
        "I see. Then style the header like the landing page",
    ],
)
def test_a_request_is_a_goal_also_inside_a_reaction(words: str) -> None:
    assert _goal(words) == ""


def test_what_the_agent_offered_is_no_goal_of_the_users() -> None:
    offer = "We can walk forward greedily or use a priority queue. The greedy walk is simple, and easy to change later."
    assert _goal("Great, let's go with the greedy walk.", offer) == "carried"
    assert _goal("Great, let's go with a database.", offer) == ""


def test_a_failure_is_shown_as_one_and_carries_the_goal() -> None:
    carry = Carry()
    derive(Scene(1).user("Add a login page").edits().says("I added it.").done(), carry)
    found = {f.kind: f.detail for f in derive(Scene(2).user("I still get the same error").done(), carry)}
    assert found["goal"] == "carried"
    assert "failure_report" in found
