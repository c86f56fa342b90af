"""Blocks from a log: the same words and calls, however they were recorded."""

from typing import Any

import pytest

from tests.insight.conftest import Scribe
from wakelog.insight.blocks import Did, SpokenText, TextSpan, TurnBlocks
from wakelog.insight.log_blocks import quote, read_span, texts_of
from wakelog.model import events as ev
from wakelog.session import Session
from wakelog.timeline.points import Span


def _read(session: Session[Any], turn: int = 1) -> TurnBlocks:
    return read_span(session.log, Span(turn, 1, 1, session.head.seq, "completed"))


def _said(blocks: TurnBlocks) -> list[tuple[str, str]]:
    return [(b.who, b.text) for b in blocks.blocks if isinstance(b, SpokenText)]


def test_an_answer_is_read_block_by_block(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("why?")
    seq = scribe.answers(
        {"type": "thinking", "thinking": "let me think"},
        {"type": "text", "text": "because"},
        {"type": "tool_use", "id": "1", "name": "Bash", "input": {}},
        {"type": "text", "text": "of that"},
    )
    blocks = _read(session)
    assert _said(blocks) == [("user", "why?"), ("thinking", "let me think"), ("agent", "because"), ("agent", "of that")]
    assert quote(session.log, TextSpan(seq, 2, 0, 2)) == "of"


def test_redacted_thinking_gives_nothing(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("why?")
    scribe.answers({"type": "redacted_thinking", "data": "AAAA"}, {"type": "reasoning", "encrypted_content": "BBBB"})
    assert _said(_read(session)) == [("user", "why?")]


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [{"message": {"role": "assistant", "content": "yes", "reasoning_content": "hm"}}]},
        {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}, {"text": "yes"}]}}]},
        {
            "object": "response",
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                {"type": "message", "content": [{"type": "output_text", "text": "yes"}]},
            ],
        },
        {
            "role": "assistant",
            "type": "message",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}],
        },
    ],
    ids=["chat", "google", "responses", "messages"],
)
def test_each_provider_s_answer_has_thoughts_and_words(session: Session[Any], answer: dict[str, Any]) -> None:
    session.append(ev.TurnStarted(input="?"))
    session.append(ev.ActionRecorded(action="m", tool="model", effect="model", output=answer))
    assert _said(_read(session)) == [("user", "?"), ("thinking", "hm"), ("agent", "yes")]


def test_words_recorded_twice_are_taken_once(session: Session[Any]) -> None:
    with session.turn("do it"):
        session.append(ev.ActionRecorded(action="m", tool="model", effect="model", output="I did it."))
        session.message("assistant", "I did it.")
    assert _said(_read(session)) == [("user", "do it"), ("agent", "I did it.")]


def test_a_call_has_its_input_outcome_and_files(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("go")
    seq = scribe.edits("a.py")
    call = next(b for b in _read(session).blocks if isinstance(b, Did))
    assert (call.seq, call.tool, call.effect, call.outcome) == (seq, "Edit", "write", "succeeded")
    assert call.input == {"file_path": "a.py"}
    assert call.output == "ok"
    assert call.files == ("a.py",)


def test_a_call_of_our_own_runtime_is_read_the_same(session: Session[Any]) -> None:
    @session.tool(effect="read")
    def look(path: str) -> str:
        raise ValueError("no such file")

    with session.turn("go"), pytest.raises(ValueError, match="no such file"):
        look("a.py")
    call = next(b for b in _read(session).blocks if isinstance(b, Did))
    assert (call.tool, call.outcome, call.has_failed) == ("look", "failed", True)
    assert call.input == {"path": "a.py"}
    assert "no such file" in call.output


def test_a_tool_to_think_with_is_thinking(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("go")
    seq = scribe.calls("think", {"thought": "I should ask first."}, None)
    assert _said(_read(session))[1:] == [("thinking", "I should ask first.")]
    assert quote(session.log, TextSpan(seq, 0, 0, 8)) == "I should"


def test_system_and_tool_messages_are_nobody_s_words(session: Session[Any]) -> None:
    with session.turn("go"):
        session.message("system", "be nice")
        session.message("tool", "42")
    assert _said(_read(session)) == [("user", "go")]


def test_a_long_result_is_read_from_both_ends(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("go")
    scribe.calls("Bash", {"command": "pytest"}, "begin " + "x" * 100_000 + " end")
    call = next(b for b in _read(session).blocks if isinstance(b, Did))
    assert call.output.startswith("begin")
    assert call.output.endswith("end")
    assert len(call.output) < 10_000


def test_events_without_words_have_no_texts(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("go")
    scribe.calls("Bash", {"command": "ls"}, "text: not words")
    scribe.end()
    spoken = {e.seq: texts_of(session.log, e) for e in session.events()}
    assert [seq for seq, texts in spoken.items() if texts] == [2]
