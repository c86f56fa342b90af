"""A turn of an imported session, read on an ordinary terminal: what was asked, what came of it, what it cost."""

import json
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.importers.claude import NAME, SESSION, Lines, call, text

PLAN = "Implement this plan:\n\n1. Read the limit from the settings.\n2. Refuse larger files with a clear error."
LONG = "sed -n '1,200p' 'apps/shop/src/app/(protected)/settings/uploads/components/UploadLimits.tsx'"
ANSWER = "Done. Uploads over the limit are refused:\n\n- the limit is in settings.toml\n- the error names it"


def bring_in(cli: Cli, folder: Path, lines: Lines) -> str:
    cli("import", str(lines.write(folder / f"{SESSION}.jsonl")), "--yes")
    return f"{NAME}@1"


@pytest.fixture(autouse=True)
def own_store(plain_terminal: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKELOG_STORE", str(tmp_path / "own"))


@pytest.fixture
def turn(tmp_path: Path, cli: Cli) -> str:
    lines = Lines()
    lines.prompt(PLAN)
    lines.reply("m1", call("t1", "Bash", command=LONG))
    lines.result("t1", "sed: can't read it: No such file or directory", is_error=True)
    lines.reply("m2", call("t2", "Read", file_path="/home/ada/shop/uploads.py"))
    lines.result("t2", "1\tLIMIT = 5")
    lines.reply("m3", text(ANSWER))
    return bring_in(cli, tmp_path, lines)


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_show_has_all_that_was_asked_and_the_whole_last_answer(cli: Cli, turn: str, columns: int) -> None:
    shown = cli("show", turn, columns=columns)
    words = " ".join(line.partition("│")[2].strip() for line in shown.lines if "│" in line)
    for sentence in (PLAN, ANSWER):
        assert " ".join(sentence.split()) in " ".join(words.split())
    assert all(len(line) <= columns for line in shown.lines)


def test_show_does_not_repeat_a_short_prompt(cli: Cli, tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Go on.")
    lines.reply("m1", text("Yes."))
    shown = cli("show", bring_in(cli, tmp_path, lines)).out
    assert "│" not in shown
    assert (shown.count("Go on."), shown.count("Yes.")) == (1, 1)


def test_a_long_command_leaves_room_for_what_went_wrong(cli: Cli, turn: str) -> None:
    [line] = [line for line in cli("show", turn, columns=80).lines if "✗ Bash" in line]
    assert "sed -n '1,200p' 'ap" in line
    assert "→ error: sed: can't" in line


def test_the_facts_of_a_turn_are_folded_and_not_cut(cli: Cli, turn: str) -> None:
    shown = cli("show", turn, columns=60).out
    assert "unverified: Bash, Read" in shown.splitlines()[2]


def test_less_than_a_cent_is_not_nothing(cli: Cli, tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("What is it?")
    lines.reply("m1", text("It is."))
    bring_in(cli, tmp_path, lines)
    for command in (["cost"], ["ls"], ["log"], ["show"]):
        shown = cli(*command).out
        assert "<$0.01" in shown
        assert "$0.00" not in shown


def test_a_file_that_was_changed_has_another_sign_than_one_that_was_made(cli: Cli, tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Change both.")
    old, new = "/home/ada/shop/old.py", "/home/ada/shop/new.py"
    lines.reply("m1", call("t1", "Edit", file_path=old, old_string="a", new_string="b"))
    lines.result("t1", "updated", {"filePath": old, "oldString": "a", "newString": "b", "originalFile": "a\n"})
    lines.reply("m2", call("t2", "Write", file_path=new, content="b\n"))
    lines.result("t2", "created", {"type": "create", "filePath": new, "content": "b\n"})
    shown = cli("diff", bring_in(cli, tmp_path, lines)).lines
    signs = [line.split()[:3] for line in shown if ".py" in line]
    assert sorted(signs) == [["+", "new.py", "created"], ["~", "old.py", "modified"]]


def test_sentences_below_an_answer_are_wrapped(cli: Cli, turn: str) -> None:
    for command in (["why", turn], ["insight", turn, "--all"], ["diff", turn]):
        shown = cli(*command, columns=60).lines
        assert all(len(line) <= 60 for line in shown)
        assert not any(line.startswith(("  may:", "  ~ derived", "trust")) and line.endswith("…") for line in shown)
    assert json.loads(cli("show", turn, "--json").out)["data"]["turn"]["input"] == PLAN


@pytest.mark.parametrize("has_transcript", [True, False])
def test_a_sub_agent_without_a_transcript_is_told_as_not_here(cli: Cli, tmp_path: Path, has_transcript: bool) -> None:
    parent, child = Lines(), Lines(prefix="b", isSidechain=True, agentId="a1b2")
    parent.prompt("Have it looked at.")
    parent.reply("m1", call("t1", "Task", description="look", prompt="Look into it."))
    parent.result("t1", [text("All good.")], {"status": "completed", "agentId": "a1b2", "content": [text("All good.")]})
    parent.reply("m2", text("It is good."))
    child.prompt("Look into it.")
    child.reply("b1", text("All good."))
    parent.write(tmp_path / f"{SESSION}.jsonl")
    if has_transcript:
        child.write(tmp_path / SESSION / "subagents" / "agent-a1b2.jsonl")
    cli("import", str(tmp_path), "--yes")
    for command in (["show", f"{NAME}@1"], ["brief", NAME]):
        said = cli(*command).out
        assert ("(not in this store)" in said) != has_transcript
        assert (f"{NAME}-agent-a1b2" in said) == has_transcript


def test_the_title_of_a_turn_keeps_its_room(cli: Cli, tmp_path: Path) -> None:
    """What else there is to say of a turn leaves the line first."""
    lines = Lines()
    lines.prompt("Say why the upload of large files fails in the browser")
    lines.reply(
        "m1", call("t1", "Edit", file_path="/home/ada/shop/a.py", old_string="a", new_string="b"), tokens=17_900
    )
    lines.result(
        "t1", "ok", {"filePath": "/home/ada/shop/a.py", "oldString": "a", "newString": "b", "originalFile": "a"}
    )
    lines.prompt([text("[Request interrupted by user]")])
    bring_in(cli, tmp_path, lines)
    for columns in (60, 80, 100):
        [row] = [line for line in cli("log", NAME, columns=columns).lines if line.startswith(" @1")]
        assert "Say why the upload" in row
        assert row.endswith("interrupted")
        assert len(row) <= columns


def test_a_session_from_hooks_has_times(cli: Cli, tmp_path: Path) -> None:
    """Hooks report as it happens; only of a transcript without times it is not known when."""
    labels = {"agent": "claude-code", "origin": "abc-1", "capture": "hooks"}
    with wakelog.open(tmp_path / "own") as store:
        session = store.session("claude-abc-1", agent="claude-code", labels=labels)
        with session.turn("fix it"):
            pass
    assert "no times recorded" not in cli("log", "claude-abc-1").out
    assert "no times recorded" not in cli("show", "claude-abc-1@1").out


def test_files_of_sub_agents_are_told_with_the_session_that_started_them(cli: Cli, tmp_path: Path) -> None:
    parent, child = Lines(), Lines(prefix="b", isSidechain=True, agentId="a1b2")
    parent.prompt("Have it written.")
    parent.reply("m1", call("t1", "Task", description="write", prompt="Write it."))
    parent.result("t1", "Written.", {"agentId": "a1b2", "status": "completed"})
    child.prompt("Write it.")
    child.reply("b1", call("w1", "Write", file_path="/home/ada/shop/new.py", content="b\n"))
    child.result("w1", "created", {"type": "create", "filePath": "/home/ada/shop/new.py", "content": "b\n"})
    parent.write(tmp_path / f"{SESSION}.jsonl")
    child.write(tmp_path / SESSION / "subagents" / "agent-a1b2.jsonl")
    cli("import", str(tmp_path), "--yes")
    listed = cli("files", NAME).out
    assert "no files changed" in listed
    assert f"1 sub-agent changed files too, see wakelog files of {NAME}-agent-a1b2" in listed
    assert "changed files too" not in cli("files", f"{NAME}-agent-a1b2").out


def test_the_state_is_of_the_time_when_it_happened(cli: Cli, turn: str) -> None:
    heading = cli("state", "--at", turn).lines[0]
    assert "2025-10-09" in heading
    assert heading.endswith("*")
    assert cli("state", "--at", turn, "--json").data["timestamp"].startswith("2025-10-09")


def test_status_names_the_event_of_the_last_error(cli: Cli, turn: str) -> None:
    [line] = [line for line in cli("status", NAME).lines if line.lstrip().startswith("error ")]
    assert line.endswith("e5")
