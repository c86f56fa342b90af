"""`wakelog audit` and `wakelog calls`, as a person uses them."""

import json
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog.cli.demo import build


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_terminal: None) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", str(tmp_path / "store"))
    with wakelog.open(tmp_path / "store") as store:
        build("injection", store.engine)
    return tmp_path


def test_a_report_goes_to_the_terminal_or_to_a_file(cli: Cli) -> None:
    shown = cli("audit", "injection")
    assert shown.code == 0
    assert shown.out.startswith("# Audit of injection\n")
    assert "send\\_email" in shown.out
    done = cli("audit", "injection", "--report", "html", "-o", "ev.html")
    assert done.out == "Wrote ev.html: 1 session, every check that could be made holds\n"
    assert Path("ev.html").read_text().startswith("<!doctype html>")
    again = cli("audit", "injection", "--report", "html", "-o", "ev.html")
    assert again.code == 6
    assert "already exists" in again.err
    assert cli("audit", "injection", "--report", "html", "-o", "ev.html", "--force").code == 0


def test_programs_get_the_same(cli: Cli) -> None:
    data = cli("audit", "injection", "--json").data
    assert data["ok"]
    assert data["sessions"][0]["influences"][0]["tool"] == "send_email"
    written = cli("audit", "injection", "--report", "json")
    assert json.loads(written.out)["sessions"][0]["influences"] == data["sessions"][0]["influences"]


def test_a_case_with_a_bundle_is_a_folder_of_evidence(cli: Cli) -> None:
    Path("case.toml").write_text('title = "Incident 42"\nsessions = ["injection"]\n')
    done = cli("audit", "--case", "case.toml", "--bundle", "evidence", "--report", "html")
    assert done.code == 0, done.err
    assert sorted(path.suffix for path in Path("evidence").iterdir()) == [".html", ".json", ".wakelog"]
    assert "Incident 42" in Path("evidence/report.html").read_text()
    assert cli("audit", "--case", "case.toml", "--bundle", "evidence").code == 6


def test_anchors_are_part_of_the_report(cli: Cli) -> None:
    signer = cli("anchor-key", "audit.example", "--out", "key").out.strip()
    cli("anchor", "--key", "key", "--to", "anchors", "--out", "kept")
    told = cli("audit", "injection", "--against", "anchors", "--signer", signer, "--kept", "kept")
    assert told.code == 0
    assert "Anchors hold up to e" in told.out
    other = cli("anchor-key", "audit.example", "--out", "other").out.strip()
    assert cli("audit", "injection", "--against", "anchors", "--signer", other).code == 4


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ([], 2),
        (["injection", "--case", "case.toml"], 2),
        (["injection", "--against", "anchors"], 2),
        (["injection", "--signer", "x"], 2),
        (["injection", "--kept", "x"], 2),
        (["injection", "--report", "pdf"], 2),
        (["nobody"], 3),
        (["--case", "none.toml"], 3),
    ],
)
def test_a_wrong_command_line_is_told(cli: Cli, args: list[str], code: int) -> None:
    done = cli("audit", *args)
    assert (done.code, done.out) == (code, "")
    assert "error:" in done.err


def test_a_failing_check_is_the_exit_code(cli: Cli, place: Path) -> None:
    with wakelog.open(place / "store") as store:
        build("tampered", store.engine)
    done = cli("audit", "tampered", "-o", "ev.md")
    assert done.code == 4
    assert done.out.endswith("a check failed\n")


def test_calls_are_listed_one_row_each(cli: Cli, place: Path) -> None:
    with wakelog.open(place / "store") as store:
        build("fix-bug", store.engine)
    rows = cli("calls", "fix-bug").lines
    assert rows[0].split()[:4] == ["event", "time", "turn", "tool"]
    assert rows[1].startswith("e123")
    assert any("run_tests" in row and "failed" in row and "6.0s" in row for row in rows)
    failed = cli("calls", "fix-bug", "--failed", "--reverse", "--json").data
    assert [(row["tool"], row["outcome"]) for row in failed] == [("run_tests", "failed"), ("run_tests", "failed")]
    effects = cli("calls", "fix-bug", "--effects", "--ndjson").records
    assert {row["tool"] for row in effects} == {"write_file", "run_sql", "git_push"}
    few = cli("calls", "fix-bug", "-n", "2")
    assert few.lines[-1] == "… 20 more (-n 0 shows all)"
    assert len(few.lines) == 4
    assert len(cli("calls", "fix-bug@2").lines) == 4
    assert cli("calls", "fix-bug", "--tool", "nothing").out == "fix-bug has no such calls\n"
    assert all(len(line) <= 60 for line in cli("calls", "fix-bug", columns=60).lines)
    assert cli("calls", "fix-bug@99").code == 3
