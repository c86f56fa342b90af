"""Decisions: a choice with a reason before an effect ranks first; routine steps rank nowhere."""

import pytest

from tests.insight.turns import Scene
from wakelog.insight.blocks import Finding, SpokenText, TextSpan
from wakelog.insight.candidates import QUIET, TALKATIVE
from wakelog.insight.decisions import find_decisions
from wakelog.insight.derivation import DEFAULT_SCORE, minor_findings
from wakelog.insight.signs import WEIGHTS

CHOICE = "I'll stream the body instead of buffering it, so that memory stays flat."


def _shown(scene: Scene) -> list[Finding]:
    return [f for f in find_decisions(scene.done()) if f.score >= DEFAULT_SCORE]


def test_a_choice_with_a_reason_and_an_effect_is_a_decision() -> None:
    scene = Scene().user("uploads fail").says(f"The body is read at once. {CHOICE}").edits("upload.py")
    [found] = _shown(scene)
    assert scene.quote(found) == CHOICE
    assert found.calls == (1002,)


def test_thinking_text_and_call_of_one_choice_are_one_decision() -> None:
    scene = Scene().thinks(f"The problem is the buffer. {CHOICE}").says(CHOICE).edits("upload.py")
    assert len(find_decisions(scene.done())) == 1


def test_the_reason_may_stand_in_the_sentence_before() -> None:
    scene = Scene().says("Nothing is detected because the list lacks the tool. I need to add it to the list.").edits()
    [found] = find_decisions(scene.done())
    assert scene.quote(found) == "I need to add it to the list."
    assert scene.reason(found) == "Nothing is detected because the list lacks the tool."


@pytest.mark.parametrize(
    "before",
    [
        "So the list is short.",
        "Now I understand the patterns.",
        "Maybe the list is read twice, so that it grows?",
        "The list is probably read twice because the loop starts anew.",
        "Therefore the list stays short because nobody adds to it.",
        "Currently the list is shown at the end, so that it is easy to find.",
        "This means that the list is shown last.",
    ],
)
def test_a_conclusion_or_a_doubt_is_quoted_as_no_reason(before: str) -> None:
    scene = Scene().says(f"{before} The fix is to add the tool to the list.").edits()
    [found] = find_decisions(scene.done())
    assert found.reason is None


def test_a_text_in_which_the_agent_thinks_aloud_gives_a_decision_and_no_reason() -> None:
    filler = "The list holds names of tools and where they are found. " * 20
    scene = Scene().says(f"{filler} {CHOICE}").edits()
    [found] = find_decisions(scene.done())
    assert scene.quote(found) == CHOICE
    assert found.reason is None


def test_of_one_long_text_only_the_best_sentence_is_shown_by_default() -> None:
    filler = "The list holds names of tools and where they are found. " * 15
    scene = Scene().says(f"{CHOICE} {filler} I'll use a set instead of a list because lookups are slow.").edits()
    assert [scene.quote(f) for f in _shown(scene)] == [CHOICE]


@pytest.mark.parametrize(
    "said",
    [
        "To confirm, you would like to cancel the second booking, which can be refunded because it is insured.",
        "Suggested next step: run the linter over the package, because two signatures changed.",
        "The next step is to build the image, since the base has changed.",
    ],
)
def test_a_question_back_and_a_next_step_are_no_decisions(said: str) -> None:
    assert not _shown(Scene().edits().says(said))


def test_what_was_done_is_a_decision_of_the_effect_before() -> None:
    scene = Scene().edits("tools.py").says("I removed the alias since it does not appear in the documentation.")
    [found] = _shown(scene)
    assert found.calls == (1000,)


def test_a_proposal_at_the_end_is_a_decision_without_an_effect() -> None:
    scene = Scene().user("how?").says("I'd recommend keeping them separate, because they change at different times.")
    [found] = _shown(scene)
    assert found.calls == ()


@pytest.mark.parametrize(
    "text",
    [
        "Let me look at the code.",
        "Now let me run the tests to make sure everything works.",
        "I'll start by exploring the codebase to understand its structure.",
        "All tests pass. Now I'll commit the changes.",
        "The user wants me to use a dialog instead of a page.",
        "Would you like me to use redis instead?",
    ],
)
def test_a_routine_step_is_no_decision(text: str) -> None:
    assert not _shown(Scene().user("do it").says(text).runs("ls").edits())


def test_other_languages_give_nothing() -> None:
    text = "Ich werde den Puffer ersetzen, weil er zu groß ist, und nutze stattdessen einen Strom für alle Daten."
    assert not find_decisions(Scene().says(text).edits().done())


