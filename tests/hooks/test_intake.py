"""Taking the spool in: what hooks said becomes sessions, once, and together with transcripts."""

import json
import re
import shutil
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wakelog
from tests.hooks.conversation import CLAUDE, claude, spooled, write_transcript
from wakelog.errors import UnavailableError
from wakelog.hooks import spool, spool_files
from wakelog.hooks.agents import AGENTS
from wakelog.hooks.hook_events import HELD_US, SETTLE_US
from wakelog.hooks.intake import KEEP_US, PATIENCE_US, IntakeReport, take_in

NAME = "claude-0a1b2c3d"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("WAKELOG_STORE", raising=False)
    return str(tmp_path / "store")


def take(url: str = "", **how):
    return take_in(wakelog.open, into=url, **how)


def kinds(url: str, name: str = NAME) -> list[str]:
    with wakelog.open(url) as store:
        return [entry.kind for entry in store.resume(name).log.entries()]


def bodies(url: str, kind: str, name: str = NAME) -> list[dict]:
    with wakelog.open(url) as store:
        return [entry.body for entry in store.resume(name).log.entries() if entry.kind == kind]


def test_without_a_transcript_the_hooks_are_the_session(url: str) -> None:
    spooled(claude())
    report = take(url)
    assert (report.sessions, report.records, report.troubles) == ([NAME], len(claude()), [])
    assert not spool.is_waiting()
    with wakelog.open(url) as store:
        session = store.resume(NAME)
        state = session.log.state()
        assert session.verify().ok
    assert state["labels"] == {
        "agent": "claude-code",
        "origin": CLAUDE,
        "project": "/w",
        "capture": "hooks",
        "model": "model-1",
    }
    assert state["status"] == "closed"
    assert state["turn"]["number"] == 2
    assert kinds(url) == [
        "session.opened",
        "labels.set",
        "resource.touched",
        "turn.started",
        "message.added",
        "action.requested",
        "action.succeeded",
        "action.requested",
        "action.failed",
        "action.requested",
        "input.requested",
        "x.hook.notification",
        "input.answered",
        "action.succeeded",
        "action.requested",
        "action.denied",
        "x.hook.subagent_start",
        "x.hook.subagent_stop",
        "x.hook.pre_compact",
        "x.hook.post_compact",
        "resource.touched",
        "message.added",
        "turn.ended",
        "turn.started",
        "message.added",
        "action.requested",
        "action.uncertain",
        "turn.ended",
        "session.closed",
    ]
    assert [b.get("outcome") for b in bodies(url, "turn.ended")][1:] == ["interrupted"]
    assert [bodies(url, "input.answered")[0][key] for key in ("answer", "by")] == ["allow", "user"]
    assert bodies(url, "action.denied")[0]["why"] == "not asked for"
    assert state["pending_actions"]["t5"]["status"] == "uncertain"
    assert all(body["occurred_at"] for body in bodies(url, "turn.started"))


def test_a_question_that_no_call_followed_was_denied_by_nobody_that_is_known(url: str) -> None:
    said = claude()
    spooled([*said[:9], said[18]])
    take(url)
    (answer,) = bodies(url, "input.answered")
    assert (answer["answer"], answer.get("by", ""), answer["why"]) == ("deny", "", "the call did not run")


def test_beside_a_transcript_hooks_add_what_only_they_know(url: str, tmp_path: Path) -> None:
    path = write_transcript(tmp_path / "projects" / "-w" / f"{CLAUDE}.jsonl")
    spooled(claude(transcript=str(path)))
    assert take(url).troubles == []
    found = kinds(url)
    assert found.count("turn.started") == 1  # the file's; hooks tell of the second, and it is not in the file yet
    assert found.count("action.recorded") == 2  # the model's answer, and its call
    assert "action.requested" not in found
    assert {"input.requested", "input.answered", "x.hook.permission_denied", "resource.touched"} <= {*found}
    assert found[-2:] == ["turn.ended", "session.closed"]
    with wakelog.open(url) as store:
        labels = store.resume(NAME).log.state()["labels"]
        assert "capture" not in labels
        assert labels["origin"] == CLAUDE
        assert store.resume(NAME).verify().ok


