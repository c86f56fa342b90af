"""Small transcripts of our own, line by line, as the programs write them."""

import json
from pathlib import Path
from typing import Any

THREAD = "019a0000-0000-7000-8000-00000000aaaa"
PATCH = "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** End Patch"


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def rollout(kind: str, payload: dict[str, Any], second: int = 0) -> dict[str, Any]:
    return {"timestamp": f"2026-01-05T10:{second // 60:02}:{second % 60:02}.000Z", "type": kind, "payload": payload}


def item(kind: str, second: int = 0, **fields: Any) -> dict[str, Any]:
    return rollout("response_item", {"type": kind, **fields}, second)


def event(kind: str, second: int = 0, **fields: Any) -> dict[str, Any]:
    return rollout("event_msg", {"type": kind, **fields}, second)


def message(role: str, text: str, second: int = 0) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", second, role=role, content=[{"type": kind, "text": text}])


def tokens(total: int, last: int, second: int = 0) -> dict[str, Any]:
    def usage(count: int) -> dict[str, int]:
        return {
            "input_tokens": count,
            "cached_input_tokens": count // 2,
            "output_tokens": count // 10,
            "reasoning_output_tokens": count // 20,
        }

    info = {"total_token_usage": usage(total), "last_token_usage": usage(last)}
    return event("token_count", second, info=info, rate_limits={"primary": None})


def call(id: str, tool: str, given: Any, second: int = 0) -> dict[str, Any]:
    return item("function_call", second, name=tool, arguments=json.dumps(given), call_id=id)


def result(id: str, output: Any, second: int = 0) -> dict[str, Any]:
    return item("function_call_output", second, call_id=id, output=output)


def meta(id: str = THREAD, **more: Any) -> dict[str, Any]:
    payload = {"id": id, "cwd": "/srv/app", "cli_version": "0.104.0", "git": {"branch": "main"}, **more}
    return rollout("session_meta", payload)


def prompt(text: str, turn: str, second: int = 0) -> list[dict[str, Any]]:
    return [
        event("task_started", second, turn_id=turn),
        message("user", text, second),
        event("user_message", second, message=text, images=[]),
        rollout("turn_context", {"turn_id": turn, "cwd": "/srv/app", "model": "gpt-5.3-codex"}, second),
    ]


def codex() -> list[dict[str, Any]]:
    """Two turns of a newer Codex: context, a call that fails, a patch, a turn that was stopped."""
    first, second = "019a0000-0001-7000-8000-000000000001", "019a0000-0002-7000-8000-000000000002"
    return [
        meta(),
        message("developer", "<permissions instructions>ask first</permissions instructions>"),
        message("user", "# AGENTS.md instructions for /srv/app\n\nBe brief."),
        message("user", "<environment_context>\n  <cwd>/srv/app</cwd>\n</environment_context>"),
        *prompt("Make a.txt", first, 1),
        event("token_count", 1, info=None),
        event("agent_reasoning", 2, text="**Looking**"),
        item("reasoning", 2, summary=[{"type": "summary_text", "text": "**Looking**"}], encrypted_content="x9"),
        event("agent_message", 3, message="I look first."),
        message("assistant", "I look first.", 3),
        call("c1", "exec_command", {"cmd": "ls a.txt"}, 4),
        call("c2", "exec_command", {"cmd": "pwd"}, 4),
        tokens(1000, 1000, 5),
        result("c1", "Chunk ID: 1\nWall time: 0.5 seconds\nProcess exited with code 2\nOutput:\nls: no such file", 6),
        result("c2", "Chunk ID: 2\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n/srv/app", 6),
        tokens(1000, 1000, 6),
        item("custom_tool_call", 7, status="completed", call_id="c3", name="apply_patch", input=PATCH),
        tokens(3000, 2000, 8),
        item("custom_tool_call_output", 9, call_id="c3", output="Success. Updated the following files:\nA a.txt\n"),
        event("agent_message", 10, message="Done."),
        message("assistant", "Done.", 10),
        tokens(6000, 3000, 11),
        event("task_complete", 11, turn_id=first, last_agent_message="Done."),
        *prompt("Now delete everything", second, 20),
        call("c4", "exec_command", {"cmd": "rm -rf ."}, 21),
        tokens(10000, 4000, 21),
        result("c4", "exec_command rejected by user", 22),
        event("turn_aborted", 23, reason="interrupted", turn_id=second),
    ]


def codex_exec() -> list[dict[str, Any]]:
    done = {"id": "item_1", "type": "command_execution", "command": "bash -lc ls"}
    return [
        {"type": "thread.started", "thread_id": THREAD},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "**Listing**"}},
        {"type": "item.started", "item": {**done, "aggregated_output": "", "status": "in_progress"}},
        {
            "type": "item.completed",
            "item": {**done, "aggregated_output": "a.txt\n", "exit_code": 0, "status": "completed"},
        },
        {
            "type": "item.completed",
            "item": {
                "id": "item_2",
                "type": "file_change",
                "changes": [{"path": "/srv/b.txt", "kind": "add"}],
                "status": "completed",
            },
        },
        {"type": "item.completed", "item": {"id": "item_3", "type": "agent_message", "text": "One file."}},
        {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 7}},
    ]


def gemini_call(id: str, name: str, args: Any, output: str, status: str = "success", **more: Any) -> dict[str, Any]:
    key = "error" if status == "error" else "output"
    response = {"functionResponse": {"id": id, "name": name, "response": {key: output}}}
    return {"id": id, "name": name, "args": args, "result": [response], "status": status, **more}


