"""The recording proxy between the real clients and their providers: what passes, and what is recorded of it."""

import http.client
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

import wakelog
from tests.instruments.apis import ANSWER, APIS, CALL, QUESTION, Api, ask_chat
from tests.instruments.conftest import Recorded, Through
from tests.later import Later
from tests.ports import free_port
from tests.runtime.providers import Play, Provider
from wakelog.errors import InvalidInputError
from wakelog.instruments.endpoints import Endpoints

openai = Later("openai")

CHAT = APIS["chat"]


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "stream"])
def test_a_tool_loop_is_recorded_as_by_instrument(
    through: Through, recorded: Recorded, remote: Provider, api: Api, stream: bool
) -> None:
    answers = api.streams if stream else api.says
    remote.plays += [answers(call=True), answers(ANSWER)]
    client = through.to(api.library)
    api.ask(client, api.first(), stream=stream)
    assert api.ask(client, [*api.first(), *api.then()], stream=stream) == ANSWER
    through.close()
    (tool,) = recorded.of("action.recorded")
    assert (tool.body["tool"], tool.body["input"]) == (CALL[1], CALL[2])
    assert recorded.said()[0] == ("user", QUESTION)
    assert recorded.said()[-1] == ("assistant", ANSWER)
    first, second = recorded.of("action.succeeded")
    assert first.body["cost"]["tokens_in"] == second.body["cost"]["tokens_in"] == 100
    assert [e.body.get("outcome", "completed") for e in recorded.of("turn.ended")] == ["completed"]
    assert recorded.session.status == "closed"


@pytest.mark.parametrize("status", [429, 500])
def test_an_error_passes_and_is_recorded(
    through: Through, recorded: Recorded, remote: Provider, api: Api, status: int
) -> None:
    remote.plays += [api.fails(status), api.fails(status)]
    with pytest.raises(Exception) as without:
        api.ask(remote, api.first())
    with pytest.raises(type(without.value)) as within:
        api.ask(through.to(api.library), api.first())
    assert str(within.value) == str(without.value)
    through.close()
    (failed,) = recorded.of("action.failed")
    assert failed.body["error"]["type"] == "rate_limit_error"
    assert failed.body["error"]["retryable"] is True
    (ended,) = recorded.of("turn.ended")
    assert ended.body["outcome"] == "failed"


def test_bytes_pass_unchanged_both_ways(through: Through, remote: Provider) -> None:
    sent = b'{"model":"m",  "messages":[{"role":"user","content":"\\u00e4 \xc3\xa4"}], "extra":[1e3]}'
    answer = {"weird": "ä", "choices": []}
    remote.plays += [Play([], answer=answer), Play([], answer=answer)]
    url = urlsplit(through.to().url)
    got = []
    for netloc, path in ((urlsplit(remote.url).netloc, ""), (url.netloc, url.path)):
        connection = http.client.HTTPConnection(netloc)
        connection.request("POST", f"{path}/v1/chat/completions?a=b%20c", sent, {"authorization": "Bearer k"})
        reply = connection.getresponse()
        got.append((reply.status, reply.getheader("content-type"), reply.read()))
        connection.close()
    assert got[0] == got[1]
    assert remote.bodies == [sent, sent]
    assert remote.paths == ["/v1/chat/completions?a=b%20c"] * 2
    assert [h["authorization"] for h in remote.headers] == ["Bearer k"] * 2


def test_a_stream_passes_as_it_comes(through: Through, recorded: Recorded, remote: Provider) -> None:
    held = threading.Event()
    play = CHAT.streams(ANSWER)
    play.held_at, play.held = 3, held
    remote.plays.append(play)
    with openai.OpenAI(api_key="none", base_url=through.to().url, max_retries=0) as client:
        given: Any = {"model": "gpt-4.1", "messages": CHAT.first()}
        stream = client.chat.completions.create(**given, stream=True)
        first = [next(stream), next(stream), next(stream)]
        assert "".join(p.choices[0].delta.content or "" for p in first) == "It is", "before the rest was sent"
        held.set()
        rest = "".join(p.choices[0].delta.content or "" for p in stream if p.choices)
    assert "It is" + rest == ANSWER
    through.close()
    assert recorded.said() == [("user", QUESTION), ("assistant", ANSWER)]


def test_a_stream_that_breaks_off_breaks_off_for_the_client_too(
    through: Through, recorded: Recorded, remote: Provider
) -> None:
    remote.plays.append(CHAT.streams(ANSWER, upto=4, ending="broken"))
    with pytest.raises(Exception):  # noqa: B017 - whatever the client raises
        ask_chat(through.to(), CHAT.first(), stream=True)
    through.close()
    (failed,) = recorded.of("action.failed")
    assert failed.body["output"]["choices"][0]["message"]["content"] == "It is 12"


def test_a_provider_that_is_away_is_a_bad_gateway(recorded: Recorded) -> None:
    remote = Provider()
    remote.url = f"http://127.0.0.1:{free_port()}"
    through = Through(remote, recorded)
    with through.proxy, pytest.raises(openai.InternalServerError) as away:
        ask_chat(through.to(), CHAT.first())
    assert "did not answer" in away.value.response.text
    through.close()
    assert recorded.of("action.failed")


