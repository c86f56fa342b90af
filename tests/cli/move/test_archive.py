"""`wakelog archive --to`, `query --archive` and `store restore` as a person runs them."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog.cli.demo import build


@pytest.fixture
def store(tmp_path: Path) -> str:
    with wakelog.open(tmp_path / "store") as opened:
        build("fix-bug", opened.engine, at_us=1_794_733_200_000_000)
    return str(tmp_path / "store")


def test_a_store_is_archived_asked_checked_and_brought_back(cli: Cli, store: str, tmp_path: Path) -> None:
    place, back = str(tmp_path / "archive"), str(tmp_path / "back")
    made = cli("archive", "--to", place, "--store", store, "--json")
    assert (made.code, made.data["sessions"]) == (0, 2), made.err
    again = cli("archive", "fix-bug", "--to", place, "--store", store, "--json")
    assert (again.data["sessions"], again.data["unchanged"]) == (0, 1)
    sql = "select count(*) as n, min(day) as first from events"
    asked = cli("query", "--archive", place, sql, "--store", store, "--json")
    assert (asked.data["columns"], asked.data["rows"]) == (["n", "first"], [[140, "2026-11-15"]])
    checked = cli("archive", "--to", place, "--check", "--store", store)
    assert (checked.code, "2 of 2 sessions" in checked.out) == (0, True)
    assert cli("store", "restore", place, "--store", back).code == 0
    with wakelog.open(store) as one, wakelog.open(back) as other:
        assert [(h.session, h.seq, h.hash) for h in one.sessions()] == [
            (h.session, h.seq, h.hash) for h in other.sessions()
        ]


def test_a_command_on_an_archive_writes_nothing_else_to_stderr(store: str, tmp_path: Path) -> None:
    """DuckDB reports what is not collected when its process ends."""
    run = [sys.executable, "-m", "wakelog", "archive", "--to", str(tmp_path / "archive"), "--store", store]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_damage_is_told_and_is_the_exit_code(cli: Cli, store: str, tmp_path: Path) -> None:
    place = tmp_path / "archive"
    cli("archive", "--to", str(place), "--store", store)
    next(place.rglob("payloads/**/*.parquet")).write_bytes(b"nonsense")
    for command in (["archive", "--to", str(place), "--check"], ["store", "restore", str(place)]):
        done = cli(*command, "--store", str(tmp_path / "other") if command[0] == "store" else store)
        assert done.code == 4
        assert "is not what was written" in done.err
        assert "wakelog archive --to" in done.err


def test_a_restore_that_had_to_use_bundles_tells_of_the_damage(cli: Cli, store: str, tmp_path: Path) -> None:
    place = tmp_path / "archive"
    cli("archive", "--to", str(place), "--bundles", "--store", store)
    next(place.rglob("payloads/**/*.parquet")).write_bytes(b"nonsense")
    done = cli("store", "restore", str(place), "--store", str(tmp_path / "other"))
    assert done.code == 0
    assert "is not what was written: what it held was taken from bundles" in done.out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("archive", "--check"), "name it with --to"),
        (("archive", "--to", "x", "-m", "why"), "no session changes"),
        (("archive", "no-such", "--to", "x"), "no-such"),
        (("archive", "--to", "nonsense://x"), "cannot be opened as a blob store"),
        (("query", "--archive", "nowhere", "select 1"), "no folder nowhere"),
        (("query", "--archive", "x", "--views"), "--views lists those of the store"),
    ],
)
def test_bad_calls_are_told_what_is_wrong(cli: Cli, store: str, args: tuple[str, ...], said: str) -> None:
    done = cli(*args, "--store", store)
    assert done.code != 0
    assert said in done.err


def test_an_archive_goes_on_until_it_is_stopped_and_fills_another_store(cli: Cli, store: str, tmp_path: Path) -> None:
    place, back = tmp_path / "archive", str(tmp_path / "back.db")
    command = [sys.executable, "-m", "wakelog", "archive", "--to", str(place), "--bundles", "--every", "1h"]
    with subprocess.Popen([*command, "--store", store, "--ndjson"], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        first = json.loads(child.stdout.readline())
        child.send_signal(signal.SIGINT)
        assert child.wait(120) == 130
    assert (first["schema"], first["sessions"], first["problems"]) == ("wakelog.store-archive/1", 2, {})
    assert list(place.rglob("*.wakelog.gz"))
    for path in place.rglob("events/**/*.parquet"):
        path.unlink()
    done = cli("store", "restore", "--from", str(place), back, "--store", str(tmp_path / "unused"), "--json")
    assert (done.code, done.data["sessions"]) == (0, 2), done.err
    assert not (tmp_path / "unused").exists()
    with wakelog.open(store) as one, wakelog.open(back) as other:
        assert [(h.session, h.hash) for h in one.sessions()] == [(h.session, h.hash) for h in other.sessions()]


def test_retention_asks_the_archive(cli: Cli, tmp_path: Path) -> None:
    place, store = str(tmp_path / "archive"), str(tmp_path / "store")
    with wakelog.open(store) as opened:
        opened.session("s").life.end()
    rules = ("gc", "--max-size", "1B", "--archived-in", place, "--store", store, "--json")
    assert cli(*rules).code != 0, "there is no archive"
    cli("archive", "--to", place, "--store", store)
    assert [each["action"] for each in cli(*rules).data["planned"]] == ["prune"]
    assert cli("note", "s", "-m", "late", "--store", store).code == 0
    [left] = cli(*rules, "--yes").data["planned"]
    assert (left["action"], left["reason"]) == ("skip", "the archive does not have all of it yet")
    cli("archive", "--to", place, "--store", store)
    assert [each["done"] for each in cli(*rules, "--yes").data["applied"]] == [True]
