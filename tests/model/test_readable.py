"""Recorded values formatted for reading."""

from typing import Any

import pytest

from wakelog.model.readable import arguments_text, format_value, is_request

CALL = {"type": "tool_use", "id": "1", "name": "get_weather", "input": {"city": "Bern"}}


def test_an_answer_is_its_words_then_its_calls_then_its_thoughts() -> None:
    thought = {"type": "thinking", "thinking": "It is Bern.", "signature": "x"}
    answer = {
        "type": "message",
        "role": "assistant",
        "content": [thought, {"type": "text", "text": "Let me look."}, CALL],
    }
    assert format_value(answer).split("\n") == [
        "Let me look.",
        '→ get_weather {"city":"Bern"}',
        "(thinking) It is Bern.",
    ]


@pytest.mark.parametrize(
    "request_",
    [
        {
            "model": "gpt-4.1",
            "temperature": 0,
            "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {}}}],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Weather?"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "1", "function": {"name": "get_weather", "arguments": '{"city":"Bern"}'}},
                    ],
                },
                {"role": "tool", "tool_call_id": "1", "content": "12 degrees"},
            ],
        },
        {
            "model": "gpt-4.1",
            "temperature": 0,
            "system": "Be brief.",
            "tools": [{"name": "get_weather", "input_schema": {}}],
            "messages": [
                {"role": "user", "content": "Weather?"},
                {"role": "assistant", "content": [CALL]},
                {"role": "tool", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "12 degrees"}]},
            ],
        },
        {
            "model": "gpt-4.1",
            "temperature": 0,
            "instructions": "Be brief.",
            "tools": [{"type": "function", "name": "get_weather"}],
            "input": [
                {"role": "user", "content": "Weather?"},
                {"type": "function_call", "call_id": "1", "name": "get_weather", "arguments": '{"city":"Bern"}'},
                {"type": "function_call_output", "call_id": "1", "output": "12 degrees"},
            ],
        },
        {
            "model": "gpt-4.1",
            "temperature": 0,
            "system_instruction": {"parts": [{"text": "Be brief."}]},
            "tools": [{"functionDeclarations": [{"name": "get_weather"}]}],
            "contents": [
                {"role": "user", "parts": [{"text": "Weather?"}]},
                {"role": "assistant", "parts": [{"functionCall": {"name": "get_weather", "args": {"city": "Bern"}}}]},
                {"role": "tool", "parts": [{"functionResponse": {"name": "get_weather", "response": "12 degrees"}}]},
            ],
        },
    ],
    ids=["chat", "messages", "responses", "google"],
)
def test_a_request_of_any_provider_reads_as_messages(request_: dict[str, Any]) -> None:
    assert is_request(request_)
    assert format_value(request_).split("\n") == [
        "model gpt-4.1, temperature 0",
        "tools: get_weather",
        "system: Be brief.",
        "user: Weather?",
        'assistant: → get_weather {"city":"Bern"}',
        "tool: 12 degrees",
    ]


def test_an_edit_is_told_by_what_goes_and_comes() -> None:
    old = "\n".join(f"line {n}" for n in range(20))
    given = {"file_path": "a.py", "old_string": old, "new_string": old.replace("line 3\n", "three\n") + "\nlast"}
    assert arguments_text(given).split("\n") == [
        "file_path: a.py",
        *(" line 1", " line 2", "-line 3", "+three", " line 4", " line 5", "…", " line 18", " line 19", "+last"),
    ]


def test_texts_keep_their_lines_and_short_values_stay_on_one() -> None:
    assert format_value({"path": "a.py", "content": "one\ntwo"}) == "path: a.py\ncontent:\none\ntwo"
    assert format_value({"command": "make test"}) == '{"command":"make test"}'
    assert format_value("as it is") == "as it is"
    assert format_value({"$erased": 7}) == "(erased, e7)"


@pytest.mark.parametrize("value", [{}, {"input": "text", "model": "m"}, {"messages": []}, {"messages": [1]}, [], None])
def test_what_is_no_request_is_not_taken_for_one(value: Any) -> None:
    assert not is_request(value)
