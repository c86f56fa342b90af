"""LiteLLM, where it is installed. It is large and pins the clients that it uses, so no extra of ours brings it.

Run this file in an environment that has it, with `-W ignore`: it leaves event loops open when it is imported."""

import asyncio
import warnings
from typing import Any

import pydantic
import pytest

import wakelog
from tests.instruments.apis import ANSWER, APIS, CALL, QUESTION
from tests.instruments.conftest import Recorded
from tests.runtime.providers import Provider

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    litellm = pytest.importorskip("litellm")

pytestmark = pytest.mark.filterwarnings("ignore")
CHAT, MESSAGES, RESPONSES = APIS["chat"], APIS["messages"], APIS["responses"]


def given(remote: Provider, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-4.1", "messages": CHAT.first(), "api_key": "a-key", "base_url": f"{remote.url}/v1", **more}


@pytest.mark.parametrize("both", [False, True], ids=["alone", "with the client that it uses"])
def test_a_completion_is_recorded_once(recorded: Recorded, remote: Provider, both: bool) -> None:
    wakelog.instrument(*(["litellm", "openai"] if both else ["litellm"]), store=recorded.store)
    remote.plays += [CHAT.says(call=True), CHAT.says(ANSWER)]
    litellm.completion(**given(remote))
    said = litellm.completion(**given(remote, messages=[*CHAT.first(), *CHAT.then()]))
    assert said.choices[0].message.content == ANSWER
    assert len(recorded.of("action.requested")) == 2
    (tool,) = recorded.of("action.recorded")
    assert (tool.body["tool"], tool.body["input"]) == (CALL[1], CALL[2])
    assert all("a-key" not in repr(e.body) for e in recorded.session.log.entries())
    assert recorded.of("action.succeeded")[0].body["cost"]["usd_micros"] > 0


def test_a_stream_is_recorded_whole(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("litellm", store=recorded.store)
    remote.plays.append(CHAT.streams(ANSWER))
    stream = litellm.completion(**given(remote, stream=True, stream_options={"include_usage": True}))
    assert isinstance(stream, litellm.CustomStreamWrapper)
    assert "".join(part.choices[0].delta.content or "" for part in stream if part.choices) == ANSWER
    assert recorded.said() == [("user", QUESTION), ("assistant", ANSWER)]


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "stream"])
def test_an_awaited_completion_is_recorded(recorded: Recorded, remote: Provider, stream: bool) -> None:
    wakelog.instrument("litellm", store=recorded.store)
    remote.plays.append((CHAT.streams if stream else CHAT.says)(ANSWER))

    async def run() -> str:
        said = await litellm.acompletion(**given(remote, stream=stream))
        if stream:
            return "".join([part.choices[0].delta.content or "" async for part in said if part.choices])
        return str(said.choices[0].message.content)

    assert asyncio.run(run()) == ANSWER
    assert recorded.said() == [("user", QUESTION), ("assistant", ANSWER)]


def test_another_provider_is_recorded_in_the_same_words(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("litellm", store=recorded.store)
    remote.plays.append(MESSAGES.says(ANSWER))
    asked = given(remote, model="anthropic/claude-sonnet-4-5", base_url=remote.url)
    assert litellm.completion(**asked).choices[0].message.content == ANSWER
    assert recorded.said() == [("user", QUESTION), ("assistant", ANSWER)]


def test_a_class_as_the_format_of_the_answer_does_not_hide_the_messages(recorded: Recorded, remote: Provider) -> None:
    class Weather(pydantic.BaseModel):
        degrees: int

    wakelog.instrument("litellm", store=recorded.store)
    remote.plays.append(CHAT.says(ANSWER))
    litellm.completion(**given(remote, response_format=Weather))
    assert recorded.said() == [("user", QUESTION), ("assistant", ANSWER)]
    (asked,) = recorded.of("action.requested")
    log = recorded.session.log
    assert "degrees" in str(log.value(asked, asked.body))


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "stream"])
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "awaited"])
def test_a_response_is_recorded(recorded: Recorded, remote: Provider, stream: bool, is_async: bool) -> None:
    wakelog.instrument("litellm", "openai", store=recorded.store)
    remote.plays.append((RESPONSES.streams if stream else RESPONSES.says)(ANSWER))
    asked = {"model": "gpt-4.1", "input": QUESTION, "api_key": "a-key", "api_base": f"{remote.url}/v1"}

    async def run() -> None:
        said = await litellm.aresponses(**asked, stream=stream)
        if stream:
            async for _ in said:
                pass

    if is_async:
        asyncio.run(run())
    else:
        said = litellm.responses(**asked, stream=stream)
        assert list(said)
    assert recorded.said() == [("user", QUESTION), ("assistant", ANSWER)]
    assert "a-key" not in str([recorded.session.log.value(e, e.body) for e in recorded.session.log.entries()])


def test_an_error_is_raised_as_it_is(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("litellm", store=recorded.store)
    remote.plays.append(CHAT.fails(429))
    with pytest.raises(litellm.RateLimitError):
        litellm.completion(**given(remote, num_retries=0, max_retries=0))
    (failed,) = recorded.of("action.failed")
    assert failed.body["error"]["type"] == "RateLimitError"
