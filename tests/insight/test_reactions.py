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


def test_a_correction_is_a_goal_only_if_it_asks_for_something() -> None:
    for words, detail in (("no, i mean the other script", "carried"), ("no, use the other script", "")):
        found = _after(_worked("I wrote a script for it. Shall I run it?"), words)
        assert found["goal"].detail == detail
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


@pytest.mark.parametrize(
    "words",
    [
        "Start implementation",
        "ok, implement the plan",
        "Looks good. Please implement.",
        "apply all the changes",
        '@agent Pause: "Continue to iterate?"',
        "Implement the plan as specified, it is attached for your reference. Do not edit the plan file.",
        "yes, please add badges in all four places",
        "yes, add the badges",
    ],
)
def test_words_that_only_let_the_agent_go_on_carry_the_goal(words: str) -> None:
    asked = "The cards have no badges. Would you like me to add badges to these cards?"
    assert _after(_worked(asked), words)["goal"].detail == "carried"


@pytest.mark.parametrize(
    "words",
    [
        "yes, please add a footer",
        "yes, add the badges only to the first card",
        "Implement the search page",
        "Start the server and open the page",
        "I just ran it, can you look at the log?",
    ],
)
def test_words_that_ask_for_more_than_was_offered_are_a_goal(words: str) -> None:
    asked = "The cards have no badges. Would you like me to add badges to these cards?"
    assert _after(_worked(asked), words)["goal"].detail == ""


def test_a_go_ahead_at_the_start_of_a_session_that_was_cut_carries_a_goal_that_is_not_there() -> None:
    goal = _after(Scene(0).says("Here is the plan. Shall I proceed?"), "Start implementation")["goal"]
    assert (goal.detail, goal.reason) == ("carried", None)


@pytest.mark.parametrize(
    "words",
    [
        "it doesnt save",
        "thats wrong, use the other file",
        "its still slow",
        "rollback",
        "can you undo that?",
        "the menu is blank",
        "that did not help",
        "go back to the old layout",
        "You should have asked before",
    ],
)
def test_a_reaction_may_lack_apostrophes_and_manners(words: str) -> None:
    assert _after(_worked(), words).keys() & {"correction", "redirect", "failure_report"}


@pytest.mark.parametrize(
    "words",
    [
        "Now rewrite it to return a list instead of printing it.",
        "ok, but will that be enough for a thousand users?",
        "ok, but is it broken next time I start it?",
        "Actually, never mind.",
    ],
)
def test_the_next_wish_and_a_doubt_reject_nothing(words: str) -> None:
    assert not _after(_worked(), words).keys() & {"correction", "redirect", "failure_report"}


def test_the_next_wish_after_a_refused_call_rejects_nothing() -> None:
    refused = Scene(0).user("make it fast").calls("Edit", {"file_path": "a.py"}, fails=True, output=_REJECTED)
    assert "redirect" in _after(refused, "Use a list.")
    assert "redirect" not in _after(refused, "Now add a page for the owner.")


@pytest.mark.parametrize(
    "words",
    [
        "From now on write the tests first.",
        "Never push without asking me.",
        "You should always run the linter.",
        "In this project we use tabs.",
        "i like to keep helpers beside their page",
        "I'd prefer short names.",
        "do not delete files unless I say so",
    ],
)
def test_a_wish_that_holds_on_is_a_preference(words: str) -> None:
    assert "preference" in _after(_worked(), words)


@pytest.mark.parametrize(
    "words",
    [
        "I would like to split the page into two.",
        "Please use the second file.",
        "I think we should sort by name.",
        "I have never had this before.",
        "Make sure that it builds.",
        "Do not create it again.",
    ],
)
def test_a_wish_for_the_next_step_is_no_preference(words: str) -> None:
    assert "preference" not in _after(_worked(), words)


def test_the_wrappers_of_an_editor_are_not_the_goal() -> None:
    prompt = "<USER_REQUEST>\nsort the list\n</USER_REQUEST>\n<ADDITIONAL_METADATA>\nlocal time\n</ADDITIONAL_METADATA>"
    scene = Scene(1).user(prompt)
    (goal,) = [f for f in derive(scene.done(), Carry()) if f.kind == "goal"]
    assert scene.quote(goal) == "sort the list"
    notice = "<timestamp>Monday</timestamp>\n<system_notification>\nA task has ended.\n</system_notification>\n"
    assert "goal" not in _after(_worked(), f"{notice}<user_query>Go on.</user_query>")


def test_the_same_rejection_again_is_shown_once_but_a_failure_is_told_again() -> None:
    carry = Carry()
    derive(_worked().done(), carry)
    kinds = [
        {f.kind for f in derive(Scene(turn).user(words).edits().says("Done.").done(), carry)}
        for turn, words in enumerate(("rollback", "rollback", "it still fails", "it still fails"), 1)
    ]
    assert ["correction" in kind for kind in kinds] == [True, False, False, False]
    assert ["failure_report" in kind for kind in kinds] == [False, False, True, True]


@pytest.mark.parametrize(
    "words",
    [
        "how to see which port it uses",
        "hmm any way to run it without a network",
        "i have one already please look at its size",
    ],
)
def test_a_question_without_a_mark_is_a_goal_also_after_a_question(words: str) -> None:
    assert _after(_worked("Do you use docker, and which port should I open?"), words)["goal"].detail == ""


