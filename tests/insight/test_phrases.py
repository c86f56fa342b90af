"""Usual ways to say it: phrases that agents and users use, and phrases that only sound like it."""

import pytest

from tests.every import every
from tests.insight.turns import Scene
from wakelog.insight.blocks import Finding
from wakelog.insight.decisions import find_decisions
from wakelog.insight.derivation import DEFAULT_SCORE
from wakelog.insight.rules import Carry, derive, find_failures

DECIDES = (
    "We should leave the existing flag as it is, since scripts rely on it.",
    "I think option 2 is better, because it keeps the old names.",
    "I'll go with option B since it doesn't require a schema migration.",
    "Rather than patching each caller, I'll fix it in the shared helper.",
    "The cleanest approach is to move the check into middleware so every route gets it.",
    "I think the right thing to do here is to make the field optional, because older clients don't send it.",
    "Since the API is rate limited, I'm going to batch the requests.",
    "I decided against using a global lock because it would serialize all workers.",
    "Let's keep the old endpoint for backwards compatibility and add a new one.",
    "I'm not going to touch the generated files.",
    "I'll leave the failing test alone since it's unrelated to this change.",
    "To keep this PR small, I'll only change the parser.",
    "We need to handle the None case explicitly, otherwise the serializer crashes.",
    "The fix is to await the promise before closing the connection.",
    "It's better to raise a ValueError here than to silently return None.",
    "This should use a set instead of a list for O(1) lookups.",
    "Because the linter forbids default exports, I'll export a named function.",
    "I'll use `useMemo` here to avoid recomputing the list on every render.",
    "Given that the column is nullable, I'll add a COALESCE.",
    "I went with SQLite because the tests need no server.",
    "I'll mock the clock so the test is deterministic.",
    "I've chosen to store timestamps in UTC to avoid DST bugs.",
    "The root cause is a race in `flush()`. I'll guard it with a mutex.",
    "I'll revert my previous change, as it broke pagination.",
    "Instead of retrying forever, I'll cap it at five attempts.",
    "I'll put this behind a feature flag so we can roll it back.",
    "Using a context manager is safer here because exceptions would leak the handle.",
    "I suggest we drop Python 3.7 support.",
    "The issue is that the regex is greedy. Making it non-greedy fixes this.",
    "For simplicity, I'll hardcode the limit for now.",
    "I'll implement this as a decorator, which keeps call sites unchanged.",
    "Unfortunately, orders of last year cannot be changed.",
)
DOES_NOT_DECIDE = (
    "The task is to fix the size of the numbers.",
    "I need to add the import and implement the clearing:",
    "Let me check the existing tests first.",
    "Now I'll run the full test suite to make sure nothing broke.",
    "I'll look at how the router handles errors.",
    "Let me update the todo list.",
    "Now let me update the documentation.",
    "I can see the structure of the project now.",
    "The tests pass.",
    "I'll help you with that.",
    "I've updated the file.",
    "Let me read the file again.",
    "Here's what I found:",
    "I need to understand how the cache works.",
    "Now I need to update the imports.",
    "Next, I'll add the same change to the other file.",
    "Let me commit these changes.",
    "Let me create the file.",
    "I'll start by reading the code.",
    "Let me verify that the fix works.",
    "I'm ready to submit.",
    "Everything looks good.",
    "Great, the build succeeded.",
    "Let me see what the error is.",
    "I'll continue with the next step.",
    "Let me search for usages of this function.",
    "First, let me explore the repository.",
    "Now I'll write the tests.",
    "I made the same mistake again.",
    "Switching to the release branch isn't possible now because of local changes.",
    "This should keep the names consistent.",
    "I'll add a few print statements to see what happens.",
    "I'll create a small script to check what the parser gives.",
    "The totals are huge instead of the expected ones.",
    "I should clear the cache or just use a fresh one.",
    "To start, I'll need your account number.",
    "Let me research how others do it.",
)
CORRECTS = (
    "That's not what I asked for.",
    "No, use the v2 API",
    "You forgot to update the changelog",
    "This breaks the build",
    "still getting the same error",
    "it doesn't compile",
    "please revert that",
    "I don't want a new dependency",
    "why did you delete the tests?",
    "I said to keep it simple",
    "Actually let's use redis",
    "Not that one, the other one",
    "Hmm, that's not right",
    "Undo that",
    "don't add comments",
    "the tests are failing now",
    "Please don't modify package.json",
    "It works but the button is gone",
    "No, I meant the other table.",
    "Nope, same error.",
    "I'm getting a 500 when I click save now",
    "that's wrong, it should be 42",
    "Stop. Use the existing helper instead.",
    "You should use the existing helper instead of writing a new one",
    "I would rather have it in a separate file",
    "Please use the existing component rather than making a new one",
    "This isn't what I meant",
    "The output is still empty",
    "Keep the old name, don't rename it",
    "It's not rendering correctly",
    "I'm sure there were three of them.",
    "Can you check again?",
    "Actually, I'd prefer the smaller one.",
    "Yes, but we should start from the main branch",
    "Reading the file three times, this is not great",
)
DOES_NOT_CORRECT = (
    "Now add a dark mode",
    "Can you also add docs?",
    "What does this function do?",
    "Looks good, commit it",
    "Great, thanks!",
    "Is it possible to use X instead?",
    "I'd like to add pagination",
    "If it fails, use the backup instead",
    "No problem, take your time",
    "Wait for the build, then deploy",
    "Not sure, what do you recommend?",
    "Yes please, and don't forget the tests",
    "How do I undo a commit in git?",
    "Write a function that returns an error if not found",
    "Add a test that fails when the input is wrong",
    "fix the failing tests",
    "Create a rollback script",
    "Don't worry about the docs",
    "no need, thanks",
    "Yes, go ahead",
    "Let's do it",
    "let's move on to the next task",
    "ok now do the same for the other files",
    "Can we use postgres instead of sqlite?",
    "explain why you chose this",
    "No, that's all. Thank you!",
    "I have no preference",
    "Please add a revert button to the UI",
    "commit and push",
    "Show me the diff",
    "I'm not sure about the order number, but my name is Ada.",
)
GIVES_UP = (
    "So simply removing the check is not enough.",
    "That didn't fix it.",
    "The error persists.",
    "Hmm, that didn't work.",
    "This approach won't work because the API is sync only.",
    "Still the same failure.",
    "So the cache isn't the culprit.",
    "That wasn't the problem.",
    "My assumption was wrong: the file is generated.",
    "This doesn't help either.",
    "No luck with grep.",
    "That made it worse.",
    "The change had no effect.",
    "It's still failing with the same error.",
    "I tried the flag but it is ignored, so this is a dead end.",
    "Neither of these files contains the handler.",
    "That's not it either.",
    "I can't reproduce the issue with this input.",
    "The timeout is not the cause.",
    "Nothing was found in the second file.",
)
DOES_NOT_GIVE_UP = (
    "The test failure persists even without my changes.",
    "It seems that the run timed out because I didn't limit it to one case.",
    "The test didn't fail.",
    "This works.",
    "It doesn't look like there are other usages.",
    "I didn't change the API.",
    "This will not break existing clients.",
    "No changes needed.",
    "There is no effect on performance.",
    "All tests still pass.",
    "The build no longer fails.",
    "The user says it doesn't work on Windows.",
    "I won't touch the config.",
    "If that doesn't work, I'll try sed.",
    "The function returns None when it is not found.",
    "We still need to update the docs.",
    "This is not the same as the old behaviour, which is fine.",
)
GOES_ON = (
    ("Great, thank you for your assistance!", False),
    ("I understand, but I really need this. Is there any other way?", False),
    ("That looks great, thank you for your help!", False),
    ("Thanks, you too! I'll be in touch soon.", False),
    ("I'm sorry, but I don't have the order number with me right now.", True),
    ("Actually, never mind. That's all for now.", True),
    ("Okay, I'll try to find it. Thank you!", False),
    ("I'd like to go ahead with the checkout page.", True),
    ("yes", True),
    ("sure, go ahead", True),
    ("ok", False),
    ("thanks", False),
    ("please continue", False),
    ("yes please do", True),
    ("no, not now", True),
    ("great work!", False),
    ("sounds good, proceed", True),
    ("y", True),
    ("1", True),
    ("do it", True),
    ("Yes, add it.", True),
    ("lgtm", False),
    ("keep going", False),
    ("perfect", False),
    ("Yes, please proceed with the refund. And could you send it to my old card?", True),
    ("Can you tell me what my other options are?", True),
    ("I understand this is hard, but I really need it. If there's any exception, please let me know.", False),
)
IS_NEW = (
    ("would the checkout add a delay to every start?", True),
    ("If that's the case, I want to redesign the cart", True),
    ("start the server", True),
    ("yes, commit the work first and push it", True),
    ("ok let's create the form you proposed, and then do the same for the other page", True),
    ("Thank you. Could you tell me how the totals are rounded?", False),
    ("now add a wishlist", False),
    ("why is the total wrong?", False),
    ("yes, but use stripe", True),
    ("add the checkout page and the invoice", True),
    ("no, first fix the header", True),
    ("what about mobile?", True),
    ("can you refactor the cart?", False),
    ("run the tests", False),
    ("The price is rounded wrong in the summary", False),
    ("commit this", False),
    ("Thanks! Next, write the docs for the API", False),
    ("let's also support coupons", True),
    ("use a dialog instead", True),
    ("Yes, please proceed. I'd also like to order a new lamp.", True),
)