def test_when_nothing_can_be_stored_the_traffic_flows(remote: Provider, recorded: Recorded) -> None:
    through = Through(remote, recorded)
    recorded.store.session("seen-1").life.end()
    remote.plays += [CHAT.says("one"), CHAT.streams("two"), CHAT.says("three")]
    with through.proxy:
        client = through.to()
        assert ask_chat(client, [{"role": "user", "content": "1"}]) == "one"
        assert ask_chat(client, [{"role": "user", "content": "2"}], stream=True) == "two"
        through.recorder.writer.wait(through.recorder.do(lambda: None))
        recorded.session.life.reopen()
        assert ask_chat(client, [{"role": "user", "content": "3"}]) == "three"
    through.close()
    assert len(through.warnings) == 1
    assert recorded.of("gap.noted")
    assert recorded.said() == [("user", "3"), ("assistant", "three")]


def test_what_cannot_be_read_passes_and_is_a_gap(through: Through, recorded: Recorded, remote: Provider) -> None:
    remote.plays += [Play([], answer={"ok": True}), CHAT.says(ANSWER)]
    url = urlsplit(through.to().url)
    connection = http.client.HTTPConnection(url.netloc)
    connection.request("POST", f"{url.path}/v1/chat/completions", b"not json")
    with connection.getresponse() as reply:
        assert (reply.status, reply.read()[:1]) == (200, b"{")
    connection.close()
    ask_chat(through.to(), CHAT.first())
    through.close()
    assert [e.body["missed"][:9] for e in recorded.of("gap.noted")] == ["a message"]


def test_a_request_in_chunks_passes(through: Through, recorded: Recorded, remote: Provider) -> None:
    remote.plays.append(CHAT.says(ANSWER))
    url = urlsplit(through.to().url)
    body = msgspec.json.encode({"model": "gpt-4.1", "messages": CHAT.first()})
    connection = http.client.HTTPConnection(url.netloc)
    connection.request("POST", f"{url.path}/chat/completions", iter([body[:9], body[9:]]), encode_chunked=True)
    with connection.getresponse() as reply:
        assert (reply.status, reply.read()[:1]) == (200, b"{")
    connection.close()
    assert remote.bodies == [body]
    through.close()
    assert recorded.said()[-1] == ("assistant", ANSWER)


def test_nobody_who_does_not_know_the_address_can_use_it(through: Through, remote: Provider) -> None:
    connection = http.client.HTTPConnection(urlsplit(through.proxy.address).netloc)
    for path in ("/v1/chat/completions", "/guess/openai_base_url/chat/completions"):
        connection.request("POST", path, b"{}")
        reply = connection.getresponse()
        assert reply.status == 404
        reply.read()
    connection.close()
    assert remote.asked == []


def test_another_protocol_passes_as_it_is(recorded: Recorded) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def echo() -> None:
            there, _ = server.accept()
            with there:
                head = there.recv(65536)
                assert b"upgrade: websocket" in head.lower()
                there.sendall(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
                there.sendall(there.recv(100).upper())

        thread = threading.Thread(target=echo)
        thread.start()
        remote = Provider()
        remote.url = f"http://127.0.0.1:{server.getsockname()[1]}"
        through = Through(remote, recorded)
        with through.proxy:
            url = urlsplit(through.to().url)
            with socket.create_connection((url.hostname or "", url.port or 0), timeout=180) as client:
                head = (
                    f"GET {url.path}/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
                )
                client.sendall(head.encode())
                assert client.recv(12) == b"HTTP/1.1 101"
                while not client.recv(65536).endswith(b"\r\n\r\n"):
                    pass
                client.sendall(b"hello")
                assert client.recv(100) == b"HELLO"
        thread.join()
    through.close()
    assert len(through.warnings) == 1


# Variables


def test_a_variable_that_was_set_leads_where_it_led() -> None:
    endpoints = Endpoints({"OPENAI_BASE_URL": "http://localhost:8000/v1/"}, {"MY_URL": "https://my.example/x"})
    env = endpoints.variables("http://127.0.0.1:1", {"PATH": "/bin", "OPENAI_BASE_URL": "http://localhost:8000/v1/"})
    assert env["PATH"] == "/bin"
    assert env["WAKELOG_INSTRUMENT"] == "0"
    assert "AZURE_OPENAI_ENDPOINT" not in env
    paths = {name: urlsplit(env[name]).path for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "MY_URL")}
    assert endpoints.target(paths["OPENAI_BASE_URL"] + "/models?x=1") == "http://localhost:8000/v1/models?x=1"
    assert endpoints.target(paths["ANTHROPIC_BASE_URL"] + "/v1/messages") == "https://api.anthropic.com/v1/messages"
    assert endpoints.target(paths["MY_URL"]) == "https://my.example/x"


def test_a_client_that_uses_a_proxy_comes_to_us_without_it() -> None:
    env = Endpoints({}).variables("http://127.0.0.1:1", {"http_proxy": "http://p:1", "NO_PROXY": "a.example"})
    assert env["NO_PROXY"] == "a.example,127.0.0.1"
    assert env["no_proxy"] == "127.0.0.1"


def test_a_variable_without_an_address_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="GROQ_BASE_URL"):
        Endpoints({}, {"GROQ_BASE_URL": ""})


def test_an_instrumented_client_and_the_proxy_record_the_same(
    through: Through, recorded: Recorded, remote: Provider
) -> None:
    remote.plays += [CHAT.says(call=True), CHAT.says(ANSWER)] * 2
    for client in (remote, through.to()):
        if client is remote:
            wakelog.instrument("openai", store=recorded.store)
        ask_chat(client, CHAT.first())
        ask_chat(client, [*CHAT.first(), *CHAT.then()])
        wakelog.uninstrument()
    through.close()
    by_proxy, by_wrap = recorded.sessions
    assert recorded.kinds(by_proxy) == recorded.kinds(by_wrap)
    assert recorded.said(by_proxy) == recorded.said(by_wrap)
