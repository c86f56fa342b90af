"""What one caller can use: memory, slots, threads and time are limited, and others are still answered."""

import asyncio
import contextlib
import gzip
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.http.asking import Asker
from tests.http.conftest import Serve
from tests.http.processes import ServerProcess
from wakelog.errors import UnavailableError
from wakelog.http.guards import LOOPBACK_TIMES, ConnectionCount
from wakelog.http.keys import Scope, make_key
from wakelog.http.protocol import HEAD_MAX, HEADERS_MAX
from wakelog.http.server import RunningServer
from wakelog.http.shares import Requester, Share, ThreadQueue
from wakelog.http.state import Server

JSON = {"Content-Type": "application/json"}
MSGPACK = {"Content-Type": "application/msgpack"}
MB = 1 << 20


def _key(running: RunningServer, name: str, scope: Scope = "read") -> str:
    key, token = make_key(name, scope, ("default",), now=running.server.clock())
    running.server.keys.add(key)
    return token


def _connected(running: RunningServer) -> socket.socket:
    host, _, port = running.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=180)


def _until_closed(sock: socket.socket) -> bytes:
    data = b""
    try:
        while part := sock.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    return data


def _head(token: str, *lines: str, path: str = "/v1/engine/head") -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}", *lines]
    return ("\r\n".join([*head, "Content-Type: application/json"]) + "\r\n\r\n").encode()


# Memory


@pytest.fixture
def child(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path / "store", "--max-bundle", "16MB") as server:
        yield server


def _bombs() -> dict[str, tuple[str, bytes, dict[str, str], int]]:
    """Path, body, headers and the status it is answered with, of what is small and would become large."""
    line = b'{"session":"s","records":[' + b'["","",""],' * (7 * MB // 11) + b"]}\n"
    return {
        "one long line": ("/v1/bundles", gzip.compress(b" " * (48 * MB), 1), {}, 413),
        "many short lines": ("/v1/bundles", gzip.compress(b"\n" * (48 * MB), 1), {}, 400),
        "small records": ("/v1/bundles", gzip.compress(b'{"wakelog":1}\n' + line * 2, 1), {}, 400),
        "not packed": ("/v1/bundles", b" " * (17 * MB), {}, 413),
        "lists in JSON": ("/v1/sessions/s/events", b'{"events":[' + b"[]," * (2 * MB), JSON, 413),
        "lists in MessagePack": ("/v1/sessions/s/events", b"\xdd\x7f\xff\xff\xff" + b"\x90" * (2 * MB), MSGPACK, 413),
    }


def test_what_would_become_large_is_refused_before_it_does(child: ServerProcess) -> None:
    asker = Asker(child.url, child.key)
    before = child.peak_bytes()
    bombs = _bombs()
    answers = {name: asker.post(path, body, **head) for name, (path, body, head, _) in bombs.items()}
    assert {name: reply.status for name, reply in answers.items()} == {n: status for n, (*_, status) in bombs.items()}
    assert answers["one long line"].kind == "bundle-too-large"
    assert answers["lists in JSON"].kind == answers["lists in MessagePack"].kind == "body-too-complex"
    address = ("127.0.0.1", child.port)
    with socket.create_connection(address, timeout=180) as sock, contextlib.suppress(OSError):
        sock.sendall(b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 3_000_000)
    assert asker.get("/v1/info").status == 200
    # Up to 16 MB of each are read; a refused one builds nothing from them.
    assert child.peak_bytes() - before < 100 * MB


def test_bundles_that_unpack_to_much_take_turns_and_leave_nothing_behind(tmp_path: Path) -> None:
    """Each unpacks to 60 MB, which is allowed, and is refused at its end. Four at once take no more than one."""
    first = json.dumps({"wakelog": 1, "session": "", "segments": []}).encode()
    body = gzip.compress(first + b'\n"' + b"x" * (60 * MB) + b'"\n', 1)
    with ServerProcess(tmp_path / "store", "--max-bundle", "64MB") as server:
        asker = Asker(server.url, server.key)
        before = server.peak_bytes()
        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(lambda _: asker.post("/v1/bundles", body), range(4)))
        assert {reply.kind for reply in replies} == {"bad-bundle"}
        assert server.peak_bytes() - before < 200 * MB


