"""Shell completion: what is offered, and that it never fails."""

from pathlib import Path

import click
import pytest

from tests.cli.conftest import Cli
from wakelog.cli.app import app
from wakelog.cli.shell_completion import complete_key


def _offered(*words: str) -> list[str]:
    from click.shell_completion import ShellComplete

    completer = ShellComplete(app, {}, "wakelog", "_WAKELOG_COMPLETE")
    *args, incomplete = words
    return [item.value for item in completer.get_completions(args, incomplete)]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_names_the_command(cli: Cli, shell: str) -> None:
    out = cli("completion", shell).out
    assert "_WAKELOG_COMPLETE" in out
    assert "wakelog" in out


def test_commands_and_options(folder: Path) -> None:
    assert {"rewind", "redact", "reopen", "resume"} <= set(_offered("re"))
    assert "--dry-run" in _offered("rewind", "--dr")


def test_sessions_turns_and_checkpoints(folder: Path) -> None:
    assert _offered("rewind", "fix") == ["fix-bug"]
    assert _offered("rewind", "fix-bug@1") == ["fix-bug@12", "fix-bug@11", "fix-bug@10", "fix-bug@1"]
    assert _offered("checkpoint", "-s", "fix-bug", "be") == ["before-fix"]
    assert _offered("rewind", "-s", "fix-bug", "cp:") == ["cp:before-fix"]
    assert _offered("delete", "--store", "nowhere", "fix") == []


@pytest.mark.parametrize("command", ["log", "show", "diff", "status", "tail", "verify", "files", "brief"])
def test_looking_commands_offer_sessions(folder: Path, command: str) -> None:
    assert _offered(command, "fix") == ["fix-bug"]
    assert _offered(command, "-s", "fix") == ["fix-bug"]


def test_keys_and_the_session_option_are_offered_where_they_are_asked_for(folder: Path) -> None:
    for command in ("state", "blame"):
        assert _offered(command, "-s", "fix-bug", "/data/") == ["/data/plan", "/data/risk"]
        assert "fix-bug@12" in _offered(command, "--at", "fix-bug@1")
    assert _offered("search", "word", "-s", "fix") == ["fix-bug"]
    assert {"rewind", "redo"} <= set(_offered("help", "re"))


def test_a_shell_that_evaluates_the_script_is_told_nothing_more(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("wakelog.cli.context.CommandContext.suggest", lambda self, *words: said.extend(words))
    assert cli("completion", "bash").code == 0
    assert said == []


def test_settings_demos_and_keys(folder: Path) -> None:
    assert _offered("config", "get", "ret")[0] == "retention.keep"
    assert _offered("demo", "f") == ["fix-bug", "fleet"]
    context = click.Context(click.Command("state"))
    context.params["session_name"] = "fix-bug"
    param = click.Argument(["key"])
    assert [i.value for i in complete_key(context, param, "/data/")] == ["/data/plan", "/data/risk"]
    assert [i.value for i in complete_key(context, param, "/fac")] == ["/facts"]
    assert complete_key(context, param, "/no/such") == []


def test_damaged_store_offers_nothing_and_does_not_fail(folder: Path) -> None:
    (folder / "demo/log.db").write_bytes(b"garbage")
    assert _offered("rewind", "fix") == []
