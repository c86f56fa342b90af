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


QUESTIONS = """
# aider chat started at 2026-01-07 09:00:00

> Aider v0.12.1
> Model: gpt-4

#### make the tool runnable
> Initial repo scan can be slow in larger repos, but only happens once.

chmod does it.

> Tokens: 3.2k sent, 66 received. Cost: $0.02 request, $0.02 session.
> chmod +x tool.sh
> Run shell command? (Y)es/(N)o/(D)on't ask again [Yes]: y
> Running chmod +x tool.sh
> new.py
> Create new file? (Y)es/(N)o [Yes]: y
> Applied edit to new.py
> one.py
> Add file to the chat? (Y)es/(N)o/(A)ll/(S)kip all/(D)on't ask again [Yes]: s
> two.py

#### Add file to the chat? (Y)es/(N)o/(A)ll/(S)kip all/(D)on't ask again [Yes]: skip
> Add file to the chat? (Y)es/(N)o/(A)ll/(S)kip all/(D)on't ask again [Yes]: s

"""
OPEN_FENCE = """
# aider chat started at 2026-01-08 09:00:00

#### /ask what is it?

#### what is it?

<thinking-content-0a1b>

Let me look.

```python
def unfinished():

</thinking-content-0a1b>

It is time.

> Tokens: 587 sent, 345 received. Cost: $0.0066 message, $0.0066 session.

#### mend app.py

Mended.

> The LLM did not conform to the edit format.
> # 1 SEARCH/REPLACE block failed to match!
> ## SearchReplaceNoExactMatch: This SEARCH block failed to exactly match lines in app.py

#### once more
> litellm.AuthenticationError: the key is wrong
> The API provider is not able to authenticate you. Check your API key.
"""


def test_a_question_of_aider_is_no_prompt_and_its_answer_says_what_was_done(tmp_path: Path) -> None:
    seen = seen_once(written(tmp_path, QUESTIONS))
    assert seen.prompts() == ["make the tool runnable"]
    calls = [(call.tool, call.input) for call in seen.calls.values()]
    assert calls == [("shell", {"command": "chmod +x tool.sh"}), ("edit", {"path": "new.py"})]
    assert [(path, change) for path, change, _, _ in seen.files] == [("new.py", "created")]
    assert seen.cost["usd_micros"] == 20_000


def test_a_question_that_is_written_twice_is_one_prompt(tmp_path: Path) -> None:
    seen = seen_once(written(tmp_path, OPEN_FENCE))
    assert seen.prompts() == ["/ask what is it?", "mend app.py", "once more"]


def test_thinking_is_no_answer_and_a_code_block_left_open_ends_with_the_count_of_tokens(tmp_path: Path) -> None:
    seen = seen_once(written(tmp_path, OPEN_FENCE))
    assert seen.said() == ["It is time.", "Mended."]
    assert [b["thinking"].partition("\n")[0] for b in seen.named("model") if b["type"] == "thinking"] == [
        "Let me look."
    ]
    assert seen.cost["usd_micros"] == 6_600


def test_an_edit_that_does_not_match_and_an_error_of_the_provider_are_failures(tmp_path: Path) -> None:
    seen = seen_once(written(tmp_path, OPEN_FENCE))
    assert [(call.tool, call.input, call.outcome) for call in seen.calls.values()] == [
        ("edit", {"path": "app.py"}, "failed")
    ]
    assert seen.turns == ["completed", "completed", "failed"]


# As the program writes it: two spaces end what it says, and only the first line of it is quoted.
LONGER = """
# aider chat started at 2026-01-09 09:00:00

> Aider v0.86.2\x20\x20
> Model: openai/gpt-4o with diff edit format\x20\x20

#### mend app.py\x20\x20

They say:

> a quoted line of the model

app.py
```python
<<<<<<< SEARCH
none
=======
x = 2
>>>>>>> REPLACE
```

> Tokens: 104 sent, 20 received.\x20\x20
> The LLM did not conform to the edit format.\x20\x20
> # 1 SEARCH/REPLACE block failed to match!

## SearchReplaceNoExactMatch: This SEARCH block failed to exactly match lines in app.py
<<<<<<< SEARCH
none
=======
x = 2
>>>>>>> REPLACE

The SEARCH section must exactly match an existing block of lines\x20\x20

I give up.

> Tokens: 106 sent, 20 received.\x20\x20
"""


def test_a_longer_text_of_aider_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(LONGER)
    seen = seen_once(path)
    quoting, last = seen.said()
    assert quoting.startswith("They say:\n\n> a quoted line of the model\n\napp.py\n")
    assert last == "I give up."
    assert [(call.tool, call.input, call.outcome) for call in seen.calls.values()] == [
        ("edit", {"path": "app.py"}, "failed")
    ]
    failed = seen.named("aider")[1]
    assert failed.endswith("\n>>>>>>> REPLACE\n\nThe SEARCH section must exactly match an existing block of lines")


def test_an_error_of_the_provider_in_the_middle_of_a_line_ends_the_turn(tmp_path: Path) -> None:
    failed = (
        "\n# aider chat started at 2026-01-05 10:00:00\n\n#### go on\n\n> Error: litellm.RateLimitError: slow down\n"
    )
    seen = seen_once(written(tmp_path, failed))
    assert seen.prompts() == ["go on"]
    assert seen.turns == ["failed"]


@pytest.mark.parametrize(
    "line",
    [
        "Tokens: 1.2.3k sent, 5 received. Cost: $0.0.1 message, $1 session.",
        f"Tokens: {'9' * 400} sent, 5 received. Cost: ${'9' * 400} message, $1 session.",
        f"Add it? {'(Y)' * 60}",
    ],
)
def test_a_line_that_only_looks_like_one_of_aider_ends_no_import(line: str, tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(f"# aider chat started at 2026-01-05 10:00:00\n\n#### go on\n\nDone.\n\n> {line}  \n")
    assert seen_once(path).said() == ["Done."]
