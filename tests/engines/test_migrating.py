"""Stores of older versions work without a migration, and are migrated in place while others use them."""

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.engines.postgres_server import Server
from tests.golden.make_stores import FOLDER, TOLD, told_by
from tests.seeds import some
from wakelog.engine import Migrations, MigrationStep
from wakelog.engines.postgres import PostgresEngine
from wakelog.engines.postgres import migrations as on_postgres
from wakelog.engines.sqlite import SqliteEngine
from wakelog.engines.sqlite import migrations as on_sqlite
from wakelog.errors import UnsupportedError
from wakelog.model import events as ev
from wakelog.store import Store
from wakelog.store import open as open_store

EXPECTED = json.loads(TOLD.read_text())
GOLDEN = sorted((*FOLDER.glob("sqlite-*.db"), *FOLDER.glob("postgres-*.sql")))
NEWEST = {"sqlite": on_sqlite.STEPS[-1].version, "postgres": on_postgres.STEPS[-1].version}
OLDEST_FIRST = sorted(GOLDEN, key=lambda path: path.stem.partition("-")[2])
in_processes = pytest.mark.parametrize("place", some(OLDEST_FIRST, quick=2), indirect=True, ids=lambda path: path.stem)
"""For what starts many processes: the oldest store of each engine, and all of them in `make test-all`."""
MODULES: dict[str, Any] = {"sqlite": on_sqlite, "postgres": on_postgres}


class Place:
    """A copy of a store of a golden version."""

    def __init__(self, kind: str, version: int, url: str, server: Server | None) -> None:
        self.kind, self.version, self.url, self.server = kind, version, url, server

    def open(self) -> Store:
        return open_store(self.url, create=False)

    def tables(self) -> list[str]:
        """The definition of the tables, however they were created."""
        if self.server is not None:
            query = (
                "select string_agg(t, ';' order by t) from (select table_name || '.' || column_name || ' ' || data_type"
                " || is_nullable as t from information_schema.columns where table_name like 'wl_%'"
                " union all select indexdef from pg_indexes where tablename like 'wl_%') x"
            )
            return self.server.ask_in(self.url, query).split(";")
        db = apsw.Connection(self.url)
        rows = [str(sql) for (sql,) in db.execute("select sql from sqlite_schema where sql is not null").fetchall()]
        db.close()
        return sorted(re.sub(r"\s+|if not exists ", "", row.replace("if not exists ", "")) for row in rows)

    def needs(self) -> int:
        if self.server is not None:
            return int(self.server.ask_in(self.url, "select max(version) from wl_version"))
        db = apsw.Connection(self.url)
        found = int(db.pragma("user_version"))
        db.close()
        return found


@pytest.fixture(params=GOLDEN, ids=lambda path: path.stem)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    path: Path = request.param
    kind, _, version = path.stem.partition("-")
    if kind == "sqlite":
        yield Place(kind, int(version), str(shutil.copy(path, tmp_path / "log.db")), None)
        return
    server: Server = request.getfixturevalue("postgres")
    with server.database() as url:
        server.load(url, path)
        yield Place(kind, int(version), url, server)


def migrates(store: Store) -> Migrations:
    found = store.engine.abilities.migrations
    assert found is not None
    return found


def test_there_is_a_golden_store_of_every_version_but_the_newest() -> None:
    for kind, newest in NEWEST.items():
        versions = {int(path.stem.partition("-")[2]) for path in GOLDEN if path.stem.startswith(kind)}
        assert versions >= set(range(1, newest)), f"{kind}: python -m tests.golden.make_stores"


def test_an_older_store_is_used_as_it_is_and_tells_what_waits(place: Place) -> None:
    with place.open() as store:
        engine = migrates(store)
        assert engine.version() == place.version
        assert [s.version for s in engine.waiting()] == list(range(place.version + 1, NEWEST[place.kind] + 1))
        assert told_by(store) == EXPECTED
        store.resume("plain").fact("new", "written by a newer wakelog")
        store.session("another")
        assert all(store.resume(h.session).verify().ok for h in store.sessions())
        if place.version < 2:
            assert store.engine.mark("scrub") is None  # type: ignore[attr-defined]
            with pytest.raises(UnsupportedError) as caught:
                store.engine.set_mark("scrub", "x")  # type: ignore[attr-defined]
            assert (caught.value.kind, caught.value.hint) == ("migration-waits", "wakelog store migrate")


