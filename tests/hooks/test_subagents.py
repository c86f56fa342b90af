"""Sub-agents that hooks report: linked with their parent both ways, and ended, in whatever order it is told."""

import contextlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.every import every
from tests.hooks.conversation import spooled
from tests.importers.claude import NAME, SESSION, START, Lines, call, text
from tests.importers.samples import gemini_log, write_lines
from wakelog.hooks import spool
from wakelog.hooks.hook_events import SETTLE_US
from wakelog.hooks.intake import take_in
from wakelog.importers.source.timestamps import microseconds
from wakelog.importers.transcript_import import import_transcript
from wakelog.log import Log
from wakelog.model.records import Head
from wakelog.session import Session
from wakelog.store import Store

CHILD = f"{NAME}-agent-a1"
LAUNCHED = {"isAsync": True, "status": "async_launched", "agentId": "a1", "prompt": "Look around."}
FOUND = "There are 42."
NOTICE = (
    "<task-notification>\n<task-id>a1</task-id>\n<tool-use-id>t1</tool-use-id>\n<status>completed</status>\n"
    f"<summary>it is done</summary>\n<result>{FOUND}</result>\n</task-notification>"
)


class Claude:
    """A Claude Code that starts a sub-agent in the background, as its files and hooks tell it step by step."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "projects" / "-w" / f"{SESSION}.jsonl"
        self.child_path = self.path.with_suffix("") / "subagents" / "agent-a1.jsonl"
        self.main, self.child = Lines(), Lines(prefix="c", isSidechain=True, agentId="a1")
        self.url = str(folder / "store")
        self.at_us = START

    def says(self, event: str, **fields: Any) -> None:
        """A hook, a second after everything before it."""
        common = {"session_id": SESSION, "transcript_path": str(self.path), "cwd": "/w", "hook_event_name": event}
        self.main.count = self.child.count = max(self.main.count, self.child.count) + 1
        self.at_us = START + self.main.count * 1_000_000
        said = spool.frame("claude-code", json.dumps(common | fields).encode(), at_us=self.at_us)
        folder = Path(spool.spool_folder())
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "1.log").open("ab") as out:
            out.write(said)

    def starts(self) -> None:
        self.says("SessionStart", source="startup")
        self.says("UserPromptSubmit", prompt="Send somebody.")
        self.main.prompt("Send somebody.")
        self.main.reply("m1", call("t1", "Agent", description="scout", prompt="Look around."))
        self.main.result("t1", "Async agent launched.", LAUNCHED)
        self.main.write(self.path)
        self.says("SubagentStart", agent_id="a1", agent_type="general-purpose")
        self.child.prompt("Look around.")
        self.child.reply("c1", call("t2", "Bash", command="make count"))
        self.child.write(self.child_path)

    def Stop(self) -> None:
        self.main.reply("m2", text("Somebody looks around."), stop="end_turn")
        self.main.write(self.path)
        self.says("Stop", last_assistant_message="Somebody looks around.")

    def SubagentStop(self) -> None:
        self.child.result("t2", "42")
        self.child.reply("c2", text(FOUND), stop="end_turn")
        self.child.write(self.child_path)
        about = {"agent_transcript_path": str(self.child_path), "last_assistant_message": FOUND}
        self.says("SubagentStop", agent_id="a1", agent_type="general-purpose", **about)

    def SessionEnd(self) -> None:
        self.says("SessionEnd", reason="other")

    def comes_back(self) -> None:
        self.says("SessionStart", source="resume")

    def notice(self) -> None:
        self.main.prompt(NOTICE)
        self.main.reply("m3", text("It is back."), stop="end_turn")
        self.main.write(self.path)
        self.says("UserPromptSubmit", prompt=NOTICE)

    def take(self, *, later_us: int = SETTLE_US) -> None:
        at = self.at_us + later_us
        assert take_in(lambda url: wakelog.open(url, clock=lambda: at), into=self.url, now_us=at).troubles == []


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Claude:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    return Claude(tmp_path)


def told(session: Session[Any], kind: str) -> list[dict[str, Any]]:
    return [session.log.value(e, e.body) for e in session.log.entries() if e.kind == kind]


def check_linked(store: Store) -> None:
    parent, child = store.resume(NAME), store.resume(CHILD)
    assert str(child.log.entry(1).body["spawner"]).partition("@")[0] == parent.id
    assert [body["session"] for body in told(parent, "subagent.spawned")] == [child.id]
    assert parent.verify().ok
    assert child.verify().ok


def test_a_sub_agent_in_the_background_runs_until_it_stops(agent: Claude) -> None:
    agent.starts()
    agent.Stop()
    agent.take()
    with wakelog.open(agent.url) as store:
        check_linked(store)
        (about,) = store.resume(NAME).log.part("subagents").values()
        assert (about["status"], about["task"]) == ("running", "scout")
        child = store.resume(CHILD)
        assert (child.status, child.log.part("turn")["status"]) == ("active", "open")
        assert [call["status"] for call in child.log.part("pending_actions").values()] == ["running"]
    agent.SubagentStop()
    agent.take()
    with wakelog.open(agent.url) as store:
        (back,) = told(store.resume(NAME), "subagent.returned")
        assert (back["outcome"], back["output"]) == ("succeeded", FOUND)
        child = store.resume(CHILD)
        assert (child.status, child.log.part("turn")["status"]) == ("closed", "completed")
        assert store.resume(NAME).status == "active"
    agent.notice()
    agent.SessionEnd()
    agent.take()
    with wakelog.open(agent.url) as store:
        check_linked(store)
        assert len(told(store.resume(NAME), "subagent.returned")) == 1
        assert [store.resume(name).status for name in (NAME, CHILD)] == ["closed", "closed"]


ORDERS = list(itertools.permutations(("Stop", "SubagentStop", "SessionEnd")))


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
@every("order", ORDERS)
def test_the_end_is_the_same_in_whatever_order_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: tuple[str, ...], at_once: bool
) -> None:
    folder = tmp_path / "-".join(order)
    monkeypatch.setenv("WAKELOG_DATA", str(folder / "data"))
    agent = Claude(folder)
    agent.starts()
    for event in order:
        if not at_once:
            agent.take()
        getattr(agent, event)()
    agent.take()
    with wakelog.open(agent.url, clock=lambda: agent.at_us) as store:
        check_linked(store)
        parent, child = store.resume(NAME), store.resume(CHILD)
        assert (parent.status, child.status) == ("closed", "closed")
        (about,) = parent.log.part("subagents").values()
        assert about["status"] == "succeeded"
        assert told(parent, "subagent.returned")[-1]["output"] == FOUND
        assert child.messages()[-1].text == FOUND
        before = [len(list(session.log.entries())) for session in (parent, child)]
        for path in (agent.path, agent.child_path):
            import_transcript(store, path)
        assert [len(list(session.log.entries())) for session in (parent, child)] == before


@pytest.mark.parametrize("sign", ["SessionEnd", "comes_back"])
def test_a_sub_agent_that_was_running_when_the_program_ended_is_interrupted(agent: Claude, sign: str) -> None:
    agent.starts()
    agent.Stop()
    agent.take()
    getattr(agent, sign)()
    agent.take()
    with wakelog.open(agent.url) as store:
        check_linked(store)
        (back,) = told(store.resume(NAME), "subagent.returned")
        assert back["outcome"] == "interrupted"
        child = store.resume(CHILD)
        assert (child.status, child.log.part("turn")["status"]) == ("closed", "interrupted")
        assert [call["status"] for call in child.log.part("pending_actions").values()] == ["uncertain"]


@every("is_told", (True, False))
def test_a_sub_agent_of_a_sub_agent_ends_with_it_or_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    folder = tmp_path / str(is_told)
    monkeypatch.setenv("WAKELOG_DATA", str(folder / "data"))
    agent = Claude(folder)
    agent.starts()
    agent.child.reply("c3", call("t3", "Agent", description="helper", prompt="Count them."))
    agent.child.result("t3", "Async agent launched.", LAUNCHED | {"agentId": "a2"})
    agent.child.write(agent.child_path)
    below = Lines(prefix="d", isSidechain=True, agentId="a2")
    below.prompt("Count them.")
    path = below.write(agent.child_path.with_name("agent-a2.jsonl"))
    path.with_suffix(".meta.json").write_text(json.dumps({"parentAgentId": "a1"}))
    agent.take()
    with wakelog.open(agent.url) as store:
        check_linked(store)
        helper = store.resume(f"{NAME}-agent-a2")
        assert str(helper.log.entry(1).body["spawner"]).partition("@")[0] == store.resume(CHILD).id
        assert helper.status == "active"
    if is_told:
        below.reply("d1", text(FOUND), stop="end_turn")
        below.write(path)
        agent.says("SubagentStop", agent_id="a2", agent_transcript_path=str(path), last_assistant_message=FOUND)
        agent.take()
        with wakelog.open(agent.url) as store:
            assert store.resume(helper.name).status == "closed"
            assert store.resume(CHILD).status == "active"
    agent.SessionEnd()
    agent.take()
    with wakelog.open(agent.url) as store:
        assert {store.resume(name).status for name in _names(store)} == {"closed"}
        assert store.resume(helper.name).log.part("turn")["status"] == ("completed" if is_told else "interrupted")
        (about,) = store.resume(CHILD).log.part("subagents").values()
        assert about["status"] == ("succeeded" if is_told else "interrupted")
        assert [body.get("output") for body in told(store.resume(CHILD), "subagent.returned")] == [
            FOUND if is_told else None
        ]


@every("place", range(1, 5))
def test_a_crash_while_a_late_end_is_recorded_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    folder = tmp_path / str(place)
    monkeypatch.setenv("WAKELOG_DATA", str(folder / "data"))
    agent = Claude(folder)
    agent.starts()
    agent.Stop()
    agent.SessionEnd()
    agent.take()
    agent.SubagentStop()
    appends = itertools.count(1)
    append = Log.append

    def crashing(log: Log, *events: Any, **how: Any) -> Head:
        head = append(log, *events, **how)
        if next(appends) == place:
            raise KeyboardInterrupt
        return head

    with monkeypatch.context() as patch:
        patch.setattr(Log, "append", crashing)
        with contextlib.suppress(KeyboardInterrupt):
            agent.take()
    agent.take()
    with wakelog.open(agent.url) as store:
        assert [store.resume(name).status for name in (NAME, CHILD)] == ["closed", "closed"]
        assert told(store.resume(NAME), "subagent.returned")[-1]["output"] == FOUND


def test_a_sub_agent_that_runs_while_the_history_is_compacted_goes_on(agent: Claude) -> None:
    agent.starts()
    agent.Stop()
    agent.take()
    agent.says("SessionStart", source="compact")
    agent.take()
    with wakelog.open(agent.url) as store:
        assert [each["status"] for each in store.resume(NAME).log.part("subagents").values()] == ["running"]
        assert store.resume(CHILD).status == "active"


def test_after_a_kill_a_sub_agent_is_interrupted_when_its_parent_is_idle(agent: Claude) -> None:
    agent.starts()
    agent.Stop()
    agent.take()
    with wakelog.open(agent.url, clock=lambda: agent.at_us + 365 * 86400 * 1_000_000) as store:
        for path in (agent.path, agent.child_path):
            import_transcript(store, path)
        assert [each["status"] for each in store.resume(NAME).log.part("subagents").values()] == ["interrupted"]
        assert [store.resume(name).status for name in (NAME, CHILD)] == ["closed", "closed"]


def test_the_end_of_a_sub_agent_waits_for_the_last_words_in_its_transcript(agent: Claude) -> None:
    agent.starts()
    agent.says("SubagentStop", agent_id="a1", agent_transcript_path=str(agent.child_path))
    agent.take(later_us=0)
    with wakelog.open(agent.url) as store:
        assert store.resume(CHILD).status == "active"
    agent.child.reply("c2", text(FOUND), stop="end_turn")
    agent.child.write(agent.child_path)
    agent.take(later_us=0)
    with wakelog.open(agent.url) as store:
        assert store.resume(CHILD).status == "closed"
        assert store.resume(CHILD).messages()[-1].text == FOUND


@every("end", ("SubagentStop", "SessionEnd"))
def test_a_sub_agent_that_is_given_more_to_do_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    folder = tmp_path / end
    monkeypatch.setenv("WAKELOG_DATA", str(folder / "data"))
    agent = Claude(folder)
    agent.starts()
    agent.Stop()
    agent.SubagentStop()
    agent.take()
    agent.child.prompt("And the others?")
    agent.child.reply("c5", call("t5", "Bash", command="make count"))
    agent.child.write(agent.child_path)
    agent.says("PreToolUse", tool_name="Bash", tool_input={"command": "make count"}, tool_use_id="t5", agent_id="a1")
    agent.take()
    with wakelog.open(agent.url) as store:
        child = store.resume(CHILD)
        assert (child.status, child.log.part("turn")["status"]) == ("active", "open")
    if end == "SubagentStop":
        agent.child.result("t5", "42")
        agent.child.reply("c6", text(FOUND), stop="end_turn")
        agent.child.write(agent.child_path)
    about = {"agent_id": "a1", "last_assistant_message": "42 again"} if end == "SubagentStop" else {}
    agent.says(end, **about)
    agent.take()
    with wakelog.open(agent.url) as store:
        child = store.resume(CHILD)
        turns = [body.get("outcome", "completed") for body in told(child, "turn.ended")]
        assert turns == ["completed", "completed" if end == "SubagentStop" else "interrupted"]
        assert child.status == "closed"
        results = [body.get("output") for body in told(store.resume(NAME), "subagent.returned")]
        assert results == ([FOUND, "42 again"] if end == "SubagentStop" else [FOUND])


@every("is_deleted", (True, False))
def test_a_sub_agent_whose_session_is_gone_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    folder = tmp_path / str(is_deleted)
    monkeypatch.setenv("WAKELOG_DATA", str(folder / "data"))
    agent = Claude(folder)
    agent.starts()
    agent.Stop()
    if not is_deleted:
        agent.child_path.unlink()
    agent.take()
    if is_deleted:
        with wakelog.open(agent.url) as store:
            store.delete(store.resume(CHILD))
    agent.SessionEnd()
    agent.take()
    with wakelog.open(agent.url) as store:
        assert store.resume(NAME).status == "closed"
        assert not store.is_open(CHILD)


def test_lines_without_a_word_leave_an_ended_session_ended(agent: Claude) -> None:
    agent.starts()
    for event in ("Stop", "SubagentStop", "SessionEnd"):
        getattr(agent, event)()
    agent.take()
    for path in (agent.path, agent.child_path):
        with path.open("a") as out:
            out.write(json.dumps({"type": "ai-title", "sessionId": SESSION, "aiTitle": "Late"}) + "\n")
            out.write(json.dumps({"type": "cost-state", "sessionId": SESSION}) + "\n")
    with wakelog.open(agent.url, clock=lambda: agent.at_us) as store:
        for path in (agent.path, agent.child_path):
            assert import_transcript(store, path).new_records == 2
        assert [store.resume(name).status for name in (NAME, CHILD)] == ["closed", "closed"]


def test_a_prompt_of_a_sub_agent_begins_no_turn_of_its_parent(agent: Claude) -> None:
    """Codex reports the prompts of its sub-agents with the id of the parent's session."""
    agent.starts()
    agent.Stop()
    agent.says("PermissionRequest", tool_name="Bash", tool_input={"command": "make"})
    agent.says("UserPromptSubmit", prompt="Look around.", agent_id="a1")
    agent.take()
    with wakelog.open(agent.url) as store:
        assert store.resume(NAME).log.part("turn")["status"] == "completed"
        assert told(store.resume(NAME), "input.answered") == []


