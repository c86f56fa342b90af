"""What a session of Claude Code is called, where it comes from, and which files are transcripts."""

from pathlib import Path

from tests.importers.claude import FOLDER, SESSION, Lines, bring_in, live_store, text
from wakelog.importers.coding_agents.claude_code.transcript import find_in_home


def test_the_users_own_title_counts_most_and_of_each_kind_the_last(tmp_path: Path) -> None:
    lines = Lines()
    lines.lines.append({"type": "ai-title", "aiTitle": "Mend the login", "sessionId": SESSION})
    lines.prompt("Users are logged out.")
    lines.reply("m1", text("I look."))
    store = live_store()
    assert bring_in(lines, tmp_path, store).log.part("labels")["title"] == "Mend the login"
    for number, (kind, field, title, shown) in enumerate(
        (
            ("ai-title", "aiTitle", "Mend the session length", "Mend the session length"),
            ("custom-title", "customTitle", "logins", "logins"),
            ("ai-title", "aiTitle", "Something else", "logins"),
            ("custom-title", "customTitle", "", "logins"),
        )
    ):
        lines.lines.append({"type": kind, field: title, "sessionId": SESSION, "at": number})
        assert bring_in(lines, tmp_path, store).log.part("labels")["title"] == shown, (kind, title)


def test_a_summary_of_another_session_is_not_the_title(tmp_path: Path) -> None:
    lines = Lines()
    own = "00000002-0000-4000-8000-000000000000"
    lines.lines.append({"type": "summary", "summary": "What another session did", "leafUuid": "ffff0001-0000"})
    lines.lines.append({"type": "summary", "summary": "What this one did", "leafUuid": own})
    lines.prompt("Begin.")
    store = live_store()
    assert "title" not in bring_in(lines, tmp_path, store).log.part("labels")
    assert lines.reply("m1", text("Done.")) == own
    assert bring_in(lines, tmp_path, store).log.part("labels")["title"] == "What this one did"
    lines.lines.append({"type": "summary", "summary": "Since then", "leafUuid": own})
    assert bring_in(lines, tmp_path, store).log.part("labels")["title"] == "Since then"


def test_a_fork_names_the_session_that_it_continues(tmp_path: Path) -> None:
    lines = Lines(forkedFrom={"sessionId": "0b1c", "messageUuid": "0b1d"})
    lines.prompt("Begin.")
    assert bring_in(lines, tmp_path).log.part("labels")["forked_from"] == "0b1c"


def test_the_journal_of_a_workflow_is_no_transcript(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / FOLDER.replace("/", "-") / SESSION / "subagents" / "workflows" / "wf_1"
    agent = Lines(isSidechain=True, agentId="a1")
    agent.prompt("Look around.")
    agent.write(folder / "agent-a1.jsonl")
    (folder / "journal.jsonl").write_text('{"type":"launched"}\n')
    assert [path.name for path in find_in_home(tmp_path)] == ["agent-a1.jsonl"]
