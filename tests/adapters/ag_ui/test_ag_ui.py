"""Sessions as events of AG-UI, valid by its own package, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonpatch
import pytest
from ag_ui.core import Event
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter

import wakelog
from tests.adapters.store_urls import store_url as store_url
from wakelog.adapters.ag_ui import AgUiRecorder, session_events
from wakelog.model import events as ev
from wakelog.session import Session
from wakelog.store import Store

VALID: Any = TypeAdapter(Event)


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with wakelog.open(store_url) as opened:
        yield opened


def conversation(store: Store, name: str = "chat") -> Session[Any]:
    """Two turns with a call of a tool, a change of the data, a decision and a failure."""
    session = store.session(name, data={"n": 0, "list": []})

    @session.tool(effect="read")
    def weather(city: str) -> dict[str, str]:
        return {"sky": "blue", "city": city}

    with session.turn("What is the weather?") as turn:
        session.model(
            lambda: {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "I look."}]}
        )
        weather("Bern")
        turn.data["n"] = 1
        turn.data["list"].append({"a/b": "~"})
        session.decide("say it", because="it is known")
        session.message("assistant", "It is blue.")
    with pytest.raises(ZeroDivisionError), session.turn("And now?"):
        session.patch([{"op": "remove", "path": "/data/list/0"}])
        raise ZeroDivisionError("no")
    return session


def played(events: list[Any]) -> tuple[Any, list[tuple[str, str]], list[tuple[str, str]]]:
    """What an interface shows: the state, the messages, and the results of calls. Holds the order of events."""
    state: Any = None
    messages: list[tuple[str, str]] = []
    results: list[tuple[str, str]] = []
    run, text, call = "", "", ""
    calls: set[str] = set()
    for event in events:
        told = json.loads(EventEncoder().encode(VALID.validate_python(event)).removeprefix("data: "))
        kind = told["type"]
        assert run or kind == "RUN_STARTED"
        match kind:
            case "RUN_STARTED":
                assert not run
                run = told["runId"]
            case "RUN_FINISHED" | "RUN_ERROR":
                assert not text
                assert not call
                assert told.get("runId", run) == run
                run = ""
            case "STATE_SNAPSHOT":
                state = told["snapshot"]
            case "STATE_DELTA":
                state = jsonpatch.apply_patch(state, told["delta"])
            case "MESSAGES_SNAPSHOT":
                messages = [(m["role"], m["content"]) for m in told["messages"]]
            case "TEXT_MESSAGE_START":
                text = told["messageId"]
                messages.append((told["role"], ""))
            case "TEXT_MESSAGE_CONTENT":
                assert told["messageId"] == text
                messages[-1] = (messages[-1][0], messages[-1][1] + told["delta"])
            case "TEXT_MESSAGE_END":
                text = ""
            case "TOOL_CALL_START":
                call = told["toolCallId"]
                calls.add(call)
            case "TOOL_CALL_ARGS":
                json.loads(told["delta"])
            case "TOOL_CALL_END":
                call = ""
            case "TOOL_CALL_RESULT":
                assert told["toolCallId"] in calls
                results.append((told["toolCallId"], told["content"]))
    assert not run
    return state, messages, results


def test_a_session_is_a_valid_stream_that_ends_in_its_state(store) -> None:
    session = conversation(store)
    state, messages, results = played(list(session_events(session)))
    assert state == session.state().data == {"n": 1, "list": []}
    assert messages == [
        ("user", "What is the weather?"),
        ("assistant", "I look."),
        ("assistant", "It is blue."),
        ("user", "And now?"),
    ]
    assert [json.loads(content) for _, content in results] == [{"sky": "blue", "city": "Bern"}]


def test_a_failed_turn_is_a_run_error_and_decisions_are_custom_events(store) -> None:
    events = list(session_events(conversation(store)))
    assert [e.type.value for e in events if e.type.value.startswith("RUN")] == [
        "RUN_STARTED",
        "RUN_FINISHED",
        "RUN_STARTED",
        "RUN_ERROR",
    ]
    (decision,) = [e for e in events if e.type.value == "CUSTOM"]
    assert decision.name == "wakelog.decision.made"
    assert decision.value["choice"] == "say it"


def test_a_stream_from_the_middle_begins_with_what_was_said_before(store) -> None:
    session = conversation(store)
    end = next(e.seq for e in session.log.entries() if e.kind == "turn.ended")
    state, messages, _ = played(list(session_events(session, after=end)))
    assert state == {"n": 1, "list": []}
    assert messages[0] == ("user", "What is the weather?")
    assert messages[-1] == ("user", "And now?")


def test_a_rewind_inside_a_turn_is_told_by_snapshots(store) -> None:
    session = conversation(store)
    session.append(ev.TurnStarted(input="Again"))
    session.rewind("@1")
    session.append(ev.MessageAdded(role="assistant", content="Back."), ev.TurnEnded())
    state, messages, _ = played(list(session_events(session)))
    assert state == session.state().data == {"n": 1, "list": [{"a/b": "~"}]}
    assert messages == [
        ("user", "What is the weather?"),
        ("assistant", "I look."),
        ("assistant", "It is blue."),
        ("assistant", "Back."),
    ]


def test_new_events_are_followed(store) -> None:
    session = conversation(store)
    stream = session_events(session, follow=True, timeout_s=0.01)
    assert len(list(stream)) == len(list(session_events(session)))


def test_a_stream_is_recorded_back_into_the_same_turns(store) -> None:
    session = conversation(store)
    events = list(session_events(session))
    recorder = AgUiRecorder(store)
    recorder.take_all(events)
    recorder.close()
    back = recorder.session("chat")
    said = [(m.role, m.text) for m in back.messages() if not m.text.startswith("(asks for")]
    assert said == [(m.role, m.text) for m in session.messages()]
    state = back.state()
    assert (state.turn.number, state.turn.status) == (2, "failed")
    assert state.tools_used["weather"].calls == 1
    assert state.data == {"state": {"n": 1, "list": []}}


def test_another_process_goes_on_with_a_thread_and_records_nothing_twice(store) -> None:
    events = [
        json.loads(e.model_dump_json(by_alias=True, exclude_none=True)) for e in session_events(conversation(store))
    ]
    half = next(n for n, e in enumerate(events) if e["type"] == "RUN_FINISHED") + 1
    first = AgUiRecorder(store)
    first.take_all(events[:half])
    before = first.session("chat").head.seq
    again = AgUiRecorder(store)
    again.take_all(events[:half])
    again.close()
    assert again.session("chat").head.seq == before
    second = AgUiRecorder(store)
    second.take_all(events[half:])
    assert second.session("chat").state().turn.number == 2
