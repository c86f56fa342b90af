"""One verb erases everywhere: the log, forks, adopters, snapshots, the index, and the files under all of them."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import wakelog
from tests.engines.postgres_server import Server
from tests.http.servers import new_space, shared_server
from tests.residue import residue
from wakelog.engine import StoreFinding
from wakelog.engines.postgres import PostgresEngine
from wakelog.engines.postgres import rewrite as rewriting
from wakelog.engines.sqlite import SqliteEngine
from wakelog.http.server import RunningServer
from wakelog.log import Log, verify
from wakelog.maintenance.scrub import open_pass, scrub
from wakelog.store import Store
from wakelog.store.erasure import preview

__all__ = ["shared_server"]

CANARY = "CANARY-7731"
BIG = f"{CANARY} said at some length " * 100


def fill(store: Store) -> tuple[Any, list[int], list[int]]:
    """A session that says the canary in many ways, a fork that shares it, and one that is adopted; what to erase of the
    session, and of the fork that was adopted."""
    session = store.session(
        CANARY.lower().replace("canary", "s"), goal=CANARY, labels={"l": CANARY}, data={"d": CANARY}
    )
    for n in range(12):
        session.message("user", f"{CANARY} {n}")
        session.message("user", f"{BIG} {n}")
        session.fact(f"k{n}", f"{CANARY} {n}")
        session.decide(f"{CANARY} {n}", because=CANARY)
        session.patch([{"op": "add", "path": f"/data/x{n}", "value": {"y": CANARY}}])
    session.log.rewind(session.head.seq - 3)
    session.fork(name="shares")
    adopted = session.fork(name="adopted")
    adopted.fact("new", CANARY)
    adopted.message("user", BIG + "in the fork")
    session.log.adopt(adopted.log)
    store.index.search("canary")
    targets = [e.seq for e in session.log.entries() if e.is_intact and e.kind != "history.rewound"]
    own = [e.seq for e in adopted.log.entries(after=adopted.log.segments[-1].first)]
    return session, targets, own


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server().create().start(fsync="off", autovacuum="off")
    yield made
    made.stop()


def in_files(server: Server) -> list[str]:
    """Where the canary is in the server's files, but for its write-ahead log."""
    server.sql("checkpoint")
    return [place for part in ("base", "global") for place in residue(server.data / part, CANARY)]


def in_store(store: Store) -> list[str]:
    """Where a reader of the store still finds it."""
    found = []
    for head in store.sessions():
        log = Log(store.engine, head.session)
        found += [f"{head.session} {e.seq} {e.kind}" for e in log.entries() if CANARY.encode() in e.record.body]
        assert verify.verify(log).ok
    return found + [str(hit) for hit in store.index.search("canary")]


def test_nothing_is_left_in_the_files_of_a_local_store(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store", redact=None) as store:
        session, targets, own = fill(store)
        assert any("index.db" in place for place in residue(tmp_path, CANARY))
        done = store.erase(session, targets, why="asked for")
        store.erase(store.resume("adopted"), own)
        assert done.pending == ""
        assert {"shares", "adopted"} <= {store.engine.head(each).name for each in done.events}
        assert "fact k3" in done.names
        assert "data key y" in done.names
        assert in_store(store) == []
        assert residue(tmp_path, CANARY) == []


def test_nothing_is_left_in_the_files_of_a_server(server: Server) -> None:
    """Also not in what is stored out of line, in indexes, and in what the server notes about common values."""
    with wakelog.open(server.url, redact=None) as store:
        session, targets, own = fill(store)
        server.sql("analyze")
        assert len(in_files(server)) > 20
        assert store.erase(session, targets, why="asked for").pending == ""
        assert store.erase(store.resume("adopted"), own).pending == ""
        assert in_store(store) == []
        assert in_files(server) == []


def test_what_somebody_still_sees_is_told_and_a_scrub_finishes_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "WAIT_S", 0.0)
    told: list[StoreFinding] = []
    with wakelog.open(server.url, redact=None) as store:
        session = store.session("s")
        seq = session.message("user", BIG)

        def look(finish: threading.Event, looking: threading.Event) -> None:
            async def reading() -> None:
                db = await asyncpg.connect(server.url)
                async with db.transaction(isolation="repeatable_read"):
                    await db.fetchval("select count(*) from wl_commit")
                    looking.set()
                    await asyncio.to_thread(finish.wait)
                await db.close()

            asyncio.run(reading())

        finish, looking = threading.Event(), threading.Event()
        reader = threading.Thread(target=look, args=(finish, looking))
        reader.start()
        try:
            assert looking.wait(180)
            assert "wakelog store scrub" in store.erase(session, seq).pending
            assert in_store(store) == []
            scrub(store, on_finding=told.append)
            assert [f.is_damage for f in told] == [False]
        finally:
            finish.set()
            reader.join()
        assert in_files(server)
        assert scrub(store).repaired == 1
        assert in_files(server) == []
        assert scrub(store).repaired == 0


