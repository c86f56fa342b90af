"""An index in PostgreSQL that several projectors fill from a store's shards: each event once, whoever is killed."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.http.asking import Asker
from tests.http.processes import ROOT, ServerProcess
from tests.index.conftest import sharded_url
from tests.index.play import Player
from tests.ports import free_port
from wakelog.cli.app import run
from wakelog.engine import Engine
from wakelog.errors import InvalidInputError, UnavailableError, UnsupportedError
from wakelog.http.keys import ANY, make_key
from wakelog.http.namespaces import NamespaceStores
from wakelog.index import shard_book, sharded_index
from wakelog.index.comparison import differences
from wakelog.index.sharded_index import ShardedIndex
from wakelog.maintenance import projection as projection_module
from wakelog.maintenance.projection import NamespaceProjections, Projection, progress_of
from wakelog.maintenance.shards import add_shards
from wakelog.model import events as ev
from wakelog.store.url import open_engine

HUNG_S = 60.0
PROJECT = """
import sys
import wakelog
from wakelog.index import rows, sharded_index
from wakelog.maintenance.projection import Projection

rows.BATCH_EVENTS, sharded_index.FEED_PAGE = 10, 8
with wakelog.open(sys.argv[1], create=False) as store, Projection(store) as projection:
    print("begun", flush=True)
    projection.run(on_error=lambda what: print(what, file=sys.stderr))