@pytest.mark.parametrize(
    "words",
    [
        "it should be 15 seconds",
        "A cache is a place where answers are kept for a while, so that the server does not have to compute each of"
        " them again for every visitor of the page",
        "ok it is done",
        "Here are some more details.",
        "It says:\nName: north\nSize: 12",
        r"C:\work> node --version" + "\nv22.1.0",
        '["north", "south"]',
    ],
)
def test_an_answer_and_what_a_program_showed_carry_the_goal(words: str) -> None:
    asked = "What should a cache be, in your own words, and how long should it wait? Which output do you get?"
    assert _after(_worked(asked), words)["goal"].detail == "carried"


def test_an_output_with_an_order_and_an_offer_at_the_end_leave_a_goal() -> None:
    for words in ("$ node app.js\nready\nNow stop it", "100% of it, and add a table"):
        assert _after(_worked("What do you get?"), words)["goal"].detail == ""
    offer = "The chart is drawn. Let me know if you want to change the colours!"
    assert _after(_worked(offer), "the numbers are right, now the legend on the left")["goal"].detail == ""


def test_a_command_of_a_chat_is_no_goal() -> None:
    assert "goal" not in _after(_worked(), "/run npm start")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("the import stops working after midnight", "failure_report"),
        ("the list still jumps around", "failure_report"),
        ("I can't get the timer to start", "failure_report"),
        ("i dont see the total anywhere", "failure_report"),
        ("when i open a card the page turns blank", "failure_report"),
        ("orders.csv also fails", "failure_report"),
        ("there are more errors", "failure_report"),
        ("Nice. It is fast. I like it. But when I press save, nothing happens", "failure_report"),
        ("[load] Test failed: 3 rows missing", "failure_report"),
        ("users is not the right table for this", "correction"),
        ("not with sudo", "correction"),
        ("the extra column is not needed", "correction"),
        ("I think the pattern doesn't handle tabs", "correction"),
        ("Why'd you split the title?", "correction"),
        ("There is no button for that", "correction"),
        ("src/app.css:12 should use rem", "redirect"),
        ("It should be on the left", "redirect"),
        ("I get a 500 when I save", "failure_report"),
        ("I'm getting a RangeError in the second row", "failure_report"),
        ("I cleared the cache. Problem persists.", "failure_report"),
        ("nop you swapped the two", "correction"),
        ("THE SUM GOES BELOW THE TABLE", "correction"),
        ("I want you to instead list the open orders", "redirect"),
    ],
)
def test_a_reaction_in_plain_words(words: str, kind: str) -> None:
    assert kind in _after(_worked(), words)


@pytest.mark.parametrize(
    "words",
    [
        "Implement the first part. Stop at the second part",
        "Implement the first part. Don't start the second one",
        "yes that is what i meant",
        "looks good but keep in mind that there are two users",
        "use a table for it. it should be sorted by name",
        "the header should be blue at night",
        "Error messages need a title",
        "PERFECT, THAT IS EXACTLY RIGHT",
    ],
)
def test_a_limit_and_a_hint_reject_nothing(words: str) -> None:
    assert not _after(_worked(), words).keys() & {"correction", "redirect", "failure_report"}


def test_what_the_agent_thanks_for_is_a_correction_unless_it_was_a_question() -> None:
    def reaction(words: str, reply: str) -> bool:
        carry = Carry()
        derive(_worked().done(), carry)
        found = derive(Scene(1).user(words).says(reply).done(), carry)
        return any(f.kind == "correction" for f in found)

    assert reaction("the port of the queue is 5672", "Thank you for pointing that out. I use it now.")
    assert not reaction("Does it lock the row? Two users could meet there", "You're right, they could.")


@pytest.mark.parametrize(
    ("words", "is_wish"),
    [
        ("Please ask any questions first.", True),
        ("Tell me what it does without changing the code", True),
        ("Do not write any code.", True),
        ("Only commit the files of this task", True),
        ("no new packages ever", True),
        ("All fields should always be grey.", False),
        ("The mails are queued but never sent.", False),
    ],
)
def test_what_holds_a_coding_agent_back_is_a_preference(words: str, is_wish: bool) -> None:
    assert ("preference" in _after(_worked(), words)) == is_wish


def test_what_the_user_says_while_the_agent_works_is_a_reaction_and_a_goal() -> None:
    scene = Scene().user("Make uploads faster.").says("I'll add a cache.").edits("cache.py")
    scene.user("No, don't cache. Stream the body instead.", queued=True).says("Right.").edits("upload.py")
    scene.user("thanks", queued=True).says("Done.")
    found = derive(scene.done(), Carry())
    said = [(f.kind, scene.quote(f)) for f in found if f.kind in ("goal", "correction")]
    assert said == [
        ("goal", "Make uploads faster."),
        ("goal", "No, don't cache. Stream the body instead."),
        ("correction", "No, don't cache."),
    ]


def test_other_texts_of_the_user_in_a_turn_are_no_reaction() -> None:
    scene = Scene().user("Make uploads faster.").says("Sure.").edits("a.py").user("No, wait: don't cache.")
    assert [f.kind for f in derive(scene.done(), Carry()) if f.kind in ("goal", "correction")] == ["goal"]