@pytest.mark.parametrize(("steps", "shown"), [(0, 3), (8, 3), (140, 7), (10_000, 12)])
def test_a_turn_shows_three_decisions_and_a_long_one_more(steps: int, shown: int) -> None:
    found = [Finding("decision", TextSpan(n, 0, 0, 9), score=DEFAULT_SCORE + n) for n in range(20)]
    minor = minor_findings(found, steps)
    assert len(found) - len(minor) == shown
    assert min(f.score for f in found if f not in minor) > max(f.score for f in minor)


def test_a_weak_decision_is_minor_even_when_there_is_room() -> None:
    weak = Finding("decision", TextSpan(1, 0, 0, 9), score=DEFAULT_SCORE - 1)
    assert minor_findings([weak], 100) == [weak]


def test_the_same_words_again_are_not_a_second_decision() -> None:
    scene = (
        Scene()
        .says(CHOICE)
        .edits("upload.py")
        .runs("pytest", "1 passed")
        .says(f"Done. {CHOICE.replace('I' + chr(39) + 'll', 'I')}")
    )
    assert len(find_decisions(scene.done())) == 1


def test_spans_stay_inside_their_texts() -> None:
    scene = Scene().thinks(f"One.\n\n- {CHOICE}\n```\ncode\n```\nEnd").edits()
    for found in find_decisions(scene.done()):
        assert scene.quote(found) in scene.blocks[0].text  # type: ignore[union-attr]  # the first block is a text
        assert scene.quote(found)


def test_what_was_only_thought_needs_more_to_be_shown() -> None:
    bare, sure = (
        "I should stream the body instead of buffering it here.",
        "The fix is to stream it, so that it stays flat.",
    )
    assert _shown(Scene().says(bare).edits("upload.py"))
    assert not _shown(Scene().thinks(bare).edits("upload.py"))
    assert not _shown(Scene().thinks(CHOICE).says("Now the upload.").edits("upload.py"))
    (also_said,) = find_decisions(Scene().thinks(CHOICE).says("Now the upload.").edits("upload.py").done())
    (alone,) = find_decisions(Scene().thinks(CHOICE).edits("upload.py").done())
    assert alone.score > also_said.score
    assert _shown(Scene().thinks(sure).edits("upload.py"))


def test_the_last_text_of_a_turn_tells_several_decisions() -> None:
    kept = "I left the retry alone since the caller has one already."
    logged = "Errors are logged rather than raised, since the page has no place for them yet."
    scene = Scene().edits("upload.py").says(f"Done.\n\n- {kept}\n- The tests pass.\n- {logged}")
    assert {scene.quote(found) for found in _shown(scene)} == {kept, logged}


def test_advice_in_an_answer_without_changes_is_a_decision() -> None:
    advice = "Do not refresh every window when it opens, because that starts a capture for each."
    scene = Scene().says(f"You asked about the overview.\n\n{advice}")
    assert [scene.quote(found) for found in _shown(scene)] == [advice]


def test_a_fix_right_after_its_diagnosis_is_a_decision_also_if_it_is_short() -> None:
    scene = Scene().says("The call fails because the address has capital letters. Let me fix the address generation:")
    assert _shown(scene.edits("addresses.py"))
    looking = Scene().says("The call fails because the address is too long. Let me check the address generation:")
    assert not _shown(looking.runs("kubectl get pods", "none"))


def test_an_edit_of_a_test_that_was_there_is_an_effect() -> None:
    words = "The test fails because the mock has no address. I'll set one in the mock instead of skipping it."
    there = {"file_path": "test_16.js", "old_string": "a", "new_string": "b"}
    assert _shown(Scene().says(words).calls("Edit", there, effect="write"))


def test_a_refusal_is_a_decision() -> None:
    assert _shown(Scene().says("Unfortunately I cannot change the passengers of a booking."))
    assert not _shown(Scene().says("The server cannot change the passengers of a booking."))


def test_a_sentence_that_says_little_by_itself_is_not_the_one_quoted() -> None:
    said = "I need to fix that. I should load the settings once, because they are large."
    (found,) = _shown(Scene().says(said).edits("settings.py"))
    assert said[found.span.start : found.span.end].startswith("I should load")


def test_weak_decisions_and_those_beyond_the_limit_of_a_turn_are_minor() -> None:
    sure = [Finding("decision", TextSpan(n, 0, 0, 9), score=DEFAULT_SCORE) for n in range(5)]
    weak = Finding("decision", TextSpan(9, 0, 0, 9), score=DEFAULT_SCORE - 1)
    assert minor_findings([*sure, weak], steps=100) == [weak]
    assert minor_findings([*sure, weak], steps=1) == [weak, *sure[3:]]


