"""An archive that follows a store: each round adds what is new, bundles stand beside the tables, the whole store comes
back from it alone into any engine, and retention waits for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

import wakelog
from tests.engines.on_nats import ON_NATS, nats_url
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from tests.maintenance.conftest import Clock
from tests.maintenance.test_parquet_archive import asked, commits, told
from wakelog.config.retention_policy import RetentionPolicy
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.object_storage import Objects
from wakelog.errors import ConflictError, CorruptLogError, NotFoundError, UnavailableError
from wakelog.log.removal import erase
from wakelog.maintenance import parquet_archive
from wakelog.maintenance.continuous_archive import ContinuousArchive
from wakelog.maintenance.parquet_archive import archive_parquet
from wakelog.maintenance.parquet_restore import check_parquet, restore_parquet
from wakelog.maintenance.parquet_runs import ArchiveRun, archived_heads
from wakelog.maintenance.retention import apply, plan
from wakelog.store import Store

HOUR_US = 3_600_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Store:
    store = Store(MemoryEngine(), clock=clock)
    for name in "abc":
        with store.session(name, goal=f"do {name}").turn("go"):
            store.resume(name).message("assistant", f"long {name} " * 500)
    store.resume("a").fork(name="fork").fact("in", 1)
    return store


def runs(place: str) -> list[ArchiveRun]:
    objects = Objects(place)
    keys = sorted(each.key for each in objects.list("runs/"))
    return [msgspec.json.decode(objects.get(key), type=ArchiveRun) for key in keys]


def bundles(place: str) -> list[str]:
    return sorted(each.key for each in Objects(place).list() if each.key.endswith(".wakelog.gz"))


class SlowObjects(Objects):
    """Something happens right before the list of a run is put."""

    before: ClassVar[list[Callable[[], object]]] = []

    def put(self, key: str, content: Any) -> bool:
        if key.startswith("after/") and self.before:
            self.before.pop()()
        return super().put(key, content)


def test_of_two_who_archive_at_once_one_adds_nothing(store: Store, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = ContinuousArchive(store, place), ContinuousArchive(store, place)
    monkeypatch.setattr(parquet_archive, "Objects", SlowObjects)
    SlowObjects.before.append(two.round)
    with pytest.raises(ConflictError) as busy:
        one.round()
    assert busy.value.kind == "archive-busy"
    assert [len(run.sessions) for run in runs(place)] == [4]
    assert one.round().sessions == 0
    store.resume("b").fact("more", 1)
    assert one.round().sessions == 1
    assert two.round().sessions == 0
    assert asked(place, "select count(*) - count(distinct (session, seq)) from events") == [[0]]
    assert check_parquet(place).problems == {}
    assert [len(run.sessions) for run in runs(place)] == [4, 1]


def test_a_run_that_was_killed_right_before_it_counts_is_finished_by_the_next(
    store: Store, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Objects.put

    def killed(self: Objects, key: str, content: Any) -> bool:
        if key.startswith("runs/"):
            raise UnavailableError("killed", kind="unreachable")
        return put(self, key, content)

    with monkeypatch.context() as patch, pytest.raises(UnavailableError):
        patch.setattr(Objects, "put", killed)
        ContinuousArchive(store, place).round()
    assert runs(place) == []
    store.resume("b").fact("more", 1)
    assert ContinuousArchive(store, place).round().sessions == 1
    assert [len(run.sessions) for run in runs(place)] == [4, 1]
    assert asked(place, "select count(*) - count(distinct (session, seq)) from events") == [[0]]
    assert check_parquet(place).problems == {}


def test_each_round_adds_what_moved_and_lists_nothing_else(store: Store, place: str) -> None:
    archive = ContinuousArchive(store, place)
    assert archive.round().sessions == 4
    assert archive.round().sessions == 0
    store.resume("b").fact("more", 1)
    new = store.session("new")
    done = archive.round()
    assert (done.sessions, done.unchanged) == (2, 0), "the others are not even looked at"
    assert {each.session for each in runs(place)[-1].sessions} == {store.resume("b").id, new.id}
    assert len(runs(place)) == 2
    assert (check_parquet(place).sessions, check_parquet(place).problems) == (5, {})
    back = Store(MemoryEngine())
    assert restore_parquet(back, place).problems == {}
    assert (told(back), commits(back)) == (told(store), commits(store))
    assert asked(place, "select count(*) - count(distinct (session, seq)) from events") == [[0]]
    again = ContinuousArchive(store, place)  # a process that starts anew
    assert (again.round().sessions, len(runs(place))) == (0, 2)


def test_a_round_that_fails_is_done_by_the_next(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "archive")
    archive = ContinuousArchive(store, place)
    archive.round()
    store.resume("b").fact("more", 1)

    def away(*_: object) -> bool:
        raise UnavailableError("the blob store is away", kind="blobs-unreachable")

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "put", away)
        with pytest.raises(UnavailableError):
            archive.round()
    assert archive.round().sessions == 1
    assert check_parquet(place).problems == {}


def test_a_session_gets_its_bundle_when_it_ends_or_is_quiet(store: Store, place: str, clock: Clock) -> None:
    archive = ContinuousArchive(store, place, quiet_us=HOUR_US)
    store.resume("a").life.end()
    assert archive.round().sessions == 4
    assert [key.partition("/")[0] for key in bundles(place)] == [store.resume("a").id]
    clock.now += HOUR_US
    assert archive.round().sessions == 3, "nothing moved, but they are quiet now"
    assert len(bundles(place)) == 4
    assert archive.round().sessions == 0
    store.resume("b").fact("again", 1)
    archive.round()
    clock.now += HOUR_US
    archive.round()
    assert len(bundles(place)) == 5, "older ones stay"


def test_where_a_file_of_the_tables_is_lost_the_bundle_is_taken(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "archive"
    archive_parquet(store, str(place), quiet_us=0)
    for path in place.rglob("events/**/*.parquet"):
        path.write_bytes(b"nonsense")
    back = Store(MemoryEngine())
    done = restore_parquet(back, str(place))
    assert (done.sessions, done.problems) == (4, {})
    assert all("is not what was written" in damage for damage in done.damaged_files)
    assert len(done.damaged_files) == len(list(place.rglob("events/**/*.parquet")))
    assert (told(back), commits(back)) == (told(store), commits(store))
    store.resume("c").fact("more", 1)
    archive_parquet(store, str(place))
    next(place.rglob(f"{store.resume('b').id}/*.gz")).write_bytes(b"nonsense")
    back = Store(MemoryEngine())
    done = restore_parquet(back, str(place))
    assert done.is_damaged
    assert "its bundle cannot be read" in done.problems[store.resume("b").id]
    with pytest.raises(CorruptLogError, match="is not what was written"):
        check_parquet(str(place))


def test_a_check_reads_the_bundles_too(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "archive"
    archive_parquet(store, str(place), quiet_us=0)
    assert (check_parquet(str(place)).bundles, check_parquet(str(place)).problems) == (4, {})
    one, other = (next(place.rglob(f"{store.resume(name).id}/*.gz")) for name in "bc")
    one.write_bytes(other.read_bytes())
    other.unlink()
    found = check_parquet(str(place))
    assert found.bundles == 2
    assert "its bundle ends at" in found.problems["b"]
    assert "its bundle cannot be read" in found.problems["c"]


def test_what_was_erased_is_in_no_bundle_that_a_restore_takes(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "archive"
    archive_parquet(store, str(place), quiet_us=0)
    session = store.resume("c")
    erase(session.log, [2], why="asked for")
    archive_parquet(store, str(place))
    [entry] = runs(str(place))[-1].sessions
    assert (entry.session, entry.bundle) == (session.id, "")


@pytest.mark.parametrize("kind", ["sqlite", ON_POSTGRES, ON_NATS])
def test_a_store_comes_back_from_the_archive_alone_into_any_engine(
    request: pytest.FixtureRequest, store: Store, kind: str, tmp_path: Path
) -> None:
    place = str(tmp_path / "archive")
    ContinuousArchive(store, place, quiet_us=HOUR_US).round()
    urls = {"postgres": postgres_url, "nats": nats_url}
    url = urls[kind](request, tmp_path) if kind in urls else str(tmp_path / "back")
    with wakelog.open(url) as back:
        assert restore_parquet(back, place).problems == {}
        assert (told(back), commits(back)) == (told(store), commits(store))
        assert all(back.resume(head.session).verify().ok for head in back.sessions())
        assert back.resume("fork").state().facts["in"].value == 1


def test_retention_waits_for_the_archive_and_the_archive_keeps_what_was_pruned(
    store: Store, place: str, clock: Clock
) -> None:
    everything = commits(store)
    for name in "abc":
        store.resume(name).life.end()
    archive = ContinuousArchive(store, place)
    with pytest.raises(NotFoundError):
        archived_heads(place)
    archive.round()
    store.resume("b").append(wakelog.events.NoteAdded(text="late"))
    whole = commits(store)
    clock.now += HOUR_US
    policy = RetentionPolicy(keep_us=HOUR_US // 2)
    planned = plan(store, policy, clock.now, archived_heads(place))
    reasons = {each.name: (each.action, each.reason) for each in planned}
    assert reasons["b"] == ("skip", "the archive does not have all of it yet")
    assert reasons["c"][0] == "prune"
    archive.round()
    planned = plan(store, policy, clock.now, archived_heads(place))
    assert {each.name for each in planned if each.action == "prune"} == {"b", "c"}
    assert all(each.done for each in apply(store, planned))
    assert commits(store) != whole
    assert archive.round().problems == {}
    assert ContinuousArchive(store, place).round().sessions == 0
    back = Store(MemoryEngine())
    assert restore_parquet(back, place).problems == {}
    assert commits(back) == whole, "what was pruned is in the archive as it was"
    assert len(everything) < len(whole)


def test_a_file_that_is_gone_keeps_retention_from_removing(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "archive"
    archive_parquet(store, str(place))
    assert len(archived_heads(str(place))) == 4
    next(place.rglob("events/**/*.parquet")).unlink()
    with pytest.raises(CorruptLogError, match="is not in the archive"):
        archived_heads(str(place))
