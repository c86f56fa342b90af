"""Which conversation a request continues, and what in it was said before."""

from typing import Any

import wakelog
from tests.instruments.apis import ANSWER, APIS, CALL, QUESTION, ask_chat
from tests.instruments.conftest import Recorded
from tests.runtime.providers import Provider

CHAT = APIS["chat"]


def test_a_request_without_old_messages_goes_on_with_its_conversation(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    turns = [{"role": r, "content": c} for r, c in (("user", "one"), ("assistant", "1"), ("user", "two"))]
    remote.plays += [CHAT.says("1"), CHAT.says("2"), CHAT.says("3")]
    ask_chat(remote, turns[:1])
    ask_chat(remote, turns)
    ask_chat(remote, [turns[2], {"role": "assistant", "content": "2"}, {"role": "user", "content": "three"}])
    assert [e.body["content"] for e in recorded.of("message.added")] == ["one", "two", "three"]


def test_examples_that_every_request_repeats_are_recorded_once(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    examples = [{"role": "user", "content": "good"}, {"role": "assistant", "content": "+"}]
    remote.plays += [CHAT.says("-"), CHAT.says("-")]
    for text in ("bad", "awful"):
        ask_chat(remote, [*examples, {"role": "user", "content": text}])
    assert [e.body["content"] for e in recorded.of("message.added")] == ["good", "+", "bad", "awful"]
    assert [e.body["input"] for e in recorded.of("turn.started")] == ["bad", "awful"]


def test_calls_whose_ids_the_program_made_up_are_the_ones_that_the_model_asked_for(
    recorded: Recorded, remote: Provider
) -> None:
    wakelog.instrument("google-genai", store=recorded.store)
    api = APIS["content"]
    twice = api.says(call=True)
    assert twice.answer is not None
    twice.answer["candidates"][0]["content"]["parts"] *= 2
    remote.plays += [twice, api.says(ANSWER)]
    api.ask(remote, api.first())
    calls = [{"function_call": {"id": f"mine-{n}", "name": CALL[1], "args": CALL[2]}} for n in (1, 2)]
    results = [{"function_response": {"id": f"mine-{n}", "name": CALL[1], "response": {"result": n}}} for n in (1, 2)]
    history: list[Any] = [*api.first(), {"role": "model", "parts": calls}, {"role": "user", "parts": results}]
    assert api.ask(remote, history) == ANSWER
    tools = [e.body for e in recorded.of("action.recorded")]
    assert [(t["action"], t["input"], t["output"]) for t in tools] == [
        ("mine-1", CALL[2], {"result": 1}),
        ("mine-2", CALL[2], {"result": 2}),
    ]
    assert [e.body["content"] for e in recorded.of("message.added")] == [QUESTION]
    assert len(recorded.of("turn.ended")) == 1
