"""An agent of the Agent Client Protocol, recorded as it talks to its editor; bytes pass unchanged."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wakelog
from wakelog.adapters.acp import AcpRecorder, pump, record
from wakelog.store import Store

SESSION = "sess-1"


@pytest.fixture
def store() -> Iterator[Store]:
    with wakelog.open("memory:") as opened:
        yield opened


def update(**told: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": SESSION, "update": told}}


def said(text: str, kind: str = "agent_message_chunk") -> dict[str, Any]:
    return update(sessionUpdate=kind, content={"type": "text", "text": text})


def request(id: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def answer(id: int, result: Any = None, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, **(more or {"result": result})}


def prompt(id: int, text: str) -> dict[str, Any]:
    return request(id, "session/prompt", sessionId=SESSION, prompt=[{"type": "text", "text": text}])


def conversation() -> list[tuple[bool, dict[str, Any]]]:
    """Who says what: True is the client."""
    return [
        (True, request(0, "initialize", protocolVersion=1)),
        (False, answer(0, {"protocolVersion": 1})),
        (True, request(1, "session/new", cwd="/app", mcpServers=[])),
        (False, answer(1, {"sessionId": SESSION})),
        (True, prompt(2, "Fix the bug")),
        (False, said("hm", "agent_thought_chunk")),
        (False, said("I ")),
        (False, said("look.")),
        (
            False,
            update(
                sessionUpdate="tool_call",
                toolCallId="t1",
                title="Read a.py",
                kind="read",
                status="pending",
                rawInput={"path": "a.py"},
            ),
        ),
        (False, request(2, "fs/read_text_file", sessionId=SESSION, path="/app/a.py")),
        (True, answer(2, {"content": "x = 1"})),
        (
            False,
            update(
                sessionUpdate="tool_call_update",
                toolCallId="t1",
                status="completed",
                content=[{"type": "content", "content": {"type": "text", "text": "x = 1"}}],
            ),
        ),
        (False, request(3, "fs/write_text_file", sessionId=SESSION, path="/app/a.py", content="x = 2\n")),
        (True, answer(3, {})),
        (False, request(4, "terminal/create", sessionId=SESSION, command="pytest")),
        (True, answer(4, error={"code": -1, "message": "no terminal"})),
        (False, said("Done.")),
        (False, answer(2, {"stopReason": "end_turn", "usage": {"inputTokens": 100, "outputTokens": 10}})),
        (True, prompt(5, "And more")),
        (True, {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": SESSION}}),
        (False, answer(5, {"stopReason": "cancelled"})),
    ]


def recorded(store: Store) -> Any:
    recorder = AcpRecorder(store)
    for from_client, message in conversation():
        recorder.take(json.dumps(message).encode(), from_client=from_client)
    recorder.close()
    return store.resume(recorder.name_of(SESSION))


def test_prompts_are_turns_with_words_calls_and_files(store) -> None:
    session = recorded(store)
    state = session.state()
    assert session.name == "acp-sess-1"
    assert (state.turn.number, state.turn.status) == (2, "interrupted")
    assert [m.text for m in session.messages() if m.role == "user"] == ["Fix the bug", "And more"]
    assert [m.text for m in session.messages() if m.role == "assistant"] == ["I look.", "Done."]
    assert {name: (use.calls, use.errors) for name, use in state.tools_used.items() if name != "model"} == {
        "read": (1, 0),
        "fs/read_text_file": (1, 0),
        "fs/write_text_file": (1, 0),
        "terminal/create": (1, 1),
    }
    assert list(state.files_modified) == ["/app/a.py"]
    assert state.pending_actions == {}
    assert store.cost(session.name).total.tokens_in == 100


def test_what_is_no_message_is_passed_over(store) -> None:
    recorder = AcpRecorder(store)
    for line in (b"", b"Debug: started", b"[1, 2]", b"\xff\xfe", b'{"id": 7}', b'{"method": 3}', b'{"result": 1}'):
        recorder.take(line, from_client=False)
    recorder.take(b'{"method": "session/update", "params": {"sessionId": "x", "update": 5}}', from_client=False)
    recorder.close()


AGENT = """
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(b"\\x00odd " + line[::-1].strip() + b"\\r\\n" + line)
    sys.stdout.buffer.flush()
