"""Small sessions of Copilot CLI, Qwen Code, Continue and Cline, in the shape that the real programs wrote: a new file,
an edit, a command that fails, and a second prompt."""

import json
from typing import Any

SESSION = "1e55adca-8ffc-437e-9fa8-2406e71442a8"
PATH = "/srv/shop/limit.py"
FAILED = "ls: cannot access '/none': No such file or directory"


# GitHub Copilot CLI


def _event(number: int, kind: str, **data: Any) -> dict[str, Any]:
    id, before = f"e{number}", f"e{number - 1}" if number else None
    return {"type": kind, "data": data, "id": id, "timestamp": f"2026-01-05T10:00:{number:02}.000Z", "parentId": before}


def _copilot_reply(number: int, call: str, text: str, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    used = {"model": "claude-sonnet-4-5", "inputTokens": 147, "outputTokens": 20}
    used |= {"cacheReadTokens": 40, "cacheWriteTokens": 7, "cost": 1.0, "apiCallId": call}
    said = {"messageId": f"m-{call}", "model": "claude-sonnet-4-5", "content": text, "toolRequests": [*requests]}
    return [
        _event(number, "session.usage_record", usage=used),
        _event(number + 1, "assistant.message", **said, apiCallId=call, turnId="0"),
    ]


def _request(call: str, tool: str, **given: str) -> dict[str, Any]:
    return {"toolCallId": call, "name": tool, "arguments": given, "type": "function", "toolTitle": "…"}


def _copilot_result(number: int, call: str, text: str, **more: Any) -> dict[str, Any]:
    return _event(
        number, "tool.execution_complete", **{"toolCallId": call, "success": True, "result": {"content": text}, **more}
    )


def copilot() -> list[dict[str, Any]]:
    diff = "--- a/srv/shop/limit.py\n+++ b/srv/shop/limit.py\n@@ -1,1 +1,1 @@\n-LIMIT = 1\n+LIMIT = 2\n"
    denied = {"success": False, "result": None, "error": {"message": "You did not allow it", "code": "denied"}}
    context = {"cwd": "/srv/shop", "branch": "main"}
    return [
        _event(0, "session.start", sessionId=SESSION, version=1, copilotVersion="1.0.102", context=context),
        _event(1, "user.message", content="Make the limit", transformedContent="<now>…</now>\n\nMake the limit"),
        _event(2, "system.message", role="system", content="You are an assistant."),
        _event(3, "assistant.turn_start", turnId="0"),
        *_copilot_reply(4, "c1", "I write it.", _request("t1", "create", path=PATH, file_text="LIMIT = 1\n")),
        _event(6, "tool.execution_start", toolCallId="t1", toolName="create", arguments={"path": PATH}),
        _copilot_result(7, "t1", f"Created file {PATH}", fileEdits=[{"path": PATH, "kind": "create"}]),
        _event(8, "assistant.turn_end", turnId="0"),
        *_copilot_reply(
            9,
            "c2",
            "It must be two.",
            _request("t2", "edit", path=PATH, old_str="LIMIT = 1", new_str="LIMIT = 2"),
            _request("t3", "bash", command="ls /none"),
            _request("t4", "bash", command="rm -rf build"),
        ),
        _copilot_result(
            11,
            "t2",
            f"File {PATH} updated with changes.",
            fileEdits=[{"path": PATH, "kind": "edit"}],
            result={"content": f"File {PATH} updated with changes.", "detailedContent": diff},
        ),
        _copilot_result(12, "t3", f"{FAILED}\n<shellId: 0 completed with exit code 2>", shellExecution={"exitCode": 2}),
        _event(13, "permission.requested", requestId="p1", permissionRequest={"kind": "shell", "toolCallId": "t4"}),
        _copilot_result(14, "t4", "", **denied),
        *_copilot_reply(15, "c3", "Done."),
        _event(17, "session.shutdown", shutdownType="routine"),
        _event(18, "session.resume", resumeTime="2026-01-05T10:00:18.000Z", context={"cwd": "/srv/shop"}),
        _event(19, "user.message", content="Thanks"),
        *_copilot_reply(20, "c4", "You are welcome."),
    ]


# Qwen Code


def _qwen(number: int, kind: str, parts: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    line: dict[str, Any] = {"uuid": f"q{number}", "parentUuid": f"q{number - 1}" if number else None}
    line |= {"sessionId": SESSION, "timestamp": f"2026-01-05T10:00:{number:02}.000Z", "type": kind, "cwd": "/srv/shop"}
    line |= {"version": "0.15.10", "gitBranch": "main", **more}
    role = "model" if kind == "assistant" else "user"
    return line | {"message": {"role": role, "parts": parts}} if parts is not None else line


def _qwen_reply(number: int, text: str, call: str = "", tool: str = "", **given: Any) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": "Let me think.", "thought": True}, {"text": text}]
    if call:
        parts.append({"functionCall": {"id": call, "name": tool, "args": given}})
    used = {"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 0, "cachedContentTokenCount": 40}
    return _qwen(number, "assistant", parts, model="qwen3-coder", usageMetadata=used)


def _qwen_result(number: int, call: str, tool: str, text: str, shown: Any = "") -> dict[str, Any]:
    part = {"functionResponse": {"id": call, "name": tool, "response": {"output": text}}}
    return _qwen(
        number, "tool_result", [part], toolCallResult={"callId": call, "status": "success", "resultDisplay": shown}
    )


def qwen() -> list[dict[str, Any]]:
    old, new = "LIMIT = 1\n", "LIMIT = 2\n"
    failed = f"Command: ls /none\nDirectory: (root)\nOutput: {FAILED}\nError: (none)\nExit Code: 2\nSignal: 0"
    telemetry = {"uiEvent": {"event.name": "qwen-code.api_response", "model": "qwen3-coder"}}
    return [
        _qwen(0, "user", [{"text": "Make the limit"}]),
        _qwen(1, "system", subtype="ui_telemetry", systemPayload=telemetry),
        _qwen_reply(2, "I write it.", "t1", "write_file", file_path=PATH, content=old),
        _qwen_result(3, "t1", "write_file", f"Successfully created and wrote to new file: {PATH}."),
        _qwen_reply(4, "It must be two.", "t2", "edit", file_path=PATH, old_string="LIMIT = 1", new_string="LIMIT = 2"),
        _qwen_result(5, "t2", "edit", "The file has been updated.", {"originalContent": old, "newContent": new}),
        _qwen_reply(6, "", "t3", "run_shell_command", command="ls /none", is_background=False),
        _qwen_result(7, "t3", "run_shell_command", failed, FAILED),
        _qwen_reply(8, "Done."),
        _qwen(9, "user", [{"text": "Thanks"}]),
        _qwen_reply(10, "You are welcome."),
    ]


# Continue


def _continue_reply(text: str, *states: tuple[str, str, dict[str, Any], str, str]) -> dict[str, Any]:
    calls = [
        {"id": id, "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
        for id, tool, given, _, _ in states
    ]
    used = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 40}}
    used |= {"model": "gpt-4o", "cost_cents": 0.05}
    item: dict[str, Any] = {"message": {"role": "assistant", "content": text, "usage": used}, "contextItems": []}
    if states:
        item["message"]["toolCalls"] = calls
        item["toolCallStates"] = [
            {"toolCallId": call["id"], "toolCall": call, "status": status, "parsedArgs": given}
            | ({"output": [{"content": output, "name": "Tool Result"}]} if output else {})
            for call, (_, _, given, status, output) in zip(calls, states, strict=True)
        ]
    return item


def continue_dev() -> dict[str, Any]:
    write = "t1", "Write", {"filepath": PATH, "content": "LIMIT = 1\n"}, "done", f"Successfully created file: {PATH}"
    failed = "t2", "Bash", {"command": "ls /none"}, "errored", f"Error (exit code 2): {FAILED}"
    refused = "t3", "Bash", {"command": "rm -rf build"}, "canceled", "Permission denied by user"
    history = [
        {"message": {"role": "user", "content": "Make the limit"}, "contextItems": [], "editorState": "Make the limit"},
        _continue_reply("I write it.", write),
        _continue_reply("", failed, refused),
        _continue_reply("Done."),
        {"message": {"role": "user", "content": [{"type": "text", "text": "Thanks"}]}, "contextItems": []},
        _continue_reply("You are welcome."),
    ]
    about = {"sessionId": SESSION, "title": "The limit", "workspaceDirectory": "file:///srv/shop"}
    return {**about, "history": history, "usage": {"totalCost": 0.002}}


# Cline


def _cline(number: int, role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"id": f"msg_{number}", "role": role, "content": [*blocks]}
    message["ts"] = 1_767_607_200_000 + number * 1000
    if role == "assistant":
        used = {"inputTokens": 100, "outputTokens": 20, "cacheReadTokens": 40, "cacheWriteTokens": 0, "cost": 0.001}
        message |= {"modelInfo": {"id": "claude-sonnet-4-5", "provider": "anthropic"}, "metrics": used}
    return message


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _use(id: str, tool: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": tool, "input": given}


def _answered(id: str, tool: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "name": tool, "content": content, **more}


def cline_session() -> dict[str, Any]:
    made = json.dumps({"query": f"edit:{PATH}", "result": f"File created successfully at: {PATH}", "success": True})
    edited = json.dumps({"query": f"edit:{PATH}", "result": f"Edited {PATH}", "success": True})
    failed: dict[str, Any] = {"query": "ls /none", "result": f"[Command exited with code 2]\n\n[stderr]\n{FAILED}\n"}
    failed |= {"error": "Command exited with code 2", "success": False}
    bad = json.dumps({"error": "✖ Invalid input: expected string, received undefined"})
    messages = [
        _cline(0, "user", _text('<user_input mode="act">Make the limit</user_input>')),
        _cline(1, "assistant", _text("I write it."), _use("t0", "editor", path=PATH)),
        _cline(2, "user", _answered("t0", "editor", bad, is_error=True)),
        _cline(3, "assistant", _use("t1", "editor", path=PATH, new_text="LIMIT = 1\n")),
        _cline(4, "user", _answered("t1", "editor", made)),
        _cline(5, "assistant", _use("t2", "editor", path=PATH, old_text="LIMIT = 1", new_text="LIMIT = 2")),
        _cline(6, "user", _answered("t2", "editor", edited)),
        _cline(7, "assistant", _use("t3", "run_commands", commands=["ls /none", "rm x"])),
        _cline(8, "user", _answered("t3", "run_commands", [failed, {"query": "rm x", "result": "", "success": True}])),
        _cline(9, "assistant", _text("Done.")),
        _cline(10, "user", _text('<user_input mode="act">Thanks</user_input>')),
        _cline(11, "assistant", _text("You are welcome.")),
    ]
    origin = {"source": "cli", "mode": "user", "sessionId": "1794978482168_71qsc", "version": "3.0.65"}
    about = {"version": 1, "agent": "lead", "sessionId": "1794978482168_71qsc", "origin": origin}
    return {**about, "messages": messages, "system_prompt": "You are Cline."}
