"""Where transcripts are looked for: in the home folder, where their programs were told to keep them, behind links."""

import json
from pathlib import Path

import pytest

from tests.importers.claude import SESSION, Lines
from tests.importers.samples import codex, gemini, write_lines
from wakelog.importers.discovery import find_transcripts


def transcript(path: Path) -> Path:
    lines = Lines()
    lines.prompt("Begin.")
    return lines.write(path)


def found(home: Path | None = None) -> list[tuple[str, str]]:
    return sorted((each.format, each.path.name) for each in find_transcripts(home))


def test_data_that_a_user_moved_is_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transcript(tmp_path / "claude" / "projects" / "-p" / f"{SESSION}.jsonl")
    for folder in ("codex/sessions", "gemini/.gemini/tmp/h/chats"):
        (tmp_path / folder).mkdir(parents=True)
    write_lines(tmp_path / "codex" / "sessions" / "rollout-2026-01-05T10-00-00-a.jsonl", codex())
    (tmp_path / "gemini/.gemini/tmp/h/chats/session-1.json").write_text(json.dumps(gemini()))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, folder in (("CLAUDE_CONFIG_DIR", "claude"), ("CODEX_HOME", "codex"), ("GEMINI_CLI_HOME", "gemini")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    assert found() == [
        ("claude-code", f"{SESSION}.jsonl"),
        ("codex-rollout", "rollout-2026-01-05T10-00-00-a.jsonl"),
        ("gemini-cli", "session-1.json"),
    ]
    assert found(tmp_path / "somebody else") == []


def test_a_file_is_found_once_whatever_links_lead_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    projects = tmp_path / "home" / ".claude" / "projects"
    path = transcript(tmp_path / "elsewhere" / f"{SESSION}.jsonl")
    projects.mkdir(parents=True)
    (projects / "-linked").symlink_to(path.parent)
    (projects / "-linked-again").symlink_to(path.parent)
    (path.parent / "0a1e7c02.jsonl").symlink_to(path)
    (path.parent / "up").symlink_to(path.parent)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "home" / ".claude"))
    assert len(found()) == 1
