"""Calls of Codex and their results.

Its versions write a result in different ways: a JSON string with `metadata.exit_code`, a text that starts with
`Exit code: 1` or says `Process exited with code 1`, a list of content blocks, or a plain sentence for a call that was
denied, was stopped or never ran. All of them are read into a `ResultStep`.
"""

from __future__ import annotations

import re
from typing import Any

from wakelog.importers.coding_agents.codex.patch_envelope import BEGIN
from wakelog.importers.common.amounts import duration
from wakelog.importers.common.chat import blocks_text, image_block, join_texts, text_block
from wakelog.importers.common.tools import effect_of, is_shell, shell_command
from wakelog.importers.source.files import decode_json
from wakelog.importers.steps import ERROR_MAX, CallStep, Outcome, ResultStep
from wakelog.model.events import Cost
from wakelog.model.json_fields import as_text, without_fields
from wakelog.model.values import Value

_HEADER_LENGTH = 600
"""How many characters at the start of a result may hold the state of the command."""
_STATUS_LINES = re.compile(
    r"(?:(?:Chunk ID|Exit code|Wall time|Process exited with code|Process running with session ID"
    r"|Original token count|Total output lines)[^\n]*\n)+Output:\n?"
)
_RUNNING = "Process running with session ID"
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)
_WALL = re.compile(r"^Wall time: (\d+(?:\.\d+)?) seconds", re.MULTILINE)
_DENIED = re.compile(
    r"(?:exec[_ ]?command|command|patch|apply_patch|tool call|write|request)?\s*(?:was )?"
    r"(?:rejected|denied|declined) by (?:the )?(?:user|policy|approval)|rejected: |user (?:rejected|denied|declined)",
    re.IGNORECASE,
)
_STOPPED = re.compile(
    r"(?:Wall time: [\d.]+ seconds\n)?"
    r"(?:aborted(?: by user)?(?: after [\d.]+\s*s)?\s*$|aborted by user|(?:tool )?call (?:was )?cancelled)"
)
_TIMED_OUT = re.compile(r"command timed out|timed out after|timeout after")
_FAILED = re.compile(
    r"failed |execution error|exec_command failed|apply_patch (?:verification|handler)|unsupported |"
    r"unknown (?:process|tool|function)|write_stdin failed|tool call error|err: |error: "
    r"|invalid |missing |unable to |cannot ",
    re.IGNORECASE,
)
"""Sentences of Codex itself, at the very start of a result that is not a command's output."""


def call_of(id: str, tool: str, value: Value, group: str, inside: str = "") -> CallStep:
    effect = "write" if patch_of(tool, value) else effect_of(tool, value)
    return CallStep(id, tool, value, effect, group=group, inside=inside)


def arguments_of(given: Any) -> Value:
    """Decodes arguments, which are JSON in a string. Anything else stays unchanged."""
    if not isinstance(given, str):
        return given
    try:
        found: Value = decode_json(given)
    except ValueError:
        return given
    return found if isinstance(found, dict | list) else given


def patch_of(tool: str, given: Value) -> str:
    """The patch that a call applies. Empty if there is none."""
    if tool == "apply_patch":
        text = given.get("input") or given.get("patch") if isinstance(given, dict) else given
    elif is_shell(tool):
        text = _shell_patch(given)
    else:
        return ""
    return text if isinstance(text, str) and BEGIN in text else ""


def _shell_patch(given: Value) -> str:
    command = given.get("command") if isinstance(given, dict) else None
    if isinstance(command, list) and command[:1] == ["apply_patch"]:
        return str(command[-1])
    text = shell_command(given)
    # A command that only mentions or prints a patch does not apply it.
    return text if re.search(r"(?:^|[\n;&|(]\s*)(?:cd \S+\s*(?:&&|;)\s*)?apply_?patch\b", text.lstrip()) else ""


