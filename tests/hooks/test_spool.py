"""What `wakelog hook` promises: silent, successful, nothing lost that can be kept, nothing kept that is secret."""

import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from platformdirs import user_cache_path, user_config_path, user_data_path

from tests.files.repository import GitRepository, needs_git
from wakelog.config.folders import user_folder
from wakelog.hooks import spool, spool_files

PROMPT = {"session_id": "0a1b2c3d-1111", "hook_event_name": "UserPromptSubmit", "cwd": "/w", "prompt": "fix it"}
LIMIT = 4096


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def run(*args: str, given: bytes | None = None, **how) -> subprocess.CompletedProcess:
    """`wakelog hook …` as an agent runs it."""
    source = {"stdin": subprocess.DEVNULL} if given is None else {"input": given}
    return subprocess.run(
        [sys.executable, "-m", "wakelog", "hook", *args], capture_output=True, timeout=180, **source, **how
    )


def is_silent(done: subprocess.CompletedProcess) -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def taken() -> list[spool_files.SpooledRecord]:
    Path(spool.data_folder()).mkdir(exist_ok=True)
    with spool_files.spool_lock() as has:
        assert has
        file = spool_files.take_file()
        return [*file.records] if file else []


def test_what_an_agent_says_is_kept_with_its_time(data: Path) -> None:
    assert is_silent(run("claude-code", given=json.dumps(PROMPT, indent=2).encode()))
    [record] = taken()
    assert (record.agent, record.data, record.event) == ("claude-code", PROMPT, "UserPromptSubmit")
    assert record.at_us > 1_700_000_000_000_000
    assert spool_files.last_seen_us("claude-code") > 0


def test_codex_notify_takes_its_json_from_the_command_line(data: Path) -> None:
    said = {"type": "agent-turn-complete", "thread-id": "t1", "turn-id": "1", "input-messages": ["hi"]}
    assert is_silent(run("codex-notify", json.dumps(said)))
    [record] = taken()
    assert (record.origin, record.event) == ("t1", "agent-turn-complete")


def test_the_environment_is_never_recorded(data: Path) -> None:
    assert is_silent(run("codex", given=b'{"session_id": "s"}', env={**os.environ, "SOME_API_KEY": "hush-hush-hush"}))
    assert all(b"hush" not in path.read_bytes() for path in data.rglob("*") if path.is_file())


def test_only_the_user_can_read_the_spool(data: Path) -> None:
    assert is_silent(run("gemini", given=b'{"session_id": "s"}'))
    found = [data, *data.rglob("*")]
    assert len(found) > 3
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in found)


@pytest.mark.parametrize("given", [None, b"", b"  \n", b"not json", b'{"cut": ', b"[1, 2]", b"\xff\xfe", b"\0" * 50])
def test_input_that_says_nothing_does_no_harm(data: Path, given: bytes | None) -> None:
    assert is_silent(run("claude-code", given=given))
    assert taken() == []


def test_no_stdin_at_all_does_no_harm(data: Path) -> None:
    assert is_silent(run("claude-code", preexec_fn=lambda: os.close(0)))


@pytest.mark.parametrize("args", [("no-such-agent",), ("codex-notify",), ("claude-code", "--odd", "x")])
def test_a_wrong_command_line_is_silent_too(data: Path, args: tuple[str, ...]) -> None:
    assert is_silent(run(*args))


def test_a_huge_input_is_cut_and_still_says_whose_it_is(data: Path) -> None:
    said = {**PROMPT, "hook_event_name": "PostToolUse", "tool_use_id": "toolu_1", "tool_response": "x" * (6 << 20)}
    assert is_silent(run("claude-code", given=json.dumps(said).encode()))
    [record] = taken()
    assert record.is_cut
    assert (record.origin, record.event, record.data["tool_use_id"]) == ("0a1b2c3d-1111", "PostToolUse", "toolu_1")
    assert "tool_response" not in record.data
    assert record.size_bytes == spool.KEEP_MAX


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))


def test_a_full_disk_is_survived_and_told_as_a_gap(data: Path) -> None:
    assert is_silent(run("claude-code", given=json.dumps(PROMPT).encode()))
    big = json.dumps({**PROMPT, "prompt": "y" * 3 * LIMIT}).encode()
    assert is_silent(run("claude-code", given=big, preexec_fn=_small_files))
    assert is_silent(run("claude-code", given=big, preexec_fn=_small_files))
    gaps = spool_files.read_gaps()
    assert gaps.count == 2
    assert {agent for _, agent, _ in gaps.newest} == {"claude-code"}
    # What stands before the torn line is whole, and so is what comes after it.
    assert is_silent(run("claude-code", given=json.dumps({**PROMPT, "prompt": "again"}).encode()))
    assert [record.data["prompt"] for record in taken()] == ["fix it", "again"]


