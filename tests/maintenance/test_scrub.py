"""A scrub finds every kind of damage, tells it from what is only left over, goes on where it stopped, and repairs
nothing that could be lost."""

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from tests.engines.postgres_server import Server
from wakelog.engine import Abilities, Engine
from wakelog.engines.blobs import BlobEngine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.postgres import PostgresEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import UnsupportedError
from wakelog.log.removal import erase, prune
from wakelog.maintenance.scrub import last_pass, open_pass, scrub
from wakelog.model.ids import root_id
from wakelog.store import Store

LIMIT = 1000


def fill(store: Store) -> None:
    """Forks, a deleted parent, closed, erased and pruned ones, big payloads."""
    rng = random.Random(11)
    for name in ("a", "b", "c", "parent", "d"):
        session = store.session(name, goal="be sound")
        for turn in range(4):
            with session.turn(f"turn {turn}"):
                session.fact(f"k{turn}", "x" * rng.randrange(1, 500))
                session.message("assistant", "y" * rng.randrange(4000))
    store.resume("a").fork("@2", name="fork").fact("in", 1)
    store.resume("fork").fork(name="inner").fact("in", 2)
    store.resume("parent").fork("@2", name="orphan").fact("in", 3)
    store.delete(store.resume("parent"))
    store.resume("b").life.end()
    erase(store.resume("c").log, [4], why="asked for", by="ada")
    pruned = store.resume("d")
    prune(pruned.log, pruned.head.seq - 1)