def test_a_sub_agent_of_gemini_is_found_though_no_hook_tells_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    url = str(tmp_path / "store")
    header, user, *_ = gemini_log()
    chats = tmp_path / "chats"
    folder = chats / header["sessionId"]
    folder.mkdir(parents=True)
    path = write_lines(chats / "session-2026-01-05T10-00-11111111.jsonl", [header, user])
    child = header | {"sessionId": "0c1d2e3f-0000-4000-8000-000000000002", "kind": "subagent"}
    write_lines(folder / f"{child['sessionId']}.jsonl", [child, user])
    common = {"session_id": header["sessionId"], "transcript_path": str(path), "cwd": "/w"}
    asked = {"tool_name": "invoke_agent", "tool_input": {"agent_name": "generalist", "prompt": "Look"}}
    spooled([common | {"hook_event_name": "BeforeTool"} | asked], "gemini")
    at = microseconds(header["startTime"])
    assert take_in(lambda url: wakelog.open(url, clock=lambda: at), into=url).troubles == []
    with wakelog.open(url) as store:
        sessions = {bool(s.log.entry(1).body.get("spawner")): s for s in map(store.resume, _names(store))}
        (about,) = sessions[False].log.part("subagents").items()
        assert (about[0], about[1]["status"]) == (sessions[True].id, "running")
        assert about[1]["task"] == sessions[True].messages()[0].text
        assert sessions[True].status == "active"
    spooled([common | {"hook_event_name": "SessionEnd", "reason": "exit"}], "gemini")
    assert take_in(lambda url: wakelog.open(url, clock=lambda: at), into=url).troubles == []
    with wakelog.open(url) as store:
        assert [each["status"] for each in store.resume(sessions[False].name).log.part("subagents").values()] == [
            "interrupted"
        ]
        assert {store.resume(name).status for name in _names(store)} == {"closed"}


def _names(store: Store) -> list[str]:
    return [info.name for info in store.sessions()]


@every("path", ("/", ".", "a\0b", "x" * 5000, "~", ""))
def test_a_path_that_is_none_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / str(hash(path))))
    common = {"session_id": SESSION, "transcript_path": path, "cwd": "/w", "agent_transcript_path": path}
    for name in ("claude-code", "codex", "gemini"):
        spooled([common | {"hook_event_name": "SubagentStop", "agent_id": "a1"}], name)
        spooled([common | {"hook_event_name": "SessionEnd"}], name)
    report = take_in(wakelog.open, into=str(tmp_path / f"store-{hash(path)}"))
    assert (report.troubles, report.waiting) == ([], 0)
