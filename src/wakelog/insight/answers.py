"""Finds what the user said through a call: choices in answer to the agent's questions, and the words of a refusal.

Both are in the call's result, not in a prompt. An answer is found by the question that the call asked, so nothing is
guessed from its words. Each agent has a shape of its own for the result:

    "Which cache?"="Redis", "Which port?"="6379"    Claude Code, OpenCode
    {"answers": {"cache": {"answers": ["Redis"]}}}  Codex, by the id of the question; Gemini CLI, by its number
    <answer>Redis</answer>                          Cline; others have the bare answer to a single question
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from wakelog.insight.acts import is_rejected
from wakelog.insight.blocks import RESULT, Did, Finding, TextSpan, TurnBlocks
from wakelog.insight.corrections import reaction_to_refusal
from wakelog.model.call_acts import plain_name
from wakelog.model.json_fields import text_in
from wakelog.model.values import Value

ANSWER_MAX: Final = 400
"""The most characters that an answer may have."""
_ASKS: Final = re.compile(
    r"ask_?(?:user_?|followup_?)?questions?|request_?user_?input|ask_?user|question", re.IGNORECASE
)
"""Tools that ask the user, by their names."""
_BEFORE: Final = re.compile(
    r"\s*(?:<answer>|(?:the )?user (?:has )?(?:selected|responded|answered|chose)\s*:|answer\s*:)?\s*", re.IGNORECASE
)
"""What stands before the bare answer to a single question."""
_CLOSING: Final = re.compile(r'"(?=[,.]|\s*$|\s+(?:user )?(?:notes|preview|selected)\b)')
"""The quotation mark behind an answer; there may be others inside it."""
_NO_ANSWER: Final = re.compile(
    r"(?:the )?user (?:did not|didn't|declined|dismissed|skipped|submitted without|has answered)"
    r"|your questions have been answered|unanswered$|no (?:answer|response)",
    re.IGNORECASE,
)
_REFUSAL: Final = re.compile(r"\bthe user said:\s*(?=\S)", re.IGNORECASE)
"""Stands before the user's words in the result of a refused call."""


class UserAnswer(msgspec.Struct, frozen=True):
    """A question, what it offered, and the place of its answer in the result of the call."""

    question: str
    offered: tuple[str, ...]
    start: int
    end: int


Question = tuple[str, str, tuple[str, ...]]
"""The words of a question, its id, and the labels of what it offered."""


def find_answers(turn: TurnBlocks) -> Iterator[Finding]:
    """The choices that the user made when asked, and the reactions with which calls were refused."""
    for call in turn.blocks:
        if not isinstance(call, Did):
            continue
        if is_rejected(call):
            said = _REFUSAL.search(call.output)
            if said is not None:
                kind, start, end = reaction_to_refusal(call.output[said.end() :].rstrip())
                span = TextSpan(call.seq, RESULT, said.end() + start, said.end() + end)
                yield Finding(kind, span, score=3, calls=(call.seq,))
        elif not call.has_failed:
            for answer in answers_of(call):
                span = TextSpan(call.seq, RESULT, answer.start, answer.end)
                yield Finding("answer", span, score=3, calls=(call.seq,))


def answers_of(call: Did) -> list[UserAnswer]:
    """The answers in the result of a call, if it asked the user."""
    questions = _questions(call.input) if _ASKS.fullmatch(plain_name(call.tool)) else []
    found = _paired(call.output, questions) or _in_json(call.output, questions) or _bare(call.output, questions)
    return [a for a in found if a.end - a.start <= ANSWER_MAX and not _NO_ANSWER.match(call.output[a.start : a.end])]


def _questions(given: Value) -> list[Question]:
    """What a call asked: a list of questions, or one."""
    if not isinstance(given, dict):
        return []
    listed = given.get("questions")
    asked = [q for q in (listed if isinstance(listed, list) else [given]) if isinstance(q, dict)]
    return [
        (q["question"], text_in(q, "id"), _labels(q.get("options") or q.get("choices")))
        for q in asked
        if isinstance(q.get("question"), str) and q["question"].strip()
    ]


def _labels(options: Any) -> tuple[str, ...]:
    listed = [text_in(o, "label") if isinstance(o, dict) else o for o in options] if isinstance(options, list) else []
    return tuple(label for label in listed if isinstance(label, str) and label)


def _paired(output: str, questions: Sequence[Question]) -> list[UserAnswer]:
    """Answers behind their questions: `"question"="answer"`."""
    known = sorted((place, q) for q in questions if (place := output.find(f'"{q[0]}"="')) >= 0)
    found = []
    for number, (place, (text, _, offered)) in enumerate(known):
        after = known[number + 1][0] if number + 1 < len(known) else len(output)
        start = place + len(text) + 4
        closing = _CLOSING.search(output, start, after)
        if closing is not None and closing.start() > start:
            found.append(UserAnswer(text, offered, start, closing.start()))
    return found


def _in_json(output: str, questions: Sequence[Question]) -> list[UserAnswer]:
    """Answers in an object, by the id, the number or the words of the question."""
    try:
        decoded = msgspec.json.decode(output) if output.lstrip().startswith("{") else None
    except msgspec.DecodeError:
        return []
    answers = decoded.get("answers") if isinstance(decoded, dict) else None
    if not isinstance(answers, dict):
        return []
    found = []
    for number, (text, id, offered) in enumerate(questions):
        given = next((answers[name] for name in (id, str(number), text) if name and name in answers), None)
        while isinstance(given, dict | list) and given:
            given = given.get("answers") if isinstance(given, dict) else given[0]
        start = output.find(f'"{given}"') + 1 if isinstance(given, str) and given else 0
        if start:
            found.append(UserAnswer(text, offered, start, start + len(str(given))))
    return found


def _bare(output: str, questions: Sequence[Question]) -> list[UserAnswer]:
    """The whole result, where only one thing was asked."""
    if len(questions) != 1 or output.lstrip().startswith("{"):
        return []
    before = _BEFORE.match(output)
    assert before is not None  # all of it is optional
    answer = output[before.end() :].rstrip().removesuffix("</answer>").rstrip()
    found = UserAnswer(questions[0][0], questions[0][2], before.end(), before.end() + len(answer))
    return [found] if answer else []
