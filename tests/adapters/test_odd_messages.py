"""Messages that are legal and unusual: refusals, speech, calls without an id, calls that a person decides about."""

from __future__ import annotations

from typing import Any

import pytest

import wakelog
from tests.every import every
from wakelog.adapters.recorder import ListChange, Recorder
from wakelog.errors import InvalidInputError

ASKED = {"role": "user", "content": "Please."}


def call(id: str, name: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def recorded(*messages: dict[str, Any]) -> Recorder:
    """The same messages at once and one by one must give the same calls; the second recorder is returned."""
    store = wakelog.open("memory:")
    at_once, grown = Recorder(store.session("once", folder="")), Recorder(store.session("grown", folder=""))
    at_once.add(*messages)
    for message in messages:
        grown.add(message)
    assert at_once.messages() == grown.messages() == list(messages)
    assert calls(at_once) == calls(grown)
    return grown


def calls(made: Recorder) -> dict[str, tuple[int, int]]:
    used = made.session.log.part("tools_used")
    return {tool: (use["calls"], use["errors"]) for tool, use in used.items() if tool != "model"}


def said(made: Recorder) -> list[str]:
    return [m.text for m in made.session.messages() if m.role == "assistant"]


WORDS: dict[str, tuple[dict[str, Any], str]] = {
    "a refusal": ({"role": "assistant", "content": None, "refusal": "I will not."}, "I will not."),
    "speech": ({"role": "assistant", "content": None, "audio": {"id": "a1", "transcript": "Hi."}}, "Hi."),
    "speech by its id": ({"role": "assistant", "content": None, "audio": {"id": "a1"}}, "(speech: a1)"),
    "thoughts beside": ({"role": "assistant", "content": "Yes.", "reasoning_content": "hm"}, "Yes."),
}


@every("name", WORDS)
def test_an_answer_in_another_field_is_an_answer(name: str) -> None:
    message, text = WORDS[name]
    made = recorded(ASKED, message)
    assert said(made)[-1].endswith(text)
    assert made.session.log.part("turn") == {"number": 1, "attempt": 1, "status": "completed"}
    assert made.sync([ASKED, {"role": "assistant", "content": "No."}]).how == "rewind"


FOUND: dict[str, tuple[Any, ...]] = {
    "a custom tool": (
        {"role": "assistant", "tool_calls": [{"id": "k", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
        {"role": "tool", "tool_call_id": "k", "content": "a.txt"},
        {"sh": (1, 0)},
    ),
    "the older function call": (
        {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}},
        {"role": "function", "name": "weather", "content": "sun"},
        {"weather": (1, 0)},
    ),
    "calls without an id": (
        {"role": "assistant", "tool_calls": [call("", "weather"), call("", "clock")]},
        {"role": "tool", "tool_call_id": "", "content": "sun"},
        {"role": "tool", "tool_call_id": "", "content": "noon"},
        {"weather": (1, 0), "clock": (1, 0)},
    ),
    "calls of the provider": (
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]},
                {"type": "mcp_tool_use", "id": "m1", "name": "echo", "server_name": "s", "input": {}},
                {"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": True, "content": "no"},
                {"type": "text", "text": "Found."},
            ],
        },
        {"web_search": (1, 0), "echo": (1, 1)},
    ),
    "a call of the provider that pauses": (
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s1", "name": "fetch", "input": {}}]},
        {"role": "assistant", "content": [{"type": "fetch_tool_result", "tool_use_id": "s1", "content": "page"}]},
        {"fetch": (1, 0)},
    ),
}


@every("name", FOUND)
def test_calls_of_every_form_are_found_with_their_results(name: str) -> None:
    *messages, expected = FOUND[name]
    made = recorded(ASKED, *messages, {"role": "assistant", "content": "Done."})
    assert calls(made) == expected
    assert made.session.log.part("pending_actions") == {}
    assert made.session.log.part("turn")["status"] == "completed"


def approval(*rest: dict[str, Any]) -> list[dict[str, Any]]:
    asks = {"type": "mcp_approval_request", "id": "r1", "server_label": "s", "name": "pay", "arguments": '{"n": 5}'}
    return [ASKED, asks, *rest]


