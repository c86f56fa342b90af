"""Archives in Parquet: every byte can be restored, a second run adds what is new, and queries read nothing else."""

from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.encryption.keys import key_file, use_rings
from tests.maintenance.conftest import Clock
from wakelog import events as ev
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.object_storage import Objects
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import CorruptLogError, InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log.removal import erase
from wakelog.maintenance.parquet_archive import archive_parquet
from wakelog.maintenance.parquet_restore import check_parquet, query_parquet, restore_parquet
from wakelog.maintenance.parquet_runs import is_parquet
from wakelog.store import Store

ODD = "é \u2028 \U0001f600 \\u0000 \x01 ' \" \n"
DAY_US = 86_400_000_000


@pytest.fixture
def store(clock: Clock) -> Store:
    store = Store(MemoryEngine(), clock=clock)
    for name, project in (("a", "/home/ada/shop"), ("b", "o'reilly=x/y z"), ("c", "")):
        session = store.session(name, goal=ODD, labels={"project": project} if project else {})
        with session.turn(ODD):
            session.fact("k", f"of {name}")
            session.message("assistant", "long " * 2000)
            session.append(ev.ActionRecorded(action="r", tool="look", effect="read", output=bytes(range(256)) * 30))
        clock.now += DAY_US
    store.resume("a").fork(name="fork").fact("in", 1)
    return store


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An archive to ask, which no test changes."""
    place = str(tmp_path_factory.mktemp("small"))
    store = Store(MemoryEngine())
    with store.session("s").turn("go"):
        pass
    archive_parquet(store, place)
    return place


def told(store: Store) -> list[Any]:
    return sorted((h.session, h.name, h.seq, h.hash, h.status) for h in store.sessions())


def commits(store: Store) -> list[Any]:
    return sorted(
        (c.session, c.first, [(r.header, r.salt, r.body) for r in c.records], c.payloads, c.hash, c.prev, c.commit_id)
        for h in store.sessions()
        for c in store.engine.read(h.session, payloads=True)
    )


def asked(place: str, sql: str) -> list[Any]:
    return [list(row) for row in query_parquet(place, sql).rows]


def test_a_store_comes_back_byte_for_byte(store: Store, place: str, tmp_path: Path) -> None:
    done = archive_parquet(store, place)
    assert (done.sessions, done.unchanged, done.problems) == (4, 0, {})
    assert is_parquet(place)
    with Store(SqliteEngine(tmp_path / "back.db")) as back:
        assert restore_parquet(back, place).sessions == 4
        assert told(back) == told(store)
        assert commits(back) == commits(store)
        assert all(back.resume(h.session).verify().ok for h in back.sessions())
        assert restore_parquet(back, place).unchanged == 4
    checked = check_parquet(place)
    assert (checked.sessions, checked.problems) == (4, {})
    events = sum(len(list(store.resume(n).log.entries())) for n in "abc") + 2
    assert checked.events == events
    assert asked(place, "select count(*) from events") == [[events]]


def test_a_second_run_adds_what_is_new_and_replaces_nothing(store: Store, place: str) -> None:
    archive_parquet(store, place)
    objects = Objects(place)
    before = {each.key: objects.get(each.key) for each in objects.list()}
    assert archive_parquet(store, place).unchanged == 4
    assert {each.key for each in objects.list()} == before.keys(), "nothing is new, so nothing is written"
    store.resume("c").fact("more", 2)
    done = archive_parquet(store, place)
    assert (done.sessions, done.unchanged) == (1, 3)
    after = {each.key: objects.get(each.key) for each in objects.list()}
    assert {key: after[key] for key in before} == before
    assert asked(place, "select count(*) - count(distinct (session, seq)) from events") == [[0]]
    assert asked(place, "select count(*) from events where run = (select max(run) from events)") == [[1]]
    back = Store(MemoryEngine())
    restore_parquet(back, place)
    assert commits(back) == commits(store)


def test_files_are_in_folders_by_day_and_project(store: Store, place: str) -> None:
    archive_parquet(store, place)
    assert asked(place, "select project, count(distinct day) from events group by project order by project") == [
        ["none", 1],
        ["shop", 2],
        ["y z", 1],
    ]
    keys = [each.key for each in Objects(place).list("events/")]
    assert all(key.split("/")[1].startswith("day=2026-") and "/project=" in key for key in keys)


def test_columns_say_what_an_event_is(store: Store, place: str) -> None:
    archive_parquet(store, place)
    row = asked(
        place, "select name, kind, turn, tool, json_extract_string(body, '$.action') from events where tool = 'look'"
    )
    assert sorted(row) == [[n, "action.recorded", 1, "look", "r"] for n in "abc"]
    (at,) = asked(place, "select recorded_at from events where name = 'a' and seq = 1")[0]
    assert at.startswith("2026-09-21T")
    assert at.endswith("Z")


def test_what_was_erased_since_is_not_in_the_answers_nor_brought_back(store: Store, place: str) -> None:
    archive_parquet(store, place)
    session = store.resume("c")
    seq = next(e.seq for e in session.events(kind="fact.recorded"))
    erase(session.log, [seq], why="asked for", by="ada")
    archive_parquet(store, place)
    assert asked(place, "select count(*) from events where body like '%of c%'") == [[0]]
    assert asked(place, "select count(*) - count(distinct (session, seq)) from events") == [[0]]
    back = Store(MemoryEngine())
    assert restore_parquet(back, place).problems == {}
    assert commits(back) == commits(store)


def test_a_fork_alone_brings_its_ancestry_along(store: Store, place: str) -> None:
    fork = store.resume("fork")
    assert archive_parquet(store, place, [fork.id]).sessions == 1
    back = Store(MemoryEngine())
    assert restore_parquet(back, place).problems == {}
    assert back.resume("fork").state().facts["k"].value == "of a"
    assert archive_parquet(store, place).sessions == 3
    assert check_parquet(place).problems == {}
    assert asked(place, "select count(*) - count(distinct (session, seq)) from events") == [[0]]


def test_what_was_deleted_in_the_store_stays_in_the_archive(store: Store, place: str) -> None:
    archive_parquet(store, place)
    gone = store.resume("b").id
    store.delete(store.resume("b"))
    store.resume("c").fact("more", 1)
    archive_parquet(store, place)
    assert asked(place, f"select name from sessions where session = '{gone}'") == [["b"]]


def test_a_damaged_session_is_left_out_and_told(tmp_path: Path) -> None:
    import apsw

    with Store(SqliteEngine(tmp_path / "log.db")) as store:
        store.session("good").fact("a", 1)
        bad = store.session("bad")
        bad.fact("b", 1)
        db = apsw.Connection(str(tmp_path / "log.db"))
        db.execute("update log set records = x'00' where session = 2 and first = 2")
        db.close()
        done = archive_parquet(store, str(tmp_path / "archive"))
    assert (done.sessions, list(done.problems), done.is_damaged) == (1, [bad.id], True)


def test_a_file_that_was_altered_or_lost_is_told(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "archive"
    archive_parquet(store, str(place))
    files = sorted(place.rglob("events/**/*.parquet"))
    content = files[0].read_bytes()
    files[0].write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(CorruptLogError, match="is not what was written"):
        check_parquet(str(place))
    files[0].unlink()
    with pytest.raises(CorruptLogError, match="cannot be read"):
        restore_parquet(Store(MemoryEngine()), str(place))
    next(place.rglob("runs/*.json")).write_text("nonsense")
    with pytest.raises(CorruptLogError, match="is not the list of a run"):
        query_parquet(str(place), "select 1")


def test_a_run_that_was_cut_off_does_not_count(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "archive"
    archive_parquet(store, str(place))
    store.resume("c").fact("more", 1)
    archive_parquet(store, str(place))
    for folder in ("after", "runs"):
        max((place / folder).glob("2*.json")).unlink()  # as if the process had died before the list was put
    assert check_parquet(str(place)).problems == {}
    store.clock()
    assert archive_parquet(store, str(place)).sessions == 1
    assert asked(str(place), "select count(*) - count(distinct (session, seq)) from events") == [[0]]


@pytest.mark.parametrize(
    "sql",
    [
        "delete from events",
        "select 1; select 2",
        "copy events to 'x.csv'",
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/hosts'",
        "attach 'x.db'",
        "select nonsense from events",
        "selct",
        "set enable_external_access = true",
    ],
)
def test_a_query_reads_the_tables_and_nothing_else(small: str, sql: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        query_parquet(small, sql)
    assert caught.value.kind == "bad-sql"


def test_a_query_is_bounded_in_rows_and_time(small: str) -> None:
    few = query_parquet(small, "select seq from events", max_rows=2)
    assert (len(few.rows), few.truncated) == (2, True)
    with pytest.raises(NotAllowedError) as caught:
        query_parquet(
            small,
            "select count(*) from range(100000000) a, range(100000000) b where a.range + b.range = 7",
            timeout_s=0.05,
        )
    assert caught.value.kind == "query-too-slow"


def test_where_there_is_no_archive_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError) as caught:
        query_parquet(str(tmp_path / "empty"), "select 1")
    assert caught.value.kind == "archive-not-found"
    assert not is_parquet(str(tmp_path / "empty"))


def test_an_encrypted_store_is_archived_only_when_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_rings(monkeypatch, tmp_path)
    with wakelog.open(tmp_path / "store", encryption_key=key_file(tmp_path)) as store:
        store.session("s").fact("k", "kingfisher")
        place = str(tmp_path / "archive")
        with pytest.raises(NotAllowedError) as caught:
            archive_parquet(store, place)
        assert caught.value.kind == "store-encrypted"
        assert not Path(place).exists()
        archive_parquet(store, place, decrypt=True)
        back = Store(MemoryEngine())
        assert restore_parquet(back, place).problems == {}
        assert commits(back) == commits(store)
