"""`store` and `doctor`."""

import contextlib
import os
import shutil
from pathlib import Path

import apsw
import pytest

from tests.cli.conftest import Cli
from wakelog.cli.context import hide_password
from wakelog.store import Store
from wakelog.store.index_place import index_path


def test_info_adds_up(move: Cli, store: Store) -> None:
    data = move("store", "info", "--json").data
    heads = list(store.sessions())
    assert data["sessions"] == len(heads) == sum(data["by_status"].values())
    assert data["events"] == sum(k["events"] for k in data["by_kind"])
    assert data["files"]["log"] == Path("demo/log.db").stat().st_size
    assert (data["durability"], data["is_sampled"], data["unreadable"]) == ("synced", False, 1)
    assert data["retention"] == "everything is kept"


def test_info_of_a_big_store_is_an_estimate(move: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakelog.maintenance.info.SAMPLE", 200)
    data = move("store", "info", "--json").data
    assert data["is_sampled"]
    estimated = sum(k["events"] for k in data["by_kind"])
    assert data["events"] / 2 < estimated < data["events"] * 2
    assert not move("store", "info", "--full", "--json").data["is_sampled"]


def test_info_of_many_sessions_looks_into_some(move: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = move("store", "info", "--json").data
    monkeypatch.setattr("wakelog.maintenance.info.SAMPLE_SESSIONS", 10)
    data = move("store", "info", "--json").data
    assert data["is_sampled"]
    assert (data["held"], data["unreadable"]) == (None, None)
    for name in ("sessions", "events", "by_status", "forks", "oldest", "newest"):
        assert data[name] == exact[name]
    assert "not counted" in move("store", "info").out


def test_check_is_quick_and_scrub_names_the_altered_event(move: Cli) -> None:
    result = move("store", "check", "--json")
    assert result.code == 0
    assert {c["what"] for c in result.data["checks"]} == {"opens", "version", "file", "heads", "newest", "scrub"}
    result = move("store", "scrub", "--json")
    assert result.code == 4
    assert [(f["name"], f["seq"], f["is_damage"]) for f in result.data["findings"]] == [("tampered", 13, True)]
    assert (result.data["ok"], result.data["is_whole"], result.data["sessions"]) == (False, True, 54)
    result = move("store", "check", "--json")
    assert result.code == 4, "the last scrub found damage"
    assert move("store", "info", "--json").data["scrubbed"]["damage"] == 1


def test_a_scrub_goes_on_where_it_stopped(move: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("wakelog.cli.commands.store_scrub.parse_interval", lambda text: 0)  # time is up at once
        first = move("store", "scrub", "--for", "10m", "--json").data
        assert (first["sessions"], first["is_whole"], first["is_resumed"]) == (1, False, False)
        assert "the next scrub continues there" in move("store", "scrub", "--for", "10m").out
    rest = move("store", "scrub", "--for", "10m", "--json").data
    assert (rest["sessions"], rest["is_whole"], rest["is_resumed"]) == (52, True, True)
    assert rest["of_pass"]["sessions"] == 54
    assert move("store", "scrub", "--for", "30s").code == 4, "damage was found, and there was time"
    assert move("store", "scrub", "--for", "soon").code == 2


def test_check_of_a_damaged_file(move: Cli) -> None:
    path = Path("demo/log.db")
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 4] = os.urandom(4096)
    path.write_bytes(content)
    assert move("store", "check").code in (3, 4)
    assert move("store", "scrub").code in (3, 4)


def test_check_of_a_head_that_is_not_the_end(move: Cli, store: Store) -> None:
    import apsw

    head = max(store.sessions(), key=lambda h: h.at)
    session, last = head.session, head.seq
    store.close()
    db = apsw.Connection("demo/log.db")
    where = "last = ? and session = (select no from session where id = ?)"
    db.execute(f"update log set records = x'00' where {where}", (last, session))
    db.close()
    result = move("store", "check", "--json")
    assert result.code == 4
    assert [c["what"] for c in result.data["checks"] if c["level"] == "fail"] == ["newest"]


def test_migrate_says_what_it_would_do_and_does_it_once(move: Cli) -> None:
    golden = Path(__file__).parents[2] / "golden/stores/sqlite-1.db"
    shutil.copy(golden, "old.db")
    assert "2 steps wait (wakelog store migrate)" in move("--store", "old.db", "store", "info").out
    checks = {c["what"]: c for c in move("--store", "old.db", "store", "check", "--json").data["checks"]}
    assert (checks["version"]["level"], checks["version"]["fix"]) == ("warn", "wakelog store migrate")
    assert {c["what"]: c["level"] for c in move("--store", "old.db", "doctor", "--json").data}["version"] == "warn"
    result = move("--store", "old.db", "store", "scrub", "--for", "10m", "--json")
    assert (result.code, result.error["kind"]) == (6, "migration-waits")
    assert "starts again" in move("--store", "old.db", "store", "scrub").out
    dry = move("--store", "old.db", "store", "migrate", "--dry-run", "--json").data
    assert (dry["before"], dry["after"], dry["dry_run"]) == (1, 1, True)
    assert [(s["version"], s["done"]) for s in dry["steps"]] == [(2, False), (3, False)]
    assert "create table" in move("--store", "old.db", "store", "migrate", "--dry-run").out
    done = move("--store", "old.db", "store", "migrate", "--json").data
    assert (done["before"], done["after"], [s["done"] for s in done["steps"]]) == (1, 3, [True, True])
    assert move("--store", "old.db", "store", "migrate", "--json").data["steps"] == []
    assert move("--store", "old.db", "store", "scrub", "--for", "10m").code == 0


def test_a_backup_goes_to_an_archive_and_comes_back(move: Cli) -> None:
    Path("archive").mkdir()
    url = Path("archive").absolute().as_uri()
    result = move("store", "backup", url, "--json")
    assert result.code == 4, "the tampered one is left out"
    assert (result.data["sessions"], len(result.data["problems"])) == (53, 1)
    again = move("store", "backup", url, "--json").data
    assert (again["sessions"], again["unchanged"]) == (0, 53)
    result = move("--store", "back", "store", "restore", url, "--json")
    assert (result.code, result.data["sessions"]) == (0, 53)
    assert move("--store", "back", "verify", "-A").code == 0
    assert move("--store", "back", "store", "restore", url, "--list", "lists/none.json").code == 3
    Path("empty").mkdir()
    for place in ("empty", "none"):
        assert move("--store", "nowhere", "store", "restore", Path(place).absolute().as_uri()).code == 3
    assert not Path("nowhere").exists()


def test_a_session_is_exported_to_a_place_once(move: Cli) -> None:
    Path("archive").mkdir()
    url = f"{Path('archive').absolute().as_uri()}/fix-bug.wakelog"
    result = move("export", "fix-bug", "-o", url, "--json")
    assert result.code == 0
    assert result.data["bytes"] == Path("archive/fix-bug.wakelog").stat().st_size
    refused = move("export", "fix-bug", "-o", url, "--json")
    assert (refused.code, refused.error["kind"]) == (6, "file-exists")
    assert move("export", "fix-bug", "-o", url, "--force").code == 2
    assert move("--store", "other", "import", url, "--json").data[0]["name"] == "fix-bug"
    assert move("--store", "other", "import", f"{url}x").code == 3


def test_passwords_are_not_shown(move: Cli) -> None:
    url = "postgresql://ada:hunter2@127.0.0.1:9/nothing?patience=0"
    for words in (["store", "path"], ["store", "info"], ["store", "path", "--json"]):
        result = move("--store", url, *words)
        assert "hunter2" not in result.out + result.err
    assert move("--store", url, "store", "path").out == "postgresql://ada:***@127.0.0.1:9/nothing?patience=0\n"


def test_no_store_is_exit_3_with_a_way_out(move: Cli) -> None:
    result = move("store", "info", "--store", "nowhere", "--json")
    assert (result.code, result.error["kind"]) == (3, "store-not-found")
    assert "demo" in result.error["hint"]
    assert move("store", "path", "--store", "nowhere").out == "nowhere\n"


def test_doctor_looks_at_everything_and_finds_the_altered_session(move: Cli) -> None:
    result = move("doctor", "--json")
    assert result.code == 1
    (failed,) = (c for c in result.data if c["level"] == "fail")
    assert failed["what"] == "integrity"
    assert failed["found"].startswith("tampered: first fault at e13: ")
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


def test_check_finds_a_row_that_somebody_forged_in_the_index(move: Cli, store: Store) -> None:
    """It has no hashes of its own: only the log can show that."""
    store.session("honest").decide("keep it", because="it is needed")
    assert move("search", "keep").code == 0
    assert {c["what"]: c["level"] for c in move("store", "check", "--json").data["checks"]}["index"] == "ok"
    path = index_path(store.engine)
    assert path is not None
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("update wl_decision set choice = 'drop it' where choice = 'keep it'")
    result = move("store", "check", "--json")
    assert result.code == 4
    [told] = [c for c in result.data["checks"] if c["what"] == "index"]
    assert told["level"] == "fail"
    assert "does not say what the log says (decisions)" in told["found"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("nats://h:4222,i:4222/s?patience=2", "nats://h:4222,i:4222/s?patience=2"),
        ("nats://ada:secret@h,i/s", "nats://ada:***@h,i/s"),
        ("nats://secret@h:4222/s", "nats://***@h:4222/s"),
        ("postgresql://ada@h/s", "postgresql://ada@h/s"),
        ("postgresql://ada:se@cret@h/s?x=a@b", "postgresql://ada:***@h/s?x=a@b"),
        ("postgresql://h/s?user=ada&password=secret&x=1", "postgresql://h/s?user=ada&password=***&x=1"),
        ("nats://h/s?index=postgresql://ada:secret@db/i&x=1", "nats://h/s?index=postgresql://ada:***@db/i&x=1"),
        ("nats://h/s?index=postgresql%3A%2F%2Fada%3Asecret%40db%2Fi", "nats://h/s?index=postgresql%3A%2F%2Fada%3A***%40db%2Fi"),
        ("nats://h/s?index=postgresql://db/i?user=ada%26password=secret&x=1", "nats://h/s?index=postgresql://db/i?user=ada%26password=***&x=1"),
    ],
)  # fmt: skip
def test_a_password_is_masked_wherever_a_url_has_it(url: str, shown: str) -> None:
    assert hide_password(url) == shown
