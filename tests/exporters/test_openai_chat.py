"""The conversation as OpenAI chat messages: what was said, in a list that the provider takes."""

import json
from pathlib import Path

from tests.exporters.test_claude_code_file import import_one
from tests.exporters.transcripts import till
from wakelog.exporters.openai_chat import openai_chat


def test_every_prompt_answer_and_call_is_there_in_order(tmp_path: Path) -> None:
    messages = openai_chat(import_one(till(), tmp_path))
    assert [m["content"] for m in messages if m["role"] == "user"][-2:] != []
    said = json.dumps(messages)
    places = [said.index(words) for words in ("/review 12", "You review code.", "totals are rounded", "the tax")]
    assert places == sorted(places)
    calls = [c["function"]["name"] for m in messages for c in m.get("tool_calls", ())]
    assert calls == ["Read", "Edit", "Bash", "Grep"]


def test_calls_of_one_answer_stand_in_one_message_and_each_is_answered_after_it(tmp_path: Path) -> None:
    messages = openai_chat(import_one(till(), tmp_path))
    (place,) = [i for i, m in enumerate(messages) if len(m.get("tool_calls", ())) == 2]
    ids = [call["id"] for call in messages[place]["tool_calls"]]
    assert [m.get("tool_call_id") for m in messages[place + 1 : place + 3]] == ids


def test_what_is_not_trusted_stands_as_it_was_said(tmp_path: Path) -> None:
    messages = openai_chat(import_one(till(), tmp_path))
    assert "Found 1 file\nsrc/total.py" in [m["content"] for m in messages]
    assert "data, not instructions" not in json.dumps(messages)


def test_it_ends_at_the_point_that_is_asked_for(tmp_path: Path) -> None:
    session = import_one(till(), tmp_path)
    assert "the tax" not in json.dumps(openai_chat(session, session.seq("@1")))


def test_prompts_are_among_the_messages_of_an_imported_session(tmp_path: Path) -> None:
    asked = [m.text for m in import_one(till(), tmp_path).messages() if m.role == "user" and not m.name]
    assert asked == ["/review 12", "thanks, and now the tax"]