def _decided(text: str) -> bool:
    scene = Scene().user("please improve the app").says(text).edits("a.py")
    return any(f.score >= DEFAULT_SCORE for f in find_decisions(scene.done()))


@every("text", DECIDES)
def test_a_usual_way_to_decide_is_shown_by_default(text: str) -> None:
    assert _decided(text)


@every("text", DOES_NOT_DECIDE)
def test_a_routine_sentence_is_not_shown_by_default(text: str) -> None:
    assert not _decided(text)


def _second(words: str, said: str = "I built the shop.") -> list[Finding]:
    carry = Carry()
    derive(Scene(1).user("build me a shop").says(said).done(), carry)
    return derive(Scene(2).user(words).done(), carry)


def _corrected(words: str) -> bool:
    return any(f.kind in ("correction", "redirect", "failure_report") for f in _second(words))


@every("words", CORRECTS)
def test_a_usual_way_to_object_is_a_correction(words: str) -> None:
    assert _corrected(words)


@every("words", DOES_NOT_CORRECT)
def test_a_usual_request_is_no_correction(words: str) -> None:
    assert not _corrected(words)


def _gave_up(text: str) -> bool:
    scene = Scene().user("fix the app").runs("python try.py", "x").says(text).edits()
    return any(f.kind == "dead_end" for f in find_failures(scene.done()))


@every("text", GIVES_UP)
def test_a_usual_way_to_give_up_is_a_dead_end(text: str) -> None:
    assert _gave_up(text)


@every("text", DOES_NOT_GIVE_UP)
def test_a_negation_alone_is_no_dead_end(text: str) -> None:
    assert not _gave_up(text)


def _goal(words: str, is_asked: bool) -> str:
    said = (
        "I finished the cart. Should I also add the checkout page?" if is_asked else "The cart is done, all tests pass."
    )
    [goal] = [f for f in _second(words, said) if f.kind == "goal"]
    return goal.detail


@pytest.mark.parametrize(("words", "is_asked"), GOES_ON)
def test_words_that_go_on_carry_the_goal(words: str, is_asked: bool) -> None:
    assert _goal(words, is_asked) == "carried"


@pytest.mark.parametrize(("words", "is_asked"), IS_NEW)
def test_words_that_ask_for_more_set_a_new_goal(words: str, is_asked: bool) -> None:
    assert _goal(words, is_asked) == ""
