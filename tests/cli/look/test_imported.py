"""Imported sessions read well: calls say what they are about, and nobody's words pass for the user's."""

import contextlib
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.exporters.transcripts import till, written
from tests.importers.claude import NAME, SESSION, Lines, call, text
from wakelog.cli.render.turns import time_of


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_terminal: None, cli: Cli) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", str(tmp_path / "own"))
    assert cli("import", str(written(till(), tmp_path)), "--yes").code == 0
    (row,) = cli("ls", "--json").data
    return str(row["name"])


def rows(cli: Cli, shop: str) -> dict[str, list[str]]:
    """What the events of the first turn say, by their word."""
    found: dict[str, list[str]] = {}
    for line in cli("show", f"{shop}@1").lines:
        if line[:1] == "e" and line[1:2].isdigit():
            _, word, text = line[18:].split(maxsplit=2) if len(line[18:].split(maxsplit=2)) == 3 else ("", "", "")
            found.setdefault(word, []).append(text)
    return found


def test_a_call_says_what_it_is_about_and_what_came_of_it(cli: Cli, shop: str) -> None:
    found = rows(cli, shop)
    assert found["Read"][0].startswith("/home/mira/code/till/src/total.py → 2 lines")
    assert found["Edit"] == ["/home/mira/code/till/src/total.py"]
    assert found["Bash"][0].startswith("pytest -q → error: Exit code 1 1 failed")
    assert found["Grep"][0].startswith('"total" in ')


def test_an_answer_without_words_says_what_it_asks_for(cli: Cli, shop: str) -> None:
    found = rows(cli, shop)["model"]
    assert found[0].startswith("→ Read /home/mira/code/till/src/total.py")
    assert found[2].startswith('→ Bash pytest -q, Grep "total" in ')
    assert found[3].startswith("Done: totals are rounded")
    assert "asks for" not in cli("show", f"{shop}@1").out


def test_words_of_the_program_are_no_prompts(cli: Cli, shop: str) -> None:
    shown = cli("show", f"{shop}@1").out
    assert "agent's note" in shown
    assert "Follow these steps" in shown
    assert "2. tell" not in shown.replace("1. look 2. tell", "")
    assert "tool_use_error" not in shown


def test_a_command_of_the_program_is_no_turn(cli: Cli, shop: str) -> None:
    assert [turn["input"] for turn in cli("log", shop, "--json").data["turns"]] == [
        "thanks, and now the tax",
        "/review 12",
    ]
    shown = cli("log", shop, "--events").out
    assert "command" in shown
    assert "/clear" in shown
    assert "<command" not in shown


def test_the_import_is_told_in_words(cli: Cli, shop: str) -> None:
    shown = cli("log", shop, "--events").out
    assert "records of claude-code from" in shown
    assert '"format"' not in shown


def test_the_brief_says_what_the_user_asked_last(cli: Cli, shop: str) -> None:
    brief = cli("brief", shop).out
    assert brief.count("asked: thanks, and now the tax") == 1
    assert "You review code" not in brief


def test_a_prompt_with_a_note_behind_it_is_in_the_window(cli: Cli, shop: str) -> None:
    assert "/review 12" in cli("context", shop, "--json").out


def test_a_name_before_a_position_says_only_whose_it_is(cli: Cli, shop: str) -> None:
    one = cli("show", shop, "e5").out
    assert one == cli("show", "-s", shop, "e5").out


def test_labels_take_the_rows_they_need(cli: Cli, shop: str) -> None:
    shown = cli("status", shop).out
    for label in ("agent=claude-code", "project=/home/mira/code/till", "branch=mira/rounding", "model=claude-test"):
        assert label in shown
    assert all(len(line) <= 100 for line in shown.splitlines())


def test_resume_tells_the_prompt_and_not_the_programs_words(cli: Cli, shop: str) -> None:
    assert cli("resume", shop, "--json").data["last_user"] == "thanks, and now the tax"


def test_a_prompt_with_a_picture_is_told_by_its_words(cli: Cli, tmp_path: Path, shop: str) -> None:
    lines = Lines()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    lines.prompt([text("[Image #1] why is the footer red?"), picture])
    lines.reply("m1", call("t1", "Read", file_path="/home/ada/shop/a.png"))
    lines.result("t1", [picture])
    cli("import", str(lines.write(tmp_path / f"{SESSION}.jsonl")), "--yes")
    assert cli("log", NAME, "--json").data["turns"][0]["input"] == "[Image #1] why is the footer red?\n(an image)"
    shown = cli("show", f"{NAME}@1").out
    assert "a.png → (an image)" in shown
    assert "base64" not in shown
    assert '"type"' not in shown


