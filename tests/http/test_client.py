"""The library against a server: opening, retrying, giving up; and what it does when answers are lost."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.http.conftest import Serve
from tests.importers.claude import NAME, SESSION, Lines
from tests.ports import free_port
from wakelog.engines.remote import RemoteEngine, wire
from wakelog.engines.remote.connection import Connections, parse_address
from wakelog.errors import (
    ConflictError,
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
    WakelogError,
)
from wakelog.http.keys import make_key
from wakelog.http.problems import status_of
from wakelog.http.server import RunningServer
from wakelog.importers.transcript_import import import_transcript
from wakelog.testing.builders import CommitWriter, fact
from wakelog.testing.contract.base import expected, opened, store, stored

Answer = Callable[[socket.socket], None]


@contextmanager
def between(
    running: RunningServer, *faults: Callable[[socket.socket, bytes, Callable[[], bytes]], None]
) -> Iterator[str]:
    """A relay in front of a server. Each request meets the next fault: it is given the client's socket, the request,
    and how to have the server answer it; after the last one, requests pass as they are."""
    host, _, port = running.url.removeprefix("http://").partition(":")
    listener = socket.create_server(("127.0.0.1", 0))
    left = list(faults)
    lock = threading.Lock()

    def relay(client: socket.socket) -> None:
        with client, socket.create_connection((host, int(port)), timeout=180) as server:
            while request := _message(client):

                def served(sent: bytes = request) -> bytes:
                    server.sendall(sent)
                    return _message(server)

                with lock:
                    fault = left.pop(0) if left else None
                if fault is None:
                    client.sendall(served())
                else:
                    fault(client, request, served)
                    return

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=relay, args=(client,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _message(sock: socket.socket) -> bytes:
    """One complete message with a content length; empty if the other side has closed."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = sock.recv(65536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    missing = int(lengths[0]) - len(body) if lengths else 0
    while missing > 0:
        part = sock.recv(missing)
        data += part
        missing -= len(part)
    return data


def passes(client: socket.socket, request: bytes, served: Callable[[], bytes]) -> None:
    client.sendall(served())


def drops_request(client: socket.socket, request: bytes, served: Callable[[], bytes]) -> None:
    """The connection breaks before the server gets anything."""


def drops_answer(client: socket.socket, request: bytes, served: Callable[[], bytes]) -> None:
    """The server carries it out, but the client gets no answer."""
    served()


def cuts_answer(client: socket.socket, request: bytes, served: Callable[[], bytes]) -> None:
    client.sendall(served()[:-5])


def says_bad_gateway(client: socket.socket, request: bytes, served: Callable[[], bytes]) -> None:
    served()
    client.sendall(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 3\r\ncontent-type: text/html\r\n\r\nbad")


def says_too_many(client: socket.socket, request: bytes, served: Callable[[], bytes]) -> None:
    client.sendall(b"HTTP/1.1 429 Too Many\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n")


def says_nonsense(client: socket.socket, request: bytes, served: Callable[[], bytes]) -> None:
    client.sendall(b"SSH-2.0-OpenSSH\r\n")


def says_in_chunks(client: socket.socket, request: bytes, served: Callable[[], bytes]) -> None:
    """As a proxy may answer."""
    head, _, body = served().partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
    client.sendall(
        b"HTTP/1.1 100 Continue\r\n\r\n" + b"\r\n".join([*lines, b"transfer-encoding: chunked"]) + b"\r\n\r\n"
    )
    for start in range(0, len(body), 7):
        part = body[start : start + 7]
        client.sendall(b"%x;note=1\r\n%b\r\n" % (len(part), part))
    client.sendall(b"0\r\ntrailer: x\r\n\r\n")


FAULTS = [drops_request, drops_answer, cuts_answer, says_bad_gateway, says_too_many, says_nonsense, says_in_chunks]


@pytest.mark.parametrize("fault", FAULTS)
def test_an_append_whose_answer_is_lost_is_asked_again_and_stored_once(running: RunningServer, fault: Any) -> None:
    with between(running, passes, fault, fault) as url:
        engine = RemoteEngine(url, running.key)
        writer = CommitWriter()
        commit = writer.open(fact("a"))
        head = engine.submit(commit).result()
        assert (head.seq, head.hash) == (2, commit.hash)
        store(engine, writer.seal(fact("b")))
        assert stored(engine, writer.session) == expected(*writer.commits)
        engine.close()


@pytest.mark.parametrize("fault", [drops_request, drops_answer, says_bad_gateway])
def test_when_patience_is_over_the_answer_is_unknown_and_asking_again_settles_it(
    running: RunningServer, fault: Any
) -> None:
    # The first question asks for the server's version; a kept connection that fails is retried at once.
    with between(running, passes, *[fault] * 2) as url:
        engine = RemoteEngine(url, running.key, patience_s=0.0)
        writer = CommitWriter()
        commit = writer.open()
        with pytest.raises(UnavailableError) as unknown:
            engine.submit(commit).result()
            engine.submit(commit).result()
        assert unknown.value.kind == "answer-unknown"
        while True:
            try:
                head = engine.submit(commit).result()
                break
            except UnavailableError:
                continue
        assert head.hash == commit.hash
        assert stored(engine, writer.session) == expected(commit)
        engine.close()


def test_a_log_goes_on_through_lost_answers(running: RunningServer) -> None:
    faults = [passes, *([passes] * 3 + [drops_answer] + [passes] * 2 + [drops_request] + [cuts_answer]) * 3]
    with between(running, *faults) as url, wakelog.open(url, key=running.key) as behind:
        session = behind.session("s")
        for n in range(20):
            session.fact("n", n)
        assert [e.body["value"] for e in session.events(kind="fact")] == list(range(20))
        assert session.verify().ok


def test_where_no_server_is_it_is_told_at_once() -> None:
    with pytest.raises(UnavailableError) as told:
        wakelog.open(f"http://127.0.0.1:{free_port()}", key="wlk_a_b")
    assert told.value.kind == "server-unreachable"
    assert "wakelog serve" in told.value.hint


def test_what_is_no_wakelog_server_is_told(running: RunningServer) -> None:
    def something_else(client: socket.socket, request: bytes, served: Callable[[], bytes]) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi")

    with between(running, something_else) as url, pytest.raises(UnavailableError) as told:
        RemoteEngine(url, running.key)
    assert told.value.kind == "not-a-server"


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http://user:pass@host",
        "http://host?x=1",
        "http://host#x",
        "http://host:99999",
        "https://",
        "http://host:x",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError) as told:
        wakelog.open(url)
    assert told.value.kind == "bad-url"