def test_bodies_in_memory_are_counted_together(serve: Serve) -> None:
    running = serve(rate=0, body_max=1000, bodies_max=4000)
    token = _key(running, "sender", "write")
    with _connected(running) as one, _connected(running) as two:
        for sock in (one, two):
            sock.sendall(_head(token, "Content-Length: 900", path="/v1/sessions") + b" " * 800)
        while running.server.bodies.used < 1600:
            threading.Event().wait(0.001)
        reply = Asker(running.url, token).post("/v1/sessions", {"name": "x" * 800})
        assert (reply.status, reply.kind) == (503, "server-busy")
        assert Asker(running.url, running.key).post("/v1/sessions", {"name": "x" * 100}).status == 200
    while running.server.bodies.used:
        threading.Event().wait(0.001)
    assert Asker(running.url, token).post("/v1/sessions", {"name": "y" * 100}).status == 200


def test_a_question_may_not_be_as_large_as_what_is_stored(serve: Serve) -> None:
    running = serve(rate=0)
    asker = Asker(running.url, running.key)
    assert asker.post("/v1/engine/find", {"name": "x" * 2 * MB}).kind == "body-too-large"
    text = "1,2,3," * (300_000)
    event = {"kind": "note.added", "body": {"text": text}}
    asker.post("/v1/sessions", {"name": "s"})
    assert asker.post("/v1/sessions/s/events", {"events": [event]}).status == 200


def test_a_query_beyond_its_limits_cannot_be_processed(serve: Serve) -> None:
    """No conflict with the state of anything: the same query is refused again."""
    running = serve(rate=0)
    asker = Asker(running.url, running.key)
    endless = "with recursive r(x) as (select 1 union all select x + 1 from r) select count(*) from r"
    reply = asker.post("/v1/query", {"sql": endless, "timeout_s": 0.05})
    assert (reply.status, reply.kind, reply.json["group"]) == (422, "query-too-slow", "not-allowed")
    reply = asker.post("/v1/query", {"sql": "select zeroblob(2000000000)"})
    assert (reply.status, reply.kind, reply.json["group"]) == (422, "query-too-big", "not-allowed")


# Heads, before any key


