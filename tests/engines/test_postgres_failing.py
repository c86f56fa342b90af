"""The engine recovers from a server's failures if it can, and otherwise raises an error that a caller can act on."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.engines.cutting_proxy import CuttingProxy
from tests.engines.postgres_server import Server
from tests.ports import free_port
from wakelog import errors
from wakelog.engines.postgres import PostgresEngine
from wakelog.store import Store

LONG_S = 600.0
"""Patience for what comes back in the end, however long a busy machine takes."""

HBA = """\
host all locked 127.0.0.1/32 scram-sha-256
hostssl all secure 127.0.0.1/32 trust
host all secure 127.0.0.1/32 reject
host all all 127.0.0.1/32 trust
"""


@pytest.fixture(scope="module")
def rough() -> Iterator[Server]:
    """A separate server, to stop and start."""
    server = Server().create()
    (server.data / "pg_hba.conf").write_text(HBA)
    server.start(fsync="off")
    server.sql("create role locked login password 'right'")
    server.sql("create role secure login")
    server.sql("create role guest login")
    yield server
    server.stop()


@pytest.fixture
def store(rough: Server, tmp_path: Path) -> Iterator[Store]:
    with Store(PostgresEngine(rough.url, ns=str(tmp_path), patience_s=LONG_S)) as store:
        yield store


def facts(session: Any) -> list[Any]:
    return [e.body["value"] for e in session.events(kind="fact.recorded")]


def refusal(call: Callable[[], Any]) -> errors.WakelogError:
    with pytest.raises(errors.WakelogError) as caught:
        call()
    assert caught.value.hint, "every one of these says what to do"
    return caught.value


def with_user(server: Server, user: str, more: str = "") -> str:
    return server.url.replace("postgres@", f"{user}@", 1) + more


# Lost answers


@pytest.mark.parametrize("delivered", [True, False])
@pytest.mark.parametrize("chosen_id", [True, False])
def test_an_append_whose_answer_is_lost_is_asked_again_and_stored_once(
    rough: Server, tmp_path: Path, delivered: bool, chosen_id: bool
) -> None:
    proxy = CuttingProxy(rough.port)
    url = rough.url.replace(str(rough.port), str(proxy.port))
    engine = PostgresEngine(url, ns=str(tmp_path), patience_s=LONG_S)
    with Store(engine) as store:
        session = store.session("cut")
        session.fact("before", 0)
        proxy.cut_at("fact.recorded", delivered=delivered, times=3)
        session.append(wakelog.events.FactRecorded(key="k", value=1), commit_id="mine" if chosen_id else "")
        session.fact("after", 2)
        assert facts(session) == [0, 1, 2]
        assert session.verify().ok
    assert proxy.cuts == 3
    assert engine.retries >= 1
    proxy.close()


@pytest.mark.parametrize("delivered", [True, False])
def test_a_new_session_whose_answer_is_lost_is_opened_once(rough: Server, tmp_path: Path, delivered: bool) -> None:
    proxy = CuttingProxy(rough.port)
    url = rough.url.replace(str(rough.port), str(proxy.port))
    with Store(PostgresEngine(url, ns=str(tmp_path), patience_s=LONG_S)) as store:
        proxy.cut_at("session.opened", delivered=delivered)
        session = store.session("new", goal="be there once")
        assert session.head.seq == 1
        fork = session.fork(name="fork")
        proxy.cut_at("session.deleted", delivered=delivered)
        store.delete(fork)
        assert [h.name for h in store.sessions()] == ["new"]
    assert proxy.cuts == 2
    proxy.close()


def test_beyond_patience_the_answer_is_unknown_and_the_same_id_settles_it(rough: Server, tmp_path: Path) -> None:
    proxy = CuttingProxy(rough.port)
    url = rough.url.replace(str(rough.port), str(proxy.port))
    with Store(PostgresEngine(url, ns=str(tmp_path), patience_s=0.0)) as store:
        session = store.session("cut")
        proxy.cut_at("fact.recorded", delivered=True, times=1000)
        event = wakelog.events.FactRecorded(key="k", value=1)
        told = refusal(lambda: session.append(event, commit_id="mine"))
        assert (type(told), told.kind) == (errors.UnavailableError, "answer-unknown")
        proxy.cut_at("", delivered=True, times=0)
        again = session.append(event, commit_id="mine")
        assert again.seq == 2
        assert facts(session) == [1]
    proxy.close()


def test_backends_that_are_ended_are_not_noticed(rough: Server, store: Store) -> None:
    session = store.session("ended")
    for number in range(5):
        session.fact(f"k{number}", number)
        rough.sql("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
    assert facts(session) == [0, 1, 2, 3, 4]
    assert session.verify().ok


@pytest.mark.parametrize("immediately", [True, False])
def test_a_server_that_restarts_under_load_loses_nothing_and_nobody_is_told(
    rough: Server, store: Store, immediately: bool
) -> None:
    done = threading.Event()
    trouble: list[BaseException] = []
    counts = [0, 0, 0]
    reached = [threading.Event() for _ in counts]

    def write(place: int) -> None:
        try:
            session = store.session(f"w{place}")
            while not done.is_set():
                session.fact(f"k{counts[place]}", counts[place])
                counts[place] += 1
                reached[place].set()
        except BaseException as exc:
            trouble.append(exc)
            reached[place].set()

    def all_go_on() -> None:
        for event in reached:
            event.clear()
        assert all(event.wait(120) for event in reached)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(len(counts))]
    for thread in threads:
        thread.start()
    all_go_on()
    rough.halt(immediately=immediately)
    rough.start(fsync="off")
    all_go_on()
    done.set()
    for thread in threads:
        thread.join(120)
    assert trouble == []
    for place, count in enumerate(counts):
        session = store.resume(f"w{place}")
        assert facts(session) == list(range(count))
        assert session.verify().ok


# Errors that no retry cures


def test_nobody_there(tmp_path: Path) -> None:
    nowhere = f"postgresql://postgres@127.0.0.1:{free_port()}/postgres"
    told = refusal(lambda: PostgresEngine(nowhere, patience_s=0.1))
    assert (type(told), told.kind) == (errors.UnavailableError, "unreachable")


def test_opening_waits_for_a_server_that_is_starting(rough: Server, tmp_path: Path) -> None:
    rough.halt()
    made: list[PostgresEngine] = []
    opening = threading.Thread(
        target=lambda: made.append(PostgresEngine(rough.url, ns=str(tmp_path), patience_s=LONG_S))
    )
    try:
        opening.start()
        opening.join(0.2)
        assert opening.is_alive()
    finally:
        rough.start(fsync="off")
    opening.join(120)
    Store(made[0]).session("s")
    made[0].close()


def test_closing_lets_go_of_a_connection_that_is_being_opened(tmp_path: Path, rough: Server) -> None:
    engine = PostgresEngine(rough.url, ns=str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        engine._connections._hosts = [f"postgresql://postgres@127.0.0.1:{silent.getsockname()[1]}/postgres"]
        listening = threading.Thread(target=engine._listen)
        listening.start()
        taken, _ = silent.accept()
        with taken:
            held = asyncio.all_tasks(engine._loop._loop)  # so that nothing is collected by chance
            engine.close()
            listening.join(180)
            taken.settimeout(60)
            while taken.recv(1000):
                pass  # what it had sent; then the end, because the other side has closed
            assert all(task.done() for task in held)


def test_closing_leaves_no_socket_at_whatever_moment_of_opening_one(tmp_path: Path, rough: Server) -> None:
    before = _sockets()
    for number in range(20):
        engine = PostgresEngine(rough.url, ns=f"{tmp_path} {number}")
        asking = [threading.Thread(target=_until_closed, args=(engine,)) for _ in range(3)]
        asking.append(threading.Thread(target=engine._listen))
        for thread in asking:
            thread.start()
        time.sleep(number * 0.0005)
        engine.close()
        for thread in asking:
            thread.join(180)
        assert _sockets() <= before, number


def _until_closed(engine: PostgresEngine) -> None:
    with contextlib.suppress(errors.UnavailableError):
        engine.sessions()


def _sockets() -> int:
    """How many sockets this process has open."""
    found = 0
    for handle in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found += str(handle.readlink()).startswith("socket:")
    return found


def test_a_server_that_went_away_is_waited_for_and_then_told(rough: Server, tmp_path: Path) -> None:
    with Store(PostgresEngine(rough.url, ns=str(tmp_path), patience_s=0.3)) as store:
        session = store.session("s")
        rough.halt()
        try:
            # Queued appends may have been sent when the server stopped; later ones were not.
            assert refusal(lambda: session.fact("a", 1)).kind in ("answer-unknown", "unreachable")
            told = refusal(lambda: session.fact("a", 1))
            assert (type(told), told.kind) == (errors.UnavailableError, "unreachable")
            assert refusal(lambda: store.resume("s")).kind == "unreachable"
        finally:
            rough.start(fsync="off")
        for connections in (store.engine._connections, store.engine._appends.connections):  # type: ignore[attr-defined]
            connections.patience_s = LONG_S
        session.fact("a", 1)
        assert session.head.seq == 2


def test_a_host_that_is_gone_without_a_word_does_not_keep_from_the_next(
    rough: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wakelog.engines.postgres.connections.CONNECT_S", 1.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts connections, but never answers
        hosts = f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{rough.port}"
        url = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=primary"
        with Store(PostgresEngine(url, ns=str(tmp_path), patience_s=LONG_S)) as store:
            assert store.session("s").fact("a", 1) == 2
            assert store.resume("s").verify().ok


def test_wrong_password(rough: Server) -> None:
    told = refusal(lambda: PostgresEngine(with_user(rough, "locked:wrong")))
    assert (type(told), told.kind) == (errors.NotAllowedError, "login-refused")
    assert "wrong" not in told.message


def test_no_such_database(rough: Server) -> None:
    told = refusal(lambda: PostgresEngine(f"postgresql://postgres@127.0.0.1:{rough.port}/nothing"))
    assert (type(told), told.kind) == (errors.NotFoundError, "database-not-found")


def test_a_server_that_wants_tls(rough: Server) -> None:
    told = refusal(lambda: PostgresEngine(with_user(rough, "secure", "?sslmode=disable")))
    assert (type(told), told.kind) == (errors.NotAllowedError, "login-refused")
    assert "sslmode=require" in told.hint


def test_a_server_that_has_no_tls(rough: Server) -> None:
    told = refusal(lambda: PostgresEngine(f"{rough.url}?sslmode=require"))
    assert (type(told), told.kind) == (errors.UnavailableError, "tls-failed")


def test_a_url_that_is_none(tmp_path: Path) -> None:
    told = refusal(lambda: PostgresEngine("postgresql://user@host:notaport/database"))
    assert (type(told), told.kind) == (errors.InvalidInputError, "bad-url")


def test_a_user_who_may_not(rough: Server, store: Store) -> None:
    told = refusal(lambda: PostgresEngine(with_user(rough, "guest")))
    assert (type(told), told.kind) == (errors.NotAllowedError, "grant-missing")


def test_a_server_that_takes_no_writes(rough: Server, store: Store, tmp_path: Path) -> None:
    store.session("s")
    rough.sql("create role reader login superuser")
    rough.sql("alter role reader set default_transaction_read_only = on")
    with Store(PostgresEngine(with_user(rough, "reader"), ns=str(tmp_path), patience_s=0.2)) as there:
        session = there.resume("s")
        assert session.verify().ok
        told = refusal(lambda: session.fact("a", 1))
        assert (type(told), told.kind) == (errors.UnavailableError, "read-only-server")


# Too many connections


def test_a_server_without_a_connection_left_is_waited_for_and_then_told(rough: Server, tmp_path: Path) -> None:
    rough.sql("create role few login superuser")
    rough.sql("create role crowd login")
    rough.halt()
    rough.start(fsync="off", max_connections="6", superuser_reserved_connections="0", reserved_connections="0")
    hold = (
        "import asyncio, sys, asyncpg\n"
        "async def main():\n"
        "    held = []\n"
        "    try:\n"
        "        while True: held.append(await asyncpg.connect(sys.argv[1]))\n"
        "    except asyncpg.TooManyConnectionsError: pass\n"
        "    print(len(held), flush=True)\n"
        "    sys.stdin.readline()\n"
        "asyncio.run(main())\n"
    )

    def crowd() -> subprocess.Popen[str]:
        url = with_user(rough, "crowd")
        holder = subprocess.Popen(
            [sys.executable, "-c", hold, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert holder.stdout is not None
        assert int(holder.stdout.readline()) > 0
        return holder

    def leave(holder: subprocess.Popen[str]) -> None:
        holder.communicate("\n", timeout=120)

    try:
        with Store(PostgresEngine(rough.url, ns=str(tmp_path), patience_s=LONG_S)) as store:
            session = store.session("s")
            # Connected callers keep their connection; others wait for one.
            rough.sql("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
            holder = crowd()
            told = refusal(lambda: PostgresEngine(rough.url, patience_s=0.5))
            assert (type(told), told.kind) == (errors.UnavailableError, "too-many-connections")
            answers: list[Any] = []
            writer = threading.Thread(target=lambda: answers.append(session.fact("waited", 1)))
            writer.start()
            while store.engine.retries < 3:  # type: ignore[attr-defined]
                assert writer.is_alive()
                writer.join(0.01)
            leave(holder)
            writer.join(120)
            assert answers == [2]
        holder = crowd()
        leave(holder)
    finally:
        rough.halt()
        rough.start(fsync="off")


def test_a_pool_that_is_full_is_waited_for_and_then_told(rough: Server, tmp_path: Path) -> None:
    from wakelog.engines.postgres import connections as patience

    engine = PostgresEngine(rough.url, ns=str(tmp_path))
    with Store(engine) as store:
        session = store.session("s")
        session.fact("a", 0)
        connections = engine._connections
        connections.acquire_s = 0.2

        async def take() -> Any:
            return await connections._pool.acquire()

        async def give(each: Any) -> None:
            await connections._pool.release(each)

        held = [engine._loop.run(take()) for _ in range(patience.POOL_MAX - 1)]
        told = refusal(lambda: list(store.sessions()))
        assert (type(told), told.kind) == (errors.UnavailableError, "pool-full")
        assert session.fact("a", 1) == 3  # appends have a connection of their own
        for each in held:
            engine._loop.run(give(each))
        connections.acquire_s = LONG_S
        assert [head.name for head in store.sessions()] == ["s"]


def test_a_store_that_is_closed_while_somebody_waits_lets_them_go(rough: Server, tmp_path: Path) -> None:
    engine = PostgresEngine(rough.url, ns=str(tmp_path))
    Store(engine).session("s")
    rough.halt()
    told: list[errors.WakelogError] = []

    def read() -> None:
        try:
            engine.sessions()
        except errors.WakelogError as exc:
            told.append(exc)

    reader = threading.Thread(target=read)
    try:
        reader.start()
        while not engine.retries:
            reader.join(0.01)
        engine.close()
        reader.join(180)
        assert not reader.is_alive()
        assert told[0].kind in ("store-closed", "unreachable")
    finally:
        rough.start(fsync="off")