def gemini() -> dict[str, Any]:
    """A session of the older form: one document."""
    return {
        "sessionId": "11111111-2222-4333-8444-555555555555",
        "projectHash": "abc",
        "startTime": "2026-01-05T10:00:00.000Z",
        "lastUpdated": "2026-01-05T10:00:09.000Z",
        "messages": gemini_messages(),
    }


def gemini_messages() -> list[dict[str, Any]]:
    write = {"file_path": "/srv/a.txt", "content": "hello\n"}
    replace = {"file_path": "/srv/a.txt", "old_string": "hello", "new_string": "goodbye"}
    return [
        {"id": "u1", "timestamp": "2026-01-05T10:00:01.000Z", "type": "user", "content": "Write a.txt"},
        {
            "id": "g1",
            "timestamp": "2026-01-05T10:00:02.000Z",
            "type": "gemini",
            "content": "I write it.",
            "thoughts": [{"subject": "Plan", "description": "One file.", "timestamp": "2026-01-05T10:00:02.000Z"}],
            "tokens": {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "tool": 0, "total": 115},
            "model": "gemini-2.5-pro",
            "toolCalls": [
                gemini_call("w1", "write_file", write, "Successfully created and wrote to new file: /srv/a.txt."),
                gemini_call("s1", "run_shell_command", {"command": "nope"}, "Output: (empty)\nExit Code: 127"),
            ],
        },
        {
            "id": "g2",
            "timestamp": "2026-01-05T10:00:05.000Z",
            "type": "gemini",
            "content": "",
            "tokens": {"input": 200, "output": 20, "cached": 0, "thoughts": 0, "tool": 0, "total": 220},
            "model": "gemini-2.5-pro",
            "toolCalls": [gemini_call("r1", "replace", replace, "Successfully modified file: /srv/a.txt")],
        },
        {"id": "i1", "timestamp": "2026-01-05T10:00:06.000Z", "type": "info", "content": "Update available"},
        {
            "id": "g3",
            "timestamp": "2026-01-05T10:00:08.000Z",
            "type": "gemini",
            "content": [{"text": "Done."}],
            "tokens": {"input": 300, "output": 3, "cached": 0, "thoughts": 0, "tool": 0, "total": 303},
            "model": "gemini-2.5-pro",
        },
    ]


def gemini_log() -> list[dict[str, Any]]:
    """The same session as the newer program writes it: messages come again when there is more of them."""
    user, first, second, note, last = gemini_messages()
    bare = {k: v for k, v in first.items() if k not in ("toolCalls", "tokens")}
    answer = {"functionResponse": first["toolCalls"][0]["result"][0]["functionResponse"]}
    header = {k: v for k, v in gemini().items() if k != "messages"}
    return [
        header | {"kind": "main"},
        user,
        {"$set": {"lastUpdated": "2026-01-05T10:00:01.000Z"}},
        bare,
        {"$set": {"lastUpdated": "2026-01-05T10:00:02.000Z"}},
        bare | {"tokens": first["tokens"]},
        first,
        {"id": "u2", "timestamp": "2026-01-05T10:00:04.000Z", "type": "user", "content": [answer]},
        second,
        note,
        last,
        {"$set": {"summary": "Writes a file"}},
    ]


def pi_message(id: str, parent: str | None, second: int, **message: Any) -> dict[str, Any]:
    at = f"2026-01-05T10:00:{second:02}.000Z"
    return {"type": "message", "id": id, "parentId": parent, "timestamp": at, "message": message}


def pi() -> list[dict[str, Any]]:
    usage = {"input": 10, "output": 5, "cacheRead": 90, "cacheWrite": 0, "totalTokens": 105, "cost": {"total": 0.001}}
    said = {"provider": "anthropic", "model": "claude-sonnet-4-5", "usage": usage}
    edit = {"path": "/srv/a.txt", "oldText": "x", "newText": "y\nz"}
    return [
        {"type": "session", "version": 3, "id": "pi-1", "timestamp": "2026-01-05T10:00:00.000Z", "cwd": "/srv"},
        {"type": "model_change", "id": "m0", "parentId": None, "provider": "anthropic", "modelId": "claude-sonnet-4-5"},
        pi_message("m1", "m0", 1, role="user", content="Change a.txt"),
        pi_message(
            "m2",
            "m1",
            2,
            role="assistant",
            content=[
                {"type": "thinking", "thinking": "An edit."},
                {"type": "text", "text": "I edit it."},
                {"type": "toolCall", "id": "t1", "name": "edit", "arguments": edit},
            ],
            stopReason="toolUse",
            **said,
        ),
        pi_message(
            "m3", "m2", 3, role="toolResult", toolCallId="t1", toolName="edit", content=[{"type": "text", "text": "ok"}]
        ),
        pi_message(
            "m4", "m3", 4, role="assistant", content=[{"type": "text", "text": "Done."}], stopReason="stop", **said
        ),
        pi_message("m5", "m4", 5, role="bashExecution", command="cat a.txt", output="y\nz", exitCode=0),
        {"type": "compaction", "id": "m6", "parentId": "m5", "summary": "a.txt was changed.", "tokensBefore": 9},
        pi_message("m7", "m6", 7, role="user", content=[{"type": "text", "text": "Thanks"}]),
        pi_message(
            "m8",
            "m7",
            8,
            role="assistant",
            content=[{"type": "toolCall", "id": "t2", "name": "bash", "arguments": {"command": "make"}}],
            stopReason="toolUse",
            **said,
        ),
        pi_message(
            "m9",
            "m8",
            9,
            role="toolResult",
            toolCallId="t2",
            toolName="bash",
            content=[{"type": "text", "text": "boom\n\nCommand exited with code 2"}],
            isError=True,
        ),
    ]
