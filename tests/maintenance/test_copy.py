"""Copies keep every byte and hash, between any pair of engines, and can be updated."""

import random
from pathlib import Path

import pytest

from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.postgres import PostgresEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.log.removal import erase, prune
from wakelog.maintenance.copy import copy_sessions
from wakelog.store import Store


@pytest.fixture
def source() -> Store:
    """A store with a bit of everything: forks of forks, closed and named ones, erased and pruned content."""
    store = Store(MemoryEngine())
    rng = random.Random(7)
    sessions = [store.session(f"s{i}", goal="copy me") for i in range(4)]
    for n, session in enumerate(sessions):
        for turn in range(6):
            with session.turn(f"turn {turn}"):
                session.fact(f"k{turn}", "secret " * rng.randrange(1, 200))
                session.message("assistant", "x" * rng.randrange(5000))
        session.fork(f"@{n + 1}", name=f"fork{n}")
    inner = store.resume("fork1").fork(name="inner")
    inner.fact("inner", 1)
    sessions[0].life.end()
    erase(sessions[1].log, [4], why="asked for", by="ada")
    pruned = store.resume("fork2")
    pruned.fact("a", 1)
    pruned.fact("b", 2)
    prune(pruned.log, pruned.head.seq - 1)
    return store


def everything(engine: Engine) -> list[object]:
    heads = list(engine.sessions(limit=1000))
    return [(h, [(c.hash, c.records, c.payloads) for c in engine.read(h.session, payloads=True)]) for h in heads]


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "memory"])
def test_a_copy_and_a_copy_back_have_every_byte(
    source: Store, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    middle: Engine = MemoryEngine()
    if kind == "sqlite":
        middle = SqliteEngine(tmp_path / "log.db")
    elif kind == "postgres":
        middle = PostgresEngine(request.getfixturevalue("postgres").url, ns=str(tmp_path))
    told: list[int] = []
    done = copy_sessions(source.engine, middle, progress=told.append)
    assert sum(told) == done.events > 100
    assert done.diverged == ()
    assert everything(middle) == everything(source.engine)
    back = SqliteEngine(tmp_path / "back.db")
    copy_sessions(middle, back)
    assert everything(back) == everything(source.engine)
    with Store(back) as store:
        assert all(store.resume(h.session).verify().ok for h in store.sessions())
        assert store.resume("inner").state().facts["inner"].value == 1
    middle.close()


def test_a_copy_is_brought_up_to_date_also_with_what_was_erased(source: Store, tmp_path: Path) -> None:
    target = SqliteEngine(tmp_path / "log.db")
    first = copy_sessions(source.engine, target)
    assert copy_sessions(source.engine, target).events == 0
    session = source.resume("s3")
    session.fact("new", "since then")
    erase(session.log, [3], why="asked for", by="ada")
    source.resume("inner").fact("more", 2)
    again = copy_sessions(source.engine, target)
    assert 0 < again.events < first.events
    assert again.sessions == 3  # it, its fork, in which the same was erased, and the inner one
    assert everything(target) == everything(source.engine)
    target.close()


def test_a_session_that_went_its_own_way_is_left_alone_and_told(source: Store, tmp_path: Path) -> None:
    target = Store(SqliteEngine(tmp_path / "log.db"))
    copy_sessions(source.engine, target.engine)
    target.resume("s3").fact("mine", "there")
    source.resume("s3").fact("other", "here")
    source.resume("s2").fact("other", "here")
    done = copy_sessions(source.engine, target.engine)
    assert done.diverged == (source.resume("s3").id,)
    assert target.resume("s3").state().facts["mine"].value == "there"
    assert target.resume("s2").state().facts["other"].value == "here"
    target.close()


def test_a_deleted_parent_goes_over_for_its_forks_and_stays_deleted(source: Store, tmp_path: Path) -> None:
    parent = source.resume("s1").id
    source.delete(source.resume("s1"), why="over")
    with Store(SqliteEngine(tmp_path / "log.db")) as target:
        copy_sessions(source.engine, target.engine)
        assert target.engine.head(parent).status == "deleted"
        assert target.resume("fork1").verify().ok
        assert target.resume("fork1").state() == source.resume("fork1").state()


def test_one_session_brings_its_ancestors(source: Store) -> None:
    target = Store(MemoryEngine())
    copy_sessions(source.engine, target.engine, [source.resume("inner").id])
    assert {h.name for h in target.sessions()} == {"s1", "fork1", "inner"}
