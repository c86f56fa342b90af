"""Info, check and scrub of a store are the same on every engine, also over HTTP."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import wakelog
from tests.engines.postgres_server import Server
from wakelog.cli.demo import build
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import UnsupportedError
from wakelog.http.server import serving
from wakelog.http.state import Settings
from wakelog.maintenance.byte_sizes import session_bytes
from wakelog.maintenance.check import check_store, require_migrations
from wakelog.maintenance.copy import copy_sessions
from wakelog.maintenance.holds import place_hold
from wakelog.maintenance.info import info
from wakelog.maintenance.scrub import scrub
from wakelog.model.ids import SessionId
from wakelog.store import Store

DAY_US = 1_794_733_200_000_000


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Store]:
    """A store in a file, with forks, a hold, and a session that somebody tampered with."""
    with Store(SqliteEngine(tmp_path / "here.db")) as store:
        for name in ("fix-bug", "crash", "tampered"):
            build(name, store.engine, at_us=DAY_US)
        place_hold(store.resume("crash"), "asked for")
        yield store


@pytest.fixture(params=["postgres", "http", "http-postgres", "blobs"])
def there(request: pytest.FixtureRequest, here: Store, tmp_path: Path) -> Iterator[Store]:
    """The same sessions on another engine."""
    shared = f"?namespace={tmp_path.name}"
    if request.param == "blobs":
        with wakelog.open(tmp_path / "there", blobs=str(tmp_path / "blobs")) as store:
            copy_sessions(here.engine, store.engine)
            yield store
        return
    url = str(tmp_path / "served")
    if "postgres" in request.param:
        url = request.getfixturevalue("postgres").url + shared
    with wakelog.open(url) as store:
        copy_sessions(here.engine, store.engine)
        if request.param == "postgres":
            yield store
            return
    with serving(Settings(url=url, rate=0)) as running, wakelog.open(running.url, key=running.key) as store:
        yield store


def test_the_figures_are_those_of_the_embedded_store(here: Store, there: Store) -> None:
    mine, theirs = msgspec.to_builtins(info(here)), msgspec.to_builtins(info(there))
    assert mine["sessions"] == 4
    assert (mine["forks"], mine["held"], mine["unreadable"]) == (1, 1, 1)
    for name in (
        *("sessions", "by_status", "forks", "held", "unreadable", "events", "by_kind", "is_sampled", "oldest"),
        *("newest", "retention", "redacts", "durability"),
    ):
        assert theirs[name] == mine[name], name


def test_the_check_passes_and_the_scrub_finds_the_damage(there: Store) -> None:
    checks = list(check_store(there))
    assert [c for c in checks if c.level != "ok"] == []
    assert {"opens", "heads", "newest", "scrub"} <= {c.what for c in checks}
    assert "4 sessions" in next(c.found for c in checks if c.what == "heads")
    done = scrub(there)
    assert [there.engine.head(SessionId(f.session)).name for f in done.findings if f.is_damage] == ["tampered"]
    assert done.is_whole


def test_what_a_server_cannot_keep_for_others_is_told(here: Store, tmp_path: Path) -> None:
    with serving(Settings(url=str(tmp_path), rate=0)) as running, wakelog.open(running.url, key=running.key) as store:
        assert scrub(store, for_s=60).keeps_mark
        with pytest.raises(UnsupportedError) as caught:
            require_migrations(store)
        assert caught.value.kind == "no-migrations"


def test_a_server_tells_what_its_tables_take_and_what_each_session_does(
    here: Store, postgres: Server, tmp_path: Path
) -> None:
    with wakelog.open(f"{postgres.url}?namespace={tmp_path.name}") as store:
        copy_sessions(here.engine, store.engine)
        files = info(store).files
        assert files["wl_commit"] > 100_000
        assert {"wl_session", "wl_mark", "wl_name"} <= set(files)
        sizes = session_bytes(store.engine)
        embedded = session_bytes(here.engine)
        assert set(sizes) == set(embedded)
        assert all(0.5 < sizes[each] / embedded[each] < 2 for each in sizes)


def test_info_asks_little_of_a_store_with_many_sessions(
    here: Store, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wakelog.open(f"{postgres.url}?namespace={tmp_path.name}") as store:
        for number in range(60):
            store.session(f"s{number}")
        monkeypatch.setattr("wakelog.maintenance.info.SAMPLE_SESSIONS", 5)
        monkeypatch.setattr("wakelog.maintenance.info.OLDEST_CANDIDATES", 2)
        asked = 0
        fetch = store.engine._fetch  # type: ignore[attr-defined]

        def counting(*args: object) -> object:
            nonlocal asked
            asked += 1
            return fetch(*args)

        monkeypatch.setattr(store.engine, "_fetch", counting)
        found = info(store)
        assert (found.sessions, found.events, found.held) == (60, 60, None)
        assert [(k.kind, k.events) for k in found.by_kind] == [("session.opened", 60)]
        assert asked < 40


def test_the_commands_work_on_a_server(here: Store, postgres: Server, tmp_path: Path) -> None:
    url = f"{postgres.url}?namespace={tmp_path.name}"
    with wakelog.open(url) as store:
        copy_sessions(here.engine, store.engine)
    for words, code in (
        (["check"], 0),
        (["scrub", "--for", "10m"], 4),
        (["check"], 4),
        (["migrate", "--dry-run"], 0),
        (["info"], 0),
        (["backup", (tmp_path / "archive").as_uri()], 4),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "wakelog", "--store", url, "store", *words, "--json"],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        assert json.loads(done.stdout)["schema"].startswith("wakelog.store-")
