"""Transcripts of coding agents: found on the machine, imported once, told as a session, and gone on with."""

import gzip
import itertools
import json
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog.cli.commands import imports
from wakelog.cli.demo import DAY_US
from wakelog.cli.demo.transcript import NAME, SESSION, lines
from wakelog.errors import UnavailableError
from wakelog.importers.coding_agents.claude_code import transcript as transcript_reader
from wakelog.importers.transcript_import import import_transcript
from wakelog.model import events as ev


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


def test_the_line_of_a_file_fits_the_terminal_and_keeps_its_end(cli: Cli, transcript: Path) -> None:
    lines = cli("import", "--yes", columns=80).out.splitlines()
    [line] = [line for line in lines if line.startswith("✔")]
    assert len(line) <= 80
    assert f"{SESSION[-8:]}.jsonl: {NAME}, " in line


def test_two_formats_of_one_program_are_counted_together(cli: Cli, transcript: Path) -> None:
    home = transcript.parents[3]
    state = {"id": "f5", "persistence_dir": "…", "execution_status": "finished", "workspace": {}}
    for place, content in (
        ("conversations/f5/base_state.json", state),
        ("old/events.jsonl", {"id": 1, "source": "user", "kind": "MessageEvent"}),
    ):
        path = home / ".openhands" / place
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(content))
    assert "OpenHands 2 (" in cli("import").out
    [check] = [c for c in cli("doctor", "--json").data if c["what"] == "transcripts"]
    assert check["found"] == "of other programs on this machine: OpenHands 2"


def test_names_that_begin_alike_stay_apart_in_a_narrow_terminal(cli: Cli, folder: Path) -> None:
    with wakelog.open() as store:
        for number in range(3):
            store.session(f"claude-fe5e1c67-0000-4000-8000-side-{number}", goal="one of several helpers of a session")
    shown = [line.split()[0] for line in cli("ls", columns=60).lines if "…side-" in line or "side-" in line]
    assert len({*shown}) == 3


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


@pytest.mark.parametrize("damage", ["cut", "not text"])
def test_a_document_that_cannot_be_read_is_told_and_the_answer_is_partial(
    cli: Cli, transcript: Path, damage: str
) -> None:
    text = json.dumps({"sessionId": "s1", "projectHash": "p", "messages": [{"id": "m1", "type": "user"}]})
    path = Path("session-1.json")
    path.write_bytes(text[:-3].encode() if damage == "cut" else text.replace("user", "\xff").encode("latin-1"))
    for files in ([str(path)], [str(path), str(transcript)]):
        answer = cli("import", *files)
        assert answer.code == 7
        assert "session-1.json: is not JSON" in answer.out
        assert "is the file complete? it was not changed" in answer.out
    assert cli("ls", "--json").data[0]["name"] == NAME