def test_a_migrated_store_tells_the_same_and_has_the_tables_of_a_new_one(
    place: Place, tmp_path: Path, postgres: Server
) -> None:
    needed = place.needs()
    with place.open() as store:
        steps = list(migrates(store).migrate())
        assert [s.version for s in steps] == list(range(place.version + 1, NEWEST[place.kind] + 1))
        assert migrates(store).version() == NEWEST[place.kind]
        assert list(migrates(store).migrate()) == [], "forward, once"
        assert told_by(store) == EXPECTED
        store.engine.set_mark("scrub", "here")  # type: ignore[attr-defined]
        assert store.engine.mark("scrub") == "here"  # type: ignore[attr-defined]
    assert place.needs() == needed, "readers and writers of the version before are not disturbed"
    if place.kind == "sqlite":
        SqliteEngine(tmp_path / "new.db").close()
        assert place.tables() == Place("sqlite", 0, str(tmp_path / "new.db"), None).tables()
        return
    with postgres.database() as url:
        PostgresEngine(url).close()
        assert place.tables() == Place("postgres", 0, url, postgres).tables()


def test_whoever_has_it_open_goes_on_while_it_is_migrated(place: Place) -> None:
    done = threading.Event()
    trouble: list[BaseException] = []
    count = 0
    begun = threading.Event()

    def write(store: Store) -> None:
        nonlocal count
        try:
            session = store.resume("plain")
            while not done.is_set():
                session.append(ev.NoteAdded(text=f"n{count}"))
                count += 1
                begun.set()
        except BaseException as exc:
            trouble.append(exc)
            begun.set()

    with place.open() as older, place.open() as newer:
        writer = threading.Thread(target=write, args=(older,))
        writer.start()
        assert begun.wait(180)
        list(migrates(newer).migrate())
        begun.clear()
        assert begun.wait(180)
        done.set()
        writer.join(180)
        assert trouble == []
        assert newer.resume("plain").head.seq == EXPECTED[newer.resume("plain").id]["seq"] + count
        assert newer.resume("plain").verify().ok


def child(place: Place, number: int) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.engines.migrating_child", place.url, str(number)],
        cwd=Path(__file__).parents[2],
        input="\n",
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@in_processes
def test_killed_before_any_statement_it_goes_on_when_run_again(place: Place) -> None:
    number = 1
    while (done := child(place, number)).returncode == -signal.SIGKILL:
        with place.open() as store:
            assert told_by(store) == EXPECTED
        number += 1
    assert done.returncode == 0, done.stderr
    assert number >= 5, "it was killed before each of several statements"
    with place.open() as store:
        assert migrates(store).version() == 99
        assert told_by(store) == EXPECTED
        assert migrates(store).waiting() == (), "steps that this version does not know are no trouble"
    tables = " ".join(place.tables())
    assert "wl_extra_a" in tables
    assert "wl_more" in tables


@in_processes
def test_several_that_migrate_at_once_do_it_once(place: Place) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.engines.migrating_child", place.url, "0"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        _, problem = process.communicate(timeout=180)
        assert process.returncode == 0, problem
    with place.open() as store:
        assert migrates(store).version() == 99
        assert told_by(store) == EXPECTED


def test_a_step_that_breaks_older_readers_makes_them_refuse(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.open() as store:
        extra = MigrationStep(
            99, "for the test", ("create table if not exists wl_other (a text primary key)",), breaks=True
        )
        with monkeypatch.context() as patched:
            patched.setattr(MODULES[place.kind], "STEPS", (*MODULES[place.kind].STEPS, extra))
            assert [s.version for s in migrates(store).migrate()][-1] == 99
    with pytest.raises(UnsupportedError) as caught:
        place.open()
    assert caught.value.kind == "store-newer"
    assert caught.value.hint == "upgrade wakelog"


def test_an_index_that_was_left_unfinished_is_made_anew(postgres: Server) -> None:
    with postgres.database() as url:
        PostgresEngine(url).close()
        postgres.sql_in(url, "create table wl_extra (a text not null primary key)")
        postgres.sql_in(url, "create index wl_extra_a on wl_extra (a)")
        postgres.sql_in(url, "update pg_index set indisvalid = false where indexrelid = 'wl_extra_a'::regclass")
        place = Place("postgres", 2, url, postgres)
        assert child(place, 0).returncode == 0
        assert postgres.ask_in(url, "select indisvalid from pg_index where indexrelid = 'wl_extra_a'::regclass") == "t"
