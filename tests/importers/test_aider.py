"""Histories of Aider, made here as that program writes them."""

import re
from pathlib import Path

import pytest

import wakelog
from tests.importers.growth import check_growth, seen_once, seen_sessions
from wakelog.importers.discovery import find_in_folder
from wakelog.importers.formats import detect_format
from wakelog.importers.transcript_import import import_transcript

FIRST = """
# aider chat started at 2026-01-05 10:00:00

> /home/ada/.local/bin/aider --model sonnet
> Aider v0.86.1
> Main model: anthropic/claude-sonnet-4-20250514 with diff edit format, infinite output
> Git repo: .git with 12 files

#### make the limit a setting
#### and test it

I'll read it from the configuration.

limit.py
```python
<<<<<<< SEARCH
#### this is code, and no prompt
> neither is this
LIMIT = 10
=======
LIMIT = config.limit
>>>>>>> REPLACE
```

> Tokens: 4.2k sent, 1.0k cache hit, 310 received. Cost: $0.01 message, $0.05 session.
> Applied edit to limit.py
> Commit 0123abc feat: make the limit a setting

#### /run pytest

> 3 passed
> Add 0.1k tokens of command output to the chat? (Y)es/(N)o [Yes]: n

#### /ask why is it ten?

Nobody knows.

"""
SECOND = """
# aider chat started at 2026-01-06 11:00:00

> Aider v0.86.1

#### <blank>

#### rename it

Renamed.

> Applied edit to limit.py
"""


def written(folder: Path, text: str = FIRST + SECOND) -> Path:
    path = folder / ".aider.chat.history.md"
    path.write_bytes(broken(text))
    return path


def broken(text: str) -> bytes:
    """With the two blanks that break a line in Markdown, after each line of the person and of Aider."""
    return re.sub(r"(?m)^((?:####|>) .*)$", r"\1  ", text).encode()


def test_each_start_is_a_session_with_its_prompts_answers_and_edits(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert detect_format(path).NAME == "aider"
    first, second = seen_sessions(wakelog.open("memory:"), path, "aider")
    assert first.prompts() == ["make the limit a setting\nand test it", "/ask why is it ten?"]
    assert first.named("command") == ["/run pytest"]
    assert [said.partition("\n")[0] for said in first.said()] == [
        "I'll read it from the configuration.",
        "Nobody knows.",
    ]
    assert "#### this is code" in first.said()[0]
    assert [(path, change) for path, change, _, _ in first.files] == [("limit.py", "modified")]
    assert first.cost["usd_micros"] == 10_000
    assert (first.cost["tokens_in"], first.cost["tokens_out"]) == (4200, 310)
    assert second.prompts() == ["rename it"]
    assert second.said() == ["Renamed."]


def test_model_and_version_are_labels(tmp_path: Path) -> None:
    store = wakelog.open("memory:")
    report = import_transcript(store, written(tmp_path))
    labels = store.resume(report.sessions[0].name).log.part("labels")
    assert labels["model"] == "anthropic/claude-sonnet-4-20250514"
    assert labels["agent_version"] == "v0.86.1"
    assert labels["project"] == str(tmp_path)


def test_a_history_that_grows_is_seen_as_if_it_was_imported_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = (FIRST + SECOND).split("\n\n")
    versions = ["\n\n".join(blocks[:n]) + "\n" for n in range(2, len(blocks) + 1)]
    # Aider writes a block at once, and closes an answer with an empty line.
    whole = [broken(v) for v in versions if v.count("```") % 2 == 0]
    check_growth(whole, tmp_path / ".aider.chat.history.md", "aider", monkeypatch)


def test_the_hidden_file_of_a_project_is_found_in_its_folder(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert [each.path for each in find_in_folder(tmp_path)] == [path]


def test_other_markdown_is_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Notes\n\n#### a heading\n")
    assert [*find_in_folder(tmp_path)] == []
    assert seen_once(written(tmp_path, SECOND)).prompts() == ["rename it"]