def test_tables_that_are_large_wait_for_a_scrub(server: Server) -> None:
    with wakelog.open(server.url, redact=None) as store:
        assert isinstance(store.engine, PostgresEngine)
        session = store.session("s")
        seq = session.message("user", BIG)
        assert store.engine.rewrite(most=0) is False, "nothing is due"
        from wakelog.log.removal import erase

        erase(session.log, [seq])
        with pytest.raises(wakelog.UnavailableError) as waits:
            store.engine.rewrite(most=0)
        assert waits.value.kind == "scrub-pending"
        assert scrub(store).repaired == 1
        assert in_files(server) == []


@pytest.mark.parametrize("place", ["memory", "sqlite"])
def test_a_dry_run_names_forks_and_adopters(place: str, tmp_path: Path) -> None:
    with wakelog.open("memory:" if place == "memory" else tmp_path, redact=None) as store:
        parent = store.session("parent")
        parent.message("user", "hello")
        fork = parent.fork(name="fork")
        seq = fork.fact("k", CANARY)
        parent.log.adopt(fork.log)
        wanted = preview(fork.log, [seq])
        assert set(wanted.events) == {fork.id, parent.id}
        assert wanted.names == ("fact k",)
        assert CANARY in repr(parent.log.state()), "nothing was done"
        done = store.erase(fork, seq)
        assert done.events == wanted.events
        assert CANARY not in repr(parent.log.state())


def test_erasing_over_http_is_the_same(shared_server: RunningServer) -> None:
    with wakelog.open(new_space(shared_server), key=shared_server.key, redact=None) as store:
        session, targets, own = fill(store)
        assert store.erase(session, targets).pending == ""
        done = store.erase(store.resume("adopted"), own)
        assert "fact new" in done.names
        assert in_store(store) == []


def test_a_scrub_over_http_goes_on_where_it_stopped(shared_server: RunningServer) -> None:
    with wakelog.open(new_space(shared_server), key=shared_server.key) as store:
        for name in "abc":
            store.session(name)
        first = scrub(store, for_s=0.0)
        assert (first.sessions, first.is_whole, first.keeps_mark) == (1, False, True)
        assert open_pass(store) is not None
    with wakelog.open(store.engine.url, key=shared_server.key) as store:  # type: ignore[attr-defined]
        rest = scrub(store)
        assert (rest.sessions, rest.is_resumed, rest.of_pass.sessions) == (2, True, 3)


def test_events_can_be_named_by_a_selector(tmp_path: Path) -> None:
    with wakelog.open(tmp_path, redact=None) as store:
        session = store.session("s")
        first = session.message("user", CANARY)
        last = session.message("user", CANARY)
        assert store.erase(session, f"e{first}..e{last}").events == {session.id: (first, last)}
        assert isinstance(store.engine, SqliteEngine)
