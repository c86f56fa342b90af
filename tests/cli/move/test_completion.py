"""Shell completion: what is offered, and that it never fails."""

import os
from pathlib import Path

import click
import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog.cli.app import app
from wakelog.cli.command_table import TAKES_PLACE, TAKES_SESSION
from wakelog.cli.options import complete_names, complete_places
from wakelog.cli.quick_completion import quick_answer
from wakelog.cli.shell_completion import complete_key, complete_selector
from wakelog.engines.sqlite import connection, session_names


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


# The quick way, without click


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_quick_answer_is_the_one_that_click_gives(
    folder: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    lines = [
        "",
        "st",
        "re",
        "zzz",
        "status fix",
        "st fix",
        "log -s ",
        "log -s fix",
        "show --session f",
        "status fix-bugs",
    ]
    for line in lines:
        quick, slow = _both(monkeypatch, shell, line.split(" "))
        assert quick == slow, line
        assert ("fix-bug" in slow) == (line.split(" ")[-1] in ("", "f", "fix") and " " in line), line


def test_what_is_not_simple_is_left_to_click(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["--", "status ", "status cp:", "status fix-bug@1", "status --", "state /", "status -s x y", "nothing x"]
    for line in [*lines, "status las", "status 'fix", "store check x"]:
        monkeypatch.setenv("COMP_WORDS", f"wakelog {line}")
        assert _quick(monkeypatch, "bash", line.split(" ")) is None, line
    monkeypatch.setenv("WAKELOG_STORE", "postgresql://nowhere/x")
    assert _quick(monkeypatch, "bash", ["status", "fix"]) is None


def test_a_store_named_by_a_setting_is_left_to_click(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WAKELOG_STORE", "WAKELOG_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    with wakelog.open(tmp_path / ".wakelog") as store:
        store.session("fix-bug")
    assert _both(monkeypatch, "bash", ["status", "fix"]) == ("plain,fix-bug", "plain,fix-bug")
    (tmp_path / "wakelog.toml").write_text('[store]\npath = "elsewhere"\n')
    assert _both(monkeypatch, "bash", ["status", "fix"]) == (None, "")


def _quick(monkeypatch: pytest.MonkeyPatch, shell: str, words: list[str]) -> str | None:
    """What a shell is told about these words, of which the last is not finished."""
    monkeypatch.setenv("_WAKELOG_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["wakelog", *words]))
    monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words)))
    return quick_answer(os.environ)


def _both(monkeypatch: pytest.MonkeyPatch, shell: str, words: list[str]) -> tuple[str | None, str]:
    from click.shell_completion import get_completion_class

    quick, kind = _quick(monkeypatch, shell, words), get_completion_class(shell)
    assert kind is not None
    return quick, kind(app, {}, "wakelog", "_WAKELOG_COMPLETE").complete()


def test_commands_that_are_answered_quickly_take_a_place_and_a_session() -> None:
    for name in TAKES_PLACE | TAKES_SESSION:
        command = app.get_command(click.Context(app), name)
        assert command is not None
        first = next(p for p in command.params if isinstance(p, click.Argument))
        wanted = (complete_places, complete_selector) if name in TAKES_PLACE else (complete_names,)
        assert first._custom_shell_complete in wanted, name
        assert [p._custom_shell_complete for p in command.params if "-s" in p.opts] == [complete_names], name


def test_names_are_read_from_files_of_this_schema_only() -> None:
    assert session_names._KNOWN == (connection.APPLICATION_ID, connection.SCHEMA_VERSION)
