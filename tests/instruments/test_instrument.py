"""Model calls of the real client libraries, recorded with no change but one line."""

import asyncio
import gc
import logging
import threading
from typing import Any

import pytest

import wakelog
from tests.instruments.apis import ANSWER, APIS, CALL, QUESTION, RESULT, Api, ask_chat, ask_messages
from tests.instruments.conftest import Recorded
from tests.later import Later
from tests.runtime.providers import Provider
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.instruments.lanes import WAITING_MAX
from wakelog.model.parts import content_text

anthropic = Later("anthropic")
openai = Later("openai")

CHAT = APIS["chat"]


def play(api: Api, stream: bool, text: str = "", **how: Any) -> Any:
    return (api.streams if stream else api.says)(text, **how)


def outputs(recorded: Recorded, *kinds: str) -> list[str]:
    session = recorded.session
    return [content_text(session.log.value(e, e.body["output"])) for e in recorded.of(*kinds)]


# What is recorded


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "stream"])
def test_a_call_is_recorded_with_its_question_usage_and_answer(
    recorded: Recorded, remote: Provider, api: Api, stream: bool
) -> None:
    wakelog.instrument(api.library, store=recorded.store)
    remote.plays.append(play(api, stream, ANSWER))
    assert api.ask(remote, api.first(), stream=stream) == ANSWER
    assert recorded.kinds() == [
        *("session.opened", "turn.started", "message.added"),
        *("action.requested", "action.started", "action.succeeded", "turn.ended"),
    ]
    assert recorded.said() == [("user", QUESTION), ("assistant", ANSWER)]
    (asked,) = recorded.of("action.requested")
    (ended,) = recorded.of("action.succeeded")
    assert (asked.body["tool"], asked.body["effect"]) == (api.model, "model")
    assert (ended.body["cost"]["tokens_in"], ended.body["cost"]["tokens_out"]) == (100, 10)
    assert bool(ended.body.get("stream")) is stream


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "stream"])
def test_an_awaited_call_is_recorded_too(recorded: Recorded, remote: Provider, api: Api, stream: bool) -> None:
    wakelog.instrument(api.library, store=recorded.store)
    remote.plays.append(play(api, stream, ANSWER))
    assert asyncio.run(api.ask_async(remote, api.first(), stream=stream)) == ANSWER
    assert recorded.said() == [("user", QUESTION), ("assistant", ANSWER)]
    assert recorded.kinds()[-1] == "turn.ended"


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "stream"])
def test_a_tool_call_is_recorded_once_with_what_was_asked_and_given(
    recorded: Recorded, remote: Provider, api: Api, stream: bool
) -> None:
    wakelog.instrument(api.library, store=recorded.store)
    remote.plays += [play(api, stream, call=True), play(api, stream, ANSWER), play(api, stream, "You are welcome.")]
    history = api.first()
    api.ask(remote, history, stream=stream)
    history += api.then()
    assert api.ask(remote, history, stream=stream) == ANSWER
    (tool,) = recorded.of("action.recorded")
    assert tool.body["tool"] == CALL[1]
    assert tool.body["input"] == CALL[2]
    assert RESULT in tool.body["output_summary"]
    assert (tool.body.get("effect", "external"), tool.header.trust) == ("external", "unverified")
    assert tool.header.cause == recorded.of("action.succeeded")[0].seq
    assert [e.body.get("outcome", "completed") for e in recorded.of("turn.ended")] == ["completed"], "one turn for both"
    # The next question repeats all of it.
    reply: Any = {"role": "assistant", "content": ANSWER}
    thanks: Any = {"role": "user", "content": "Thank you"}
    if api.library == "google-genai":
        reply, thanks = (
            {"role": "model", "parts": [{"text": ANSWER}]},
            {"role": "user", "parts": [{"text": "Thank you"}]},
        )
    api.ask(remote, [*history, reply, thanks], stream=stream)
    assert len(recorded.of("action.recorded")) == 1
    assert [e.body["content"] for e in recorded.of("message.added")] == [QUESTION, "Thank you"]
    assert [e.header.turn for e in recorded.of("turn.started")] == [1, 2]