"""


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return sharded_url(request, tmp_path)


def test_an_error_says_that_it_is_about_the_database_of_the_index() -> None:
    with pytest.raises(UnavailableError) as told:
        shard_book.ShardedDatabase(f"postgresql://postgres@127.0.0.1:{free_port()}/index", "nats team default")
    assert told.value.message.startswith("the database of the index: ")
    assert str(told.value) == told.value.message
    assert told.value.kind == "unreachable"


@pytest.fixture
def store(url: str) -> Iterator[wakelog.Store]:
    with wakelog.open(url) as made:
        yield made


@pytest.fixture
def index(store: wakelog.Store) -> ShardedIndex:
    made = store.index
    assert isinstance(made, ShardedIndex)
    return made


def write(store: wakelog.Store, sessions: int, events: int = 3) -> None:
    for i in range(sessions):
        session = store.session(f"s{i}")
        session.append(*(ev.FactRecorded(key=f"k{n}", value=n) for n in range(events)))


@contextlib.contextmanager
def another(engine: Engine) -> Iterator[ShardedIndex]:
    """What another process has open."""
    made = ShardedIndex(engine, None)
    with contextlib.closing(made):
        yield made


@pytest.mark.slow
def test_removals_reach_it_as_an_index_of_its_own(url: str) -> None:
    engine = open_engine(url, create=True)
    with ShardedIndex(engine, None) as index:
        player = Player(engine, 140)
        for surgery in (player.erase, player.prune, player.delete):
            player.play(25)
            index.catch_up()
            surgery(player.dice.choice(player.logs))
        index.scrub()
        assert list(differences(index, engine)) == []
    engine.close()


@pytest.mark.slow
def test_projectors_share_the_shards_and_one_that_leaves_is_replaced(store: wakelog.Store, url: str) -> None:
    write(store, 12)
    with wakelog.open(url) as elsewhere, Projection(store) as first:
        assert first.step() == 24  # the opening and the facts of each session
        assert first.shards == (0, 1, 2)
        with Projection(elsewhere) as second:
            second.step()
            first._names = store.index.beat()  # type: ignore[attr-defined]
            first.step()
            assert sorted((*first.shards, *second.shards)) == [0, 1, 2]
            assert {first.projectors, second.projectors} == {2}
            second.step()
            owners = {each.shard: each.owner for each in progress_of(store)}
            assert {owners[s] for s in first.shards} == {first.name}
            assert {owners[s] for s in second.shards} == {second.name}
            write(store, 12)
            assert first.step() + second.step() == 12
        first._names = store.index.beat()  # type: ignore[attr-defined]
        first.step()
        assert first.shards == (0, 1, 2)
        assert [each.behind for each in progress_of(store)] == [0, 0, 0]
    assert list(differences(store.index, store.engine)) == []


def test_a_shard_that_was_taken_over_is_not_written_by_who_had_it(store: wakelog.Store, index: ShardedIndex) -> None:
    write(store, 6)
    busy = next(each.shard for each in progress_of(store) if each.behind)  # ids decide which shards have sessions
    stale = index.take(busy)
    assert stale is not None
    with another(store.engine) as other:
        assert other.take(busy) is None  # while it is held
        index.give_back([busy])
        row = other.take(busy)
        assert row is not None
        assert other.project(row) > 0
        before = index.shard_rows()
        index.project(stale)
        assert index.shard_rows() == before
        assert list(differences(other, store.engine)) == []


@pytest.mark.slow
def test_a_page_that_is_read_twice_is_taken_in_once(store: wakelog.Store, index: ShardedIndex) -> None:
    write(store, 6)
    index.catch_up()
    with index._sharded.separate_transaction() as db:
        db.fetch("update wi_shard set place = 0 where ns = $1 and shard >= 0")
    write(store, 6)
    index.catch_up()
    assert list(differences(index, store.engine)) == []


@pytest.mark.slow
def test_who_asks_does_not_wait_for_a_projector_that_is_behind(
    store: wakelog.Store, index: ShardedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharded_index, "ANSWER_S", 0.0)
    monkeypatch.setattr(sharded_index, "PATIENCE_S", 0.0)
    write(store, 6)
    before = index.sessions()
    with another(store.engine) as projector:
        assert all(projector.take(shard) for shard in range(3))
        write(store, 7)
        behind = index.sessions()
        assert len(behind) == len(before) == 6
        assert behind.as_of.at == before.as_of.at
        assert store.engine.changes(behind.as_of.cursor)  # so far, and no further
        with pytest.raises(UnavailableError) as told:
            index.catch_up()
        assert told.value.kind == "index-behind"
        projector.give_back(range(3))
    now = index.sessions()
    assert len(now) == 7
    assert not store.engine.changes(now.as_of.cursor)


@pytest.mark.slow
def test_an_index_of_another_log_is_made_anew(store: wakelog.Store, index: ShardedIndex) -> None:
    write(store, 3)
    index.catch_up()
    with index._sharded.separate_transaction() as db:
        db.fetch("update wi_shard set hash = ''::bytea where ns = $1 and shard >= 0")
    with another(store.engine) as other:
        other.catch_up()
        assert list(differences(other, store.engine)) == []
        assert len(other.sessions()) == 3


@pytest.mark.slow
def test_while_it_is_made_anew_nobody_writes_into_the_new_one(store: wakelog.Store, index: ShardedIndex) -> None:
    write(store, 9)
    with another(store.engine) as other, Projection(store) as projection:
        projection.step()
        stop = threading.Event()

        def go_on() -> None:
            while not stop.is_set():
                projection.step()

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            for _ in range(3):
                other._database.reset()
                write(store, 3)
        finally:
            stop.set()
            thread.join(HUNG_S)
        assert not thread.is_alive()
    assert list(differences(index, store.engine)) == []


@pytest.mark.slow
def test_shards_that_are_added_are_projected_too(store: wakelog.Store) -> None:
    write(store, 3)
    with Projection(store) as projection:
        projection.step()
        add_shards(store, 5)
        write(store, 20)
        projection.step()
        assert projection.of == 5
        assert [each.behind for each in progress_of(store)] == [0] * 5
    assert len(store.index.sessions()) == 20


@pytest.mark.slow
def test_a_projector_that_is_killed_leaves_an_index_like_one_made_from_scratch(url: str, store: wakelog.Store) -> None:
    write(store, 40, 12)
    for number in range(3):
        write(store, 40, number + 1)
        done = _done(store)
        with _projecting(url) as child:
            _until(lambda done=done: _done(store) > done)
            child.kill()
        assert any(each.behind for each in progress_of(store)), "it was killed too late"
    with _projecting(url), _projecting(url):
        _until(lambda: not any(each.behind for each in progress_of(store)))
    assert list(differences(store.index, store.engine)) == []
    assert len(store.index.sessions(limit=100)) == 40


def _done(store: wakelog.Store) -> int:
    return sum(each.place for each in progress_of(store))


@contextlib.contextmanager
def _projecting(url: str) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen([sys.executable, "-c", PROJECT, url], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "begun\n"
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def _until(is_so: Any) -> None:
    deadline = time.monotonic() + HUNG_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)


@pytest.mark.slow
def test_servers_on_it_have_no_state_of_their_own(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKELOG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    key, token = make_key("tests", "admin", (ANY,), now=1)
    with contextlib.closing(NamespaceStores(url).keys()) as keys:
        keys.add(key)
    with ServerProcess(url, "--no-launch-key") as a, ServerProcess(url, "--no-launch-key") as b:
        fact = {"kind": "fact.recorded", "body": {"key": "k", "value": "walrus"}}
        assert Asker(a.url, token).post("/v1/sessions", {"name": "one"}).status == 200
        assert Asker(b.url, token).post("/v1/sessions/one/events", {"events": [fact]}).status == 200
        found = [Asker(each.url, token).get("/v1/search?q=walrus").json for each in (a, b, a)]
        assert [len(each["rows"]) for each in found] == [1, 1, 1]
        assert found[0]["as_of"] == found[1]["as_of"]
        a.kill()
        assert len(Asker(b.url, token).get("/v1/sessions").json["rows"]) == 1
    assert not list((tmp_path / "cache").rglob("*.db"))


def test_the_command_projects_once_and_tells_how_far_it_is(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    def said(code: int, *words: str) -> str:
        assert run(list(words)) == code
        return "".join(capsys.readouterr())

    with wakelog.open(url) as store:
        write(store, 3)
    before = said(0, "--store", url, "project", "--status")
    assert before.count("nobody") == 3
    assert "up to date" in said(0, "--store", url, "project", "--once")
    after = said(0, "--store", url, "project", "--status")
    assert [line.split()[3] for line in after.splitlines()[1:]] == ["0", "0", "0"]
    assert "exclude each other" in said(2, "--store", url, "project", "--once", "--status")
    local = url.partition("&index=")[0]
    assert "index=postgresql" in said(6, "--store", local, "project", "--status")
    assert "up to date" in said(0, "--store", local, "project", "--once")


def test_one_command_projects_all_namespaces_also_new_ones(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection_module, "NEW_NAMESPACES_S", 0.1)
    spaces = NamespaceStores(url)
    with contextlib.closing(spaces):
        write(spaces.get("default").store, 2)
        write(spaces.get("red", create=True).store, 3)
        stepped: set[str] = set()
        running = NamespaceProjections(spaces.names, lambda name: spaces.get(name).store)
        thread = threading.Thread(target=running.run, args=(lambda name, _: stepped.add(name), lambda *_: None))
        thread.start()
        write(spaces.get("blue", create=True).store, 1)
        try:
            for name, sessions in (("default", 2), ("red", 3), ("blue", 1)):
                index = spaces.get(name).store.index
                deadline = time.monotonic() + HUNG_S
                while len(index.sessions().rows) < sessions or name not in stepped:
                    assert time.monotonic() < deadline, name
                    time.sleep(0.05)
        finally:
            running.stop()
            thread.join(HUNG_S)
        assert not thread.is_alive()
    capsys.readouterr()
    assert run(["--store", url, "project", "--once", "--all-namespaces"]) == 0
    assert "of 3 namespaces is up to date" in capsys.readouterr().out
    assert run(["--store", url, "project", "--status", "--all-namespaces", "--json"]) == 0
    shards = json.loads(capsys.readouterr().out)["data"]["shards"]
    assert {(each["namespace"], each["behind"]) for each in shards} == {("default", 0), ("red", 0), ("blue", 0)}


def test_what_is_not_a_database_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as told:
        open_engine(f"{url.partition('&index=')[0]}&index=mysql://h/d", create=True)
    assert told.value.kind == "bad-url"
    with wakelog.open(tmp_path / "plain") as plain, pytest.raises(UnsupportedError):
        progress_of(plain)
    with wakelog.open(tmp_path / "plain") as plain, Projection(plain) as projection:
        write(plain, 2)
        assert projection.step() == 4
        assert projection.step() == 0


@pytest.mark.slow
def test_numbers_of_sessions_are_given_once(index: ShardedIndex, store: wakelog.Store) -> None:
    with another(store.engine) as other:
        given = [each._number() for _ in range(shard_book.NUMBERS + 5) for each in (index, other)]
    assert len(set(given)) == len(given)
