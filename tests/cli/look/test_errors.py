"""What goes wrong says what, where, why and what to try, with its own exit code."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.engines.nats_server import NatsServer
from tests.engines.postgres_server import Server
from wakelog.store import open as open_store

CASES = [
    # args, exit code, kind, and what the message and hint must name
    (("log", "fix-auth@14"), 3, "turn-not-found", ("@14", "fix-auth", "@1..@6", "fix-auth@6")),
    (("show", "fix-auth@4.9"), 3, "attempt-not-found", ("@4.9", "@4.1..@4.2")),
    (("show", "-s", "fix-auth", "e999"), 3, "event-not-found", ("e999", "e1..e83", "e83")),
    (("show", "-s", "fix-auth", "c:ffff"), 3, "commit-not-found", ("c:ffff", "fix-auth")),
    (("show", "-s", "fix-auth", "cp:nope"), 3, "checkpoint-not-found", ("nope", "before-fix")),
    (("status", "fix-auht"), 3, "session-not-found", ("fix-auht", "did you mean fix-auth?")),
    (("status", "last"), 3, "session-not-found", ("last", "wakelog show .")),
    (("status", "nothing-like-it"), 3, "session-not-found", ("nothing-like-it", "wakelog ls")),
    (("log", "@@"), 2, "bad-selector", ("@@",)),
    (("log", "fix-auth", "--since", "soon"), 2, "bad-time", ("soon", "2h")),
    (("state", "/nope", "-s", "fix-auth"), 3, "key-not-found", ("/nope",)),
    (("state", "/plan/1", "-s", "fix-auth"), 3, "key-not-found", ("/plan/1", "/data/plan/1")),
    (("state", "/data/plan/7", "-s", "fix-auth"), 3, "key-not-found", ("/data/plan/0..",)),
    (("state", "/factz", "-s", "fix-auth"), 3, "key-not-found", ("/factz", "/facts")),
    (("state", "data.plan.0", "-s", "fix-auth"), 2, "bad-key", ("data.plan.0", "/data/plan/0")),
    (("state", "plan", "-s", "fix-auth"), 2, "bad-key", ("/data/plan",)),
    (("blame", "/nope", "-s", "fix-auth"), 3, "key-not-found", ("/nope",)),
    (("diff", "fix-auth@4", "@9"), 3, "turn-not-found", ("@9",)),
    (("diff", "fix-auth@1..@2", "@3"), 2, "bad-selector", ("fix-auth@1..@2",)),
    (("state", "--at", "fix-auth@0"), 3, "event-not-found", ("@0", "fix-auth", "e1")),
    (("show", "fix-auth@0"), 3, "event-not-found", ("@0", "fix-auth", "e1")),
    (("tail", "fix-auth@3"), 2, "bad-selector", ("wakelog log",)),
    (("status", "fix-auth", "--at", "try-redis@1"), 2, "bad-selector", ("try-redis@1",)),
    (("query", "select * from nowhere"), 2, "bad-sql", ("nowhere", "sessions")),
]


@pytest.mark.parametrize(("args", "code", "kind", "names"), CASES, ids=[" ".join(case[0]) for case in CASES])
def test_error_names_what_was_typed_and_what_is_near(
    look: Cli, args: tuple[str, ...], code: int, kind: str, names: tuple[str, ...]
) -> None:
    result = look(*args)
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("error: ")
    assert f"[{kind}]" in result.err
    for name in names:
        assert name in result.err


@pytest.mark.parametrize(("args", "code", "kind"), [case[:3] for case in CASES], ids=[" ".join(c[0]) for c in CASES])
def test_error_is_json_when_json_was_asked_for(look: Cli, args: tuple[str, ...], code: int, kind: str) -> None:
    result = look(*args, "--json")
    assert (result.code, result.out) == (code, "")
    assert result.error.keys() == {"kind", "message", "hint", "retryable"}
    assert result.error["kind"] == kind
    assert result.error["retryable"] is False


@pytest.mark.parametrize(
    "args",
    [
        ("ls", "--status", "sleeping"),
        ("diff", "a", "b", "c"),
        ("diff", "/a", "/b"),
        ("query",),
        ("search",),
        ("tail", "fix-auth", "--all"),
        ("log", "-n", "-1"),
        ("show", "--max-bytes", "x"),
    ],
)
def test_wrong_usage_exits_with_two(look: Cli, args: tuple[str, ...]) -> None:
    result = look(*args)
    assert result.code == 2
    assert "[usage]" in result.err


def test_looking_at_no_store_is_not_an_empty_answer(cli: Cli, tmp_path: Path) -> None:
    for command in ("status", "ls", "log", "show", "state", "diff", "blame", "tail", "ps"):
        result = cli(command, "--store", str(tmp_path / "none"))
        assert result.code == 3
        assert "[store-not-found]" in result.err
    assert not (tmp_path / "none").exists()


def test_a_store_that_is_missing_on_a_server_has_to_be_made_there(cli: Cli, nats: NatsServer, postgres: Server) -> None:
    with postgres.database() as empty:
        for url in (nats.url.replace("/wakelog?", "/misspelt?"), empty):
            result = cli("ls", "--store", url)
            assert result.code == 3
            assert "[store-not-found]" in result.err
            assert "hint: wakelog store create URL makes it" in result.err


def test_store_without_sessions_says_so(cli: Cli, tmp_path: Path) -> None:
    open_store(tmp_path).close()
    assert cli("ls", "--store", str(tmp_path)).out == "no sessions\n"
    assert cli("ps", "--store", str(tmp_path)).out == "nothing is live\n"
    assert cli("ps", "--over-budget", "--store", str(tmp_path)).out == "nothing is over its budget\n"
    assert cli("ps", "--failed", "--stuck", "--store", str(tmp_path)).out == "nothing failed or is stuck\n"
    result = cli("status", "--store", str(tmp_path))
    assert result.code == 3
    assert "no session yet" in result.err


def test_ambiguous_prefix_lists_candidates(look: Cli) -> None:
    result = look("status", "s_01M7G")
    assert result.code == 3
    assert "[ambiguous-session]" in result.err
    assert "fix-auth" in result.err
    assert "nightly-report" in result.err


def test_deleted_session_is_not_found(cli: Cli, tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        session = store.session("gone")
        store.delete(session)
    result = cli("status", session.id, "--store", str(tmp_path))
    assert result.code == 3
    assert "[session-deleted]" in result.err


def test_broken_pipe_is_no_error(demo: Path) -> None:
    import subprocess
    import sys

    script = f"{sys.executable} -m wakelog log fix-auth --events -n 0 --store {demo} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=180)
    assert done.stdout.splitlines()[-1] == "0"
    assert "Traceback" not in done.stderr


def test_a_store_in_this_folder_is_named_when_none_was_chosen(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.db").write_bytes(b"not a store")
    assert "wakelog demo makes a store" in cli("ls").err
    with open_store(tmp_path / "demo.db") as store:
        store.session("fix-login")
        list(store.index.sessions())
    assert "hint: demo.db is a store in this folder: add --store demo.db" in cli("ls").err
    assert "fix-login" in cli("ls", "--store", "demo.db").out
    open_store(tmp_path / "tutorial").close()
    assert "demo.db and tutorial are" in cli("ls").err or "demo.db, tutorial are stores" in cli("ls").err


@pytest.mark.parametrize(("word", "command"), [("list", "ls"), ("history", "log"), ("version", "--version")])
def test_the_words_of_other_tools_lead_to_ours(cli: Cli, word: str, command: str) -> None:
    assert f"Did you mean {command}?" in cli(word).err


def test_a_filter_that_leaves_nothing_says_what_there_is(cli: Cli, tmp_path: Path) -> None:
    with open_store(tmp_path / "s") as store:
        store.session("one", agent="claude-code")
        store.session("two", agent="codex")
    said = cli("ls", "--agent", "claude", "--store", str(tmp_path / "s"))
    assert said.out == "no session matches, of 2 in this store; its agents are claude-code, codex\n"
    assert cli("ls", "--name", "x*", "--store", str(tmp_path / "s")).out == "no session matches, of 2 in this store\n"
    assert "nothing was spent since 7d" in cli("cost", "--since", "7d", "--store", str(tmp_path / "s")).out


@pytest.mark.parametrize(
    ("link", "place"),
    [
        ("http://127.0.0.1:8426/s/fix-auth", "fix-auth"),
        ("http://127.0.0.1:8426/s/fix-auth/@4?tab=diff", "fix-auth@4"),
        ("https://host/base/s/fix-auth/e12", "fix-auth@e12"),
        ("http://127.0.0.1:8426/s/fix-auth/@4/state/plan/2", "fix-auth@4"),
        ("http://127.0.0.1:8426/s/fix-auth/diff/@1..@2", "fix-auth@1..@2"),
    ],
)
def test_an_address_of_the_page_is_taken_as_the_place_it_shows(look: Cli, link: str, place: str) -> None:
    assert look("show", link).out == look("show", place).out
    assert look("show", link).code == 0


def test_blame_of_a_file_leads_to_why(look: Cli) -> None:
    assert "of a file, ask: wakelog why session.py" in look("blame", "session.py", "-s", "fix-auth").err


def test_a_fact_that_was_recorded_again_is_no_change_of_its_value(cli: Cli, tmp_path: Path) -> None:
    with open_store(tmp_path / "s") as store:
        session = store.session("again")
        for _ in range(2):
            with session.turn("look"):
                session.fact("ttl", "300 s")
    shown = cli("diff", "again@2", "--store", str(tmp_path / "s")).out
    assert '"300 s"  (recorded again)' in shown
    assert "→ " not in shown.split("state", 1)[1]


def test_the_library_says_where_a_session_comes_from() -> None:
    """In a process of its own: once a store is open, `wakelog.session` is the module of that name."""
    code = "import wakelog; wakelog.session('demo')"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    assert "has no attribute 'session': open a store first, then store.session(...)" in said
