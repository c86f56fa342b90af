"""Stopping: running requests finish, waits end, and nothing that was answered is lost."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.http.asking import Asker
from tests.http.processes import ServerProcess
from tests.http.tailing import Tail
from wakelog.errors import UnavailableError
from wakelog.http.server import serving
from wakelog.http.state import Settings


def test_a_request_at_work_is_finished_and_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, release = threading.Event(), threading.Event()
    context = serving(Settings(url=str(tmp_path), rate=0))
    running = context.__enter__()
    engine = running.server.spaces.get("default").engine
    original = engine.find

    def slow(name: str) -> Any:
        began.set()
        release.wait(180)
        return original(name)

    monkeypatch.setattr(engine, "find", slow)
    with ThreadPoolExecutor(2) as pool:
        asked = pool.submit(Asker(running.url, running.key).post, "/v1/engine/find", {"name": "s"})
        assert began.wait(180)
        stopped = pool.submit(context.__exit__, None, None, None)
        while not running.server.is_stopping:
            time.sleep(0.001)
        assert not stopped.done()
        release.set()
        assert asked.result(180).json == {"session": None}
        stopped.result(180)


def test_who_waits_is_let_go_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakelog.http.verbs.engine.WAIT_MAX_S", 3600.0)  # so that no wait here ends by itself
    context = serving(Settings(url=str(tmp_path), rate=0))
    running = context.__enter__()
    asker = Asker(running.url, running.key)
    with wakelog.open(running.url, key=running.key) as store:
        session = store.session("s").id
    with ThreadPoolExecutor(2) as pool, Tail(asker, "/v1/tail") as feed, Tail(asker, "/v1/sessions/s/tail") as tail:
        assert feed._block() == tail._block() == "retry: 1000"
        one = pool.submit(asker.post, "/v1/engine/wait", {"session": session, "after": 1, "timeout_s": 3600})
        any_ = pool.submit(asker.post, "/v1/engine/wait", {"timeout_s": 3600})
        hub = running.server.hub(running.server.spaces.get("default"))
        while hub.watchers < 4:
            time.sleep(0.001)
        context.__exit__(None, None, None)
        assert feed.next() is None
        assert tail.next() is None
        assert one.result(180).json["came"] is False
        assert any_.result(180).json["came"] is False


def test_sigterm_under_writers_loses_nothing_and_ends_well(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "store")
    server.start()
    acknowledged: list[int] = []

    def write(number: int) -> None:
        with wakelog.open(server.url, key=server.key) as store:
            store.engine._patience_s = 0.0  # type: ignore[attr-defined]
            session = store.session(f"w{number}")
            try:
                while True:
                    session.fact("n", number)
                    acknowledged.append(number)
            except UnavailableError:
                return

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    while any(acknowledged.count(number) < 5 for number in range(4)):
        time.sleep(0.001)
    server.signal(signal.SIGTERM)
    code = server.wait()
    for thread in threads:
        thread.join(180)
    server.kill()
    assert code in (0, -signal.SIGTERM)
    with wakelog.open(tmp_path / "store") as store:
        stored = sum(store.resume(f"w{n}").head.seq - 1 for n in range(4))
        # An answer may be lost, but not an event that was answered.
        assert len(acknowledged) <= stored <= len(acknowledged) + 4
        assert all(store.resume(f"w{n}").verify().ok for n in range(4))


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with serving(Settings(url=str(tmp_path / "a"))) as running:
        port = int(running.url.rpartition(":")[2])
        with pytest.raises(UnavailableError) as told, serving(Settings(url=str(tmp_path / "b")), port=port):
            pass
        assert told.value.kind == "port-taken"