def test_a_watched_file_that_the_store_did_not_take_is_tried_again(
    cli: Cli, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = transcript.read_text()
    transcript.write_text("".join(whole.splitlines(keepends=True)[:3]))
    tries: list[str] = []
    rounds = itertools.count(1)
    real = import_transcript

    def take(*args: Any, **how: Any) -> Any:
        tries.append("")
        if len(tries) in (2, 3):
            raise UnavailableError("the disk is full", kind="store-full")
        return real(*args, **how)

    def sleep(seconds: float) -> None:
        if (round := next(rounds)) == 1:
            transcript.write_text(whole)
        if round > 30:
            raise KeyboardInterrupt

    monkeypatch.setattr(imports, "import_transcript", take)
    monkeypatch.setattr(imports, "time", SimpleNamespace(sleep=sleep, time_ns=time.time_ns))
    answer = cli("import", str(transcript), "--watch")
    assert answer.out.count("the disk is full") == 1
    assert len(tries) == 4
    with wakelog.open("data/store") as store:
        assert import_transcript(store, transcript).new_records == 0


def test_a_fault_with_one_file_does_not_keep_the_others_out(
    cli: Cli, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = transcript.with_name("00000000-0000-4000-8000-000000000000.jsonl")
    odd.write_bytes(transcript.read_bytes())
    real = transcript_reader.transcripts

    def read(path: Path) -> Any:
        return real(path) if path != odd else 1 / 0

    monkeypatch.setattr(transcript_reader, "transcripts", read)
    answer = cli("import", str(odd), str(transcript))
    assert answer.code == 7
    assert f"{odd.name}: ZeroDivisionError: this should not happen" in answer.out
    report = re.search(r"report: (\S+)", answer.out)
    assert report is not None
    assert "ZeroDivisionError" in Path(report[1]).read_text()
    assert [s["name"] for s in cli("ls", "--json").data] == [NAME]


def test_a_compressed_file_that_is_cut_off_is_told_like_any_damage(cli: Cli, transcript: Path) -> None:
    path = Path("old.jsonl.gz")
    path.write_bytes(gzip.compress(transcript.read_bytes())[:40])
    answer = cli("import", str(path))
    assert answer.code == 7
    assert "old.jsonl.gz: cannot be decompressed" in answer.out
    assert "is the file complete?" in answer.out


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


def test_a_search_that_is_limited_in_time_says_so_when_it_finds_nothing(cli: Cli, transcript: Path) -> None:
    cli("import", "--yes")
    assert cli("search", "nginx", "--since", "2026-11-01").code == 0
    nothing = cli("search", "nginx", "--since", "2026-12-24")
    assert nothing.code == 1
    assert nothing.out.startswith("nothing since 2026-12-24 contains 'nginx'")


def test_a_session_goes_on_in_its_own_agent_or_in_another_with_a_brief(cli: Cli, transcript: Path) -> None:
    cli("import", "--yes")
    own = cli("resume", NAME, "--in", "native", "--print")
    assert own.out.strip() == f"cd /home/ada/shop && claude --resume {SESSION}"
    head = cli("status", NAME, "--json").data["head"]
    assert cli("resume", NAME, "--print").out == own.out
    assert cli("status", NAME, "--json").data["head"] == head
    assert f"wakelog resume {NAME} --in native" in cli("resume", NAME).out
    other = cli("resume", NAME, "--in", "codex", "--json").data
    assert other["command"][0] == "codex"
    assert "shop/upload.py" in other["command"][1]
    assert not other["is_own"]


@pytest.mark.parametrize(
    ("agent", "command"),
    [
        ("opencode", "opencode --session ses_1"),
        ("copilot-cli", "copilot --resume ses_1"),
        ("qwen-code", "qwen --resume ses_1"),
        ("goose", "goose session --resume --session-id ses_1"),
        ("kimi-code", "kimi --session ses_1"),
        ("openhands", "openhands --resume ses_1"),
        ("pi", "pi --session ses_1"),
    ],
)
def test_other_agents_go_on_with_their_own_sessions_too(cli: Cli, folder: Path, agent: str, command: str) -> None:
    with wakelog.open() as store:
        store.session("theirs", agent=agent, labels={"agent": agent, "origin": "ses_1", "project": "/srv/shop"})
    assert cli("resume", "theirs", "--print").out.strip() == f"cd /srv/shop && {command}"


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


OWN, RUN = "7b1e7c02-6a0d-4f7b-9c55-0d6c1c7b8e21", "claude-7b1e7c02"


def write_run(folder: Path, turns: list[list[Any]]) -> Path:
    """A transcript of Claude Code with these turns: a prompt, then calls of tools with their results."""
    records: list[dict[str, object]] = []

    def add(kind: str, message: dict[str, object], **more: object) -> None:
        number = len(records) + 1
        parent = records[-1]["uuid"] if records else None
        about = {"sessionId": OWN, "cwd": "/home/ada/shop", "version": "2.1.0", "isSidechain": False}
        when = f"2026-11-15T09:{number // 60:02}:{number % 60:02}.000Z"
        uuid = f"{number:08x}-0000-4000-8000-000000000000"
        records.append(
            {"type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": when, "message": message, **about, **more}
        )

    for prompt, *calls in turns:
        add("user", {"role": "user", "content": prompt})
        for call in calls:
            id = f"t{len(records)}"
            block = {"type": "tool_use", "id": id, "name": call["tool"], "input": call["input"]}
            add("assistant", {"id": f"m{id}", "role": "assistant", "model": "m", "content": [block]})
            result = {"type": "tool_result", "tool_use_id": id, "content": "done"}
            add("user", {"role": "user", "content": [result]}, toolUseResult=call.get("result", "done"))
        reply = {"id": f"r{len(records)}", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        add("assistant", {**reply, "content": [{"type": "text", "text": "Done."}]})
    path = folder / f"{OWN}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in records))
    return path


def edit(name: str) -> dict[str, object]:
    path = f"/home/ada/shop/{name}"
    result = {"filePath": path, "oldString": "1", "newString": "2", "originalFile": "x = 1\n"}
    return {"tool": "Edit", "input": {"file_path": path, "old_string": "1", "new_string": "2"}, "result": result}


LOOK: dict[str, object] = {"tool": "Read", "input": {"file_path": "/home/ada/shop/a.py"}}


def test_show_says_once_that_what_tools_read_is_unverified(cli: Cli, folder: Path) -> None:
    cli("import", str(write_run(folder, [["Look around.", LOOK, LOOK, LOOK]])))
    shown = cli("show", RUN).out
    assert shown.count(" Read ") >= 3
    assert "unverified: Read" in shown
    assert "\u26a0" not in shown


def test_show_marks_a_row_that_a_flag_stands_on(cli: Cli, folder: Path) -> None:
    cli("import", str(write_run(folder, [["Look around.", LOOK, LOOK]])))
    (seq, *_) = [row["seq"] for row in cli("show", RUN, "--json").data["events"] if row.get("tool") == "Read"]
    with wakelog.open() as store:
        store.resume(RUN).append(ev.FlagRaised(flag="odd-read", rule="mine", message="look here", targets=(seq,)))
    (marked,) = [line for line in cli("show", RUN).out.splitlines() if "\u26a0 odd-read" in line]
    assert marked.startswith(f"e{seq} ")


def test_files_says_that_older_turns_changed_files_too(cli: Cli, folder: Path) -> None:
    cli("import", str(write_run(folder, [[f"Edit number {n}.", edit(f"f{n % 3}.py")] for n in range(8)])))
    assert "3 other changes, before @4 or outside of turns (--last 0 shows all)" in cli("files", RUN).out
    assert "earlier" not in cli("files", RUN, "--last", "0").out
    assert "other change" not in cli("files", RUN, "--last", "8").out


def test_diff_over_many_turns_says_why_nothing_is_derived(cli: Cli, folder: Path) -> None:
    cli("import", str(write_run(folder, [[f"Edit number {n}.", edit("a.py")] for n in range(12)])))
    assert "nothing is derived over 11 turns, only up to 10" in cli("diff", f"{RUN}@1..@12").out.replace("\n", " ")
    assert "nothing is derived" not in cli("diff", f"{RUN}@1..@11").out


def test_why_quotes_the_words_that_asked_for_it_and_not_the_word_to_go_on(cli: Cli, folder: Path) -> None:
    turns: list[list[Any]] = [
        ["Make sessions last a week.", edit("a.py")],
        ["continue"],
        ["ok, go on", edit("b.py")],
    ]
    cli("import", str(write_run(folder, turns)))
    answer = cli("why", RUN, "b.py")
    assert '"Make sessions last a week."' in answer.out
    assert '"ok, go on"' not in answer.out.splitlines()[0]


def test_a_run_without_times_shows_none(cli: Cli, folder: Path) -> None:
    run: dict[str, Any] = {
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "Fix it."}],
        "info": {},
    }
    run["messages"] += [
        {"role": "assistant", "content": "THOUGHT: look\n```bash\nls\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\na\n</output>"},
    ]
    file = folder / "run.traj.json"
    file.write_text(json.dumps(run | {"trajectory_format": "mini-swe-agent-1"}))
    cli("import", str(file))
    (name,) = [row["name"] for row in cli("ls", "--json").data if row["name"].startswith("mini")]
    assert "no times recorded" in cli("log", name).out
    shown = cli("show", name).out
    assert "no times recorded" in shown
    assert not [line for line in shown.splitlines() if re.search(r"\d:\d\d:\d\d", line) and " import " not in line]


def test_a_session_that_was_left_is_closed_and_resume_goes_on_with_it(
    cli: Cli, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKELOG_IMPORT_IDLE", "1m")
    cli("import", "--yes")
    assert [row["status"] for row in cli("ls", "--json").data] == ["closed"]
    assert [row["updated_at"][:10] for row in cli("ls", "--json").data] == ["2026-11-15"]
    assert cli("resume", NAME, "--json").data["status"] == "active"
    cli("close", NAME)
    assert "reopen" in cli("resume", NAME).err


def test_a_database_without_a_session_is_told_as_such(cli: Cli, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "checkpoints.sqlite")) as db:
        db.execute("CREATE TABLE checkpoints (thread_id text)")
        db.execute("CREATE TABLE writes (thread_id text)")
    assert "checkpoints.sqlite: it has no session" in cli("import", str(tmp_path / "checkpoints.sqlite")).out


def test_files_with_nothing_new_are_told_in_one_line(cli: Cli, transcript: Path) -> None:
    text = transcript.read_text()
    for number in range(1, 5):
        other = f"{number}{SESSION[1:]}"
        transcript.with_name(f"{other}.jsonl").write_text(text.replace(SESSION, other))
    assert cli("import", "--yes").out.count("new turn") == 5
    with transcript.open("a") as file:
        file.write(json.dumps({"type": "summary", "summary": "Uploads", "leafUuid": "none"}) + "\n")
    again = cli("import", "--yes", columns=160).out
    assert "4 files: everything was there already" in again
    assert again.count(f"{SESSION}.jsonl") == 1


@pytest.mark.parametrize("program", ["claude-code", "claude", "Claude"])
def test_the_name_of_a_program_imports_its_transcripts(cli: Cli, transcript: Path, program: str) -> None:
    assert cli("import", program).code == 0
    assert [row["name"] for row in cli("ls", "--json").data] == [NAME]
    none = cli("import", "codex", "--json")
    assert none.code == 3
    assert none.error["message"] == "no transcripts of Codex were found on this machine"


def test_a_file_with_the_name_of_a_program_is_meant_before_the_program(cli: Cli, transcript: Path) -> None:
    Path("codex").write_bytes(transcript.read_bytes())
    assert [file["file"] for file in cli("import", "codex", "--json").data] == ["codex"]


def test_once_the_disk_is_full_the_other_files_are_not_tried(
    cli: Cli, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        (transcript.parent / f"5a1e7c0{number}-0000-4000-8000-000000000000.jsonl").write_bytes(transcript.read_bytes())
    tried = []

    def fill(store: object, path: Path, **how: object) -> None:
        tried.append(path)
        raise UnavailableError("log.db is full: nothing was written", kind="store-full", hint="free some space")

    monkeypatch.setattr(imports, "import_transcript", fill)
    answer = cli("import", "--yes")
    assert answer.code == 7
    assert len(tried) == 1
    assert answer.out.count("log.db is full") == 1
    assert answer.lines[-1] == "✗ and 5 more files, for the same reason; import again when it is solved"
    assert [file["problem"] for file in cli("import", "--yes", "--json").data] == [
        "log.db is full: nothing was written"
    ] * 6


def test_an_import_that_is_interrupted_says_what_is_kept(
    cli: Cli, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = transcript.with_name("5a1e7c03-0000-4000-8000-000000000000.jsonl")
    second.write_text(transcript.read_text().replace(SESSION, second.stem))

    def stop(store: Any, path: Path, **how: Any) -> Any:
        if path == second:
            raise KeyboardInterrupt
        return import_transcript(store, path, **how)

    monkeypatch.setattr(imports, "import_transcript", stop)
    answer = cli("import", str(transcript), str(second))
    assert answer.code == 130
    assert "what was imported so far is kept" in answer.err
    assert [row["name"] for row in cli("ls", "--json").data] == [NAME]