sys.stdout.buffer.write(b"no newline at the end")
sys.exit(3)
"""


def test_bytes_and_exit_code_pass_unchanged(store, tmp_path: Path) -> None:
    given = b"".join(json.dumps(m).encode() + b"\n" for c, m in conversation() if c) + b"\xff\x00 no json\n{\n"
    target = io.BytesIO()
    target.close = lambda: None  # type: ignore[method-assign]  # what was written is looked at below
    code = record([sys.executable, "-c", AGENT], store, source=io.BytesIO(given), target=target)
    wanted = b"".join(b"\x00odd " + line[::-1].strip() + b"\r\n" + line for line in given.splitlines(keepends=True))
    assert code == 3
    assert target.getvalue() == wanted + b"no newline at the end"
    assert store.resume("acp-sess-1").state().turn.number == 2


def test_a_store_that_fails_does_not_hold_up_the_stream(store, capsys) -> None:
    store.close()
    given = json.dumps(prompt(1, "hi")).encode() + b"\n"
    target = io.BytesIO()
    target.close = lambda: None  # type: ignore[method-assign]
    assert record([sys.executable, "-c", AGENT], store, source=io.BytesIO(given), target=target) == 3
    assert given in target.getvalue()


def test_a_call_that_the_user_rejected_is_denied(store) -> None:
    recorder = AcpRecorder(store)
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}]
    steps = [
        (True, prompt(1, "Fix it")),
        (False, update(sessionUpdate="tool_call", toolCallId="t1", title="Edit a.py", kind="edit", status="pending")),
        (
            False,
            request(7, "session/request_permission", sessionId=SESSION, toolCall={"toolCallId": "t1"}, options=options),
        ),
        (True, answer(7, {"outcome": {"outcome": "selected", "optionId": "n"}})),
        (False, update(sessionUpdate="tool_call_update", toolCallId="t1", status="failed")),
        (False, answer(1, {"stopReason": "end_turn"})),
    ]
    for from_client, message in steps:
        recorder.take(json.dumps(message).encode(), from_client=from_client)
    [call] = [e.body for e in store.resume("acp-sess-1").log.entries() if e.body.get("action") == "t1"]
    assert (call["tool"], call["outcome"]) == ("edit", "denied")


def loaded(store: Store) -> Any:
    """An agent that is started again and sends its history first."""
    recorder = AcpRecorder(store)
    history = [
        (True, request(1, "session/load", sessionId=SESSION, cwd="/app", mcpServers=[])),
        (False, said("Fix the ", "user_message_chunk")),
        (False, said("bug", "user_message_chunk")),
        (False, update(sessionUpdate="tool_call", toolCallId="t1", kind="read", title="Read", status="completed")),
        (False, said("Done.")),
        (False, said("Thanks", "user_message_chunk")),
        (False, said("Welcome.")),
        (False, answer(1, {})),
        (True, prompt(2, "Once more")),
        (False, said("Sure.")),
        (False, answer(2, {"stopReason": "end_turn"})),
    ]
    for from_client, message in history:
        recorder.take(json.dumps(message).encode(), from_client=from_client)
    recorder.close()
    return store.resume(recorder.name_of(SESSION))


def test_a_history_that_an_agent_sends_again_is_not_recorded_twice(store) -> None:
    recorded(store)
    session = loaded(store)
    assert session.state().turn.number == 3
    assert [m.text for m in session.messages() if m.role == "assistant"] == ["I look.", "Done.", "Sure."]
    assert session.state().tools_used["read"].calls == 1


def test_a_history_that_is_new_here_becomes_turns(store) -> None:
    session = loaded(store)
    assert session.state().turn.number == 3
    said_by_user = [m.text for m in session.messages() if m.role == "user"]
    assert said_by_user == ["Fix the \nbug", "Thanks", "Once more"]
    assert [m.text for m in session.messages() if m.role == "assistant"] == ["Done.", "Welcome.", "Sure."]


def test_the_plan_and_the_mode_of_an_agent_are_data(store) -> None:
    recorder = AcpRecorder(store)
    plan = [{"content": "Look", "priority": "high", "status": "pending"}]
    for message in (
        prompt(1, "Fix it"),
        update(sessionUpdate="plan", entries=plan),
        update(sessionUpdate="plan", entries=plan),
        update(sessionUpdate="current_mode_update", currentModeId="code"),
        answer(1, {"stopReason": "end_turn"}),
    ):
        recorder.take(json.dumps(message).encode(), from_client=message.get("method") == "session/prompt")
    session = store.resume("acp-sess-1")
    assert session.data == {"plan": plan, "mode": "code"}
    assert [e.kind for e in session.log.entries()].count("state.patched") == 2


def test_a_request_is_recorded_before_the_other_side_can_answer_it() -> None:
    happened: list[str] = []

    class Target(io.BytesIO):
        def write(self, chunk: Any) -> int:
            happened.append("sent")
            return len(chunk)

    pump(io.BytesIO(b'{"id": 1}\n'), Target(), lambda line: happened.append("recorded"))
    assert happened == ["recorded", "sent"]
