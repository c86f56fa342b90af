"""Transcripts of coding agents: found on the machine, imported once, told as a session, and gone on with."""

import json
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog.cli.demo import DAY_US
from wakelog.cli.demo.transcript import NAME, SESSION, lines


@pytest.fixture
def transcript(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A transcript where Claude Code keeps them, and no store that anybody chose."""
    monkeypatch.delenv("WAKELOG_STORE")
    monkeypatch.setenv("WAKELOG_DATA", str(folder / "data"))
    path = folder / "home" / ".claude" / "projects" / "-home-ada-shop" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines(DAY_US)))
    return path


def test_what_is_on_the_machine_is_found_and_nothing_happens_without_an_answer(cli: Cli, transcript: Path) -> None:
    before = transcript.read_bytes()
    answer = cli("import")
    assert "Found on this machine: Claude Code 1 (" in answer.out
    assert answer.code == 2
    assert "pass --yes" in answer.err
    assert not Path("data").exists()
    assert transcript.read_bytes() == before


def test_found_transcripts_go_to_the_users_own_store_and_are_read_from_there(cli: Cli, transcript: Path) -> None:
    assert cli("import", "--yes").code == 0
    (row,) = cli("ls", "--json").data
    assert row["name"] == NAME
    assert row["about"].startswith("Uploads over 10 MB fail")
    assert row["updated_at"].startswith("2026-11-15")
    assert not Path(".wakelog").exists()


def test_a_second_import_adds_what_is_new(cli: Cli, transcript: Path) -> None:
    whole = transcript.read_text().splitlines(keepends=True)
    transcript.write_text("".join(whole[:9]))
    first = cli("import", "--yes", "--json").data
    transcript.write_text("".join(whole))
    second = cli("import", "--yes", "--json").data
    third = cli("import", "--yes", "--json").data
    assert [f["records"] for f in first + second + third] == [9, len(whole) - 9, 0]
    assert cli("log", NAME, "--json").data["turns"][-1]["input"].startswith("Uploads")


def test_a_dry_run_says_the_same_and_writes_nothing(cli: Cli, transcript: Path) -> None:
    would = cli("import", "--dry-run", "--json").data
    assert not Path("data").exists()
    did = cli("import", "--yes", "--json").data
    assert [(f["records"], f["turns"]) for f in would] == [(f["records"], f["turns"]) for f in did]


def test_a_broken_line_is_kept_told_and_no_reason_to_lose_the_rest(cli: Cli, transcript: Path) -> None:
    text = transcript.read_text().splitlines()
    transcript.write_text("\n".join([*text[:4], '{"type": "user", "mess', *text[4:]]) + "\n")
    answer = cli("import", "--yes")
    assert answer.code == 7
    assert "line 5 is not JSON" in answer.out
    with wakelog.open("data/store") as store:
        held = [e for e in store.resume(NAME).log.entries() if e.kind == "records.imported"]
        assert any('"mess' in str(store.resume(NAME).log.value(e, e.body["rest"])) for e in held)
    assert cli("files", "-s", NAME, "--json").code == 0


def test_a_file_that_is_neither_transcript_nor_bundle_is_refused_by_name(cli: Cli, transcript: Path) -> None:
    Path("notes.txt").write_text("milk\neggs\n")
    answer = cli("import", "notes.txt")
    assert answer.code != 0
    assert "notes.txt is not a transcript of a known format" in answer.err
    assert "claude-code" in answer.err


def test_files_modified_and_the_line_that_was_asked_for_come_from_the_transcript(cli: Cli, transcript: Path) -> None:
    cli("import", "--yes")
    assert [f["path"] for f in cli("files", "-s", NAME, "--json").data["files"]] == [
        "deploy/nginx.conf",
        "shop/upload.py",
    ]
    why = cli("why", "-s", NAME, "shop/upload.py:7")
    assert "made by" in why.out
    assert "Write" in why.out


def test_a_session_goes_on_in_its_own_agent_or_in_another_with_a_brief(cli: Cli, transcript: Path) -> None:
    cli("import", "--yes")
    own = cli("resume", NAME, "--in", "native", "--print")
    assert own.out.strip() == f"cd /home/ada/shop && claude --resume {SESSION}"
    other = cli("resume", NAME, "--in", "codex", "--json").data
    assert other["command"][0] == "codex"
    assert "shop/upload.py" in other["command"][1]
    assert not other["is_own"]


def test_a_session_of_nobody_has_no_agent_to_go_on_in(cli: Cli, folder: Path) -> None:
    answer = cli("resume", "fix-bug", "--in", "native")
    assert answer.code != 0
    assert "--in claude|codex|gemini" in answer.err


def test_a_file_is_explained_by_the_session_that_last_changed_it(cli: Cli, transcript: Path) -> None:
    cli("import", "--yes")
    with wakelog.open("data/store") as store:
        store.session("later").message("user", "hello")
    assert cli("why", "shop/upload.py:7").lines[0].startswith(NAME)


def test_a_deleted_session_is_left_out_and_told_until_it_is_asked_for(cli: Cli, transcript: Path) -> None:
    cli("import", "--yes")
    cli("delete", NAME, "--yes")
    answer = cli("import", "--yes")
    assert answer.code == 0
    assert f"{NAME}, deleted before and left out; --again imports it again" in answer.out
    assert cli("ls", "--json").data == []
    assert cli("import", "--yes", "--again", "--json").data[0]["turns"] > 0
    assert [row["name"] for row in cli("ls", "--json").data] == [NAME]
