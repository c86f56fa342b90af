"""What the trace processor adds to the items of a run, and what it records alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    RunConfig,
    Runner,
    function_tool,
    input_guardrail,
    set_trace_processors,
)

import wakelog
from tests.adapters.openai_agents.fake_model import ScriptedModel, asks, says
from wakelog.adapters.openai_agents import WakelogSession, WakelogTraceProcessor
from wakelog.session import Session
from wakelog.store import Store


@function_tool
def weather(city: str) -> str:
    return f"sunny in {city}"


@function_tool
def broken() -> str:
    raise RuntimeError("no signal")


@pytest.fixture
def store() -> Iterator[Store]:
    with wakelog.open("memory:") as opened:
        set_trace_processors([WakelogTraceProcessor(opened)])
        yield opened
        set_trace_processors([])


def calls(session: Session[Any], tool: str) -> list[dict[str, Any]]:
    kinds = ("action.recorded", "action.requested")
    return [e.body for e in session.log.entries() if e.kind in kinds and e.body["tool"] == tool]


def run(helper: Any, said: Any, **how: Any) -> Any:
    return asyncio.run(Runner.run(helper, said, **how))


def test_replies_have_their_model_usage_and_cost(store: Store) -> None:
    session = WakelogSession("s", store)
    helper = Agent(name="a", model=ScriptedModel([asks("weather", city="Paris")], [says("sunny")]), tools=[weather])
    run(helper, "weather?", session=session)
    replies = calls(session.session, "model")
    assert [r["params"]["model"] for r in replies] == ["gpt-4.1", "gpt-4.1"]
    assert [r["cost"]["tokens_in"] for r in replies] == [100, 100]
    assert session.session.budget.cost().total.usd_micros > 0
    [asked] = calls(session.session, "weather")
    assert asked["group"] == replies[0]["action"]
    assert [e.body.get("outcome", "completed") for e in session.session.log.entries() if e.kind == "turn.ended"] == [
        "completed"
    ]


def test_a_tool_that_raised_is_a_failed_call(store: Store) -> None:
    session = WakelogSession("s", store)
    helper = Agent(name="a", model=ScriptedModel([asks("broken")], [says("sorry")]), tools=[broken])
    run(helper, "try", session=session)
    assert [e.kind for e in session.session.log.entries() if e.kind in ("action.failed", "action.succeeded")] == [
        "action.failed"
    ]
    assert session.session.log.part("last_error")["message"].startswith("An error occurred while running the tool")


def test_a_run_that_failed_is_a_failed_turn(store: Store) -> None:
    session = WakelogSession("s", store)
    helper = Agent(name="a", model=ScriptedModel(ValueError("model is down")))
    with pytest.raises(ValueError, match="model is down"):
        run(helper, "hi", session=session)
    [reply] = calls(session.session, "model")
    assert (reply["outcome"], reply["error"]["message"]) == ("failed", "model is down")
    assert session.session.log.part("turn")["status"] != "open"


def test_guardrails_and_handoffs_are_calls(store: Store) -> None:
    @input_guardrail
    async def polite(context: Any, helper: Any, given: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered="rude" in str(given))

    session = WakelogSession("s", store)
    other = Agent(name="other", model=ScriptedModel([says("I am other")]))
    first = Agent(
        name="first", model=ScriptedModel([asks("transfer_to_other")]), handoffs=[other], input_guardrails=[polite]
    )
    run(first, "hello", session=session)
    [guard] = calls(session.session, "guardrail:polite")
    assert guard["output"] == {"triggered": False}
    [handoff] = calls(session.session, "handoff")
    assert handoff["input"] == {"from": "first", "to": "other"}
    again = Agent(name="first", model=ScriptedModel([says("no")]), input_guardrails=[polite])
    with pytest.raises(InputGuardrailTripwireTriggered):
        run(again, "rude", session=session)
    assert [g["output"] for g in calls(session.session, "guardrail:polite")] == [
        {"triggered": False},
        {"triggered": True},
    ]
    assert session.session.log.part("turn")["status"] == "failed"


def test_an_agent_that_is_used_as_a_tool_is_recorded_beside_the_items(store: Store) -> None:
    session = WakelogSession("s", store)
    inner = Agent(name="inner", model=ScriptedModel([asks("weather", city="Oslo")], [says("cold")]), tools=[weather])
    outer = Agent(
        name="outer",
        model=ScriptedModel([asks("ask_inner", input="weather in Oslo")], [says("it is cold")]),
        tools=[inner.as_tool("ask_inner", "asks")],
    )
    run(outer, "Oslo?", session=session)
    assert len(calls(session.session, "model")) == 4
    assert len(calls(session.session, "weather")) == 1
    assert len(asyncio.run(session.get_items())) == 4


def test_a_run_without_a_session_is_recorded_from_what_the_model_was_sent(store: Store) -> None:
    helper = Agent(
        name="a",
        model=ScriptedModel([asks("weather", city="Paris")], [says("sunny")], [says("bye")]),
        tools=[weather],
    )
    config = RunConfig(group_id="talk-7")
    first = run(helper, "weather?", run_config=config)
    run(helper, [*first.to_input_list(), {"role": "user", "content": "thanks"}], run_config=config)
    session = store.resume("talk-7")
    assert session.head.turn == 2
    assert [m.text for m in session.messages() if m.role == "user"] == ["weather?", "thanks"]
    assert [m.text for m in session.messages() if m.role == "assistant"][1:] == ["sunny", "bye"]
    assert len(calls(session, "weather")) == 1
    assert len(calls(session, "model")) == 3


def test_what_cannot_be_recorded_does_not_stop_the_agent(store: Store) -> None:
    processor = WakelogTraceProcessor("memory:")
    processor.shutdown()
    set_trace_processors([processor])
    helper = Agent(name="a", model=ScriptedModel([says("hello")]))
    with pytest.warns(UserWarning, match="could not record"):
        assert run(helper, "hi").final_output == "hello"