@pytest.mark.parametrize(
    "text",
    [
        "The hook cannot block the session, so that it starts.",
        '"I have used the wrong constraint since the beginning of this."',
        "I made a mistake and used the wrong module, so it fails now.",
    ],
)
def test_what_others_cannot_do_quotes_and_slips_are_no_decisions(text: str) -> None:
    assert not _shown(Scene().says(text).edits())


LEAD_IN = "Given the inconsistency, I'd say:"


def test_a_lead_in_is_no_decision_and_no_reason() -> None:
    scene = Scene().says(f"{LEAD_IN}\n\nThe fix is to list the tools that the docs name.").edits()
    [found] = find_decisions(scene.done())
    assert scene.quote(found) == "The fix is to list the tools that the docs name."
    assert found.reason is None
    assert not find_decisions(Scene().says(LEAD_IN).edits().done())


@pytest.mark.parametrize(
    "step",
    [
        "I'll write a python script to apply the change instead of using an editor.",
        "I'll create the file first, so that the command finds it.",
        "I should insert after line 163, so that the value is printed.",
    ],
)
def test_a_step_of_set_up_is_not_shown_by_default(step: str) -> None:
    assert not _shown(Scene().says(step).edits())


def test_a_script_to_try_something_is_no_effect_of_a_decision() -> None:
    said = "The order is lost, so I should sort by name."
    assert _shown(Scene().says(said).edits("app/orders.py"))
    assert not _shown(Scene().says(said).edits("reproduce_issue.py").edits("app/orders.py"))


def test_what_was_done_is_no_choice_where_the_agent_thinks_aloud() -> None:
    filler = "The list holds names of tools and where they are found. " * 20
    scene = Scene().edits().says(f"{filler} But I added the import of it later.").edits("b.py")
    assert not _shown(scene)


def test_why_the_approach_was_changed_is_not_told_again_as_a_decision() -> None:
    same, other = (Finding("decision", TextSpan(seq, 0, 20, 30), score=DEFAULT_SCORE) for seq in (3, 5))
    change = Finding("approach_change", TextSpan(3, 0, 40, 60), reason=same.span, score=4)
    assert minor_findings([change, same, other], 4) == [same]


def test_what_is_left_as_it_is_is_a_decision() -> None:
    left = "I didn't rename the column, since two other services read it."
    assert [_quoted(Scene().says(f"Here is how it works.\n\n{left}"))] == [[left]]


def test_each_item_under_a_heading_for_decisions_is_one() -> None:
    scene = (
        Scene()
        .edits("a.py")
        .says("Built it.\n\n## Design decisions\n- Plain SQL, no ORM\n- Single table with a tenant column\n\nBye.")
    )
    assert {"Plain SQL, no ORM", "Single table with a tenant column"} <= set(_all(scene))


def test_a_diagnosis_before_a_short_announcement_is_the_decision() -> None:
    scene = Scene().says("Line 14 has an invalid tag, so the file does not match the schema. Let's fix this:").edits()
    assert _quoted(scene) == ["Line 14 has an invalid tag, so the file does not match the schema."]


def test_the_first_change_counts_more_than_a_later_one() -> None:
    first = "I'll use the parser of the runtime instead of a new one in this package."
    later = Scene().edits("b.py").says(first).edits("a.py")
    assert max(f.score for f in find_decisions(Scene().says(first).edits("a.py").done())) > max(
        (f.score for f in find_decisions(later.done())), default=0
    )


def test_to_begin_with_what_was_asked_for_is_no_decision() -> None:
    asked = "Create a React application with Bootstrap and TypeScript that serves as a quiz for scientists"
    scene = (
        Scene()
        .user(asked)
        .says("I'll create the React application with Bootstrap and TypeScript for the quiz.")
        .edits()
    )
    assert _quoted(scene) == []


def test_a_sentence_that_introduces_a_short_list_is_quoted_with_it() -> None:
    text = "The most straightforward solution would be to:\n\n1. Remove the old directory\n2. Start the session fresh"
    scene = (
        Scene().says(f"Nothing is registered, which is causing the error.\n\n{text}\n\nLet's do that:").runs("rm -rf x")
    )
    assert text in _all(scene)