def result_of(id: str, output: Any, details: dict[str, Any], tool: str) -> tuple[ResultStep, Value]:
    """Reads a result, together with `details` from the events beside it. Also returns the metadata that the result step
    does not hold."""
    plain, metadata = _unwrap(output)
    text = blocks_text(plain)
    code = _exit_code(text, metadata, details)
    outcome = _outcome(text, code, output, details, tool)
    seconds = metadata.get("duration_seconds") if isinstance(metadata, dict) else None
    if seconds is None and (match := _WALL.search(text[:_HEADER_LENGTH])):
        seconds = float(match[1])
    about = _STATUS_LINES.match(text) if isinstance(plain, str) and metadata is None else None
    if about and _RUNNING not in about[0]:  # else the result comes later, for this session
        plain, metadata, text = text[about.end() :], {"about": about[0]}, text[about.end() :]
    child = _spawned(tool, text) if outcome == "succeeded" else ""
    result = ResultStep(
        id,
        plain,
        outcome,
        error="" if outcome == "succeeded" else text[:ERROR_MAX],
        cost=Cost(duration_us=duration(seconds)),
        child=child,
        is_launch=bool(child),
    )
    return result, metadata


def _unwrap(output: Any) -> tuple[Value, Value]:
    """The result without its wrapper, and the wrapper's metadata."""
    if isinstance(output, str) and output.startswith('{"output":'):
        try:
            inner = decode_json(output)
        except ValueError:
            return output, None
        if isinstance(inner, dict) and isinstance(inner.get("output"), str):
            return inner["output"], inner.get("metadata")
        return output, None
    if isinstance(output, dict) and "content" in output:
        return plain_content(output["content"]), without_fields(output, ("content",)) or None
    return plain_content(output), None


def _exit_code(text: str, metadata: Value, details: dict[str, Any]) -> int | None:
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    code = details.get("exit_code") if code is None else code
    if type(code) is int:
        return code
    head, marker, _ = text[:_HEADER_LENGTH].partition("\nOutput:")
    match = _EXIT.search(head) if marker or head.startswith(("Exit code:", "Process exited")) else None
    return int(match[1][:9]) if match else None


def _outcome(text: str, code: int | None, output: Any, details: dict[str, Any], tool: str) -> Outcome:
    start = text[:_HEADER_LENGTH].lstrip()
    if _DENIED.match(start) or details.get("status") == "declined":
        return "denied"
    if _STOPPED.match(start):
        return "interrupted"
    if _TIMED_OUT.match(start) or (code == 124 and "timed out" in start):
        return "timed_out"
    if code is not None:
        return "succeeded" if code == 0 else "failed"
    if details.get("success") is False or details.get("status") == "failed":
        return "failed"
    if isinstance(output, dict) and (output.get("success") is False or output.get("isError") is True):
        return "failed"
    is_own = is_shell(tool) or tool in ("apply_patch", "write_stdin", "view_image", "unknown")
    return "failed" if is_own and _FAILED.match(start) else "succeeded"


def details_of(event: dict[str, Any]) -> dict[str, Any]:
    """What the event at the end of a call says about its outcome."""
    results: dict[str, Any] = {k: event[k] for k in ("exit_code", "success", "status") if k in event}
    result = event.get("result")
    if isinstance(result, dict):
        inner = result.get("Ok", result)
        if "Err" in result or (isinstance(inner, dict) and inner.get("isError", inner.get("is_error")) is True):
            results["success"] = False
    if event.get("error"):
        results["success"] = False
    return results


def plain_content(content: Any) -> Value:
    """Content blocks in the common form: text as a string, images as blocks that can be stored separately."""
    if not isinstance(content, list):
        return content
    return join_texts([_block(b) for b in content])


def _block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    if isinstance(block.get("text"), str) and block.get("type") in (None, "input_text", "output_text", "text", "Text"):
        return text_block(block["text"])
    url = block.get("image_url")
    if isinstance(url, str) and url.startswith("data:") and ";base64," in url:
        media, _, data = url[5:].partition(";base64,")
        return image_block(media, data)
    return block


def _spawned(tool: str, text: str) -> str:
    """The thread of the sub-agent that a call started."""
    if tool.rpartition(".")[2] != "spawn_agent" or not text.startswith("{"):
        return ""
    found = arguments_of(text)
    agent = found.get("agent_id") or found.get("thread_id") if isinstance(found, dict) else ""
    return as_text(agent)
