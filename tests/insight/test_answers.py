"""What the user said through calls: answers to questions of the agent, and the words of refusals."""

import json
from typing import Any

import pytest

from tests.insight.conftest import Scribe
from tests.insight.turns import Scene
from wakelog.insight.answers import find_answers
from wakelog.session import Session

CACHE = {"id": "cache", "question": "Which cache?", "options": [{"label": "Redis"}, {"label": "None"}]}
PORT = {"id": "port", "question": 'Which port of "api"?', "options": [{"label": "6379"}, {"label": "80"}]}
BOTH = {"questions": [CACHE, PORT]}
REFUSED = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"


def _found(scene: Scene) -> list[tuple[str, str]]:
    return [(found.kind, scene.quote(found)) for found in find_answers(scene.done())]


@pytest.mark.parametrize(
    ("tool", "given", "output", "answers"),
    [
        (
            "AskUserQuestion",
            BOTH,
            'User has answered your questions: "Which cache?"="Redis", "Which port of "api"?"="80". You can now go on.',
            ["Redis", "80"],
        ),
        (
            "AskUserQuestion",
            BOTH,
            'Your questions have been answered: "Which cache?"="None, or a "small" one" notes: later, '
            '"Which port of "api"?"="6379". You can now continue.',
            ['None, or a "small" one', "6379"],
        ),
        ("AskUserQuestion", BOTH, 'Your questions have been answered: "Which cache?"="Redis". Go on.', ["Redis"]),
        ("AskUserQuestion", {"questions": [CACHE]}, "The user did not answer the questions.", []),
        ("AskUserQuestion", {"questions": [CACHE]}, "Your questions have been answered: nothing of that", []),
        ("request_user_input", BOTH, json.dumps({"answers": {"port": {"answers": ["80"]}}}), ["80"]),
        ("ask_user", BOTH, json.dumps({"answers": {"0": "Redis", "1": "6379"}}), ["Redis", "6379"]),
        ("ask_user", BOTH, json.dumps({"answers": []}), []),
        ("ask_user", BOTH, '{"answers": ', []),
        ("ask_user", {"question": "Which cache?"}, "User selected: Redis", ["Redis"]),
        (
            "ask_followup_question",
            {"question": "Which cache?"},
            "<answer>\nRedis, please\n</answer>",
            ["Redis, please"],
        ),
        ("mcp__desk__ask_user", {"question": "Which cache?"}, "Redis", ["Redis"]),
        ("ask_user", {"question": "Which cache?"}, "x" * 500, []),
        ("ask_user", {"question": "Which cache?"}, " \n ", []),
        ("ask_user", {"question": "Which cache?"}, "<answer> </answer>", []),
        ("Read", {"question": "Which cache?"}, "Redis", []),
        ("ask_user", {"message": "hello"}, "hi", []),
    ],
)
def test_the_answer_to_a_question_is_quoted_from_the_result(
    tool: str, given: dict[str, Any], output: str, answers: list[str]
) -> None:
    assert _found(Scene().calls(tool, given, output=output)) == [("answer", answer) for answer in answers]


@pytest.mark.parametrize(
    ("words", "kind", "quote"),
    [
        ("No, don't touch the config. Ask me first.", "correction", "No, don't touch the config."),
        ("Use the script in tools/.", "redirect", "Use the script in tools/."),
        ("That still fails with a timeout.", "failure_report", "That still fails with a timeout."),
    ],
)
def test_the_words_of_a_refusal_are_a_reaction(words: str, kind: str, quote: str) -> None:
    assert _found(Scene().calls("Bash", {"command": "rm x"}, fails=True, output=REFUSED + words)) == [(kind, quote)]


def test_a_refusal_without_words_and_a_plain_failure_are_no_reaction() -> None:
    scene = Scene().calls("Bash", fails=True, output=REFUSED).calls("Bash", fails=True, output="the user said: 1")
    assert _found(scene) == []


def test_an_answer_has_its_question_and_what_else_was_offered(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("make it fast")
    seq = scribe.calls("AskUserQuestion", BOTH, 'Answered: "Which cache?"="Redis", "Which port of "api"?"="81".')
    scribe.end()
    cache, port = session.insight().of("answer")
    assert (cache.id, cache.seq, cache.quote, cache.asked) == (f"e{seq}", seq, "Redis", "Which cache?")
    assert (cache.offered, port.id, port.offered) == (("None",), f"e{seq}.2", ("6379", "80"))
    assert cache.note == 'asked "Which cache?"'


def test_an_accepted_answer_is_a_decision_with_the_alternatives(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("make it fast")
    seq = scribe.calls("ask_user", CACHE, "Redis")
    scribe.end()
    made = session.log.entry(session.accept(f"e{seq}"))
    assert made.body["choice"] == "Which cache? Redis"
    assert (made.body["alternatives"], made.body["evidence"]) == (["None"], [seq])
    assert not session.insight("@1").of("answer")
