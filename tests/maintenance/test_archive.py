"""Archives in a folder or an S3 store: nothing in them is ever replaced, and a whole store can be restored."""

from pathlib import Path
from typing import Any

import pytest

from tests.maintenance.conftest import PLACES
from wakelog.config.retention_policy import RetentionPolicy
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.object_storage import Objects
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import InvalidInputError, NotFoundError, UnavailableError
from wakelog.log.removal import erase
from wakelog.maintenance.archive import backup, lists, restore
from wakelog.maintenance.retention import apply, plan
from wakelog.store import Store


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        return str(request.getfixturevalue("bucket"))
    (tmp_path / "archive").mkdir()
    return (tmp_path / "archive").as_uri()


@pytest.fixture
def store() -> Store:
    ticks = iter(range(1_790_000_000_000_000, 1_890_000_000_000_000, 1_000_000))
    store = Store(MemoryEngine(), clock=lambda: next(ticks))
    for name in ("a", "b", "c"):
        session = store.session(name, goal="be kept")
        with session.turn("go"):
            session.fact("k", f"of {name}")
            session.message("assistant", "long " * 500)
    store.resume("a").fork(name="fork").fact("in", 1)
    store.resume("b").life.end()
    return store


def told(store: Store) -> list[Any]:
    return [(h.session, h.name, h.seq, h.hash, h.status) for h in store.sessions()]


def test_a_store_comes_back_from_its_archive_with_every_hash(store: Store, place: str, tmp_path: Path) -> None:
    done = backup(store, place)
    assert (done.sessions, done.unchanged, done.problems) == (4, 0, {})
    with Store(SqliteEngine(tmp_path / "back.db")) as back:
        assert restore(back, place).sessions == 4
        assert told(back) == told(store)
        assert all(back.resume(h.session).verify().ok for h in back.sessions())
        assert back.resume("fork").state().facts["in"].value == 1
        assert restore(back, place).unchanged == 4


def test_a_backup_that_is_repeated_adds_what_is_new_and_replaces_nothing(store: Store, place: str) -> None:
    backup(store, place)
    objects = Objects(place)
    before = {each.key: objects.get(each.key) for each in objects.list()}
    store.resume("c").fact("more", 2)
    done = backup(store, place)
    assert (done.sessions, done.unchanged) == (1, 3)
    after = {each.key: objects.get(each.key) for each in objects.list()}
    assert {key: after[key] for key in before} == before
    assert len(after) == len(before) + 2, "the session as it is now, and a list"
    first, second = lists(place)
    assert second == done.list
    older, newer = Store(MemoryEngine()), Store(MemoryEngine())
    restore(older, place, first)
    restore(newer, place)
    assert "more" not in older.resume("c").state().facts
    assert newer.resume("c").state().facts["more"].value == 2
    restore(older, place)
    assert told(older) == told(newer)


def test_of_two_that_put_at_once_one_is_told_that_it_came_second(place: str) -> None:
    objects = Objects(place)
    assert objects.put("x/y", b"first")
    assert not objects.put("x/y", b"second")
    assert objects.get("x/y") == b"first"


def test_what_is_newer_here_stays_and_what_went_its_own_way_is_told(store: Store, place: str) -> None:
    backup(store, place)
    here = Store(MemoryEngine())
    restore(here, place)
    here.resume("c").fact("mine", 1)
    store.resume("c").fact("theirs", 2)
    done = backup(store, place)
    again = restore(here, place)
    assert list(again.problems) == [here.resume("c").id]
    assert "mine" in here.resume("c").state().facts
    here.resume("a").fact("newer", 1)
    assert restore(here, place, done.list).unchanged == 3
    assert here.resume("a").state().facts["newer"].value == 1
    deleted = here.resume("b").id
    here.delete(here.resume("b"))
    assert deleted in restore(here, place).problems, "a deleted session never comes back"


def test_a_damaged_session_is_left_out_and_told(tmp_path: Path, place: str) -> None:
    import apsw

    with Store(SqliteEngine(tmp_path / "log.db")) as store:
        store.session("good").fact("a", 1)
        bad = store.session("bad")
        bad.fact("b", 1)
        db = apsw.Connection(str(tmp_path / "log.db"))
        db.execute("update log set records = x'00' where session = 2 and first = 2")
        db.close()
        done = backup(store, place)
    assert done.is_damaged
    assert list(done.problems) == [bad.id]
    assert done.sessions == 1


def test_an_object_that_was_altered_or_lost_is_not_taken_in(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    backup(store, str(folder))
    (bundle,) = (folder / store.resume("a").id).iterdir()
    content = bundle.read_bytes()
    bundle.write_bytes(content[: len(content) // 2])
    (other,) = (folder / store.resume("b").id).iterdir()
    other.unlink()
    here = Store(MemoryEngine())
    done = restore(here, str(folder))
    assert set(done.problems) == {store.resume("a").id, store.resume("b").id}
    assert done.is_damaged
    assert {h.name for h in here.sessions()} >= {"c"}


def test_where_there_is_no_archive_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError) as caught:
        restore(Store(MemoryEngine()), str(tmp_path / "empty"))
    assert caught.value.kind == "archive-not-found"
    with pytest.raises(InvalidInputError) as refused:
        Objects("nonsense://x")
    assert refused.value.kind == "bad-url"


def test_a_blob_store_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {
        "config": {"endpoint": "http://127.0.0.1:9", "region": "us-east-1", "skip_signature": True},
        "client_options": {"allow_http": True},
        "retry_config": {"max_retries": 0},
    }
    with pytest.raises(UnavailableError) as caught:
        Objects("s3://bucket/x", options).put("k", b"v")
    assert caught.value.kind == "blobs-unreachable"


def test_retention_puts_into_the_archive_before_anything_goes(store: Store, place: str) -> None:
    closed = store.resume("b")
    planned = plan(store, RetentionPolicy(keep_us=0, action="delete"), store.clock())
    assert [p.name for p in planned if p.action == "delete"] == ["b"]
    (done,) = apply(store, planned, archive_to=place)
    assert done.done
    assert store.engine.find("b") is None
    (kept,) = Objects(place).list()
    assert kept.key.startswith(closed.id)


def test_what_cannot_be_archived_does_not_go(store: Store, tmp_path: Path) -> None:
    planned = plan(store, RetentionPolicy(keep_us=0, action="delete"), store.clock())
    (tmp_path / "archive").mkdir()
    place = str(tmp_path / "archive")
    objects_in_the_way = tmp_path / "archive" / store.resume("b").id
    objects_in_the_way.write_text("a file where a folder is needed")
    (done,) = apply(store, planned, archive_to=place)
    assert not done.done
    assert store.resume("b").verify().ok


def test_what_was_erased_since_does_not_come_back_from_an_archive(store: Store, place: str) -> None:
    first = backup(store, place)
    session = store.resume("c")
    seq = next(e.seq for e in session.events(kind="fact.recorded"))
    erase(session.log, [seq], why="asked for", by="ada")
    restore(store, place, first.list)
    assert "of c" not in str(store.resume("c").log.state())
