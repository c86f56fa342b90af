"""What agents tell their hooks in one small session, as the real ones do: each event kind with its fields."""

import json
from pathlib import Path
from typing import Any

from wakelog.hooks import spool

CLAUDE = "0a1b2c3d-0000-4000-8000-000000000001"
BASH = {"command": "make test", "description": "Run the tests"}
EDIT = {"file_path": "/w/app.py", "old_string": "a", "new_string": "b"}


def claude(cwd: str = "/w", transcript: str | None = None, origin: str = CLAUDE) -> list[dict[str, Any]]:
    """A turn with a call that succeeds, one that fails, one that somebody allows and one that a rule denies; then the
    agent ends in the middle of the next."""
    common = {"session_id": origin, "transcript_path": transcript, "cwd": cwd}

    def said(event: str, **fields: Any) -> dict[str, Any]:
        return {**common, "hook_event_name": event, **fields}

    def call(event: str, id: str, tool: str, given: Any, **fields: Any) -> dict[str, Any]:
        return said(event, tool_name=tool, tool_input=given, tool_use_id=id, **fields)

    rm = {"command": "rm -rf build"}
    curl = {"command": "curl example.org"}
    return [
        said("SessionStart", source="startup", model="model-1"),
        said("InstructionsLoaded", file_path=f"{cwd}/CLAUDE.md", memory_type="Project", load_reason="session_start"),
        said("UserPromptSubmit", prompt="fix the build", prompt_id="p1"),
        call("PreToolUse", "t1", "Bash", BASH),
        call("PostToolUse", "t1", "Bash", BASH, tool_response={"stdout": "2 failed"}, duration_ms=1200),
        call("PreToolUse", "t2", "Edit", EDIT),
        call("PostToolUseFailure", "t2", "Edit", EDIT, error="String to replace not found", is_interrupt=False),
        call("PreToolUse", "t3", "Bash", rm),
        said("PermissionRequest", tool_name="Bash", tool_input=rm),
        said("Notification", message="Claude needs your permission", notification_type="permission_prompt"),
        call("PostToolUse", "t3", "Bash", rm, tool_response={"stdout": ""}),
        call("PreToolUse", "t4", "Bash", curl),
        call("PermissionDenied", "t4", "Bash", curl, reason="not asked for"),
        said("SubagentStart", agent_id="a1", agent_type="Explore"),
        said("SubagentStop", agent_id="a1", agent_type="Explore", last_assistant_message="found it"),
        said("PreCompact", trigger="auto", custom_instructions=""),
        said("PostCompact", trigger="auto", compact_summary="so far"),
        said("ConfigChange", source="user_settings", file_path="/home/u/.claude/settings.json"),
        said("Stop", stop_hook_active=False, last_assistant_message="Fixed."),
        said("UserPromptSubmit", prompt="now deploy", prompt_id="p2"),
        call("PreToolUse", "t5", "Bash", {"command": "make deploy"}),
        said("SessionEnd", reason="other"),
    ]


def spooled(records: list[dict[str, Any]], agent: str = "claude-code") -> None:
    for record in records:
        spool.append(agent, json.dumps(record).encode())


def write_transcript(path: Path, origin: str = CLAUDE, cwd: str = "/w") -> Path:
    """The file that Claude Code writes for the beginning of the same session."""
    common: dict[str, Any] = {
        "sessionId": origin,
        "cwd": cwd,
        "version": "2.1.0",
        "gitBranch": "main",
        "isSidechain": False,
    }
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": BASH}
    usage = {"input_tokens": 10, "output_tokens": 5}
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "fix the build"}},
        {
            "type": "assistant",
            "uuid": "u2",
            "parentUuid": "u1",
            "message": {"id": "m1", "role": "assistant", "model": "model-1", "content": [use], "usage": usage},
        },
        {
            "type": "user",
            "uuid": "u3",
            "parentUuid": "u2",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "2 failed"}],
            },
        },
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as out:
        for number, line in enumerate(lines):
            out.write(json.dumps({**common, "timestamp": f"2026-11-16T10:00:0{number}.000Z", **line}) + "\n")
    return path