def edited(folder: Path, file: str, session: str, prompt: str) -> Path:
    """A session that makes a file."""
    lines = Lines(session)
    lines.prompt(prompt)
    lines.reply("m1", call("t1", "Write", file_path=f"/home/ada/shop/{file}", content="a\nb\n"))
    made = {"type": "create", "filePath": f"/home/ada/shop/{file}", "content": "a\nb\n", "structuredPatch": []}
    lines.result("t1", "created", made)
    lines.reply("m2", text("Done."))
    return lines.write(folder / f"{session}.jsonl")


def test_why_takes_the_bare_name_of_a_file_that_one_session_changed(cli: Cli, tmp_path: Path, shop: str) -> None:
    path = edited(tmp_path, "cmd/cli/setup.go", SESSION, "Add a setup command.")
    cli("import", str(path), "--yes")
    assert "Add a setup command." in cli("why", "setup.go:2").lines[1]
    assert "Add a setup command." in cli("why", "cli/setup.go:1").lines[1]


def test_why_of_a_name_that_two_files_have_names_both(cli: Cli, tmp_path: Path, shop: str) -> None:
    for session, file in ((SESSION, "cmd/cli/setup.go"), (SESSION.replace("5", "6"), "cmd/web/setup.go")):
        cli("import", str(edited(tmp_path, file, session, "Add it.")), "--yes")
    asked = cli("why", "setup.go:2")
    assert asked.code == 2
    for file in ("cmd/cli/setup.go", "cmd/web/setup.go", "give more of its path"):
        assert file in asked.err
    assert cli("why", "web/setup.go:2").code == 0


def test_a_turn_lasts_until_the_agent_rests_and_not_until_the_user_is_back(cli: Cli, tmp_path: Path, shop: str) -> None:
    lines = Lines()
    lines.prompt("Go.")
    lines.reply("m1", text("Done."))
    lines.prompt("Next day.")
    lines.lines[-1]["timestamp"] = "2026-12-24T10:00:00.000Z"
    cli("import", str(lines.write(tmp_path / f"{SESSION}.jsonl")), "--yes")
    assert "· 1.0s ·" in cli("show", f"{NAME}@1").out


def test_a_second_import_of_many_files_says_that_nothing_is_new(cli: Cli, tmp_path: Path, shop: str) -> None:
    for number in range(13):
        session = f"{number:08x}" + SESSION[8:]
        edited(tmp_path / "many", f"{number}.py", session, "Go.")
    first = cli("import", str(tmp_path / "many")).out
    assert first.startswith("13 new turns and ")
    assert first.endswith(" new events in 13 sessions, from 13 files\n")
    assert "nothing new, from 13 files" in cli("import", str(tmp_path / "many")).out


def test_the_brief_leaves_out_an_error_that_was_repaired(cli: Cli, tmp_path: Path, shop: str) -> None:
    lines = Lines()
    lines.prompt("Make the tests pass.")
    for number, (answer, is_error) in enumerate([("Exit code 1\n1 failed", True), ("1 passed", False)]):
        lines.reply(f"m{number}", call(f"t{number}", "Bash", command="pytest -q tests"))
        lines.result(f"t{number}", answer, is_error=is_error)
        cli("import", str(lines.write(tmp_path / f"{SESSION}.jsonl")), "--yes")
        assert ("## Last error" in cli("brief", NAME).out) is is_error


def test_the_newest_session_is_the_last_active_one_and_not_the_last_imported(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shop: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for day, session in ((24, "b" * 8 + SESSION[8:]), (23, "c" * 8 + SESSION[8:])):
        lines = Lines(session, cwd=str(tmp_path / "work"))
        lines.prompt("Go.")
        lines.lines[0]["timestamp"] = f"2026-12-{day}T10:00:00.000Z"
        cli("import", str(lines.write(tmp_path / f"{session}.jsonl")), "--yes")
    assert cli("status", "--json").data["name"] == "claude-bbbbbbbb"


def test_the_newest_session_of_this_folder_comes_first(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shop: str
) -> None:
    for folder, session in (("mine", "b" * 8 + SESSION[8:]), ("other", "c" * 8 + SESSION[8:])):
        lines = Lines(session, cwd=str(tmp_path / folder))
        lines.prompt("Go.")
        cli("import", str(lines.write(tmp_path / f"{session}.jsonl")), "--yes")
    (tmp_path / "mine" / ".git").mkdir(parents=True)
    (tmp_path / "mine" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "mine" / "src")
    assert cli("status", "--json").data["name"] == "claude-bbbbbbbb"


def test_a_search_that_the_provider_made_is_told_in_words(cli: Cli, tmp_path: Path, shop: str) -> None:
    lines = Lines()
    lines.prompt("Which port does it use?")
    found = {
        "type": "web_search_result",
        "title": "Ports",
        "url": "https://a.example/ports",
        "encrypted_content": "Eo8=",
    }
    lines.reply(
        "m1",
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "default port"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]},
        text("Port 8080."),
    )
    cli("import", str(lines.write(tmp_path / f"{SESSION}.jsonl")), "--yes")
    for asked in (("show", f"{NAME}@1"), ("export", NAME, "--format", "md", "-o", "-"), ("search", "ports")):
        shown = cli(*asked).out
        assert "encrypted_content" not in shown, asked
        assert "server_tool_use" not in shown, asked
    page = cli("export", NAME, "--format", "md", "-o", "-").out
    assert "web search: default port" in page
    assert "Ports https://a.example/ports" in page.replace("\\", "")