def test_a_data_folder_that_cannot_be_made_does_no_harm(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    done = run("claude-code", given=json.dumps(PROMPT).encode(), env={**os.environ, "WAKELOG_DATA": str(blocker / "x")})
    assert is_silent(done)
    assert blocker.read_text() == "in the way"


def test_a_spool_that_is_a_file_is_told_as_a_gap(data: Path) -> None:
    data.mkdir()
    spool.prepare_gaps()
    (data / "spool").write_text("")
    assert is_silent(run("gemini", given=json.dumps(PROMPT).encode()))
    assert spool_files.read_gaps().count == 1


def test_the_hook_loads_nothing_heavy(data: Path) -> None:
    program = (
        "import sys; sys.argv = ['wakelog', 'hook', 'claude-code']\n"
        "from wakelog.cli import main\n"
        "try: main()\n"
        "except SystemExit as exc: assert exc.code == 0\n"
        "print(*sys.modules)"
    )
    bare, loaded = (
        {
            *subprocess.run([sys.executable, "-c", code], input=b'{"session_id": "s"}', capture_output=True, check=True)
            .stdout.decode()
            .split()
        }
        for code in ("import sys; print(*sys.modules)", program)
    )
    loaded -= bare  # what the installation brings with it is not the hook's
    ours = {name for name in loaded if name.startswith("wakelog")}
    assert ours == {"wakelog", "wakelog.cli", "wakelog.hooks", "wakelog.hooks.spool"}
    assert not loaded & {"click", "msgspec", "apsw", "json", "typing", "re", "subprocess", "pathlib"}


def test_the_data_folder_is_where_platformdirs_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WAKELOG_DATA", raising=False)
    for name, value in (("XDG_DATA_HOME", str(tmp_path)), ("XDG_DATA_HOME", ""), ("HOME", str(tmp_path))):
        monkeypatch.setenv(name, value)
        assert Path(spool.data_folder()) == user_data_path("wakelog", appauthor=False)


def test_every_folder_of_the_user_is_where_platformdirs_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = {"data": user_data_path, "config": user_config_path, "cache": user_cache_path}
    for what, wanted in found.items():
        variable = f"XDG_{what.upper()}_HOME"
        for name, value in ((variable, str(tmp_path)), (variable, ""), (variable, " "), ("HOME", str(tmp_path))):
            monkeypatch.setenv(name, value)
            assert Path(user_folder(what)) == wanted("wakelog", appauthor=False)


# Without a process of its own


def test_a_file_taken_between_opening_and_locking_loses_nothing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.append("codex", b'{"session_id": "first"}')
    really = spool._open

    def slow_open(name: str, folder: str) -> int:
        file = really(name, folder)
        monkeypatch.setattr(spool, "_open", really)
        assert [r.origin for r in taken()] == ["first"]
        return file

    monkeypatch.setattr(spool, "_open", slow_open)
    spool.append("codex", b'{"session_id": "second"}')
    assert [r.origin for r in taken()] == ["first", "second"]


def test_a_locked_file_is_gone_around(data: Path) -> None:
    import fcntl

    spool.append("codex", b'{"session_id": "first"}')
    [path] = (data / "spool").glob("*.log")
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        spool.append("codex", b'{"session_id": "second"}')
    assert sorted(r.origin for r in taken()) == ["first", "second"]


def test_damaged_lines_are_counted_and_the_rest_is_read() -> None:
    good = [spool.frame("codex", json.dumps({"session_id": str(n)}).encode(), at_us=n + 1) for n in range(4)]
    torn = good[1][: len(good[1]) // 2]
    altered = good[2].replace(b'"2"', b'"3"')
    records, broken = spool_files.read_records(good[0] + torn + altered + b"\0" * 40 + b"\nnoise\n" + good[3])
    assert [r.origin for r in records] == ["0", "3"]
    assert broken == 3


def test_what_could_not_be_taken_in_stays(data: Path) -> None:
    for n in range(3):
        spool.append("codex", json.dumps({"session_id": str(n)}).encode())
    with spool_files.spool_lock():
        file = spool_files.take_file()
        assert file is not None
        spool_files.keep_only(file, [r for r in file.records if r.origin == "1"])
        file = spool_files.take_file()
        assert file is not None
        assert [r.origin for r in file.records] == ["1"]
        spool_files.keep_only(file, [])
    assert not spool.is_waiting()


def test_a_spool_nobody_takes_in_stops_growing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "FILE_MAX", 100)
    spool.append("codex", b'{"session_id": "%s"}' % (b"x" * 100))
    with pytest.raises(OSError, match="no command reads"):
        spool.append("codex", b'{"session_id": "more"}')


@needs_git
def test_a_beginning_in_a_git_folder_tells_the_place(data: Path, tmp_path: Path) -> None:
    repo = GitRepository(tmp_path / "shop")
    made = repo.commit("begin")
    given = json.dumps({**PROMPT, "cwd": str(repo.folder)}).encode()
    assert is_silent(run("claude-code", given=given))
    assert is_silent(run("claude-code", given=given.replace(b"UserPromptSubmit", b"Stop")))
    prompt, place, stop = taken()
    assert (prompt.event, place.event, stop.event) == ("UserPromptSubmit", "git.seen", "Stop")
    assert (place.origin, place.data["branch"], place.data["commit"]) == (prompt.origin, "main", made)
