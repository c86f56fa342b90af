"""Who is admitted: hosts, origins, rates; and limits: bodies, time, concurrent requests."""

import json
import socket
import threading
from typing import Any

import pytest

from tests.http.asking import Asker
from tests.http.conftest import Serve
from wakelog.errors import NotAllowedError
from wakelog.http.guards import HostGuard, Rates
from wakelog.http.keys import make_key
from wakelog.http.server import RunningServer


@pytest.mark.parametrize(
    ("host", "let_in"),
    [
        ("127.0.0.1:8425", True),
        ("127.0.0.1", True),
        ("localhost:1", True),
        ("LOCALHOST", True),
        ("[::1]:8425", True),
        ("evil.example", False),
        ("evil.example:8425", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("", False),
        ("[::2]", False),
        ("evil.example:80@localhost", False),
    ],
)
def test_only_the_names_it_goes_by_are_answered(host: str, let_in: bool) -> None:
    if let_in:
        HostGuard().check(host, "")
    else:
        with pytest.raises(NotAllowedError) as refused:
            HostGuard().check(host, "")
        assert refused.value.kind == "wrong-host"


@pytest.mark.parametrize(
    ("origin", "let_in"),
    [
        ("", True),
        ("http://localhost:8425", True),
        ("https://localhost:8425", True),
        ("http://localhost:9", False),
        ("http://evil.example", False),
        ("null", False),
        ("https://trusted.example", True),
        ("https://trusted.example.evil.example", False),
        ("http://trusted.example", False),
    ],
)
def test_only_pages_of_its_own_or_of_trusted_origins_are_answered(origin: str, let_in: bool) -> None:
    doors = HostGuard(origins=["https://trusted.example/"])
    if let_in:
        doors.check("localhost:8425", origin)
    else:
        with pytest.raises(NotAllowedError) as refused:
            doors.check("localhost:8425", origin)
        assert refused.value.kind == "wrong-origin"


def test_a_rebound_name_or_a_strange_page_gets_nothing_even_with_a_key(running: RunningServer) -> None:
    asker = Asker(running.url, running.key)
    for headers, kind in (
        ({"Host": "evil.example"}, "wrong-host"),
        ({"Origin": "http://evil.example"}, "wrong-origin"),
    ):
        for method, path in (
            ("GET", "/v1/info"),
            ("POST", "/v1/sessions"),
            ("GET", "/healthz"),
            ("OPTIONS", "/v1/info"),
        ):
            reply = asker.ask(method, path, None, headers)
            assert (reply.status, reply.kind) == (403, kind)
            assert "access-control-allow-origin" not in reply.headers


def test_a_trusted_page_gets_what_a_browser_needs_to_hand_it_the_answer(serve: Serve) -> None:
    running = serve(rate=0, trusted_origins=("https://ui.example",))
    asker = Asker(running.url, running.key, Origin="https://ui.example")
    before = asker.ask("OPTIONS", "/v1/sessions", None, {"Access-Control-Request-Method": "POST", "Authorization": ""})
    assert before.status == 204
    assert before.headers["access-control-allow-origin"] == "https://ui.example"
    assert "authorization" in before.headers["access-control-allow-headers"]
    reply = asker.get("/v1/info")
    assert reply.headers["access-control-allow-origin"] == "https://ui.example"
    assert Asker(running.url, "", Origin="https://ui.example").get("/v1/info").status == 401


def test_a_bucket_lets_so_many_through_at_once_and_then_so_many_a_second() -> None:
    now = [0.0]
    rates = Rates(2.0, 4.0, clock=lambda: now[0])
    assert [rates.take("a") for _ in range(4)] == [0.0] * 4
    assert rates.take("a") == pytest.approx(0.5)
    assert rates.take("b") == 0.0
    now[0] += 1.0
    assert [bool(rates.take("a")) for _ in range(3)] == [False, False, True]
    now[0] += 100.0
    assert [bool(rates.take("a")) for _ in range(5)] == [False] * 4 + [True]


def test_who_asks_too_often_is_told_to_wait_and_others_are_not(serve: Serve) -> None:
    running = serve()
    running.server.rates = Rates(1.0, 2.0, clock=lambda: 0.0)
    key, token = make_key("other", "read", ("default",), now=running.server.clock())
    running.server.keys.add(key)
    asker = Asker(running.url, running.key)
    replies = [asker.get("/v1/info") for _ in range(6)]
    assert [r.status for r in replies] == [200] * 2 + [429] * 4
    assert replies[-1].kind == "too-many-requests"
    assert replies[-1].headers["retry-after"] == "1"
    assert Asker(running.url, token).get("/v1/info").status == 200


def test_wrong_keys_from_one_address_are_slowed_down_and_a_right_one_is_not(running: RunningServer) -> None:
    running.server.failures = Rates(2.0, 5.0, clock=lambda: 0.0)
    wrong = Asker(running.url, "wlk_aaaaaaaa_wrong")
    assert [wrong.get("/v1/info").status for _ in range(7)] == [401] * 5 + [429] * 2
    assert Asker(running.url, running.key).get("/v1/info").status == 200


def test_a_body_that_is_too_large_is_refused_before_it_is_read(serve: Serve) -> None:
    running = serve(rate=0, body_max=1000, bundle_max=5000)
    asker = Asker(running.url, running.key)
    assert asker.post("/v1/sessions", {"name": "x" * 2000}).kind == "body-too-large"
    assert asker.post("/v1/bundles", b"x" * 2000).kind == "bad-bundle"
    assert asker.post("/v1/bundles", b"x" * 6000).kind == "body-too-large"
    assert asker.post("/v1/sessions", {"name": "x" * 200}).status == 200


def test_a_body_without_a_length_is_counted_as_it_comes(serve: Serve) -> None:
    running = serve(rate=0, body_max=1000)
    with _connected(running) as sock:
        sock.sendall(_head(running, "Transfer-Encoding: chunked"))
        for _ in range(3):
            sock.sendall(b"1f4\r\n" + b" " * 500 + b"\r\n")
        assert _reply(sock)["kind"] == "body-too-large"


def test_a_body_that_does_not_come_is_not_waited_for(serve: Serve) -> None:
    running = serve(rate=0, body_s=0.1)
    with _connected(running) as sock:
        sock.sendall(_head(running, "Content-Length: 100") + b"{")
        assert _reply(sock)["kind"] == "body-too-slow"


def test_a_head_that_does_not_come_is_not_waited_for(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = "wakelog.http.protocol.Protocol.head_s"
    monkeypatch.setattr(limit, 0.2)
    running = serve(rate=0)
    for sent in (b"", b"GET /healthz HTTP/1.1\r\nHost: 127", b"G"):
        with _connected(running) as sock:
            sock.sendall(sent)
            assert sock.recv(1) == b""
    monkeypatch.setattr(limit, 60)
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with _connected(running) as sock:
        sock.sendall(whole)
        assert _reply(sock) == {"status": "ok"}
        monkeypatch.setattr(limit, 0.2)
        sock.sendall(whole[:20])  # the next one on a kept connection
        assert sock.recv(1) == b""


@pytest.mark.parametrize("media", ["text/plain", "", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_of_another_type_is_refused(media: str, running: RunningServer) -> None:
    reply = Asker(running.url, running.key).post("/v1/sessions", b'{"name": "s"}', **{"Content-Type": media})
    assert (reply.status, reply.kind) == (415, "wrong-media")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"name": 1}', b'{"name": "a", "x": 1}', b"\xff", b"[" * 100000])
def test_a_body_that_does_not_fit_is_refused_with_the_place(body: bytes, running: RunningServer) -> None:
    reply = Asker(running.url, running.key).post("/v1/sessions", body, **{"Content-Type": "application/json"})
    assert (reply.status, reply.kind) == (400, "bad-request")


@pytest.mark.parametrize(
    "query", ["x=1", "limit=0", "limit=1001", "limit=a", "live=maybe", "limit=1&limit=2", "name=%ff"]
)
def test_a_query_that_does_not_fit_is_refused(query: str, running: RunningServer) -> None:
    reply = Asker(running.url, running.key).get(f"/v1/sessions?{query}")
    assert (reply.status, reply.kind) == (400, "bad-request")


def test_a_verb_that_takes_too_long_is_answered_as_unknown(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    running = serve(rate=0, answer_s=0.1)
    release, began = threading.Event(), threading.Event()
    engine = running.server.spaces.get("default").engine

    def slow(name: str) -> None:
        began.set()
        release.wait(180)

    monkeypatch.setattr(engine, "find", slow)
    while True:
        reply = Asker(running.url, running.key).post("/v1/engine/find", {"name": "s"})
        if reply.kind != "server-busy":  # refused before a thread started it, so it is sent again
            break
    release.set()
    assert began.is_set()
    assert (reply.status, reply.kind) == (503, "answer-unknown")
    assert reply.json["retryable"]


def test_more_requests_at_once_than_it_can_hold_are_turned_away(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    running = serve(rate=0, pending_max=4)
    release = threading.Event()
    busy = threading.Semaphore(0)
    engine = running.server.spaces.get("default").engine

    def slow(name: str) -> None:
        busy.release()
        release.wait(180)

    monkeypatch.setattr(engine, "find", slow)
    asker = Asker(running.url, running.key)
    threads = [threading.Thread(target=asker.post, args=("/v1/engine/find", {"name": "s"})) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert busy.acquire(timeout=180)
    reply = asker.get("/v1/info")
    release.set()
    for thread in threads:
        thread.join()
    assert (reply.status, reply.kind) == (503, "server-busy")
    assert asker.get("/v1/info").status == 200


def test_a_fault_of_its_own_is_told_without_its_insides(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = running.server.spaces.get("default").engine

    def broken(name: str) -> None:
        raise ZeroDivisionError("the very inside")

    monkeypatch.setattr(engine, "find", broken)
    reply = Asker(running.url, running.key).post("/v1/engine/find", {"name": "s"})
    assert (reply.status, reply.kind) == (500, "fault")
    assert b"very inside" not in reply.content


def _connected(running: RunningServer) -> socket.socket:
    host, _, port = running.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=180)


def _head(running: RunningServer, *headers: str) -> bytes:
    lines = [
        "POST /v1/sessions HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {running.key}",
        "Content-Type: application/json",
        *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _reply(sock: socket.socket) -> Any:
    data = b""
    while b"\r\n\r\n" not in data or not data.endswith(b"}"):
        data += sock.recv(65536)
    return json.loads(data.partition(b"\r\n\r\n")[2])
