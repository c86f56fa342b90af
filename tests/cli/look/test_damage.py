"""A store in which one bit was flipped: what can be read is shown, what cannot is named, and the rest goes on."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.cli.conftest import Cli
from wakelog.engines.sqlite.rows import checksum
from wakelog.store import open as open_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    with open_store(path) as opened:
        for name in ("first", "second", "third"):
            session = opened.session(name)
            for number in range(6):
                with session.turn(f"question {number}"):
                    session.fact(f"key {number}", f"value {number} of {name}")
    return path


def flip(path: Path, column: str, name: str, turn: int) -> tuple[int, int]:
    """Flips a bit in one column of the commit with which a turn's fact was recorded; the events that went with it."""
    db = apsw.Connection(str(path))
    where = "session = (select no from session where id = (select session from name where name = ?))"
    query = f"select id, {column}, first, last from log where {where} and turn = ? and kinds like '%fact%'"
    row: Any = db.execute(query, (name, turn)).fetchall()[0]
    value = row[1]
    changed = bytes([*value[:-3], value[-3] ^ 4, *value[-2:]]) if isinstance(value, bytes) else value ^ 4
    db.execute(f"update log set {column} = ? where id = ?", (changed, row[0]))
    db.close()
    return row[2], row[3]


@pytest.mark.parametrize("column", ["records", "at"])
def test_verify_names_session_and_event_and_goes_on(cli: Cli, store: Path, column: str) -> None:
    first, last = flip(store, column, "second", 3)
    report = cli("verify", "second", "--store", str(store), "--json")
    assert report.code == 4
    (found,) = report.data
    assert found["integrity"][0]["seq"] == first
    assert found["session"] in found["integrity"][0]["what"]
    assert len(found["integrity"]) == 1, "what follows is whole"
    with open_store(store) as opened:
        assert found["events"] == opened.engine.head(found["session"]).seq - (last - first + 1)
    everything = cli("verify", "--all", "--store", str(store), "--json")
    assert everything.code == 4
    assert {r["name"]: r["ok"] for r in everything.data} == {"first": True, "second": False, "third": True}
    assert cli("verify", "--all", "--store", str(store)).out.splitlines()[-1].endswith(" 1 of 3 failed: second")


def test_verify_ends_with_a_sum_and_shows_no_control_characters(cli: Cli, store: Path) -> None:
    said = cli("verify", "--all", "--store", str(store)).out
    assert said.splitlines()[-1].endswith(" 3 sessions: every check holds")
    name = "second\x1b]0;owned\x07"
    db = apsw.Connection(str(store))
    session: Any = db.execute("select session from name where name = 'second'").get
    db.execute("update name set name = ?, checksum = ? where session = ?", (name, checksum(name, session), session))
    db.close()
    said = cli("verify", "--all", "--store", str(store), "--color", "always").out
    assert "1 of 3 failed: second" in said
    assert "\x1b]" not in said
    assert "\x07" not in said


@pytest.mark.parametrize("column", ["records", "at"])
def test_log_shows_what_is_left_and_names_the_hole(cli: Cli, store: Path, column: str) -> None:
    first, last = flip(store, column, "second", 3)
    place = f"e{first}" if first == last else f"e{first}..e{last}"
    shown = cli("log", "second", "--store", str(store))
    assert shown.code == 4
    assert "value 4 of second" in shown.out
    assert "value 1 of second" in shown.out
    assert any(line.startswith(place) and "cannot be read" in line for line in shown.lines)
    told = cli("log", "second", "--store", str(store), "--json")
    assert [(h["first"], h["last"]) for h in told.data["holes"]] == [(first, last)]
    assert first not in {e["seq"] for e in told.data["events"]}


def test_show_reads_events_and_turns_beside_the_hole(cli: Cli, store: Path) -> None:
    first, _ = flip(store, "records", "second", 3)
    assert "value 4 of second" in cli("show", "second@5", "--store", str(store)).out
    assert "question 2" in cli("show", "-s", "second", f"e{first - 1}", "--store", str(store)).out
    inside = cli("show", "-s", "second", f"e{first}", "--store", str(store))
    assert inside.code == 4
    assert f"e{first}" in inside.out
    assert "cannot be read" in inside.out
    around = cli("show", "second@3", "--store", str(store))
    assert around.code == 4
    assert "question 2" in around.out


@pytest.mark.parametrize("command", [["flag", "ls"], ["watch", "--once"]])
def test_flags_of_other_sessions_are_listed_beside_a_damaged_one(cli: Cli, store: Path, command: list[str]) -> None:
    with open_store(store) as opened:
        for name in ("second", "third"):
            opened.resume(name).monitors.flag("odd", f"odd in {name}")
        list(opened.index.sessions(limit=1))
    flip(store, "records", "second", 3)
    listed = cli(*command, "--store", str(store))
    assert "odd in third" in listed.out
    assert "second" in listed.err
    assert "cannot be read" in listed.err


@pytest.mark.parametrize("form", ["ndjson", "json", "md"])
def test_export_writes_what_is_left_and_names_the_hole(cli: Cli, store: Path, form: str) -> None:
    flip(store, "records", "second", 3)
    written = cli("export", "second", "--format", form, "--store", str(store))
    assert written.code == 4
    assert "value 4 of second" in written.out
    assert "is damaged" in written.out
    assert "cannot be read" in written.err


def test_a_bundle_is_not_made_of_half_a_session(cli: Cli, store: Path, tmp_path: Path) -> None:
    first, last = flip(store, "records", "second", 3)
    target = tmp_path / "out.wakelog"
    refused = cli("export", "second", "-o", str(target), "--store", str(store))
    assert refused.code == 4
    assert f"event{f's {first} to {last}' if last > first else f' {first}'} of session" in refused.err
    assert "--format ndjson" in refused.err
    assert not target.exists()