@pytest.mark.parametrize(
    "lines",
    [
        [f"x: {'y' * HEAD_MAX}"],
        [f"x-{n}: y" for n in range(HEADERS_MAX + 1)],
        [f"x-{n}: {'y' * 1000}" for n in range(HEAD_MAX // 1000 + 1)],
    ],
    ids=["one long", "many", "many long"],
)
def test_a_head_that_is_too_large_is_refused(lines: list[str], serve: Serve) -> None:
    running = serve(rate=0)
    for end in ("\r\n\r\n", ""):  # complete, or endless
        with _connected(running) as sock:
            sock.sendall(("\r\n".join(["GET /healthz HTTP/1.1", "Host: 127.0.0.1", *lines]) + end).encode())
            if not end:
                sock.sendall(b"\r\nz: " + b"y" * (HEAD_MAX + 1))
            head, _, body = _until_closed(sock).partition(b"\r\n\r\n")
        if end or head:  # data still in flight when a connection is closed may discard the answer
            assert head.startswith(b"HTTP/1.1 431 ")
            assert json.loads(body)["kind"] == "head-too-large"


def test_an_address_counts_as_part_of_the_head(serve: Serve) -> None:
    with _connected(serve(rate=0)) as sock:
        sock.sendall(b"GET /" + b"a" * HEAD_MAX + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"head-too-large" in _until_closed(sock)


def test_a_head_within_the_limits_is_answered_and_the_next_one_too(serve: Serve) -> None:
    running = serve(rate=0)
    more = "".join(f"x-{n}: {'y' * 500}\r\n" for n in range(HEADERS_MAX - 1))
    with _connected(running) as sock:
        for _ in range(3):
            sock.sendall(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}\r\n".encode())
            data = b""
            while not data.endswith(b"}"):
                data += sock.recv(65536)
            assert data.startswith(b"HTTP/1.1 200 ")


def test_what_follows_a_chunked_body_is_counted_as_a_head_is(serve: Serve) -> None:
    running = serve(rate=0)
    for trailer in (b"x: y\r\n" * 200, b"x: " + b"y" * (6 * HEAD_MAX)):
        with _connected(running) as sock:
            sock.sendall(_head(running.key, "Transfer-Encoding: chunked") + b"0\r\n" + trailer)
            assert b" 200 " not in _until_closed(sock)
    assert Asker(running.url, running.key).get("/v1/info").status == 200


@pytest.mark.parametrize("twice", ["Host: 127.0.0.1", "Host: evil.example", "Authorization: Bearer x"])
def test_a_header_that_decides_and_comes_twice_is_refused(twice: str, serve: Serve) -> None:
    running = serve(rate=0)
    for lines in ([twice, "Content-Length: 0"], ["Content-Length: 0", twice]):
        with _connected(running) as sock:
            sock.sendall(_head(running.key, *lines, "Connection: close"))
            data = _until_closed(sock)
        assert data.startswith(b"HTTP/1.1 400 ")
        assert b"is sent twice" in data


# Fair shares


def test_one_address_has_so_many_connections_and_is_told_when_it_asks_for_more(serve: Serve) -> None:
    running = serve(rate=0, connections_max=1)
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(_connected(running)) for _ in range(LOOPBACK_TIMES)]
        for sock in (opened[0], opened[-1]):  # all of them are answered
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert sock.recv(100).startswith(b"HTTP/1.1 ")
        silent, asking = stack.enter_context(_connected(running)), stack.enter_context(_connected(running))
        asking.sendall(_head(running.key, "Content-Length: 2") + b"{}")
        for refused in (silent, asking):
            head, _, body = _until_closed(refused).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 1" in head
            told = json.loads(body)
            assert (told["kind"], str(LOOPBACK_TIMES) in told["detail"]) == ("server-busy", True)
    # The others have closed theirs. The server notices that a little later.
    deadline = time.monotonic() + 60
    while (reply := Asker(running.url, running.key).get("/v1/info")).status == 503:
        assert time.monotonic() < deadline
    assert reply.status == 200


def test_connections_are_counted_for_each_address_and_more_generously_on_this_machine() -> None:
    connections = ConnectionCount(2)
    assert [connections.enter("192.0.2.1") for _ in range(3)] == [0, 0, 2]
    assert connections.enter("192.0.2.2") == 0
    connections.leave("192.0.2.1")
    assert [connections.enter("192.0.2.1") for _ in range(2)] == [0, 2]
    for here in ("127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1", ""):
        assert [connections.enter(here) for _ in range(2 * LOOPBACK_TIMES)] == [0] * 2 * LOOPBACK_TIMES
        assert connections.enter(here) == 2 * LOOPBACK_TIMES
    endless = ConnectionCount(0)
    assert [endless.enter("192.0.2.1") for _ in range(5000)] == [0] * 5000


def test_a_share_leaves_something_for_others() -> None:
    share = Share(8, "slots")
    first, second, third = Requester("a", "x"), Requester("b", "x"), Requester("c", "y")
    holds = [share.hold(first) for _ in range(4)]
    for hold in holds:
        hold.add(1)
    with pytest.raises(UnavailableError, match="this key already has 4 slots"):
        share.hold(first).add(1)
    share.hold(second).add(2)
    with pytest.raises(UnavailableError, match="this namespace already has 6 slots"):
        share.hold(second).add(1)
    share.hold(third).add(2)
    with pytest.raises(UnavailableError, match="overloaded"):
        share.hold(third).add(1)
    for hold in holds:
        hold.release()
        hold.release()
    assert share.used == 4
    share.hold(first).add(1)


@pytest.mark.anyio
async def test_who_waits_for_a_thread_is_passed_over_while_their_share_is_used() -> None:
    queue, a, b = ThreadQueue(4), Requester("a", ""), Requester("b", "")
    for _ in range(2):
        await queue.enter(a)
    waiting = [asyncio.ensure_future(queue.enter(a)) for _ in range(2)]
    await asyncio.sleep(0)
    await queue.enter(b)
    waiting[0].cancel()
    await asyncio.sleep(0)
    assert not waiting[1].done()
    queue.leave(b)
    await asyncio.sleep(0)
    assert not waiting[1].done()
    queue.leave(a)
    await waiting[1]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_slow_bodies_of_one_key_keep_nobody_else_out(serve: Serve) -> None:
    running = serve(rate=0, pending_max=4)
    reader, other = _key(running, "reader"), _key(running, "other", "write")
    socks = [_connected(running) for _ in range(6)]
    try:
        for sock in socks:
            sock.sendall(_head(reader, "Content-Length: 100") + b"{")
        while running.server.arrivals.used < 2:
            threading.Event().wait(0.001)
        asker = Asker(running.url, other)
        assert asker.post("/v1/sessions", {"name": "s"}).status == 200
        assert Asker(running.url, reader).get("/v1/info").status == 200
        ready = select.select(socks, [], [], 60)[0][0]
        told = b""
        while b"server-busy" not in told:
            part = ready.recv(65536)
            assert part, told
            told += part
        assert running.server.arrivals.used == 2
    finally:
        for sock in socks:
            sock.close()


def test_slow_questions_of_one_key_leave_threads_for_others(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    running = serve(rate=0, threads=4)
    reader, other = _key(running, "reader"), _key(running, "other")
    engine = running.server.spaces.get("default").engine
    release, began = threading.Event(), threading.Semaphore(0)

    def slow(name: str) -> None:
        began.release()
        release.wait(180)

    monkeypatch.setattr(engine, "find", slow)
    asker = Asker(running.url, reader)
    replies: list[Any] = []
    threads = [
        threading.Thread(target=lambda: replies.append(asker.post("/v1/engine/find", {"name": "s"}))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for _ in range(2):
        assert began.acquire(timeout=180)
    while running.server.slots.used < 6:
        threading.Event().wait(0.001)
    assert Asker(running.url, other).get("/v1/info").status == 200
    assert Asker(running.url).get("/readyz").status == 200
    assert not began.acquire(blocking=False)
    release.set()
    for thread in threads:
        thread.join()
    assert [reply.status for reply in replies] == [200] * 6


def test_who_never_got_a_thread_is_told_that_nothing_was_done(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    running = serve(rate=0, threads=2)
    engine = running.server.spaces.get("default").engine
    release, began = threading.Event(), threading.Semaphore(0)

    def slow(name: str) -> None:
        began.release()
        release.wait(180)

    monkeypatch.setattr(engine, "find", slow)
    asker = Asker(running.url, _key(running, "reader"))
    replies: list[Any] = []
    first = threading.Thread(target=lambda: replies.append(asker.post("/v1/engine/find", {"name": "s"})))
    first.start()
    assert began.acquire(timeout=180)
    running.server.settings = msgspec.structs.replace(running.server.settings, answer_s=0.1)
    assert asker.post("/v1/engine/find", {"name": "s"}).kind == "server-busy"
    release.set()
    first.join()
    assert replies[0].status == 200
    assert not began.acquire(blocking=False)


def test_a_thread_that_comes_too_late_does_nothing(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller was told that nothing was done, and may ask again with other words."""
    running = serve(rate=0, answer_s=0.1)
    late: list[Callable[[], Any]] = []

    async def never(self: Server, who: Requester, function: Callable[[], Any], *args: object) -> None:
        late.append(function)
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(Server, "work", never)
        reply = Asker(running.url, running.key).post("/v1/sessions", {"name": "s"})
    assert (reply.status, reply.kind) == (503, "server-busy")
    for each in late:
        each()
    assert Asker(running.url, running.key).get("/v1/sessions/s").status == 404


def test_a_body_that_trickles_in_is_not_waited_for(serve: Serve) -> None:
    running = serve(rate=0, body_s=0.3)
    with _connected(running) as sock:
        sock.sendall(_head(running.key, "Content-Length: 100000"))
        while not select.select([sock], [], [], 0.01)[0]:
            sock.sendall(b" ")
        assert sock.recv(65536).startswith(b"HTTP/1.1 408 ")


def test_a_large_body_is_decoded_like_a_small_one(serve: Serve) -> None:
    running = serve(rate=0)
    asker = Asker(running.url, running.key)
    asker.post("/v1/sessions", {"name": "s"})
    body = {"events": [{"kind": "note.added", "body": {"text": "word " * 100_000}}]}
    assert asker.post("/v1/sessions/s/events", body).status == 200
    assert asker.post("/v1/sessions/s/events", msgspec.msgpack.encode(body), **MSGPACK).status == 200
    reply = asker.post("/v1/sessions/s/events", json.dumps(body).encode()[:-1], **JSON)
    assert (reply.status, reply.kind) == (400, "bad-request")