def test_addresses() -> None:
    assert parse_address("http://h")[:5] == ("http", None, "h", None, None)
    assert parse_address("https://h:444/ns/a")[:5] == ("https", None, "h", 444, "/ns/a")
    assert parse_address("http://[::1]:8425").netloc == "[::1]:8425"


def test_a_key_is_needed_and_is_taken_from_the_environment(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotAllowedError) as told:
        wakelog.open(running.url)
    assert told.value.kind == "key-missing"
    monkeypatch.setenv("WAKELOG_KEY", running.key)
    with wakelog.open(running.url) as opened_:
        assert opened_.session("s").head.seq == 1
    with pytest.raises(NotAllowedError) as told:
        wakelog.open(running.url, key="wlk_aaaaaaaa_b")
    assert told.value.kind == "key-refused"


@pytest.mark.parametrize("key", ["wlk_a_b\n", "wlk_a_b\r\nX-Other: 1", "wlk_ä_b"])
def test_a_key_that_cannot_be_sent_is_refused_at_home(running: RunningServer, key: str) -> None:
    with pytest.raises(NotAllowedError) as told:
        wakelog.open(running.url, key=key)
    assert told.value.kind == "key-refused"


def test_a_redirect_is_not_followed(running: RunningServer) -> None:
    def redirects(client: socket.socket, request: bytes, served: Callable[[], bytes]) -> None:
        client.sendall(
            b"HTTP/1.1 307 Temporary\r\nlocation: " + running.url.encode() + b"\r\ncontent-length: 0\r\n\r\n"
        )

    with between(running, redirects) as url, pytest.raises(UnavailableError) as told:
        RemoteEngine(url, running.key)
    assert told.value.kind == "not-a-server"


def test_a_reader_reads_and_is_told_that_it_may_not_write(running: RunningServer) -> None:
    with wakelog.open(running.url, key=running.key) as writing:
        writing.session("s").fact("k", 1)
    key, token = make_key("reader", "read", ("default",), now=running.server.clock())
    running.server.keys.add(key)
    with wakelog.open(running.url, key=token) as reading:
        session = reading.resume("s")
        assert session.state().facts["k"].value == 1
        assert session.verify().ok
        with pytest.raises(NotAllowedError) as told:
            session.fact("k", 2)
        assert told.value.kind == "scope-missing"
        assert [e.seq for e in session.events()] == [1, 2]


def test_a_namespace_that_is_not_there_is_made_unless_that_is_not_wanted(running: RunningServer) -> None:
    with pytest.raises(NotFoundError):
        wakelog.open(f"{running.url}/ns/fresh", key=running.key, create=False)
    wakelog.open(f"{running.url}/ns/fresh", key=running.key).close()
    wakelog.open(f"{running.url}/ns/fresh", key=running.key, create=False).close()


def test_errors_arrive_as_what_they_were(running: RunningServer) -> None:
    engine = RemoteEngine(running.url, running.key)
    writer = opened(engine)
    late = writer.rival(fact("late"))
    store(engine, writer.seal(fact("first")))
    with pytest.raises(ConflictError) as told:
        engine.submit(late).result()
    assert (told.value.kind, told.value.head_seq) == ("head-moved", 2)
    with pytest.raises(NotFoundError) as missing:
        engine.head(CommitWriter().session)
    assert missing.value.kind == "session-not-found"
    engine.close()