def test_a_failed_tool_is_recorded_as_failed(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("anthropic", store=recorded.store)
    api = APIS["messages"]
    remote.plays += [api.says(call=True), api.says(ANSWER)]
    ask_messages(remote, api.first())
    wrong = {"type": "tool_result", "tool_use_id": CALL[0], "content": "no such city", "is_error": True}
    ask_messages(remote, [*api.first(), api.then()[0], {"role": "user", "content": [wrong]}])
    (tool,) = recorded.of("action.recorded")
    assert tool.body["outcome"] == "failed"
    assert tool.body["error"] == {"type": "tool", "message": "no such city"}


def test_the_system_prompt_is_recorded_once(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    remote.plays += [CHAT.says("one"), CHAT.says("two")]
    system = {"role": "system", "content": "Be brief."}
    for question in ("first", "second"):
        ask_chat(remote, [system, {"role": "user", "content": question}])
    assert [m for m in recorded.said() if m[0] == "system"] == [("system", "Be brief.")]
    assert [m[1] for m in recorded.said() if m[0] == "user"] == ["first", "second"]


# Which conversation


def test_history_kept_by_the_provider_is_one_conversation(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    api = APIS["responses"]
    remote.plays += [api.says(call=True), api.says(ANSWER)]
    api.ask(remote, api.first())
    api.ask(remote, api.then()[1:], previous_response_id="r1")
    (tool,) = recorded.of("action.recorded")
    assert (tool.body["tool"], tool.body["input"]) == (CALL[1], CALL[2])
    assert len(recorded.of("turn.started")) == 1


def test_the_same_question_again_is_asked_again(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    remote.plays += [CHAT.says("Yes."), CHAT.says("No.")]
    for _ in range(2):
        ask_chat(remote, CHAT.first())
    assert recorded.said() == [("user", QUESTION), ("assistant", "Yes."), ("user", QUESTION), ("assistant", "No.")]


def test_a_conversation_inside_a_tool_of_another_has_a_session_of_its_own(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    remote.plays += [CHAT.says(call=True), CHAT.says("Cold."), CHAT.says("Warm."), CHAT.says(ANSWER)]
    ask_chat(remote, CHAT.first())
    for question in ("sub-agent 1", "sub-agent 2"):
        ask_chat(remote, [{"role": "user", "content": question}])
    ask_chat(remote, [*CHAT.first(), *CHAT.then()])
    outer, inner = recorded.sessions
    assert [m[1] for m in recorded.said(outer) if m[0] == "user"] == [QUESTION]
    assert len(recorded.of("turn.started", session=outer)) == 1
    assert [m[1] for m in recorded.said(inner) if m[0] == "user"] == ["sub-agent 1", "sub-agent 2"]
    assert inner.name.endswith("-2")


def test_an_answer_in_the_form_of_a_forced_tool_call_ends_the_turn(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    remote.plays += [CHAT.says(call=True), CHAT.says(call=True)]
    for question in ("one", "two"):
        ask_chat(remote, [{"role": "user", "content": question}], tool_choice="required", tools=[])
    assert len(recorded.of("turn.ended")) == 2
    assert len(recorded.sessions) == 1


def test_conversations_that_never_go_on_do_not_take_ever_more_sessions(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    remote.plays += [CHAT.says(call=True) for _ in range(WAITING_MAX + 4)] + [CHAT.says(ANSWER)]
    for number in range(WAITING_MAX + 4):
        ask_chat(remote, [{"role": "user", "content": f"{number}"}])
    assert len(recorded.sessions) == WAITING_MAX
    # The first one was given up, and goes on after all.
    ask_chat(remote, [{"role": "user", "content": "0"}, *CHAT.then()])
    asked = sorted(m[1] for session in recorded.sessions for m in recorded.said(session) if m[0] == "user")
    assert asked == sorted(str(number) for number in range(WAITING_MAX + 4))
    tools = [e.body for session in recorded.sessions for e in recorded.of("action.recorded", session=session)]
    assert [(body["tool"], body["input"]) for body in tools] == [(CALL[1], CALL[2])]
    wakelog.uninstrument()
    for session in recorded.sessions:
        assert session.status == "closed"
        started, ended = (len(recorded.of(f"turn.{what}", session=session)) for what in ("started", "ended"))
        assert started == ended


def test_threads_are_recorded_whole(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    remote.plays += [CHAT.says("ok") for _ in range(8)]

    def work(name: str) -> None:
        for number in range(4):
            ask_chat(remote, [{"role": "user", "content": f"{name} {number}"}])

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked = sorted(m[1] for session in recorded.sessions for m in recorded.said(session) if m[0] == "user")
    assert asked == sorted(f"{name} {n}" for name in ("a", "b") for n in range(4))
    for session in recorded.sessions:
        ended = recorded.of("turn.ended", session=session)
        assert len(ended) == len(recorded.of("turn.started", session=session))
        assert all(e.body.get("outcome", "completed") == "completed" for e in ended)


# Errors


@pytest.mark.parametrize("status", [429, 500])
def test_an_error_of_the_provider_is_raised_as_it_is_and_recorded(
    recorded: Recorded, remote: Provider, api: Api, status: int
) -> None:
    remote.plays += [api.fails(status), api.fails(status)]
    with pytest.raises(Exception) as without:
        api.ask(remote, api.first())
    wakelog.instrument(api.library, store=recorded.store)
    with pytest.raises(type(without.value)) as within:
        api.ask(remote, api.first())
    assert type(within.value) is type(without.value)
    assert str(within.value) == str(without.value)
    assert getattr(within.value, "__notes__", []) == []
    (failed,) = recorded.of("action.failed")
    assert failed.body["error"]["type"] == type(within.value).__name__


def test_another_try_after_an_error_stays_in_the_turn(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    remote.plays += [CHAT.fails(429), CHAT.says(ANSWER)]
    with pytest.raises(openai.RateLimitError):
        ask_chat(remote, CHAT.first())
    ask_chat(remote, CHAT.first())
    assert [e.kind for e in recorded.of("action.failed", "action.succeeded")] == ["action.failed", "action.succeeded"]
    assert len(recorded.of("turn.started")) == len(recorded.of("message.added")) == 1
    (ended,) = recorded.of("turn.ended")
    assert (ended.body.get("outcome", "completed"), ended.body.get("error")) == ("completed", None)


def test_a_turn_that_failed_for_good_ends_as_failed(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    remote.plays.append(CHAT.fails(500))
    with pytest.raises(openai.InternalServerError):
        ask_chat(remote, CHAT.first())
    wakelog.uninstrument()
    (ended,) = recorded.of("turn.ended")
    assert (ended.body["outcome"], ended.body["error"]["type"]) == ("failed", "InternalServerError")
    assert recorded.session.status == "closed"


@pytest.mark.parametrize("name", ["chat", "responses", "messages", "content"])
def test_a_stream_that_breaks_off_is_recorded_with_what_came(recorded: Recorded, remote: Provider, name: str) -> None:
    api = APIS[name]
    wakelog.instrument(api.library, store=recorded.store)
    remote.plays.append(api.streams(ANSWER, upto=5, ending="broken"))
    with pytest.raises(Exception):  # noqa: B017 - whatever the client raises
        api.ask(remote, api.first(), stream=True)
    assert outputs(recorded, "action.failed")[0].startswith("It is")


def test_a_stream_that_its_reader_leaves_is_recorded_as_left(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    for leave in ("close", "drop"):
        remote.plays.append(CHAT.streams(ANSWER))
        with openai.OpenAI(api_key="none", base_url=remote.url, max_retries=0) as client:
            stream = client.chat.completions.create(model="gpt-4.1", messages=CHAT.first(), stream=True)
            assert isinstance(stream, openai.Stream), "the reader has the client's own object"
            next(stream), next(stream)
            if leave == "close":
                stream.close()
            del stream
            gc.collect()
    wakelog.uninstrument()
    assert [e.body["error"]["type"] for e in recorded.of("action.failed")] == ["abandoned", "abandoned"]
    assert outputs(recorded, "action.failed") == ["It", "It"]


def test_a_reader_that_stops_at_the_last_word_goes_on_with_its_conversation(
    recorded: Recorded, remote: Provider
) -> None:
    wakelog.instrument("openai", store=recorded.store)
    remote.plays += [CHAT.streams("One."), CHAT.streams("Two.")]
    with openai.OpenAI(api_key="none", base_url=remote.url, max_retries=0) as client:
        history: list[Any] = [{"role": "user", "content": "1"}]
        kept = []
        for answer, question in (("One.", "2"), ("Two.", "3")):
            stream = client.chat.completions.create(model="gpt-4.1", messages=history, stream=True)
            kept.append(stream)
            for part in stream:
                if part.choices and part.choices[0].finish_reason:
                    break
            history += [{"role": "assistant", "content": answer}, {"role": "user", "content": question}]
        for stream in kept:
            stream.close()
    wakelog.uninstrument()
    assert recorded.said() == [("user", "1"), ("assistant", "One."), ("user", "2"), ("assistant", "Two.")]
    assert [e.body.get("outcome", "completed") for e in recorded.of("turn.ended")] == ["completed", "completed"]


def test_a_cancelled_call_is_recorded_as_interrupted(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    held = threading.Event()

    async def run() -> None:
        client = openai.AsyncOpenAI(api_key="none", base_url=remote.url, max_retries=0)
        given: Any = {"model": "gpt-4.1", "messages": CHAT.first()}
        task = asyncio.create_task(client.chat.completions.create(**given, timeout=60))
        while not remote.asked:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.set()
        await client.close()

    remote.plays.append(CHAT.says(ANSWER))
    remote.plays[0].held = held
    asyncio.run(run())
    wakelog.uninstrument()
    (failed,) = recorded.of("action.failed")
    assert failed.body["error"]["type"] == "interrupted"
    (ended,) = recorded.of("turn.ended")
    assert (ended.body["outcome"], ended.body["why"]) == ("interrupted", "CancelledError")


# It never breaks the program


def test_when_nothing_can_be_stored_the_call_works_and_one_warning_says_so(
    remote: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    store = wakelog.open("memory:")
    session = store.session("over")
    session.life.end()
    wakelog.instrument("openai", session=session)
    remote.plays += [CHAT.says("one"), CHAT.streams("two words"), CHAT.says("three")]
    with caplog.at_level(logging.WARNING, logger="wakelog"):
        assert ask_chat(remote, CHAT.first()) == "one"
        assert ask_chat(remote, CHAT.first(), stream=True) == "two words"
        (warning,) = caplog.records
    assert "not recorded" in warning.getMessage()
    session.life.reopen()
    assert ask_chat(remote, CHAT.first()) == "three"
    wakelog.uninstrument()
    recorded = Recorded(store)
    # A gap can be noted in a session that is over; so each was, as soon as the next call came.
    assert [gap.body["missed"][:9] for gap in recorded.of("gap.noted")] == ["a message", "a message"]
    assert recorded.said()[-2:] == [("user", QUESTION), ("assistant", "three")]
    store.close()


def test_what_a_missed_request_said_comes_with_the_next_one(remote: Provider, caplog: pytest.LogCaptureFixture) -> None:
    store = wakelog.open("memory:")
    session = store.session("over")
    session.life.end()
    wakelog.instrument("openai", session=session)
    remote.plays += [CHAT.says(call=True), CHAT.says(ANSWER)]
    ask_chat(remote, CHAT.first())
    session.life.reopen()
    ask_chat(remote, [*CHAT.first(), *CHAT.then()])
    wakelog.uninstrument()
    (tool,) = Recorded(store).of("action.recorded")
    assert (tool.body["tool"], tool.body["input"]) == (CALL[1], CALL[2])
    assert (session.messages()[0].role, session.messages()[0].text) == ("user", QUESTION)
    store.close()


def test_the_switch_in_the_environment_leaves_the_library_alone(
    recorded: Recorded, remote: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKELOG_INSTRUMENT", "0")
    before = openai._base_client.SyncAPIClient.request
    wakelog.instrument("openai", store=recorded.store)
    assert openai._base_client.SyncAPIClient.request is before
    remote.plays.append(CHAT.says(ANSWER))
    assert ask_chat(remote, CHAT.first()) == ANSWER
    assert recorded.sessions == []


def test_uninstrument_puts_every_method_back(recorded: Recorded, remote: Provider) -> None:
    sync, awaited = openai._base_client.SyncAPIClient, anthropic._base_client.AsyncAPIClient
    before = sync.request, awaited.request
    wakelog.instrument("openai", "anthropic", store=recorded.store)
    wakelog.instrument("openai", store=recorded.store)
    assert sync.request is not before[0]
    with openai.OpenAI(api_key="none", base_url=remote.url) as client:
        remote.plays += [CHAT.says("one"), CHAT.says("two")]
        given: Any = {"model": "gpt-4.1", "messages": CHAT.first()}
        client.chat.completions.create(**given)
        wakelog.uninstrument()
        assert (sync.request, awaited.request) == before
        client.chat.completions.create(**given)
    assert len(recorded.of("action.requested")) == 1, "a client that was used before is not recorded any longer"


def test_what_is_instrumented_again_has_a_session_of_its_own(recorded: Recorded, remote: Provider) -> None:
    for text in ("one", "two"):
        wakelog.instrument("openai", store=recorded.store)
        remote.plays.append(CHAT.says(text))
        ask_chat(remote, CHAT.first())
        wakelog.uninstrument()
    assert [recorded.said(session)[-1][1] for session in recorded.sessions] == ["one", "two"]


def test_raw_responses_work_as_before(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", "anthropic", store=recorded.store)
    with openai.OpenAI(api_key="none", base_url=remote.url) as client:
        given: Any = {"model": "gpt-4.1", "messages": CHAT.first()}
        remote.plays += [CHAT.says("raw"), CHAT.streams("raw parts"), CHAT.says("read later")]
        raw = client.chat.completions.with_raw_response.create(**given)
        assert raw.http_response.status_code == 200
        assert raw.parse().choices[0].message.content == "raw"
        parts = client.chat.completions.with_raw_response.create(**given, stream=True).parse()
        assert "".join(p.choices[0].delta.content or "" for p in parts if p.choices).strip() == "raw parts"
        with client.chat.completions.with_streaming_response.create(**given) as later:
            assert later.parse().choices[0].message.content == "read later"
    assert outputs(recorded, "action.succeeded") == ["raw", "raw parts"]


def test_other_requests_of_a_client_are_no_model_calls(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    with openai.OpenAI(api_key="none", base_url=remote.url) as client:
        data = [{"object": "embedding", "index": 0, "embedding": [0.5]}]
        remote.plays.append(CHAT.says())
        remote.plays[0].answer = {"object": "list", "data": data, "model": "e", "usage": {"prompt_tokens": 1}}
        assert client.embeddings.create(model="e", input="x", encoding_format="float").data[0].embedding == [0.5]
    assert recorded.sessions == []


def test_no_key_is_recorded(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    remote.plays.append(CHAT.says(ANSWER))
    secret = "a-key-nobody-would-recognise"
    with openai.OpenAI(api_key=secret, base_url=remote.url) as client:
        given: Any = {"model": "gpt-4.1", "messages": CHAT.first(), "extra_headers": {"x-team": secret}}
        client.chat.completions.create(**given)
    session = recorded.session
    assert all(secret not in repr((e.header, e.body)) for e in session.log.entries())
    assert recorded.of("action.succeeded")


def test_keys_among_the_parameters_are_not_recorded(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai", store=recorded.store)
    remote.plays.append(APIS["responses"].says(ANSWER))
    secret = "a-key-nobody-would-recognise"
    server: Any = {"type": "mcp", "server_label": "s", "server_url": "https://s.example", "authorization": secret}
    server |= {"headers": {"x-team": secret}}
    extra = {"data_sources": [{"authentication": {"type": "api_key", "key": secret}}]}
    with openai.OpenAI(api_key="none", base_url=remote.url) as client:
        client.responses.create(model="gpt-4.1", input=QUESTION, tools=[server], extra_body=extra)
    assert remote.asked[0]["tools"][0]["authorization"] == secret
    (asked,) = recorded.of("action.requested")
    assert secret not in repr(asked.body)
    assert asked.body["params"]["tools"][0]["server_label"] == "s"


def test_functions_that_googles_client_calls_by_itself_are_recorded(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("google-genai", store=recorded.store)
    api = APIS["content"]

    def get_weather(city: str) -> str:
        """The weather in a city."""
        return RESULT

    remote.plays += [api.says(call=True), api.says(ANSWER)]
    assert api.ask(remote, api.first(), config={"tools": [get_weather]}) == ANSWER
    (tool,) = recorded.of("action.recorded")
    assert (tool.body["tool"], tool.body["input"]) == (CALL[1], CALL[2])
    assert len(recorded.of("action.succeeded")) == 2


def test_an_unknown_library_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="gpt4all") as refused:
        wakelog.instrument("gpt4all")
    assert "openai" in refused.value.hint
    with pytest.raises(InvalidInputError, match="no library"):
        wakelog.instrument()


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(NotFoundError, match="litellm") as refused:
        wakelog.instrument("openai", "litellm")
    assert refused.value.hint == "pip install litellm"
    assert isinstance(refused.value.__cause__, ImportError)
    assert "wakelog" not in openai._base_client.SyncAPIClient.request.__globals__.get("__name__", "")
