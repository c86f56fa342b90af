"""Calls that somebody stopped. Claude Code's transcript says that they were denied; hooks know whether they ran."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.hooks.conversation import CLAUDE, spooled
from wakelog.hooks.intake import take_in

REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected."
DEPLOY = {"command": "make deploy"}
GEMINI = "9e9e9e9e-0000-4000-8000-000000000003"


class Conversation:
    """A session of Claude Code: its transcript, and what it tells its hooks."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{CLAUDE}.jsonl"
        self.store = str(folder / "store")
        self._last: str | None = None

    def line(self, role: str, content: Any, **more: Any) -> None:
        uuid = f"u{len(self.path.read_text().splitlines()) if self.path.exists() else 0}"
        about = {"sessionId": CLAUDE, "cwd": "/w", "version": "2.1.0", "timestamp": datetime.now(UTC).isoformat()}
        message = {"role": role, "content": content, **more}
        with self.path.open("a") as out:
            out.write(json.dumps({**about, "type": role, "uuid": uuid, "parentUuid": self._last, "message": message}))
            out.write("\n")
        self._last = uuid

    def asks(self, id: str) -> None:
        use = {"type": "tool_use", "id": id, "name": "Bash", "input": DEPLOY}
        self.line("assistant", [use], id=f"m-{id}", model="model-1", usage={"input_tokens": 1, "output_tokens": 1})

    def rejects(self, id: str) -> None:
        self.line("user", [{"type": "tool_result", "tool_use_id": id, "content": REJECTED, "is_error": True}])
        self.line("user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}])

    def hook(self, event: str, **fields: Any) -> None:
        common = {"session_id": CLAUDE, "transcript_path": str(self.path), "cwd": "/w"}
        spooled([{**common, "hook_event_name": event, **fields}])

    def call(self, event: str, **fields: Any) -> None:
        self.hook(event, tool_name="Bash", tool_input=DEPLOY, **fields)

    def take_in(self) -> None:
        assert take_in(wakelog.open, into=self.store).troubles == []

    def outcome(self, id: str) -> str:
        """The outcome of a call, or the type of its failure."""
        with wakelog.open(self.store) as store:
            [session] = [store.resume(info.session) for info in store.sessions()]
            bodies = [e.body for e in session.log.entries() if e.body.get("action") == id]
        return str(bodies[-1].get("outcome") or bodies[-1]["error"]["type"])


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Conversation:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    made = Conversation(tmp_path)
    made.hook("SessionStart", source="startup")
    made.hook("UserPromptSubmit", prompt="deploy it")
    made.line("user", "deploy it")
    return made


@pytest.mark.parametrize("is_taken_meanwhile", [False, True])
@pytest.mark.parametrize(("is_asked", "outcome"), [(False, "interrupted"), (True, "denied")])
def test_a_call_that_was_stopped_while_it_ran_was_not_denied(
    talk: Conversation, is_asked: bool, outcome: str, is_taken_meanwhile: bool
) -> None:
    talk.asks("t1")
    talk.call("PreToolUse", tool_use_id="t1")
    if is_asked:
        talk.call("PermissionRequest")
    if is_taken_meanwhile:
        talk.take_in()
    talk.rejects("t1")
    talk.hook("UserPromptSubmit", prompt="not so fast")
    talk.take_in()
    assert talk.outcome("t1") == outcome


def test_of_two_equal_calls_the_one_that_was_asked_about_was_denied(talk: Conversation) -> None:
    for id in ("t1", "t2"):
        talk.asks(id)
        talk.call("PreToolUse", tool_use_id=id)
        talk.take_in()
    talk.call("PermissionRequest")
    talk.rejects("t1")
    talk.rejects("t2")
    talk.hook("SessionEnd", reason="other")
    talk.take_in()
    assert [talk.outcome("t1"), talk.outcome("t2")] == ["interrupted", "denied"]


def test_a_call_that_was_denied_without_a_question_is_as_the_transcript_says(talk: Conversation) -> None:
    talk.asks("t1")
    talk.call("PreToolUse", tool_use_id="t1")
    refused = "Permission to use Bash has been denied."
    talk.line("user", [{"type": "tool_result", "tool_use_id": "t1", "content": refused, "is_error": True}])
    talk.hook("Stop")
    talk.take_in()
    assert talk.outcome("t1") == "denied"


def test_a_call_that_was_running_at_a_kill_is_of_its_own_turn_not_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    path, url = tmp_path / "chats" / "session-2026-11-16T10-00-9e9e9e9e.jsonl", str(tmp_path / "store")
    path.parent.mkdir()
    about = {"session_id": GEMINI, "cwd": "/w", "transcript_path": str(path)}

    def writes(*lines: dict[str, Any]) -> None:
        now = datetime.now(UTC).isoformat()
        with path.open("a") as out:
            out.writelines(json.dumps({"timestamp": now, **line}) + "\n" for line in lines)

    def says(event: str, **fields: Any) -> None:
        spooled([{**about, "hook_event_name": event, **fields}], "gemini")

    writes({"sessionId": GEMINI, "projectHash": "0" * 64, "startTime": datetime.now(UTC).isoformat(), "kind": "main"})
    writes({"id": "m1", "type": "user", "content": [{"text": "deploy it"}]})
    says("BeforeAgent", prompt="deploy it")
    says("BeforeTool", tool_name="run_shell_command", tool_input=DEPLOY)
    assert take_in(wakelog.open, into=url).troubles == []
    writes({"id": "m2", "type": "user", "content": [{"text": "go on"}]})
    says("SessionStart", source="resume")
    says("BeforeAgent", prompt="go on")
    assert take_in(wakelog.open, into=url).troubles == []
    assert take_in(wakelog.open, into=url).troubles == []
    with wakelog.open(url) as store:
        [session] = [store.resume(info.session) for info in store.sessions()]
        turns = [(e.kind, e.header.turn) for e in session.log.entries() if e.kind.startswith(("action.", "turn."))]
    assert turns == [
        ("turn.started", 1),
        ("action.requested", 1),
        ("action.uncertain", 1),
        ("turn.ended", 1),
        ("turn.started", 2),
    ]


def test_a_call_that_is_uncertain_stays_so_in_later_turns(talk: Conversation) -> None:
    talk.asks("t1")
    talk.call("PreToolUse", tool_use_id="t1")
    talk.hook("SessionEnd", reason="other")
    talk.take_in()
    talk.hook("SessionStart", source="resume")
    talk.hook("UserPromptSubmit", prompt="go on")
    talk.line("user", "go on")
    answer = [{"type": "text", "text": "I go on."}]
    talk.line("assistant", answer, id="m9", model="model-1", stop_reason="end_turn", usage={"output_tokens": 1})
    talk.hook("Stop")
    talk.take_in()
    with wakelog.open(talk.store) as store:
        [session] = [store.resume(info.session) for info in store.sessions()]
        pending = session.log.part("pending_actions")
        ends = [e.body.get("outcome", "completed") for e in session.log.entries() if e.kind == "turn.ended"]
    assert [(id, about["status"]) for id, about in pending.items()] == [("t1", "uncertain")]
    assert ends == ["interrupted", "completed"]