def test_a_cause_is_a_better_reason_than_a_purpose() -> None:
    cause = "The error is caused by entries of which the position is missing."
    scene = Scene().says(f"{cause} I will change the sorting line to avoid this error.").edits()
    [found] = _shown(scene)
    assert found.reason is not None
    said = scene.blocks[0]
    assert isinstance(said, SpokenText)
    assert said.text[found.reason.start : found.reason.end] == cause


def test_a_cause_that_is_named_outright_is_a_reason_beside_the_decision() -> None:
    scene = Scene().says("The problem is the second pass over the rows. I'll use one pass instead of two.").edits()
    [found] = _shown(scene)
    assert scene.reason(found) == "The problem is the second pass over the rows."


def test_a_guess_is_not_quoted_as_a_reason() -> None:
    scene = Scene().says("I'll use one pass instead of two, since the rows might be read twice.").edits()
    [found] = _shown(scene)
    assert found.reason is None


def _all(scene: Scene) -> list[str]:
    return [scene.quote(found) for found in find_decisions(scene.done())]


def _quoted(scene: Scene) -> list[str]:
    return [scene.quote(found) for found in _shown(scene)]


def test_a_purpose_that_fits_any_change_is_not_quoted_as_a_reason() -> None:
    scene = Scene().user("the header is doubled")
    scene.says("I'll use one pass over the rows instead of two to ensure everything is correct.").edits()
    [found] = _shown(scene)
    assert found.reason is None


def _score(scene: Scene) -> int:
    return max((f.score for f in find_decisions(scene.done())), default=-10)


def test_what_a_quiet_turn_says_counts_more_than_what_a_talkative_one_says() -> None:
    plain = "The parser should return a list instead of a tuple."
    quiet, busy, loud = (
        _score(_with_small_talk(times).says(plain).edits("parser.py")) for times in (0, QUIET, TALKATIVE)
    )
    assert quiet == busy + 1 == loud + 2


def _with_small_talk(times: int) -> Scene:
    scene = Scene().user("the import is slow")
    for n in range(times):
        scene.says(f"Reading part {n}.").calls("Read", {"file_path": f"part{n}.py"}, effect="read")
    return scene


@pytest.mark.parametrize(
    "step",
    [
        "I'll rename the helper in the second module.",
        "I need to create a todo list to track the work.",
        "We will unpack the archive and see what is in it.",
    ],
)
def test_a_step_gains_nothing_in_a_quiet_turn(step: str) -> None:
    scenes = (_with_small_talk(times).says(step).edits("module.py") for times in (0, QUIET))
    assert len({_score(scene) for scene in scenes}) == 1


@pytest.mark.parametrize(
    "told",
    [
        "The index now keeps one row per word, so that a search reads one page.",
        "The token is stored in the keychain instead of the settings file.",
        "Since the server has no clock, the dates come from the client rather than the database.",
    ],
)
def test_the_last_text_describes_what_was_built_also_without_the_calls(told: str) -> None:
    assert _shown(Scene().user("make it work").says(f"It is ready for you to try out. {told}"))


@pytest.mark.parametrize("told", ["The build now passes on all machines here.", "The guide now explains the settings."])
def test_a_result_is_no_description_of_a_choice(told: str) -> None:
    assert not find_decisions(Scene().user("make it work").says(told).done())


def test_a_reason_in_the_last_text_is_found_but_not_shown() -> None:
    scene = Scene().user("make it work").says("The cache skips large files, because they would fill the disk.")
    assert find_decisions(scene.done())
    assert not _shown(scene)


def test_a_digest_of_the_conversation_tells_nothing_new() -> None:
    assert not find_decisions(Scene().user("summarize").says(f"<analysis>\n{CHOICE}\n</analysis>").done())


def test_the_name_of_a_file_proposes_nothing() -> None:
    named, proposed = "The list comes from recommend.py in the tools folder.", "I recommend the list in the folder."
    assert not find_decisions(Scene().user("where from").says(named).done())
    assert _shown(Scene().user("where from").says(proposed))


def test_a_command_after_a_diagnosis_is_no_repair_as_an_edit_is() -> None:
    words = "The folder is missing. Let me install the packages again."
    by_command, by_edit = Scene().says(words).runs("npm install"), Scene().says(words).edits("package.json")
    assert _score(by_command) + WEIGHTS["repairs"] <= _score(by_edit)


def test_what_the_agent_forgot_was_not_left_on_purpose() -> None:
    forgot = "The table is not there because I did not create the migration for it."
    assert not _shown(Scene().user("why").runs("ls").says(forgot).runs("ls"))
    assert _shown(Scene().user("why").runs("ls").says("I did not create a migration, since the table is a view."))
