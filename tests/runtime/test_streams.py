"""Streams of model calls, with the providers' own clients: passed on live, recorded, and returned as streams again."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx2
import msgspec
import pytest

import wakelog
from tests.later import Later
from tests.runtime.lives import Desk, Killed
from tests.runtime.providers import Play, Provider, chat, messages, provider, responses
from wakelog.log.reader import Entry
from wakelog.model.parts import content_text
from wakelog.session import Session

anthropic = Later("anthropic")
openai = Later("openai")

SAID = 'Hello there\n(asks for look: {"where":"north"})'
ASK = [{"role": "user", "content": "hi"}]


@pytest.fixture
def remote() -> Iterator[Provider]:
    with provider() as told:
        yield told


@pytest.fixture
def session() -> Iterator[Session[Any]]:
    with wakelog.open("memory:") as store:
        yield store.session("agent")


def of(session: Session[Any], kind: str) -> list[Entry]:
    return list(session.events(kind=kind))


def output(session: Session[Any], entry: Entry) -> Any:
    return session.log.value(entry, entry.body["output"])


class Way(msgspec.Struct):
    """One way to stream: the play of the provider, the call, and the text that a reader makes of a part."""

    play: Callable[..., Play]
    call: Callable[[Provider], tuple[Callable[..., Any], dict[str, Any]]]
    text: Callable[[Any], str]


def _chat(remote: Provider) -> tuple[Callable[..., Any], dict[str, Any]]:
    client = openai.OpenAI(api_key="none", base_url=remote.url, max_retries=0)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    return client.chat.completions.create, {"model": "gpt-4.1", "messages": ASK, **options}


def _responses(remote: Provider) -> tuple[Callable[..., Any], dict[str, Any]]:
    client = openai.OpenAI(api_key="none", base_url=remote.url, max_retries=0)
    return client.responses.create, {"model": "gpt-4.1", "input": "hi", "stream": True}


def _messages(remote: Provider) -> tuple[Callable[..., Any], dict[str, Any]]:
    client = anthropic.Anthropic(api_key="none", base_url=remote.url, max_retries=0)
    given = {"model": "claude-test", "messages": ASK, "max_tokens": 99}
    return client.messages.create, {**given, "stream": True}


def _of_chat(part: Any) -> str:
    return (part.choices[0].delta.content or "") if part.choices else ""


def _of_responses(part: Any) -> str:
    return part.delta if part.type == "response.output_text.delta" else ""


def _of_messages(part: Any) -> str:
    return part.delta.text if part.type == "content_block_delta" and part.delta.type == "text_delta" else ""


WAYS = {
    "chat": Way(chat, _chat, _of_chat),
    "responses": Way(responses, _responses, _of_responses),
    "messages": Way(messages, _messages, _of_messages),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


def read(session: Session[Any], way: Way, remote: Provider) -> str:
    function, given = way.call(remote)
    return "".join(map(way.text, session.model(function, **given)))


# Live


def test_a_stream_is_passed_on_and_its_whole_answer_is_recorded(
    session: Session[Any], way: Way, remote: Provider
) -> None:
    remote.plays.append(way.play())
    function, given = way.call(remote)
    with session.turn("hi"):
        stream = session.model(function, **given)
        assert not of(session, "action.succeeded"), "it is not over yet"
        assert "".join(map(way.text, stream)) == "Hello there"
        (outcome,) = of(session, "action.succeeded")
    assert content_text(output(session, outcome)) == SAID
    cost = outcome.body["cost"]
    assert (cost["tokens_in"], cost["tokens_out"], cost["cache_read_tokens"]) == (1000, 100, 400)
    assert outcome.body["stop_reason"] in ("tool_calls", "tool_use", "completed")
    assert outcome.body["output_summary"] == SAID.replace("\n", " ")


def test_what_is_stored_of_a_stream_is_what_the_provider_would_have_answered_at_once(
    session: Session[Any], remote: Provider
) -> None:
    for way in WAYS.values():
        remote.plays.append(way.play())
        read(session, way, remote)
    kinds: dict[str, Any] = {
        "openai.chat": openai.types.chat.ChatCompletion,
        "openai.responses": openai.types.responses.Response,
        "anthropic.messages": anthropic.types.Message,
    }
    for outcome in of(session, "action.succeeded"):
        kinds.pop(outcome.body["stream"]["shape"]).model_validate(output(session, outcome))
    assert not kinds


def test_a_stream_that_breaks_is_recorded_as_failed_with_what_had_come(
    session: Session[Any], way: Way, remote: Provider
) -> None:
    remote.plays.append(way.play(ending="broken", upto=4))
    with pytest.raises((openai.APIConnectionError, httpx2.RemoteProtocolError)) as caught:
        read(session, way, remote)
    assert not of(session, "action.succeeded")
    (failed,) = of(session, "action.failed")
    assert failed.body["error"]["type"] == type(caught.value).__name__
    assert content_text(output(session, failed)).startswith("Hello")


def test_a_stream_that_stops_without_saying_that_it_is_over_is_not_a_success(
    session: Session[Any], way: Way, remote: Provider
) -> None:
    remote.plays.append(way.play(ending="quiet", upto=4))
    assert read(session, way, remote).startswith("Hello")
    assert not of(session, "action.succeeded")
    (failed,) = of(session, "action.failed")
    assert failed.body["error"]["type"] == "incomplete"


@pytest.mark.parametrize("how", ["with", "close", "dropped"])
def test_a_stream_that_its_reader_leaves_is_recorded_as_that(
    session: Session[Any], way: Way, remote: Provider, how: str
) -> None:
    remote.plays.append(way.play())
    function, given = way.call(remote)
    with session.turn("hi"):
        stream = session.model(function, **given)
        next(iter(stream))
        if how == "with":
            with stream:
                pass
        elif how == "close":
            stream.close()
        else:
            inner = stream._inner
            del stream
            gc.collect()
            inner.close()
        assert not of(session, "action.succeeded")
        (failed,) = of(session, "action.failed")
    assert failed.body["error"]["type"] == "abandoned"
    assert failed.body["stream"]["parts"] == 1


def test_a_reader_may_leave_once_the_answer_is_whole(session: Session[Any], remote: Provider) -> None:
    remote.plays.append(chat())
    function, given = _chat(remote)
    with session.model(function, **given) as stream:
        for part in stream:
            if part.choices[0].finish_reason:
                break
    (outcome,) = of(session, "action.succeeded")
    assert content_text(output(session, outcome)) == SAID


def test_a_reader_that_is_interrupted_is_told_apart_from_one_that_leaves(
    session: Session[Any], remote: Provider
) -> None:
    remote.plays.append(chat())
    function, given = _chat(remote)
    with pytest.raises(KeyboardInterrupt), session.turn("hi"), session.model(function, **given) as stream:
        next(stream)
        raise KeyboardInterrupt
    (failed,) = of(session, "action.failed")
    assert failed.body["error"] == {
        "type": "interrupted",
        "message": "its reader left it after 1 parts",
        "retryable": True,
    }


def test_an_error_in_the_stream_is_the_error_of_the_call(session: Session[Any], remote: Provider) -> None:
    play = responses(upto=4)
    whole = responses().events[-1]["response"]
    error = {"code": "server_error", "message": "sorry"}
    play.events.append(
        {"type": "response.failed", "response": {**whole, "status": "failed", "error": error}, "sequence_number": 4}
    )
    remote.plays.append(play)
    read(session, WAYS["responses"], remote)
    (failed,) = of(session, "action.failed")
    assert (failed.body["error"]["type"], failed.body["error"]["message"]) == ("server_error", "sorry")


def test_the_clients_own_helper_is_recorded_too(session: Session[Any], remote: Provider) -> None:
    remote.plays += [messages(), messages()]
    client = anthropic.Anthropic(api_key="none", base_url=remote.url, max_retries=0)
    given: dict[str, Any] = {"model": "claude-test", "messages": ASK, "max_tokens": 99}
    with session.model(client.messages.stream, **given) as stream:
        assert "".join(stream.text_stream) == "Hello there"
        assert stream.get_final_message().usage.output_tokens == 100
    with session.model(client.messages.stream, **given) as stream:
        assert stream.get_final_text() == "Hello there"
    for outcome in of(session, "action.succeeded"):
        assert content_text(output(session, outcome)) == SAID
    assert len(of(session, "action.succeeded")) == 2


def test_a_helper_that_is_left_is_not_a_success(session: Session[Any], remote: Provider) -> None:
    remote.plays.append(messages())
    client = anthropic.Anthropic(api_key="none", base_url=remote.url, max_retries=0)
    with session.model(client.messages.stream, model="c", messages=ASK, max_tokens=9) as stream:
        next(stream)
    assert not of(session, "action.succeeded")
    assert of(session, "action.failed")[0].body["error"]["type"] == "abandoned"


def test_a_manager_that_cannot_be_recorded_is_refused_and_says_what_to_use(
    session: Session[Any], remote: Provider
) -> None:
    remote.plays.append(chat())
    client = openai.OpenAI(api_key="none", base_url=remote.url, max_retries=0)
    with (
        pytest.raises(wakelog.InvalidInputError, match="cannot be recorded") as caught,
        session.model(client.chat.completions.stream, model="gpt-4.1", messages=ASK),
    ):
        pass
    assert "stream=True" in caught.value.hint
    assert not of(session, "action.succeeded")


# Generators


def test_the_pieces_of_a_generator_are_recorded_as_one_text(session: Session[Any]) -> None:
    def say(prompt: str, model: str) -> Iterator[str]:
        yield "Hel"
        yield "lo"

    assert list(session.model(say, "hi", model="local")) == ["Hel", "lo"]
    (outcome,) = of(session, "action.succeeded")
    assert outcome.body["output"] == "Hello"


def test_parts_that_are_not_text_are_recorded_one_by_one_and_stay_the_readers(session: Session[Any]) -> None:
    def say(model: str) -> Iterator[dict[str, int]]:
        yield {"n": 1}
        yield {"n": 2}

    for part in session.model(say, model="local"):
        part["n"] = 0
    (outcome,) = of(session, "action.succeeded")
    assert outcome.body["output"] == [{"n": 1}, {"n": 2}]


def test_a_part_that_cannot_be_stored_ends_the_stream_with_the_reason(session: Session[Any]) -> None:
    def say(model: str) -> Iterator[object]:
        yield {"n": 1}
        yield object()

    with pytest.raises(wakelog.InvalidInputError, match="a part of the stream cannot be stored"):
        list(session.model(say, model="local"))
    (failed,) = of(session, "action.failed")
    assert failed.body["output"] == [{"n": 1}]


def test_a_plain_tool_still_cannot_be_a_generator(session: Session[Any]) -> None:
    with pytest.raises(wakelog.InvalidInputError) as caught:

        @session.tool
        def numbers() -> Iterator[int]:
            yield 1

    assert caught.value.kind == "generator-tool"


# Awaited


def test_an_awaited_stream_is_recorded_too(session: Session[Any], remote: Provider) -> None:
    remote.plays += [chat(), messages(), responses()]

    async def script() -> list[str]:
        said = []
        async with (
            openai.AsyncOpenAI(api_key="none", base_url=remote.url, max_retries=0) as open_ai,
            anthropic.AsyncAnthropic(api_key="none", base_url=remote.url, max_retries=0) as claude,
        ):
            for name, function in (
                ("chat", open_ai.chat.completions.create),
                ("messages", claude.messages.create),
                ("responses", open_ai.responses.create),
            ):
                given = WAYS[name].call(remote)[1]
                stream = await session.aio.model(function, **given)
                said.append("".join([WAYS[name].text(part) async for part in stream]))
        return said

    assert asyncio.run(script()) == ["Hello there"] * 3
    assert [content_text(output(session, e)) for e in of(session, "action.succeeded")] == [SAID] * 3


def test_an_awaited_helper_is_recorded_too(session: Session[Any], remote: Provider) -> None:
    remote.plays.append(messages())

    async def script() -> str:
        async with anthropic.AsyncAnthropic(api_key="none", base_url=remote.url, max_retries=0) as client:
            manager = await session.aio.model(client.messages.stream, model="c", messages=ASK, max_tokens=9)
            async with manager as stream:
                return "".join([text async for text in stream.text_stream])

    assert asyncio.run(script()) == "Hello there"
    assert len(of(session, "action.succeeded")) == 1


def test_a_cancelled_reader_leaves_no_success(session: Session[Any]) -> None:
    async def say(model: str) -> AsyncIterator[str]:
        yield "Hel"
        await asyncio.Event().wait()

    async def script() -> None:
        stream = await session.aio.model(say, model="local")
        assert await anext(stream) == "Hel"
        reader = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader

    asyncio.run(script())
    assert not of(session, "action.succeeded")
    (failed,) = of(session, "action.failed")
    assert (failed.body["error"]["type"], failed.body["output"]) == ("interrupted", "Hel")


# Given again


def _twice(desk: Desk, script: Callable[[Session[Any]], Any]) -> tuple[Any, Any]:
    """What a script says before it is killed, and when it runs again."""
    said = []
    for is_first in (True, False):
        session, life = desk.process()
        try:
            with session.turn("go"):
                said.append(script(session))
                if is_first:
                    life.is_dead = True
                life.breathe()
        except Killed:
            assert is_first
    return said[0], said[1]


def test_after_a_crash_a_stream_is_given_again_as_a_stream_of_the_same_types(
    desk: Desk, way: Way, remote: Provider
) -> None:
    remote.plays.append(way.play())
    kinds = []

    def script(session: Session[Any]) -> str:
        function, given = way.call(remote)
        parts = list(session.model(function, **given))
        kinds.append({type(part) for part in parts})
        return "".join(map(way.text, parts))

    assert _twice(desk, script) == ("Hello there", "Hello there")
    assert len(remote.asked) == 1, "nothing is paid twice"
    assert kinds[1] <= kinds[0]
    assert desk.operator.state().budget.spent["tokens"] == 1100


def test_after_a_crash_a_helper_is_given_again_as_the_clients_own(desk: Desk, remote: Provider) -> None:
    remote.plays.append(messages())
    client = anthropic.Anthropic(api_key="none", base_url=remote.url, max_retries=0)

    def script(session: Session[Any]) -> tuple[str, Any]:
        with session.model(client.messages.stream, model="claude-test", messages=ASK, max_tokens=9) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        asked: Any = final.content[1]
        return text, (asked.input, final.stop_reason, final.usage.output_tokens)

    first, second = _twice(desk, script)
    assert first == second == ("Hello there", ({"where": "north"}, "tool_use", 100))
    assert len(remote.asked) == 1


def test_after_a_crash_an_awaited_stream_is_awaited_again(desk: Desk, remote: Provider) -> None:
    remote.plays.append(chat())

    def script(session: Session[Any]) -> str:
        async def work() -> str:
            async with openai.AsyncOpenAI(api_key="none", base_url=remote.url, max_retries=0) as client:
                stream = await session.aio.model(client.chat.completions.create, **_chat(remote)[1])
                return "".join([_of_chat(part) async for part in stream])

        return asyncio.run(work())

    assert _twice(desk, script) == ("Hello there", "Hello there")
    assert len(remote.asked) == 1


def test_after_a_crash_the_pieces_of_a_generator_come_again(desk: Desk) -> None:
    asked = []

    def say(prompt: str) -> Iterator[str]:
        asked.append(prompt)
        yield "Hel"
        yield "lo"

    assert _twice(desk, lambda session: "".join(session.model(say, "hi"))) == ("Hello", "Hello")
    assert asked == ["hi"]


def test_a_stream_that_broke_breaks_again_where_it_broke(desk: Desk) -> None:
    asked = []

    def say(prompt: str) -> Iterator[str]:
        asked.append(prompt)
        yield "Hel"
        raise ConnectionError("gone")

    def script(session: Session[Any]) -> tuple[list[str], str]:
        said = []
        try:
            for piece in session.model(say, "hi"):
                said.append(piece)
        except ConnectionError as exc:
            return said, str(exc)
        return said, ""

    assert _twice(desk, script) == ((["Hel"], "gone"), (["Hel"], "gone"))
    assert asked == ["hi"]


def test_a_stream_that_was_left_is_given_again_as_far_as_it_was_read(desk: Desk) -> None:
    def say(prompt: str) -> Iterator[dict[str, int]]:
        yield {"n": 1}
        yield {"n": 2}

    def script(session: Session[Any]) -> Any:
        stream: Any = session.model(say, "hi")
        with stream:
            return next(stream)

    assert _twice(desk, script) == ({"n": 1}, {"n": 1})


def test_reading_on_where_the_first_reader_left_says_that_no_more_is_recorded(desk: Desk) -> None:
    def say(prompt: str) -> Iterator[dict[str, int]]:
        yield {"n": 1}
        yield {"n": 2}

    reads = [1, 2]

    def script(session: Session[Any]) -> Any:
        stream: Any = session.model(say, "hi")
        with stream:
            return [next(stream) for _ in range(reads.pop(0))]

    with pytest.raises(wakelog.CallFailedError) as caught:
        _twice(desk, script)
    assert caught.value.kind == "stream-left"


def test_a_stream_that_was_cut_by_the_crash_is_asked_for_again(desk: Desk) -> None:
    asked = []

    def say(prompt: str) -> Iterator[str]:
        asked.append(prompt)
        yield "Hel"
        yield "lo"

    for is_first in (True, False):
        session, life = desk.process()
        try:
            with session.turn("go"):
                stream = session.model(say, "hi")
                said = next(stream)
                if is_first:
                    life.is_dead = True
                said += "".join(stream)
        except Killed:
            assert is_first
    assert said == "Hello"
    assert asked == ["hi", "hi"]
    assert [e.body["output"] for e in desk.operator.events(kind="action.succeeded")] == ["Hello"]


def test_a_strict_replay_gives_streams_from_the_record(session: Session[Any]) -> None:
    asked = []

    def say(prompt: str) -> Iterator[str]:
        asked.append(prompt)
        yield "Hel"
        yield "lo"

    def agent(session: Session[Any]) -> str:
        with session.turn("go"):
            return "".join(session.model(say, "hi"))

    assert agent(session) == "Hello"
    with session.replay() as replay:
        assert agent(replay.session) == "Hello"
    assert asked == ["hi"]
