"""Dialogues with a service: answers, questions and insisting are not a goal; another request is."""

from typing import Any

import pytest

from tests.insight.conftest import Scribe
from tests.insight.turns import Scene
from wakelog.insight.decisions import find_decisions
from wakelog.insight.derivation import DEFAULT_SCORE
from wakelog.insight.rules import Carry, derive, find_failures
from wakelog.session import Session

WISH = "I want to return the lamp of my last order."
WHICH = "Sure. Could you provide your order number, please?"
DONE = "The lamp can be sent back until Friday. If you need anything else, feel free to ask!"


def _goal_after(agent: str, words: str, *, work: bool = False) -> str:
    """The goal of the user's second words: "" for a new one, or "carried"."""
    carry = Carry()
    first = Scene().user(WISH)
    first = first.edits("lamp.py") if work else first.calls("get_order", {"customer": "ada"}, effect="read")
    derive(first.says(agent).done(), carry)
    [goal] = [f for f in derive(Scene(2).user(words).says("All right.").done(), carry) if f.kind == "goal"]
    return goal.detail


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (DONE, "Is there a fee for that? I heard it is free for members."),
        (DONE, "Could you tell me if the box has to be the old one?"),
        (DONE, "I did pay for the long warranty, so it should go back for free."),
        (DONE, "I really need this lamp returned, can you look into it once more?"),
        (DONE, "What would it cost me to keep it?"),
        (DONE, "I understand, but please send it back as well. I'd like to make room for guests."),
        ("Let me know what changes you want.", "I'd like to swap the shade. Also, I'd like to add a longer cord."),
        (WHICH, "Let me get back to you with the number. Is there any way we can do it before?"),
        ("It costs 12 with the cover.", "I actually don't want any cover. Can you adjust that?"),
        (WHICH, "It is 4711. I'd like to use the card ending in 12 for the refund."),
        (WHICH, "I'm doing this because I want to free some room on my desk. Can we go on without the number?"),
        ("What would you like to do with the lamp?", "I'd like to exchange it for a green one."),
        ("You can choose the post or a courier. Which one?", "I'd like the courier to come on Monday."),
    ],
)
def test_answers_questions_and_insisting_carry_the_request_that_stands(agent: str, words: str) -> None:
    assert _goal_after(agent, words) == "carried"


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (DONE, "In that case, please cancel the chair that I ordered yesterday."),
        (DONE, "Thanks! Could you also order two bulbs of the large kind?"),
        (WHICH, "It is 4711. By the way, can you check when the table came?"),
        (WHICH, "Before we continue, I'm upset about the broken mirror. Can we talk about that?"),
        (WHICH, "It is 4711. Oh, and the mirror came broken. Can we discuss that?"),
        (DONE, "Then I'm willing to cancel the whole order. Can you help with that?"),
        (DONE, "I'd like to return a blue carpet and three pillows."),
        ("There are two: the oak one and the steel one.", "Neither of those fits my room. Do you have smaller ones?"),
        ("Shall I send the label?", "Yes. I also want to change my street to Elm Road."),
    ],
)
def test_another_request_sets_a_goal(agent: str, words: str) -> None:
    assert _goal_after(agent, words) == ""


def test_where_the_agent_works_on_files_each_question_is_a_goal() -> None:
    words = "Is there a fee for that? I heard it is free for members."
    assert _goal_after(DONE, words, work=True) == ""
    assert _goal_after(DONE, words) == "carried"


def test_the_users_own_words_show_that_it_is_a_service() -> None:
    carry = Carry()
    derive(Scene().user("I'd like my money back for my order of March.").says("That is not possible.").done(), carry)
    words = "I'm quite unhappy with that. Is there anything else that can be done?"
    [goal] = [f for f in derive(Scene(2).user(words).says("No.").done(), carry) if f.kind == "goal"]
    assert goal.detail == "carried"


def test_goals_of_a_session_are_those_of_its_turns_read_in_order(session: Session[Any], scribe: Scribe) -> None:
    """Each turn of a session is derived separately, and reads the earlier turns it needs."""
    talk = [
        (WISH, WHICH, ""),
        ("It is 4711.", DONE, "carried"),
        ("Is there a fee for that?", "No, it is free.", "carried"),
        ("Please cancel the chair too, then.", "Done.", ""),
        ("And the lamp is really free to return?", "It is.", "carried"),
    ]
    for words, answer, _ in talk:
        scribe.start(words)
        scribe.calls("get_order", {"customer": "ada"}, effect="read")
        scribe.says(answer)
        scribe.end()
    goals = session.insight("@1..@5").of("goal")
    assert [g.result for g in goals] == [detail for _, _, detail in talk]
    assert goals[-1].reason == "Please cancel the chair too, then."