@pytest.fixture(params=["memory", "sqlite", "postgres", "blobs"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    engine: Engine = MemoryEngine()
    if request.param == "sqlite":
        engine = SqliteEngine(tmp_path / "log.db")
    elif request.param == "postgres":
        engine = PostgresEngine(request.getfixturevalue("postgres").url, ns=str(tmp_path))
    elif request.param == "blobs":
        engine = BlobEngine(SqliteEngine(tmp_path / "log.db"), str(tmp_path / "blobs"), limit=LIMIT)
    with Store(engine) as store:
        fill(store)
        yield store


@pytest.fixture
def shared(postgres: Server, tmp_path: Path) -> Iterator[tuple[Store, Callable[[str], None]]]:
    """A store on PostgreSQL, and a way to get at its tables."""
    with Store(PostgresEngine(postgres.url, ns=tmp_path.name)) as store:
        fill(store)
        yield store, lambda statement: postgres.sql(statement.replace("$ns", f"'{tmp_path.name}'"))


@pytest.fixture
def local(tmp_path: Path) -> Iterator[tuple[Store, apsw.Connection]]:
    """A store in a file, and a connection to it."""
    with Store(SqliteEngine(tmp_path / "log.db")) as store:
        fill(store)
        db = apsw.Connection(str(tmp_path / "log.db"))
        db.set_busy_timeout(10_000)
        yield store, db
        db.close()


def test_a_sound_store_has_no_findings_and_all_of_it_was_read(store: Store) -> None:
    told: list[int] = []
    done = scrub(store, progress=told.append)
    heads = list(store.sessions())
    assert done.findings == ()
    assert done.is_whole
    assert done.keeps_mark
    assert done.sessions == len(heads) == 7
    assert done.events == sum(told) == sum(h.seq - (h.fork.at if h.fork else 0) for h in heads)
    assert last_pass(store) == done.of_pass
    assert open_pass(store) is None


def test_a_run_that_has_no_time_left_does_one_session_and_the_next_goes_on_there(store: Store) -> None:
    seen = []
    runs = 0
    while True:
        done = scrub(store, for_s=0.0)
        runs += 1
        seen.append(done.of_pass.after)
        assert done.sessions == 1 or done.is_whole
        assert done.is_resumed == (runs > 1)
        if done.is_whole:
            break
        at = open_pass(store)
        assert at is not None
        assert at.sessions == runs
    everything = [h.session for h in store.sessions()]
    assert seen[: len(everything)] == everything
    assert done.of_pass.sessions == len(everything)
    assert scrub(store, for_s=0.0).of_pass.sessions == 1, "the next pass begins at the first"
    assert scrub(store, anew=True).of_pass.sessions == len(everything)


def test_what_is_written_meanwhile_is_no_damage(store: Store) -> None:
    done = threading.Event()
    begun = threading.Event()
    trouble: list[BaseException] = []

    def write() -> None:
        try:
            while not done.is_set():
                for name in ("a", "fork", "inner"):
                    session = store.resume(name)
                    seq = session.fact("k", "z" * 100)
                    if name == "inner":
                        erase(session.log, [seq], why="meanwhile", by="ada")
                begun.set()
        except BaseException as exc:
            trouble.append(exc)
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert begun.wait(180)
    for _ in range(3):
        assert scrub(store).findings == ()
    done.set()
    writer.join(180)
    assert trouble == []


def test_a_rate_is_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("wakelog.maintenance.scrub.time.monotonic", lambda: now)
    monkeypatch.setattr("wakelog.maintenance.scrub.time.sleep", sleep)
    done = scrub(store, rate=10)
    assert now == pytest.approx(done.events / 10)


def names(store: Store, findings: Any) -> list[tuple[str, int]]:
    return [(store.engine.head(f.session).name, f.seq) for f in findings if f.is_damage]


# Damage, and where it is


def test_an_altered_body_is_told_for_all_who_read_it_and_not_repaired(
    shared: tuple[Store, Callable[[str], None]],
) -> None:
    store, sql = shared
    other = store.engine.head(store.resume("a").id)
    sql(
        "update wl_commit set records = (select c.records from wl_commit c where c.ns = $ns and c.session ="
        f" '{store.resume('b').id}' and c.first = 2) where ns = $ns and session = '{other.session}' and first = 2"
    )
    done = scrub(store, repair=True)
    assert sorted(names(store, done.findings)) == [("a", 2), ("fork", 2), ("inner", 2)]
    assert not done.findings[0].can_tidy
    assert "backup" in done.findings[0].fix
    assert last_pass(store) == done.of_pass
    assert done.of_pass.damage == 3


def test_a_deleted_parent_is_read_through_its_fork(shared: tuple[Store, Callable[[str], None]]) -> None:
    store, sql = shared
    fork = store.engine.head(store.resume("orphan").id).fork
    assert fork is not None
    # Only a payload, which nobody needs to fold the state of the fork.
    sql(f"update wl_commit set payloads = ''::bytea where ns = $ns and session = '{fork.parent}'")
    assert {name for name, _ in names(store, scrub(store).findings)} == {"orphan"}


def test_a_wrong_snapshot_is_dropped_by_repairing(shared: tuple[Store, Callable[[str], None]]) -> None:
    store, sql = shared
    session = store.resume("a")
    for n in range(40):
        session.fact(f"s{n}", "state " * 200)
    assert session.log.engine.snapshot(session.id, upto=1 << 60) is not None
    sql(
        f"update wl_snapshot set data = overlay(data placing '\\xff'::bytea from 30) where ns = $ns"
        f" and session = '{session.id}'"
    )
    done = scrub(store)
    assert {name for name, _ in names(store, done.findings)} == {"a"}
    assert all(f.can_tidy for f in done.findings)
    mended = scrub(store, repair=True)
    assert mended.findings == ()
    assert mended.repaired == len(done.findings)
    assert session.log.engine.snapshot(session.id, upto=1 << 60) is None
    assert session.state().facts["s39"].value


def test_what_readers_of_a_shared_store_cannot_tell(shared: tuple[Store, Callable[[str], None]]) -> None:
    store, sql = shared
    ghost = root_id(1, b"0123456789")
    session = store.resume("b")
    store.engine.claim("claimed", ghost)
    gone = store.session("gone")
    store.delete(gone)
    sql(f"insert into wl_name (ns, name, session) values ($ns, 'left', '{gone.id}')")
    sql(f"insert into wl_heartbeat (ns, root, session, epoch, holder, until) values ($ns, 'r', '{ghost}', 1, 'x', 1)")
    sql(f"insert into wl_snapshot (ns, root, session, seq, data) values ($ns, 'r', '{ghost}', 1, '')")
    sql(f"insert into wl_session (ns, root, session) values ($ns, '{ghost}x', '{ghost}x')")
    sql(
        "insert into wl_commit_id (ns, root, session, commit_id, first)"
        f" values ($ns, '{session.id}', '{session.id}', 'nothing', 999)"
    )
    found = {
        (f.what.partition(" ")[0] + " " + f.what.rpartition(" ")[2], f.is_damage, f.can_tidy)
        for f in scrub(store).findings
    }
    assert found == {
        ("the opened", False, False),
        ("the deleted", False, True),
        ("1 session", False, True),
        ("session commits", True, False),
        ("the commit", True, False),
    }
    done = scrub(store, repair=True)
    assert done.repaired == 3
    assert {f.can_tidy for f in done.findings} == {False}
    assert store.engine.find("left") is None
    assert store.engine.find("claimed") == ghost, "whoever asks for it next opens it"


def test_what_readers_of_a_file_cannot_tell(local: tuple[Store, apsw.Connection]) -> None:
    store, db = local
    ghost = root_id(1, b"0123456789")
    store.engine.claim("claimed", ghost)
    db.execute("insert into heartbeat (session, epoch, holder, until, checksum) values (999, 1, 'x', 1, 0)")
    db.execute("insert into session (id, checksum) values (?, 0)", (ghost + "x",))
    db.execute("update commit_id set last = last + 1")
    db.execute("insert into snapshot (session, seq, data, checksum) values (1, 7, x'00', 0)")
    done = scrub(store)
    texts = " | ".join(f.what for f in done.findings)
    for part in ("never opened", "1 heartbeats belong to no session", "has lost its commits", "snapshot at event 7"):
        assert part in texts
    mended = scrub(store, repair=True)
    assert mended.repaired == 2
    assert "snapshot at event 7" not in " | ".join(f.what for f in mended.findings)
    assert not any(f.can_tidy for f in mended.findings)


def test_a_damaged_file_is_told(local: tuple[Store, apsw.Connection]) -> None:
    store, db = local
    db.execute("update log set status = 'odd' where session = 1 and first = 2")
    findings = scrub(store).findings
    assert {name for name, _ in names(store, findings)} == {"a", "fork", "inner"}


def test_a_damaged_index_is_made_anew(local: tuple[Store, apsw.Connection], tmp_path: Path) -> None:
    store, _ = local
    store.index.sessions()
    path = store.index.path
    assert path is not None
    store.close()
    content = bytearray(path.read_bytes())
    content[4096 : 4096 * 3] = random.Random(1).randbytes(4096 * 2)
    path.write_bytes(content)
    with Store(SqliteEngine(tmp_path / "log.db")) as again:
        (finding,) = scrub(again).findings
        assert (finding.is_damage, finding.can_tidy) == (False, True)
        assert scrub(again, repair=True).repaired == 1
        assert scrub(again).findings == ()
        assert len(again.index.sessions().rows) == 7


def test_a_shared_index_that_was_tampered_with_is_made_anew(shared: tuple[Store, Callable[[str], None]]) -> None:
    store, sql = shared
    assert scrub(store).findings == ()
    assert {row.goal for row in store.index.sessions().rows} == {"be sound"}
    assert scrub(store).findings == ()
    sql(f"update wi_session set goal = 'be rich' where ns = $ns and id = '{store.find('a')}'")
    (finding,) = scrub(store).findings
    assert (finding.session, finding.is_damage, finding.can_tidy) == (store.find("a"), True, True)
    assert scrub(store, repair=True).repaired == 1
    assert scrub(store).findings == ()
    assert {row.goal for row in store.index.sessions().rows} == {"be sound"}


# Blobs


def test_blobs_are_held_against_their_hash(tmp_path: Path) -> None:
    folder = tmp_path / "blobs"
    with Store(BlobEngine(SqliteEngine(tmp_path / "log.db"), str(folder), limit=LIMIT)) as store:
        fill(store)
        session = store.resume("a")
        (blob, *_) = sorted(p for p in folder.glob(f"{session.id}/{session.id}/*/*"))
        content = blob.read_bytes()
        blob.write_bytes(content[:-1] + b"!")
        assert [name for name, _ in names(store, scrub(store).findings)] == ["a"]
        blob.unlink()
        assert [name for name, _ in names(store, scrub(store).findings)] == ["a"]
        blob.write_bytes(content)
        assert scrub(store).findings == ()


def test_blobs_that_nobody_mentions_are_removed_by_repairing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "blobs"
    engine = BlobEngine(SqliteEngine(tmp_path / "log.db"), str(folder), limit=LIMIT)
    with Store(engine) as store:
        fill(store)
        session = store.resume("a").id
        engine.objects.put(f"{session}/{session}/999/{'0' * 64}", b"of an append that never came")
        assert scrub(store).findings == (), "a young one may be on its way"
        monkeypatch.setattr("wakelog.engines.blobs.GRACE_S", -1.0)
        (finding,) = scrub(store).findings
        assert (finding.is_damage, finding.can_tidy, finding.session) == (False, True, session)
        done = scrub(store, repair=True)
        assert (done.repaired, done.findings) == (1, ())
        assert all(store.resume(h.session).verify().ok for h in store.sessions())


# Where no mark can be kept


def test_without_a_place_for_its_mark_a_scrub_goes_through_but_not_in_parts() -> None:
    class Bare(MemoryEngine):
        abilities = Abilities()

    class Older(MemoryEngine):
        def set_mark(self, name: str, value: str) -> None:
            raise UnsupportedError("no place", kind="migration-waits")

    for kind in (Bare, Older):
        store = Store(kind())
        store.session("s")
        with pytest.raises(UnsupportedError):
            scrub(store, for_s=10)
        done = scrub(store)
        assert (done.is_whole, done.keeps_mark, done.sessions) == (True, False, 1)


def test_a_mark_that_cannot_be_read_begins_anew() -> None:
    store = Store(MemoryEngine())
    store.session("s")
    store.engine.set_mark("scrub", "{broken")  # type: ignore[attr-defined]
    done = scrub(store)
    assert (done.is_whole, done.is_resumed) == (True, False)
    assert msgspec.json.decode(store.engine.mark("scrubbed") or "")["sessions"] == 1  # type: ignore[attr-defined]
