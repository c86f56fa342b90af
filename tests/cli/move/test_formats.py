"""Sessions in the formats of others: written by the command, read by others, and masked when that is asked for."""

import json
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.exporters.transcripts import till, written
from wakelog.model.records import EventDraft

TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
READABLE = ("md", "html", "json", "ndjson", "openai", "claude-code")


@pytest.fixture
def shop(folder: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> str:
    """An imported session, and in the same store one that holds a token that was not known when it was stored."""
    monkeypatch.setenv("WAKELOG_STORE", str(folder / "own"))
    assert cli("import", str(written(till(), folder)), "--yes").code == 0
    with wakelog.open(folder / "own", redact=None) as store:
        store.session("leaky").append(wakelog.UserMessage(f"use {TOKEN} in /home/mira/till"))
    (row,) = [row for row in cli("ls", "--json").data if row["name"] != "leaky"]
    return str(row["name"])


def test_the_html_page_is_written_whole(cli: Cli, shop: str) -> None:
    assert cli("export", shop, "--format", "html", "-o", "page.html").code == 0
    page = Path("page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>\n")
    assert "src/total.py" in page


def test_openai_messages_are_one_array(cli: Cli, shop: str) -> None:
    messages = json.loads(cli("export", shop, "--format", "openai").out)
    assert {m["role"] for m in messages} == {"user", "assistant", "tool"}
    until = json.loads(cli("export", f"{shop}@1", "--format", "openai").out)
    assert until == messages[: len(until)]
    assert len(until) < len(messages)


def test_a_transcript_for_claude_code_can_be_imported_again(cli: Cli, shop: str) -> None:
    assert cli("export", shop, "--format", "claude-code", "-o", "again.jsonl").code == 0
    assert cli("import", "again.jsonl", "--store", "elsewhere", "--yes").code == 0
    (row,) = cli("ls", "--store", "elsewhere", "--json").data
    first, again = (
        cli("log", name, *more, "--json").data for name, more in ((shop, ()), (row["name"], ("--store", "elsewhere")))
    )
    titles = [[turn["input"] for turn in found["turns"]] for found in (first, again)]
    assert titles[0] == titles[1] == ["thanks, and now the tax", "/review 12"]


@pytest.mark.parametrize("form", READABLE)
def test_with_redact_neither_secrets_nor_names_nor_own_words_are_written(cli: Cli, shop: str, form: str) -> None:
    Path("words.txt").write_text("tax\n\nrounded\n")
    masked = cli(
        "export", shop, "--format", form, "--redact", "--redact-words", "words.txt", "--redact-words", "pytest"
    )
    assert masked.code == 0
    for word in ("mira", "rounded", "pytest"):
        assert word in cli("export", shop, "--format", form).out, word
        assert word not in masked.out, word
    leaky = cli("export", "leaky", "--format", form, "--redact")
    assert TOKEN[:12] in cli("export", "leaky", "--format", form).out.replace("\\_", "_")
    assert TOKEN[4:16] not in leaky.out


@pytest.mark.parametrize("form", READABLE)
def test_own_words_are_masked_in_tools_sources_names_and_paths_too(cli: Cli, shop: str, form: str) -> None:
    with wakelog.open("own") as store:
        session = store.session("acme-run", goal="for acme", labels={"customer": "acme"})

        @session.tool(name="acme-search")
        def search(q: str) -> str:
            return f"{q} at /srv/acme/x"

        with session.turn("ask acme"):
            search("acme")
        message = wakelog.UserMessage("from outside")
        session.append(EventDraft(message, trust="untrusted", source="acme.example"))
    masked = cli("export", "acme-run", "--format", form, "--redact", "--redact-words", "acme")
    assert masked.code == 0
    assert "acme" not in masked.out.lower()


def test_the_review_tells_kinds_numbers_and_events_on_stderr(cli: Cli, shop: str) -> None:
    done = cli("export", "leaky", "--format", "md", "--redact", "-o", "leaky.md")
    assert "2 places in 1 event masked:" in done.err
    assert "github-token" in done.err
    assert "user name in a path" in done.err
    assert " e2" in done.err
    assert "places" not in done.out


def test_a_dry_run_only_reviews(cli: Cli, shop: str) -> None:
    done = cli("export", "leaky", "--format", "md", "--redact", "--dry-run", "-o", "leaky.md")
    assert done.code == 0
    assert "2 places in 1 event would be masked:" in done.err
    assert done.out == ""
    assert not Path("leaky.md").exists()


def test_a_clean_session_is_said_to_be_clean(cli: Cli, shop: str) -> None:
    with wakelog.open("own") as store:
        store.session("clean").append(wakelog.UserMessage("hello"))
    assert "nothing masked" in cli("export", "clean", "--format", "md", "--redact").err


@pytest.mark.parametrize(
    "args",
    [
        ("--redact",),
        ("--format", "pytest", "--redact", "-o", "test_x.py"),
        ("--format", "md", "--dry-run"),
        ("--format", "md", "--redact-words", "x"),
    ],
)
def test_what_cannot_be_masked_is_refused(cli: Cli, shop: str, args: tuple[str, ...]) -> None:
    done = cli("export", shop, *args)
    assert done.code == 2
    assert "masked" in done.err or "belong to --redact" in done.err


def test_the_markdown_page_has_prompts_and_answers_as_they_were_said(cli: Cli, shop: str) -> None:
    page = cli("export", shop, "--format", "md").out
    assert "**You**\n\n> /review 12\n" in page
    assert "> Done: totals are rounded & \\<b\\>shown\\</b\\>." in page
    assert "asks for" not in page
    assert "- model: → Read" in page
