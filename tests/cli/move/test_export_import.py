"""Files: whole or not there, and taken in whole or not at all."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog.store import Store

DIES = """
import os, signal, sys
from wakelog.cli.app import run
from wakelog.session import Session

def half(log, out, **how):
    out.write(b"half a bundle")
    out.flush()
    os.kill(os.getpid(), signal.SIGKILL)

Session.export_bundle = half
run(sys.argv[1:])
"""


def _heads(folder: Path) -> dict[str, bytes]:
    with wakelog.open(folder) as store:
        return {h.name: h.hash for h in store.sessions()}


@pytest.mark.parametrize("flags", [(), ("--gzip",)])
def test_round_trip_of_a_fork(move: Cli, flags: tuple[str, ...]) -> None:
    assert move("export", "try-refresh", "-o", "t", *flags).code == 0
    assert Path("t").read_bytes()[:2] == (b"\x1f\x8b" if flags else b'{"')
    result = move("import", "t", "--store", "elsewhere", "--json")
    assert result.code == 0
    assert result.data[0]["name"] == "try-refresh"
    assert _heads(Path("elsewhere"))["try-refresh"] == _heads(Path("demo"))["try-refresh"]
    again = move("import", "t", "--store", "elsewhere", "--json").data
    assert again[0]["new_events"] == 0


def test_export_killed_in_the_middle_leaves_no_file(folder: Path) -> None:
    command = [sys.executable, "-c", DIES, "export", "crash", "-o", "out"]
    done = subprocess.run(command, capture_output=True, timeout=180)
    assert done.returncode == -signal.SIGKILL
    assert not Path("out").exists()


def test_export_killed_in_the_middle_leaves_the_old_file(folder: Path) -> None:
    Path("out").write_text("old")
    command = [sys.executable, "-c", DIES, "export", "crash", "-o", "out", "--force"]
    subprocess.run(command, capture_output=True, timeout=180)
    assert Path("out").read_text() == "old"


def test_failing_export_leaves_nothing_at_all(move: Cli) -> None:
    assert move("export", "tampered", "--format", "ndjson", "-o", "out").code == 4
    assert [p for p in Path().iterdir() if "out" in p.name] == []


def test_existing_file_is_kept_unless_forced(move: Cli) -> None:
    Path("out").write_text("mine")
    assert move("export", "crash", "-o", "out").code == 6
    assert Path("out").read_text() == "mine"
    assert move("export", "crash", "-o", "out", "--force").code == 0
    assert Path("out").read_text() != "mine"


def test_ndjson_has_one_decoded_event_a_line(move: Cli, store: Store) -> None:
    records = move("export", "injection", "--ndjson").records
    assert [r["seq"] for r in records] == list(range(1, store.resume("injection").head.seq + 1))
    assert {r["schema"] for r in records} == {"wakelog.event/1"}
    page = next(r for r in records if r["kind"] == "message.added" and r["trust"] == "untrusted")
    assert "\u200b" in page["body"]["content"]


def test_json_is_one_document(move: Cli) -> None:
    assert move("export", "injection@2", "--format", "json", "-o", "out.json.gz", "--gzip").code == 0
    document = json.loads(gzip.decompress(Path("out.json.gz").read_bytes()))
    assert document["schema"] == "wakelog.export/1"
    assert {e["turn"] for e in document["events"]} == {2}


def test_markdown_quotes_what_was_recorded(move: Cli, store: Store) -> None:
    session = store.session("md")
    with session.turn("# not a title\n```\nnot a fence <script>") as _:
        session.message("assistant", "\x1b[31mred\u202e" + "x" * 9000)
    out = move("export", "md", "--format", "md").out
    assert "\n# not" not in out
    assert "<script>" not in out.replace("\\<script\\>", "")
    assert "\x1b" not in out
    assert "more characters" in out


def test_dry_run_takes_nothing_in_and_makes_no_store(move: Cli) -> None:
    move("export", "crash", "-o", "c")
    result = move("import", "c", "--dry-run", "--store", "elsewhere")
    assert result.code == 0
    assert not Path("elsewhere").exists()
    assert move("import", "c", "--dry-run", "--json").data[0]["new_events"] == 0


def test_dry_run_sees_a_session_that_went_another_way(move: Cli, store: Store) -> None:
    move("export", "crash", "-o", "c")
    move("import", "c", "--store", "elsewhere")
    with wakelog.open("elsewhere") as other:
        other.resume("crash").fact("there", 1)
    store.resume("crash").fact("here", 1)
    move("export", "crash", "-o", "c", "--force")
    for flags in (("--dry-run",), ()):
        assert move("import", "c", "--store", "elsewhere", *flags).code == 5


def test_one_bad_file_among_several_is_exit_7(move: Cli) -> None:
    move("export", "crash", "-o", "good")
    Path("bad").write_text("not a bundle")
    result = move("import", "bad", "good", "missing", "--store", "elsewhere", "--json")
    assert result.code == 7
    assert [t["ok"] for t in result.data] == [False, True, False]
    assert list(_heads(Path("elsewhere"))) == ["crash"]


def test_altered_bundle_is_refused(move: Cli) -> None:
    move("export", "crash", "-o", "c")
    Path("c").write_text(Path("c").read_text().replace("4711", "4712", 1))
    assert move("import", "c", "--store", "elsewhere").code in (2, 4)
    assert _heads(Path("elsewhere")) == {}


def test_taken_name_is_told(move: Cli) -> None:
    move("export", "crash", "-o", "c")
    with wakelog.open("elsewhere") as other:
        other.session("crash")
    result = move("import", "c", "--store", "elsewhere", "--json")
    assert result.code == 0
    assert "taken" in result.data[0]["warning"]


def test_broken_pipe_is_not_an_error(folder: Path) -> None:
    command = f"{sys.executable} -m wakelog export fix-bug --format ndjson | head -c 10"
    done = subprocess.run(command, shell=True, capture_output=True, timeout=180, env={**os.environ})
    assert b"Traceback" not in done.stderr