def verdict(approve: bool) -> dict[str, Any]:
    return {"type": "mcp_approval_response", "approval_request_id": "r1", "approve": approve}


RAN: dict[str, Any] = {
    "type": "mcp_call",
    "id": "c1",
    "approval_request_id": "r1",
    "name": "pay",
    "arguments": '{"n": 5}',
    "output": "ok",
}
OVER: dict[str, Any] = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}


def test_a_call_that_must_be_approved_waits_and_then_runs_in_the_same_turn() -> None:
    made = recorded(*approval())
    [pending] = made.session.log.part("pending_actions").values()
    assert (pending["tool"], pending["status"]) == ("pay", "waiting")
    made.add(verdict(True))
    made.add(RAN, OVER)
    assert calls(made) == {"pay": (1, 0)}
    assert made.session.log.part("pending_actions") == {}
    assert made.session.log.part("turn") == {"number": 1, "attempt": 1, "status": "completed"}


def test_a_call_that_was_denied_did_not_run() -> None:
    made = recorded(*approval(verdict(False), OVER))
    kinds = [entry.kind for entry in made.session.log.entries()]
    assert "action.denied" in kinds
    assert "action.started" not in kinds
    assert made.session.log.part("turn") == {"number": 1, "attempt": 1, "status": "completed"}


def test_a_call_that_nobody_decided_about_is_abandoned_and_not_uncertain() -> None:
    made = recorded(*approval({"role": "user", "content": "Never mind."}))
    assert made.session.log.part("pending_actions") == {}
    assert "action.abandoned" in [entry.kind for entry in made.session.log.entries()]


def marked(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content, "cache_control": {"type": "ephemeral"}}]


SAME: dict[str, list[dict[str, Any]]] = {
    "a mark on the system prompt": [
        {"role": role, "content": c} for role, c in (("system", "s"), ("system", marked("s")))
    ],
    "a mark in a result": [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": c}]}
        for c in ("r", marked("r"))
    ],
    "a tool's text as a list": [{"role": "tool", "tool_call_id": "t", "content": c} for c in ("r", marked("r"))],
    "fields in another order": [
        {"role": "assistant", "tool_calls": [call("c", "f", a)]} for a in ('{"a":1,"b":2}', '{"b": 2, "a": 1}')
    ],
}


@every("name", SAME)
def test_the_same_message_in_another_form_is_no_edit(name: str) -> None:
    one, other = SAME[name]
    made = recorded(one)
    assert made.sync([other]) == ListChange()


EDITED: dict[str, list[dict[str, Any]]] = {
    "the older call": [
        {"role": "assistant", "content": None, "function_call": {"name": n, "arguments": "{}"}} for n in "fg"
    ],
    "a custom call": [
        {"role": "assistant", "tool_calls": [{"id": "k", "type": "custom", "custom": {"name": "sh", "input": i}}]}
        for i in ("ls", "rm -rf /")
    ],
    "a verdict": [verdict(True), verdict(False)],
    "the system prompt": [{"role": "system", "content": c} for c in ("be nice", "be rude")],
}


@every("name", EDITED)
def test_what_is_said_in_another_field_is_compared_too(name: str) -> None:
    one, other = EDITED[name]
    assert recorded(one).sync([other]).how == "rewind"


@pytest.mark.parametrize("given", [{}, {"content": "hi"}, {"role": 5, "content": "hi"}])
def test_an_object_that_is_no_message_is_refused(given: Any) -> None:
    made = recorded(ASKED)
    before = made.session.head.seq
    with pytest.raises(InvalidInputError, match=r"messages\[1\] is not a message: it has no role and no type"):
        made.sync([ASKED, given])
    assert made.session.head.seq == before


def test_a_recorder_of_a_store_is_refused() -> None:
    with wakelog.open("memory:") as store, pytest.raises(InvalidInputError, match="this is a Store"):
        Recorder(store)  # type: ignore[arg-type]