def test_an_exported_page_says_when_the_session_was_last_active(cli: Cli, shop: str) -> None:
    assert "last at 2026-03-01T10:00:" in cli("export", shop, "--format", "md", "-o", "-").out


def test_an_edit_reads_as_what_goes_and_what_comes(cli: Cli, shop: str) -> None:
    [edit] = [e for e in cli("show", f"{shop}@1", "--json").data["events"] if e["tool"] == "Edit"]
    given = edit["body"]["input"]
    shown = cli("show", shop, f"e{edit['seq']}").out
    page = cli("export", shop, "--format", "md").out
    assert given["old_string"] != given["new_string"]
    for told in (shown, page):
        assert f"-{given['old_string']}" in told
        assert f"+{given['new_string']}" in told
        assert '"old_string"' not in told


def test_a_session_is_named_by_its_transcript_and_by_its_agents_id(cli: Cli, tmp_path: Path, shop: str) -> None:
    path = written(till(), tmp_path)
    inner = tmp_path / "inner"
    inner.mkdir()
    shown = cli("show", f"{shop}@1").out
    assert cli("show", f"{path}@1").out == shown
    assert cli("diff", str(path)).out == cli("diff", shop).out  # and not a key of the state, which starts with / too
    labels = cli("status", shop, "--json").data["labels"]
    assert cli("show", f"claude:{labels['origin']}@1").out == shown
    assert cli("show", f"claude:{labels['origin'][:8]}@1").out == shown
    with contextlib.chdir(inner):
        assert cli("show", f"../{path.relative_to(tmp_path)}").out == cli("show", shop).out


def test_a_file_that_names_no_session_says_what_to_do(cli: Cli, tmp_path: Path, shop: str) -> None:
    other = Lines(session="77777777-0000-4000-8000-000000000000")
    other.prompt("Not imported.")
    path = other.write(tmp_path / "my file.jsonl")
    refused = cli("log", str(path))
    assert refused.code == 3
    assert "is a transcript of Claude Code that is not in this store" in refused.err
    assert f"hint: wakelog import '{path}'" in refused.err
    (tmp_path / "notes.txt").write_text("nothing")
    refused = cli("log", "notes.txt")
    assert refused.code == 3
    assert "there is no session 'notes.txt'" in refused.err


def test_a_question_that_nothing_answers_says_so(cli: Cli, shop: str) -> None:
    assert "no such events there" in cli("log", shop, "--kind", "nope").out
    assert "no change at or below /nowhere" in cli("diff", shop, "/nowhere").out
    refused = cli("blame", "-s", shop, "src/total.py")
    assert refused.code == 2
    assert "hint: of a file, ask: wakelog why src/total.py" in refused.err


def test_a_turn_of_another_year_is_listed_with_its_year() -> None:
    at = 1_760_000_000_000_000  # in October 2025
    assert time_of(at, "2025-10-09", utc=True) == "08:53"
    assert time_of(at, "2025-12-01", utc=True) == "10-09 08:53"
    assert time_of(at, "2026-10-09", utc=True) == "2025-10-09 08:53"


def test_why_gives_no_day_to_a_prompt_without_a_time(tmp_path: Path, cli: Cli) -> None:
    asked = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": "{}"}}
    said = [
        {"role": "user", "content": "Where is my order?"},
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c1", "name": "get_order", "content": "sent"},
    ]
    run = {"task_id": 3, "trial": 0, "reward": 1.0, "info": {}, "traj": said}
    (tmp_path / "runs.json").write_text(json.dumps([run]))
    at = ("--store", str(tmp_path / "own"))
    assert cli("import", str(tmp_path / "runs.json"), "--yes", *at).code == 0
    line = cli("why", "-s", "tau-3-0", "last-tool", *at).lines[1]
    assert line.endswith('← "Where is my order?" (you)')
