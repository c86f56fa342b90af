"""`store` and `doctor`."""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from wakelog.store import Store


def test_info_adds_up(move: Cli, store: Store) -> None:
    data = move("store", "info", "--json").data
    heads = list(store.sessions())
    assert data["sessions"] == len(heads) == sum(data["by_status"].values())
    assert data["events"] == sum(k["events"] for k in data["by_kind"])
    assert data["files"]["log"] == Path("demo/log.db").stat().st_size
    assert (data["durability"], data["is_sampled"], data["unreadable"]) == ("synced", False, 1)
    assert data["retention"] == "everything is kept for ever"


def test_info_of_a_big_store_is_an_estimate(move: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakelog.store.info.SAMPLE", 200)
    data = move("store", "info", "--json").data
    assert data["is_sampled"]
    estimated = sum(k["events"] for k in data["by_kind"])
    assert data["events"] / 2 < estimated < data["events"] * 2
    assert not move("store", "info", "--full", "--json").data["is_sampled"]


def test_check_names_the_altered_event(move: Cli) -> None:
    result = move("store", "check", "--json")
    assert result.code == 4
    assert [(f["name"], f["seq"]) for f in result.data["faults"]] == [("tampered", 13)]
    assert result.data["file"] == []


def test_check_of_a_damaged_file(move: Cli) -> None:
    path = Path("demo/log.db")
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 4] = os.urandom(4096)
    path.write_bytes(content)
    assert move("store", "check").code in (3, 4)


def test_no_store_is_exit_3_with_a_way_out(move: Cli) -> None:
    result = move("store", "info", "--store", "nowhere", "--json")
    assert (result.code, result.error["kind"]) == (3, "store-not-found")
    assert "demo" in result.error["hint"]
    assert move("store", "path", "--store", "nowhere").out == "nowhere\n"


def test_doctor_of_a_sound_store(move: Cli) -> None:
    result = move("doctor", "--json")
    assert result.code == 0
    levels = {c["what"]: c["level"] for c in result.data}
    assert {"python", "sqlite", "settings", "store", "writable", "disk", "permissions", "index", "leases"} <= set(
        levels
    )
    assert levels["leases"] == "warn", "two of the fleet are stuck"
    assert all(c["fix"] for c in result.data if c["level"] != "ok")


def test_doctor_names_what_is_wrong(move: Cli) -> None:
    Path("wakelog.toml").write_text("[store]\npaht = 1\n")
    Path("demo").chmod(0o755)
    Path("demo/index.db").write_bytes(b"not a database" * 100)
    result = move("doctor", "--json")
    assert result.code == 1
    found = {c["what"]: c for c in result.data}
    assert found["settings"]["level"] == "fail"
    assert "store.path" in found["settings"]["fix"]
    assert (found["permissions"]["level"], found["index"]["level"]) == ("warn", "warn")


def test_doctor_without_a_store(move: Cli) -> None:
    result = move("doctor", "--store", "nowhere", "--json")
    assert result.code == 0
    assert {c["what"]: c["level"] for c in result.data}["store"] == "warn"
    assert not Path("nowhere").exists()


def test_doctor_of_something_that_is_no_store(move: Cli) -> None:
    Path("odd.db").write_bytes(b"SQLite format 3\x00" + bytes(4080))
    assert move("doctor", "--store", "odd.db").code == 1