def test_who_grants_something_with_its_reason_decides() -> None:
    [found] = find_decisions(Scene().says("Since the lamp came broken, you are eligible for a full refund.").done())
    assert found.score >= DEFAULT_SCORE
    assert not find_decisions(Scene().says("You are eligible for a full refund as a member of the club.").done())


def test_a_refusal_that_is_said_again_is_not_another_decision() -> None:
    carry = Carry()
    no = "I'm unable to take back the lamp of March because it was a gift."
    first = derive(Scene().user(WISH).says(no).done(), carry)
    again = derive(Scene(2).user("I understand, but please take it back.").says(f"I see. {no}").done(), carry)
    assert [f.score >= DEFAULT_SCORE for f in first if f.kind == "decision"] == [True]
    assert not [f for f in again if f.kind == "decision" and f.score >= DEFAULT_SCORE]


def test_how_a_command_is_put_is_no_decision() -> None:
    scene = Scene().says("I'll put everything into one command block instead, to be safe.").runs("make")
    assert not [f for f in find_decisions(scene.done()) if f.score >= DEFAULT_SCORE]


def test_nothing_was_tried_where_the_harness_refused_the_call() -> None:
    refused = "Please provide EXACTLY ONE action, found 2."
    said = "I am still getting the same message."
    found = list(find_failures(Scene().runs("make", refused).says(said).done()))
    assert not [f for f in found if f.kind == "dead_end"]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("I understand, but please send the courier today.", "correction"),
        ("I appreciate the voucher, but I'm looking for my money back.", "correction"),
        ("I actually don't want any cover.", "correction"),
        ("I see, but I'm certain I read that it is free.", "correction"),
        ("I appreciate the help!", ""),
    ],
)
def test_who_does_not_take_the_answer_corrects(words: str, kind: str) -> None:
    carry = Carry()
    derive(Scene().user(WISH).calls("get_order").says(DONE).done(), carry)
    found = derive(Scene(2).user(words).says("All right.").done(), carry)
    kinds = [f.kind for f in found if f.kind in ("correction", "redirect", "failure_report")]
    assert kinds == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("You're right. The problem with my approach is that two writers can meet.", 1),
        ("The longer timeout did not yield any other answer, so it might be the proxy.", 1),
        ("I looked for it earlier and found nothing.", 0),
        ("The reproduction script still fails, since the patch is not applied yet.", 0),
    ],
)
def test_what_gave_nothing_is_a_dead_end_and_a_bug_that_shows_is_none(words: str, count: int) -> None:
    found = [f for f in find_failures(Scene().runs("make check").says(words).done()) if f.kind == "dead_end"]
    assert len(found) == count


@pytest.mark.parametrize(
    ("said", "is_shown"),
    [
        ("Since the lamp was bought in a sale, it cannot be returned.", True),
        ("Your lamp was bought in a sale, which cannot be returned.", True),
        ("Since the lamp came broken, you can return it for free.", True),
        ("Since the lamp is heavy, you can choose a day for it.", False),
        ("I'm unable to find your order with just a name.", False),
    ],
)
def test_what_a_service_says_of_a_thing_is_decided_where_it_has_a_reason(said: str, is_shown: bool) -> None:
    carry = Carry()
    derive(Scene().user(WISH).says("Could you give me your order number?").done(), carry)
    found = derive(Scene(2).user("It is 4711.").says(said).done(), carry)
    assert any(f.kind == "decision" and f.score >= DEFAULT_SCORE for f in found) == is_shown


def test_a_refusal_said_three_turns_ago_in_other_forms_is_the_same_one() -> None:
    carry = Carry()
    derive(Scene().user(WISH).says("I cannot cancel the order of the lamp because it was sent.").done(), carry)
    derive(Scene(2).user("And the chair?").says("The chair is here.").done(), carry)
    said = "Unfortunately, the cancellation of the lamp order is not possible."
    found = derive(Scene(3).user("But please try again.").says(said).done(), carry)
    assert not [f for f in found if f.kind == "decision" and f.score >= DEFAULT_SCORE]


def test_a_tool_for_files_is_work_also_if_an_export_left_out_its_arguments() -> None:
    carry = Carry()
    derive(Scene().user("draw a chart").calls("Edit", {"note": "left out"}).says("It is drawn.").done(), carry)
    [goal] = [f for f in derive(Scene(2).user("yes, draw it until it fits").done(), carry) if f.kind == "goal"]
    assert goal.detail == ""