@pytest.mark.parametrize("column", ["records", "at", "hash", "last"])
def test_a_damaged_newest_commit_leaves_the_rest_readable(cli: Cli, store: Path, column: str) -> None:
    db = apsw.Connection(str(store))
    where = "session = (select no from session where id = (select session from name where name = 'second'))"
    newest = f"(select max(id) from log where {where})"
    if column in ("records", "hash"):
        db.execute(f"update log set {column} = zeroblob(40) where id = {newest}")
    else:
        db.execute(f"update log set {column} = {column} + 64 where id = {newest}")
    db.close()
    shown = cli("log", "second", "--store", str(store))
    assert shown.code == 4
    assert "value 4 of second" in shown.out
    assert cli("export", "second", "--format", "ndjson", "--store", str(store)).code == 4
    assert cli("verify", "second", "--store", str(store)).code == 4
    everything = cli("verify", "--all", "--store", str(store), "--json")
    assert {r["name"]: r["ok"] for r in everything.data if r["ok"]} == {"first": True, "third": True}
    checked = cli("doctor", "--store", str(store), "--json")
    assert any(c["what"] == "leases" for c in checked.data), "it went on to the end"
    assert cli("store", "check", "--store", str(store)).code != 0
    scrubbed = cli("store", "scrub", "--store", str(store), "--json")
    assert (scrubbed.code, scrubbed.data["sessions"]) == (4, 3)
    assert cli("note", "-s", "second", "-m", "on top of damage", "--store", str(store)).code == 4


@pytest.mark.parametrize("index", ["log_place", "log_twin"])
def test_a_hidden_newest_commit_is_noticed_before_anything_is_appended(cli: Cli, store: Path, index: str) -> None:
    with open_store(store) as opened:
        before = opened.resume("second").head
    db = apsw.Connection(str(store))
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    number: Any = db.execute("select no from session where id = ?", (before.session,)).get
    page: Any = db.execute("select rootpage from sqlite_schema where name = ?", (index,)).get
    db.close()
    assert page
    assert number
    _hide_last_entry(store, page, number)
    for command in (("log", "second"), ("note", "-s", "second", "-m", "again")):
        assert cli(*command, "--store", str(store)).code == 4
    assert cli("verify", "--all", "--store", str(store)).code == 4
    with open_store(store) as opened, pytest.raises(Exception, match="newest commit"):
        opened.resume("second").note("again")


def _hide_last_entry(path: Path, page: int, number: int) -> None:
    """Changes one byte of an index page: in the cell with the session's largest key, the session's number."""
    data = bytearray(path.read_bytes())
    start = (page - 1) * 4096
    assert data[start] == 10, "a leaf of an index"
    cells = int.from_bytes(data[start + 3 : start + 5], "big")
    best = None
    for cell in range(cells):
        at = start + int.from_bytes(data[start + 8 + 2 * cell : start + 10 + 2 * cell], "big")
        head = data[at + 1]  # the header of the record, then its values: session, key, row
        types = data[at + 2 : at + 1 + head]
        value = at + 1 + head
        session = {8: 0, 9: 1}.get(types[0], data[value])
        key = value + (types[0] == 1)
        if session == number:
            best = (at, value, types[0], data[key])
    assert best is not None
    at, value, kind, _ = best
    if kind == 1:
        data[value] ^= 64
    else:
        data[at + 2] ^= 1  # 0 becomes 1, or 1 becomes 0
    path.write_bytes(data)


def test_a_damaged_list_does_not_take_the_sessions_with_it(cli: Cli, store: Path) -> None:
    db = apsw.Connection(str(store))
    db.execute("update session set checksum = checksum + 1 where no = 2")
    db.close()
    everything = cli("verify", "--all", "--store", str(store), "--json")
    assert everything.code == 4
    assert sorted(r["ok"] for r in everything.data) == [False, True, True]
    checked = cli("doctor", "--store", str(store), "--json")
    assert checked.code == 1
    assert any("damaged" in c["found"] and c["level"] == "fail" for c in checked.data)


@pytest.mark.parametrize("column", ["records", "at"])
def test_doctor_reads_the_newest_sessions_and_names_what_is_damaged(cli: Cli, store: Path, column: str) -> None:
    sound = cli("doctor", "--store", str(store), "--json")
    assert [c["level"] for c in sound.data if c["what"] == "integrity"] == ["ok"]
    first, _ = flip(store, column, "second", 3)
    checked = cli("doctor", "--store", str(store), "--json")
    (found,) = (c for c in checked.data if c["what"] == "integrity")
    assert (checked.code, found["level"]) == (1, "fail")
    assert f"e{first}" in found["found"]
    assert "Everything is in order" not in cli("doctor", "--store", str(store)).out


@pytest.mark.parametrize(
    "command", [["search", "value"], ["query", "select count(*) from events"], ["cost"], ["rollup", "-A"], ["pending"]]
)
def test_answers_over_all_sessions_say_when_one_could_not_be_read(cli: Cli, store: Path, command: list[str]) -> None:
    store.with_name("sound.db").write_bytes(store.read_bytes())
    flip(store, "records", "second", 3)
    told = "1 session could not be read to the end, so this may be incomplete; wakelog ls says which"
    answer = cli(*command, "--store", str(store), "--json")
    assert answer.json["warnings"] == [told]
    assert told in cli(*command, "--store", str(store)).err
    assert cli(*command, "--store", str(store.with_name("sound.db")), "--json").json["warnings"] == []