def test_a_transcript_that_grows_is_imported_bit_by_bit(url: str, tmp_path: Path) -> None:
    path = write_transcript(tmp_path / f"{CLAUDE}.jsonl")
    said = claude(transcript=str(path))
    spooled(said[:5])
    take(url)
    before = kinds(url)
    more = {"sessionId": CLAUDE, "cwd": "/w", "version": "2.1.0", "timestamp": datetime.now(UTC).isoformat()}
    answer = {"id": "m2", "role": "assistant", "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
    with path.open("a") as out:
        out.write(json.dumps({**more, "type": "assistant", "uuid": "u4", "parentUuid": "u3", "message": answer}) + "\n")
    spooled([said[18]])
    take(url)
    assert kinds(url)[: len(before)] == before
    assert kinds(url)[len(before) :] == ["action.recorded", "turn.ended", "records.imported"]


def test_an_imported_transcript_and_hooks_meet_in_one_session(url: str, tmp_path: Path) -> None:
    from wakelog.importers.transcript_import import import_transcript

    path = write_transcript(tmp_path / f"{CLAUDE}.jsonl")
    with wakelog.open(url) as store:
        import_transcript(store, path)
    spooled(claude(transcript=str(path))[8:12])
    take(url)
    with wakelog.open(url) as store:
        assert [head.name for head in store.engine.sessions()] == [NAME]


def test_a_second_intake_of_the_same_records_adds_nothing(url: str) -> None:
    """A process that died after the append, and before it deleted the file."""
    spooled(claude())
    files = Path(spool.spool_folder())
    [path] = files.glob("*.log")
    content = path.read_bytes()
    take(url)
    before = kinds(url)
    (files / "claude-code-again.taken").write_bytes(content)
    assert take(url).troubles == []
    assert kinds(url) == before


def test_a_hook_that_two_settings_name_counts_once(url: str) -> None:
    spooled([each for said in claude()[:6] for each in (said, said)])
    take(url)
    assert kinds(url).count("action.requested") == 2
    assert kinds(url).count("turn.started") == 1


def test_a_transcript_that_is_named_is_waited_for(url: str, tmp_path: Path) -> None:
    path = tmp_path / f"{CLAUDE}.jsonl"
    spooled(claude(transcript=str(path))[:5])
    report = take(url)
    assert (report.records, report.waiting) == (0, 5)
    write_transcript(path)
    assert take(url).records == 5
    assert kinds(url).count("turn.started") == 1


def test_a_transcript_that_cannot_be_read_is_not_waited_for(url: str, tmp_path: Path) -> None:
    path = tmp_path / f"{CLAUDE}.jsonl"
    path.write_text("of a version that nobody knows yet\n")
    spooled(claude(transcript=str(path))[:5])
    assert take(url).records == 5
    assert kinds(url).count("action.succeeded") == 1


def test_a_transcript_that_never_comes_is_not_waited_for_for_ever(url: str, tmp_path: Path) -> None:
    said = claude(transcript=str(tmp_path / "never.jsonl"))
    spooled(said[:5])
    assert take(url).waiting == 5
    later = max(r.at_us for r in _taken()) + PATIENCE_US
    assert take(url, now_us=later).records == 5
    assert kinds(url).count("action.succeeded") == 1
    spooled(said[5:])  # and from then on it is known
    assert take(url).waiting == 0


def test_a_transcript_that_stays_damaged_is_not_waited_for_for_ever(url: str, tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    whole = json.dumps({"sessionId": "s1", "projectHash": "p", "messages": [{"id": "m1", "type": "user"}]})
    path.write_text(whole[:-3])
    spooled(claude(transcript=str(path))[:5])
    report = take(url)
    assert (report.waiting, report.troubles) == (5, [])
    later = max(r.at_us for r in _taken()) + PATIENCE_US
    assert take(url, now_us=later).records == 5
    assert kinds(url).count("action.succeeded") == 1


def _away(place: str) -> wakelog.Store:
    raise UnavailableError("the database is away", kind="unavailable")


def _taken() -> list[spool_files.SpooledRecord]:
    with spool_files.spool_lock():
        file = spool_files.take_file()
        return [*file.records] if file else []


def test_a_store_that_is_away_loses_nothing(url: str) -> None:
    spooled(claude()[:3])
    assert take_in(_away).troubles == ["the database is away"]
    assert take(url).records == 3


def test_sessions_go_to_the_store_of_their_project_and_else_to_the_users(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKELOG_CONFIG", str(tmp_path / "none.toml"))
    (tmp_path / "with" / ".wakelog").mkdir(parents=True)
    (tmp_path / "without").mkdir()
    other = "9f9f9f9f-0000-4000-8000-000000000002"
    spooled(claude(cwd=str(tmp_path / "with"))[:3])
    spooled(claude(cwd=str(tmp_path / "without"), origin=other)[:3])
    assert take_in(wakelog.open).troubles == []
    assert NAME in _names(tmp_path / "with" / ".wakelog")
    assert _names(tmp_path / "data" / "store") == ["claude-9f9f9f9f"]
    assert not list((tmp_path / "without").iterdir())


def _names(place: Path) -> list[str]:
    with wakelog.open(place, create=False) as store:
        return [head.name for head in store.engine.sessions()]


def test_bad_lines_are_counted_as_gaps(url: str) -> None:
    spooled(claude()[:3])
    spool.append("claude-code", b"{broken")
    report = take(url)
    assert (report.records, report.broken) == (3, 1)
    assert spool_files.read_gaps().count == 1


def test_a_record_that_names_no_session_is_counted_as_a_gap(url: str) -> None:
    spooled(claude()[:3])
    spool.append("claude-code", b'{"hook_event_name": "SessionStart"}')
    take(url)
    take(url)  # and counted once
    assert _names(Path(url)) == [NAME]
    assert spool_files.read_gaps().count == 1


@pytest.mark.parametrize("origin", ["../..", "会话"])
def test_an_id_without_a_character_for_names_still_gets_a_name_of_its_own(url: str, origin: str) -> None:
    spooled(claude(origin=origin)[:3])
    spooled(claude(origin="//")[:3])
    take(url)
    names = _names(Path(url))
    assert len(names) == 2
    assert all(re.fullmatch("claude-[0-9a-f]{8}", name) for name in names)


def test_what_cannot_be_taken_in_for_a_month_becomes_a_gap(url: str) -> None:
    spooled(claude()[:3])
    assert take_in(_away).waiting == 3
    later = max(r.at_us for r in _taken()) + KEEP_US
    assert take_in(_away, now_us=later).waiting == 0
    assert spool_files.read_gaps().count == 3


def test_copies_that_a_crash_left_in_the_spool_count_once(url: str) -> None:
    spooled(claude())
    [path] = Path(spool.spool_folder()).glob("*.log")
    for name in ("a", "b"):
        path.with_name(f"{name}.taken").write_bytes(path.read_bytes())
    assert take(url).records == len(claude())
    assert kinds(url).count("turn.started") == 2


def test_hooks_that_write_while_the_spool_is_taken_in_lose_nothing(url: str) -> None:
    writers, each = 4, 50
    seen: list[str] = []
    is_over = threading.Event()

    def write(number: int) -> None:
        for n in range(each):
            spool.append("codex", json.dumps({"session_id": f"{number}-{n}"}).encode())

    def read() -> None:
        while True:
            last = is_over.is_set()
            with spool_files.spool_lock():
                file = spool_files.take_file()
                if file is not None:
                    seen.extend(r.origin for r in file.records)
                    spool_files.keep_only(file, [])
            if last:
                return

    threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
    reader = threading.Thread(target=read)
    for thread in (*threads, reader):
        thread.start()
    for thread in threads:
        thread.join()
    is_over.set()
    reader.join()
    assert sorted(seen) == sorted(f"{number}-{n}" for number in range(writers) for n in range(each))


EVENTS = sorted({event for agent in AGENTS.values() for event in agent.events} | {"files.after", "Odd Kind", ""})
odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ("prompt", "tool_name", "tool_input", "tool_use_id", "tool_response", "error", "reason", "files", "cwd", "$x")


@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.dictionaries(st.sampled_from(FIELDS), odd)), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
def test_nothing_that_an_agent_says_stops_the_intake(url: str, said) -> None:
    shutil.rmtree(spool.spool_folder(), ignore_errors=True)
    for event, fields in said:
        text = json.dumps({"session_id": CLAUDE, **fields, "hook_event_name": event}).encode()
        spool.append("gemini", text)
    report = take_in(lambda place: wakelog.open("memory:"), into="memory:")
    assert (report.troubles, report.broken) == ([], 0)


# Files that a shell command changes


def test_files_that_a_shell_command_names_are_kept_before_and_after(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (folder / "gone.txt").write_text("bye\n")
    (folder / ".env").write_text("SECRET=1\n")
    common: dict = {"session_id": CLAUDE, "cwd": str(folder), "tool_name": "Bash", "tool_use_id": "t1"}
    common["tool_input"] = {"command": "sed -i s/one/two/ a.txt && rm 'gone.txt'; echo x > new.txt; cat .env"}
    _hook({**common, "hook_event_name": "PreToolUse"})
    assert take(url).waiting == 1  # the call runs
    assert take_in(_away) == IntakeReport(waiting=1)  # no store is opened for it again
    (folder / "a.txt").write_text("two\n")
    (folder / "gone.txt").unlink()
    (folder / "new.txt").write_text("x\n")
    _hook({**common, "hook_event_name": "PostToolUse", "tool_response": ""})
    assert take(url).waiting == 0
    with wakelog.open(url) as store:
        log = store.resume(NAME).log
        found = {
            Path(e.body["path"]).name: (e.body.get("change", "modified"), e.body.get("before"), e.body.get("after"))
            for e in log.entries()
            if e.kind == "file.changed"
        }
        actions = {e.body.get("action") for e in log.entries() if e.kind == "file.changed"}
    assert found == {
        "a.txt": ("modified", "one\n", "two\n"),
        "gone.txt": ("deleted", "bye\n", None),
        "new.txt": ("created", None, "x\n"),
    }
    assert actions == {"t1"}


def _hook(said: dict) -> None:
    text = json.dumps(said).encode()
    spool.append("claude-code", text)
    spool._append_context("claude-code", text)


# Codex and Gemini


def test_codex_and_gemini_sessions_without_transcripts(url: str) -> None:
    codex = "0193c0de-0000-7000-8000-0000000c0de1"
    common = {"session_id": codex, "cwd": "/w", "transcript_path": None, "model": "gpt", "turn_id": "1"}
    given = {"command": "ls"}
    spooled(
        [
            {**common, "hook_event_name": "SessionStart", "source": "startup"},
            {**common, "hook_event_name": "UserPromptSubmit", "prompt": "look"},
            {**common, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": given, "tool_use_id": "c1"},
            {
                **common,
                "hook_event_name": "PostToolUse",
                "tool_name": "Bash",
                "tool_input": given,
                "tool_use_id": "c1",
                "tool_response": "a.txt",
            },
            {**common, "hook_event_name": "Stop", "last_assistant_message": "one file"},
        ],
        "codex",
    )
    notified = {"type": "agent-turn-complete", "thread-id": codex, "turn-id": "1", "input-messages": ["look"]}
    spooled([{**notified, "last-assistant-message": "one file"}], "codex-notify")
    gemini = {"session_id": "9e9e9e9e-0000-4000-8000-000000000003", "cwd": "/w", "transcript_path": ""}
    shell = {"tool_name": "run_shell_command", "tool_input": given}
    spooled(
        [
            {**gemini, "hook_event_name": "BeforeAgent", "prompt": "look"},
            {**gemini, "hook_event_name": "BeforeTool", **shell},
            {**gemini, "hook_event_name": "AfterTool", **shell, "tool_response": {"error": {"message": "no"}}},
            {**gemini, "hook_event_name": "AfterAgent", "prompt": "look", "prompt_response": "sorry"},
        ],
        "gemini",
    )
    report = take(url)
    assert report.troubles == []
    [one, two] = report.sessions
    assert one.startswith("codex-")
    assert two == "gemini-9e9e9e9e"
    turn = ["turn.started", "message.added", "action.requested", "action.succeeded", "message.added", "turn.ended"]
    assert kinds(url, one)[2:] == turn
    assert kinds(url, two)[1:] == [*turn[:3], "action.failed", *turn[4:]]


def test_codex_notify_alone_tells_whole_turns(url: str) -> None:
    said = {"type": "agent-turn-complete", "thread-id": "t-1", "turn-id": "1", "cwd": "/w", "input-messages": ["hi"]}
    spooled([{**said, "last-assistant-message": "hello"}], "codex-notify")
    [name] = take(url).sessions
    assert kinds(url, name)[1:] == ["turn.started", "message.added", "message.added", "turn.ended"]


# Gemini writes a transcript that has neither ends of turns nor calls that were cut off

GEMINI = "9e9e9e9e-0000-4000-8000-000000000003"
SHELL = {"tool_name": "run_shell_command", "tool_input": {"command": "make slow"}}


def _gemini(tmp_path: Path, *events: tuple[str, dict]) -> None:
    path = tmp_path / "chats" / "session-2026-11-16T10-00-9e9e9e9e.jsonl"
    if not path.exists():
        path.parent.mkdir()
        now = datetime.now(UTC).isoformat()  # a turn that nobody has gone on with for minutes is over
        lines = [
            {"sessionId": GEMINI, "projectHash": "0" * 64, "startTime": now, "kind": "main"},
            {"id": "m1", "timestamp": now, "type": "user", "content": [{"text": "build it"}]},
            {"id": "m2", "timestamp": now, "type": "gemini", "content": "ok", "model": "g"},
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    common = {"session_id": GEMINI, "cwd": "/w", "transcript_path": str(path)}
    spooled([{**common, "hook_event_name": event, **fields} for event, fields in events], "gemini")


def test_the_end_of_a_turn_waits_for_the_last_words_in_the_transcript(url: str, tmp_path: Path) -> None:
    _gemini(tmp_path, ("BeforeAgent", {"prompt": "build it"}), ("AfterAgent", {"prompt_response": "ok"}))
    assert take(url).waiting == 1
    assert "turn.ended" not in kinds(url, "gemini-9e9e9e9e")
    later = max(r.at_us for r in _taken()) + SETTLE_US
    assert take(url, now_us=later).waiting == 0
    assert kinds(url, "gemini-9e9e9e9e").count("turn.ended") == 1
    assert bodies(url, "turn.ended", "gemini-9e9e9e9e")[0].get("outcome", "completed") == "completed"


@pytest.mark.parametrize("told", ["its end", "its next start", "nothing"])
def test_a_call_that_ran_when_the_agent_ended_is_uncertain(url: str, tmp_path: Path, told: str) -> None:
    _gemini(tmp_path, ("BeforeAgent", {"prompt": "build it"}), ("BeforeTool", SHELL))
    assert take(url).waiting == 1
    assert "action.requested" not in kinds(url, "gemini-9e9e9e9e")
    later = max(r.at_us for r in _taken())
    if told == "its end":
        _gemini(tmp_path, ("SessionEnd", {"reason": "exit"}))
    elif told == "its next start":
        _gemini(tmp_path, ("SessionStart", {"source": "resume"}), ("BeforeAgent", {"prompt": "go on"}))
    else:
        later += HELD_US  # it was killed, and nobody said so
    assert take(url, now_us=later).waiting == 0
    found = kinds(url, "gemini-9e9e9e9e")
    assert found[found.index("action.requested") :][:2] == ["action.requested", "action.uncertain"]


def test_a_call_that_gave_an_answer_is_the_transcripts_to_tell(url: str, tmp_path: Path) -> None:
    answered = {**SHELL, "tool_response": {"llmContent": "done"}}
    _gemini(tmp_path, ("BeforeAgent", {}), ("BeforeTool", SHELL), ("AfterTool", answered))
    assert take(url).waiting == 0
    assert "action.requested" not in kinds(url, "gemini-9e9e9e9e")


def test_records_of_several_runs_at_once_go_to_the_turns_they_are_of(url: str, tmp_path: Path) -> None:
    """Nobody ran wakelog until a second run of the agent was killed."""
    made, other = {"files": {"/w/made.txt": "x\n"}}, {"files": {"/w/made.txt": "y\n"}}
    make = {"command": "make it", "more": False}
    _gemini(
        tmp_path,
        ("files.before", {**make, "files": {}}),
        ("files.after", {**make, **made}),
        ("AfterAgent", {"prompt_response": "ok"}),
        ("SessionEnd", {"reason": "exit"}),
    )
    path = next((tmp_path / "chats").iterdir())
    answer = [{"functionResponse": {"id": "c1", "response": {"output": "ok"}}}]
    call = {"id": "c1", "name": "run_shell_command", "args": {"command": "make it"}, "status": "success"}
    call_made = {**call, "result": answer}
    first = path.read_text().replace('"content": "ok"', f'"content": "ok", "toolCalls": [{json.dumps(call_made)}]')
    now = datetime.now(UTC).isoformat()
    calls = [{**call_made, "id": "c2"}]
    again = {"id": "m4", "timestamp": now, "type": "gemini", "content": "", "model": "g", "toolCalls": calls}
    lines = [{"id": "m3", "timestamp": now, "type": "user", "content": [{"text": "and again"}]}, again]
    path.write_text(first + "".join(json.dumps(line) + "\n" for line in lines))
    _gemini(
        tmp_path,
        ("BeforeAgent", {"prompt": "and again"}),
        ("files.before", {**make, **made}),
        ("files.after", {**make, **other}),
    )
    take(url)
    with wakelog.open(url) as store:
        entries = list(store.resume("gemini-9e9e9e9e").log.entries())
    changed = [(e.header.turn, e.body["action"], e.body["after"]) for e in entries if e.kind == "file.changed"]
    assert changed == [(1, "c1", "x\n"), (2, "c2", "y\n")]
    assert [e.header.turn for e in entries if e.kind == "turn.ended"] == [1]
    found = [e.kind for e in entries]
    assert "session.closed" not in found  # the agent went on with it
    assert "x.hook.session_end" in found


def place(branch: str, commit: str = "c1") -> dict[str, str]:
    return {
        "session_id": CLAUDE,
        "cwd": "/w",
        "hook_event_name": "git.seen",
        "repo": "/main",
        "branch": branch,
        "commit": commit,
    }


def test_where_an_agent_works_is_told_and_told_again_when_it_changes(url: str) -> None:
    first, second, *rest = claude()
    spooled([first, place("main"), second, place("main", "c2"), *rest[:3], place("other", "c3"), *rest[3:]])
    take(url)
    told = [body["labels"] for body in bodies(url, "labels.set")]
    assert told[-2:] == [{"repo": "/main", "branch": "main", "commit": "c1"}, {"branch": "other"}]


def test_a_branch_that_the_transcript_tells_is_left_alone(url: str, tmp_path: Path) -> None:
    path = write_transcript(tmp_path / f"{CLAUDE}.jsonl")
    first, *rest = claude(transcript=str(path))
    spooled([first, place("older"), *rest])
    take(url)
    with wakelog.open(url) as store:
        labels = store.resume(NAME).log.part("labels")
    assert (labels["repo"], labels["branch"], labels["commit"]) == ("/main", "main", "c1")


@pytest.mark.parametrize("has_transcript", [False, True])
def test_a_deleted_session_does_not_come_back_with_the_next_hook(
    url: str, tmp_path: Path, has_transcript: bool
) -> None:
    path = str(write_transcript(tmp_path / f"{CLAUDE}.jsonl")) if has_transcript else None
    said = claude(transcript=path)
    spooled(said[:5])
    take(url)
    with wakelog.open(url) as store:
        store.delete(store.resume(NAME))
    spooled(said[5:])
    report = take(url)
    assert (report.records, report.deleted, report.troubles) == (0, len(said[5:]), [])
    assert not spool.is_waiting()
    with wakelog.open(url) as store:
        assert [*store.sessions()] == []


def test_a_session_that_hooks_began_goes_on_beside_its_transcript_when_that_was_imported(
    url: str, tmp_path: Path
) -> None:
    from wakelog.importers.transcript_import import import_transcript

    spooled(claude()[:5])
    take(url)
    path = write_transcript(tmp_path / f"{CLAUDE}.jsonl")
    with wakelog.open(url) as store:
        assert store.resume(NAME).log.part("labels")["capture"] == "hooks"
        import_transcript(store, path)
    spooled(claude(transcript=str(path))[5:])
    assert take(url).troubles == []
    with wakelog.open(url) as store:
        session = store.resume(NAME)
        assert "capture" not in session.log.part("labels")
        seen = [e for first, last in session.log.view() for e in session.log.entries(after=first - 1, upto=last)]
        asked = [e.body["action"] for e in seen if e.kind in ("action.recorded", "action.requested")]
        assert len(asked) == len(set(asked))
        assert [e.kind for e in seen].count("turn.started") == 1
        assert session.verify().ok


def test_an_event_that_nobody_knows_makes_no_session_of_its_own(url: str) -> None:
    spooled([{"session_id": CLAUDE, "cwd": "/w", "hook_event_name": "SomethingNew", "what": "a thing"}])
    report = take(url)
    assert (report.sessions, report.waiting, report.troubles) == ([], 1, [])
    with wakelog.open(url) as store:
        assert [*store.sessions()] == []
    spooled(claude())
    assert take(url).sessions == [NAME]
    with wakelog.open(url) as store:
        entries = [*store.resume(NAME).log.entries()]
    assert any("a thing" in json.dumps(entry.body, default=str) for entry in entries)
    assert not spool.is_waiting()


def test_an_event_that_nobody_knows_is_not_kept_for_ever(url: str) -> None:
    spooled([{"session_id": CLAUDE, "cwd": "/w", "hook_event_name": "SomethingNew"}])
    assert take(url, now_us=time.time_ns() // 1000 + KEEP_US + 1).waiting == 0
