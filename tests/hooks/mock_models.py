"""A model on loopback, for real agents: it asks for one shell command, and then says that it is done. If it delegates,
it has a sub-agent run the command.

Speaks as much of three interfaces as the agents need to finish a turn: Anthropic Messages, OpenAI Responses and Gemini
generateContent. Nothing leaves the machine.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMAND = "echo made-by-the-agent > made.txt"
DONE = "All done by the mock."
TASK = "Make the file for me."
"""What a sub-agent is asked for,"""
MADE = "The sub-agent made it."
"""and what it says."""


class MockModel(ThreadingHTTPServer):
    """The server: the command that it asks for, and what it was asked."""

    daemon_threads = True

    def __init__(self, command: str, delegates: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.command = command
        self.delegates = delegates
        self.asked: list[dict[str, Any]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def mock_models(command: str = COMMAND, *, delegates: bool = False) -> Iterator[MockModel]:
    """A server, as long as it is needed."""
    server = MockModel(command, delegates)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        self._send(json.dumps({"data": [], "models": []}).encode(), "application/json")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            asked = json.loads(body)
        except ValueError:
            asked = {}
        server = self.server
        assert isinstance(server, MockModel)
        server.asked.append(asked)
        command = "" if server.delegates and not _is_subagent(asked) else server.command
        path = self.path.partition("?")[0]
        if path.endswith("/messages"):
            events = list(_anthropic(asked, command))
            if not asked.get("stream"):
                self._send(json.dumps(_message(asked, command)).encode(), "application/json")
                return
        elif path.endswith("/responses"):
            events = list(_openai(asked, command))
        elif path.endswith(":streamGenerateContent"):
            events = [("", _gemini(asked, command))]
        elif path.endswith(":generateContent"):
            self._send(json.dumps(_gemini(asked, command, says="{}")).encode(), "application/json")
            return
        else:
            self._send(json.dumps({"input_tokens": 1, "totalTokens": 1}).encode(), "application/json")
            return
        lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
        self._send("".join(lines).encode(), "text/event-stream")

    def _send(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _conversation(asked: dict[str, Any]) -> list[Any]:
    return asked.get("messages") or asked.get("input") or asked.get("contents") or []


def _is_subagent(asked: dict[str, Any]) -> bool:
    """Whether a sub-agent asks: a user gave it the task."""
    return any(TASK in json.dumps(item) for item in _conversation(asked) if item.get("role") == "user")


def _words(asked: dict[str, Any]) -> str:
    return MADE if _is_subagent(asked) else DONE


def _wants_call(asked: dict[str, Any]) -> bool:
    """Whether the agent offers tools and has not been answered by one yet."""
    said = json.dumps(_conversation(asked))
    marks = ('"tool_result"', '"function_call_output"', '"functionResponse"')
    return bool(asked.get("tools")) and not any(mark in said for mark in marks)


def _message(asked: dict[str, Any], command: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": _words(asked)}]
    if _wants_call(asked) and not command:
        given = {"description": "make it", "prompt": TASK, "subagent_type": "general-purpose"}
        content = [{"type": "tool_use", "id": "toolu_agent1", "name": "Agent", "input": given}]
    elif _wants_call(asked):
        offered = {tool.get("name") for tool in asked["tools"]}
        name = next((name for name in ("bash", "shell") if name in offered), "Bash")
        given = {"command": command, "description": "make it"}
        content = [{"type": "tool_use", "id": "toolu_mock1", "name": name, "input": given}]
    return {
        "id": f"msg_{'call' if content[0]['type'] == 'tool_use' else 'done'}",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model", "mock"),
        "content": content,
        "stop_reason": "tool_use" if content[0]["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def _anthropic(asked: dict[str, Any], command: str) -> Iterator[tuple[str, dict[str, Any]]]:
    message = _message(asked, command)
    [block] = message["content"]
    start = {**message, "content": [], "stop_reason": None}
    yield "message_start", {"type": "message_start", "message": start}
    if block["type"] == "text":
        first, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        first = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": first}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}}
    yield "message_stop", {"type": "message_stop"}


def _openai(asked: dict[str, Any], command: str) -> Iterator[tuple[str, dict[str, Any]]]:
    tools = {tool.get("name") for tool in asked.get("tools") or ()}
    item: dict[str, Any] = {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "content": [{"type": "output_text", "text": _words(asked), "annotations": []}],
    }
    if not command and (next_call := _codex_delegation(asked)):
        item = next_call
    elif _wants_call(asked):
        name, given = next(
            (name, given)
            for name, given in (
                ("exec_command", {"cmd": command}),
                ("shell_command", {"command": command}),
                ("shell", {"command": ["bash", "-lc", command]}),
            )
            if name in tools
        )
        item = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_mock1",
            "name": name,
            "arguments": json.dumps(given),
        }
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage}
    yield "response.created", {"type": "response.created", "response": {**response, "status": "in_progress"}}
    yield "response.output_item.added", {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield "response.completed", {"type": "response.completed", "response": response}


def _codex_delegation(asked: dict[str, Any]) -> dict[str, Any] | None:
    """Starts a sub-agent, and then waits for it."""
    said = json.dumps(_conversation(asked))
    common = {"type": "function_call", "namespace": "multi_agent_v1"}
    if "call_spawn" not in said:
        given: dict[str, Any] = {"message": TASK, "agent_type": "default"}
        return {**common, "id": "fc_1", "call_id": "call_spawn", "name": "spawn_agent", "arguments": json.dumps(given)}
    if "call_wait" not in said:
        [agent] = set(re.findall(r'agent_id\\*": *\\*"([0-9a-f-]+)', said))
        given = {"targets": [agent], "timeout_ms": 60_000}
        return {**common, "id": "fc_2", "call_id": "call_wait", "name": "wait_agent", "arguments": json.dumps(given)}
    return None


def _gemini(asked: dict[str, Any], command: str, says: str = DONE) -> dict[str, Any]:
    part: dict[str, Any] = {"text": says}
    if says == DONE and not command and _wants_call(asked):
        part = {"functionCall": {"name": "invoke_agent", "args": {"agent_name": "generalist", "prompt": TASK}}}
    elif says == DONE and _is_subagent(asked) and asked.get("tools") and not _wants_call(asked):
        part = {"functionCall": {"name": "complete_task", "args": {"result": {"response": MADE}}}}
    elif says == DONE and _wants_call(asked):
        part = {"functionCall": {"name": "run_shell_command", "args": {"command": command, "description": "make it"}}}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
