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