def test_every_class_of_errors_survives_the_way() -> None:
    for group, cls in wire.GROUPS.items():
        error = wire.error_of(wire.problem_of(cls("what", kind="some-kind", hint="do this"), 400))
        assert type(error) is cls, group
        assert (error.message, error.kind, error.hint) == ("what", "some-kind", "do this")
        assert 400 <= status_of(error) < 600
    strange = wire.Problem("urn:x", "t", 418, "what", "teapot", "no-such-group")
    assert type(wire.error_of(strange)) is WakelogError


def test_appends_of_many_threads_share_requests(running: RunningServer) -> None:
    engine = RemoteEngine(running.url, running.key)
    sent: list[int] = []
    original = engine._queue._send

    def counted(groups: Any) -> Any:
        sent.append(len(groups))
        return original(groups)

    engine._queue._send = counted
    writers = [opened(engine) for _ in range(12)]
    sent.clear()
    barrier = threading.Barrier(12)

    def write(writer: CommitWriter) -> None:
        barrier.wait()
        for n in range(10):
            engine.submit(writer.seal(fact(f"k{n}"))).result()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(sent) == 120
    assert len(sent) < 120
    for writer in writers:
        assert stored(engine, writer.session) == expected(*writer.commits)
    engine.close()


def test_an_append_inside_an_append_of_the_same_thread_is_refused_and_does_not_hang(running: RunningServer) -> None:
    engine = RemoteEngine(running.url, running.key)
    outer, inner = opened(engine), opened(engine)
    original, told = engine._queue._send, []

    def interrupted(groups: Any) -> Any:  # as a signal handler that appends
        engine._queue._send = original
        with pytest.raises(UnavailableError) as refused:
            engine.submit(inner.seal(fact("b"))).result()
        told.append(refused.value.kind)
        return original(groups)

    engine._queue._send = interrupted
    assert engine.submit(outer.seal(fact("a"))).result().seq == 2
    assert told == ["answer-unknown"]
    engine.close()


def test_a_forked_process_asks_on_connections_of_its_own(running: RunningServer) -> None:
    with wakelog.open(running.url, key=running.key) as shared:
        session = shared.session("s")
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover - measured in the parent
            code = 1
            try:
                for n in range(20):
                    session.fact(f"child{n}", n)
                code = 0
            finally:
                os.write(writing, bytes([code]))
                os._exit(code)
        for n in range(20):
            session.fact(f"parent{n}", n)
        assert os.read(reading, 1) == b"\x00"
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)
        facts = session.state().facts
        assert len(facts) == 40
        assert session.verify().ok


def test_a_kept_connection_that_the_server_closed_is_replaced(running: RunningServer) -> None:
    connections = Connections(running.url, {"Authorization": f"Bearer {running.key}"})
    assert connections.ask("GET", "/v1/info", b"", 10, {}).status == 200
    idle = connections._pool.pool
    assert idle is not None
    kept = idle.get(block=False)
    kept.sock.shutdown(socket.SHUT_RDWR)
    idle.put(kept)
    assert connections.ask("GET", "/v1/info", b"", 10, {}).status == 200
    connections.close()


def test_the_index_behind_a_server_is_the_servers(running: RunningServer, tmp_path: Path) -> None:
    with wakelog.open(running.url, key=running.key) as shared:
        session = shared.session("s", labels={"team": "a"})
        with session.turn(user="find the zebra"):
            session.files.record("src/zebra.py", added=2)
            session.decide("go")
        index = shared.index
        assert [hit.seq for hit in index.search("zebra", kind="turn")] == [2]
        assert [f.path for f in index.files_modified(session.id, last_turns=1)] == ["src/zebra.py"]
        assert [s.name for s in index.sessions(label="team=a", limit=5)] == ["s"]
        assert index.query_sql("select name from sessions where name = ?", ("s",)).rows == (("s",),)
        assert [t.turn for t in index.turns(session.id)] == [1]
        assert [e.kind for e in index.events(session.id, kinds=("decision",))] == ["decision.made"]
        assert index.costs([session.id]).rows is not None
        assert index.ask(lambda reading: reading.as_of.cursor)  # any other question is answered here


def test_waiting_longer_than_one_question_is_several(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakelog.engines.remote.engine.POLL_S", 0.05)
    running = serve(rate=0)
    engine = RemoteEngine(running.url, running.key)
    writer = opened(engine)
    assert not engine.wait(writer.session, after=1, timeout_s=0.3)
    assert not engine.wait(None, after=0, timeout_s=0.3)
    woken: list[bool] = []
    thread = threading.Thread(target=lambda: woken.append(engine.wait(None, after=0, timeout_s=60)))
    thread.start()
    while thread.is_alive():
        store(engine, writer.seal(fact("news")))
        thread.join(0.01)
    assert woken == [True]
    engine.close()


def test_a_server_remembers_that_a_transcripts_session_was_deleted(running: RunningServer, tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    path = lines.write(tmp_path / f"{SESSION}.jsonl")
    with wakelog.open(running.url, key=running.key) as behind:
        import_transcript(behind, path)
        behind.delete(behind.resume(NAME))
        assert import_transcript(behind, path).deleted == (NAME,)
        with pytest.raises(InvalidInputError):
            behind.engine.set_mark("other", "x")  # type: ignore[attr-defined]
