"""Results of Claude Code's tools: the result block, and the structured result beside it."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from operator import add
from typing import Any, Literal

from wakelog.importers.common.amounts import duration, edited_lines
from wakelog.importers.common.chat import join_texts
from wakelog.importers.common.file_changes import file_change, patch_counts, replace_text
from wakelog.importers.steps import ERROR_MAX, Outcome, ResultStep
from wakelog.model.events import Cost, FileChanged
from wakelog.model.json_fields import as_dict, as_text, dicts_in, without_fields
from wakelog.model.values import Value

_DENIED = re.compile(
    r"The user doesn't want to (proceed|take this action)|Permission to use \S+ (with|has been denied)|"
    r"Claude requested permissions to .* but you haven't granted|has been denied|User rejected|"
    r"This command requires approval$"
)
_REJECTED = re.compile(r"The user doesn't want to proceed with this tool use")
_SIBLING = re.compile(r"<tool_use_error>Sibling tool call errored|Sibling tool call errored")
_INTERRUPTED = re.compile(r"\[Request interrupted by user")
_DENIALS: dict[str, Outcome] = {"cancelled": "cancelled", "interrupted": "interrupted"}
NUMBERED_MAX = 4000
_ID_MAX = 128


def is_id(given: Any) -> bool:
    """Whether a value is usable as an id: it must be stored the same everywhere."""
    return isinstance(given, str) and given.isascii() and 0 < len(given) <= _ID_MAX


def result_of(block: dict[str, Any], structured: Any, folder: str, origin: str, denial: str = "") -> ResultStep:
    """Reads a tool_result block with its `toolUseResult`. `denial` is what kept the call from running, if anything."""
    output = join_texts(block.get("content"))
    output = "" if output is None else output  # so that it differs from a call without a result
    text = as_text(output)
    outcome = _outcome(block, structured, text, denial)
    details = as_dict(structured)
    agent = details.get("agentId")
    took_ms = details.get("totalDurationMs") or details.get("durationMs")
    return ResultStep(
        str(block.get("tool_use_id") or ""),
        output,
        outcome,
        error="" if outcome == "succeeded" else text[:ERROR_MAX],
        files=_changed_files(details, folder) if outcome == "succeeded" else (),
        cost=Cost(duration_us=duration(took_ms) // 1000),
        child=f"{origin}/agent-{agent}" if is_id(agent) else "",
        is_launch=details.get("status") == "async_launched",
        may_have_run=outcome == "denied" and not denial and _REJECTED.match(text) is not None,
    )


def beyond_result(details: Any, result: ResultStep | None) -> Value:
    """The structured result without what the call's result and file changes hold word for word."""
    if result is None:
        return details
    text = as_text(result.output)
    if isinstance(details, str):
        return None if details in (text, f"Error: {text}") else details
    if not isinstance(details, dict):
        return details
    kept = {k: v for k, v in details.items() if not _is_in_result(k, v, text, result)}
    file = kept.get("file")
    if isinstance(file, dict) and _is_shown(file, text, result.output):
        kept["file"] = without_fields(file, ("content", "base64"))
    return kept


def _is_in_result(field: str, value: Any, text: str, result: ResultStep) -> bool:
    change = result.files[0] if result.files else None
    match field:
        case "originalFile" | "originalFileContents":
            return change is not None and value == change.before
        case "oldString" | "newString" | "edits":
            # The call's input has them, and the two contents show their effect.
            return change is not None and change.after is not None
        case "content" if change is not None and value == change.after:
            return True
        case "content" if isinstance(value, list):
            return bool(value == result.output) or join_texts(value) == text
        case "content" | "stdout" | "stderr":
            return isinstance(value, str) and value.strip("\n") in text
    return False


def _is_shown(file: dict[str, Any], text: str, output: Value) -> bool:
    """Whether the tool's output shows the file content, with numbered lines."""
    content, first = file.get("content"), file.get("startLine", 1)
    if isinstance(content, str) and isinstance(first, int):
        lines = content.split("\n")
        return any(
            text.startswith("\n".join(map(add, _numbers(mark, first, len(lines)), lines)))
            for mark in ("→", "\t")
            if mark in text[:12]
        )
    data = file.get("base64")
    sources = [as_dict(block.get("source")) for block in dicts_in(output)]
    return isinstance(data, str) and any(source.get("data") == data for source in sources)


def _numbers(mark: str, first: int, count: int) -> Sequence[str]:
    """The prefix of each of `count` lines. Most reads start at line 1, so those are cached."""
    if first == 1 and count <= NUMBERED_MAX:
        return _first_numbers(mark)[:count]
    return [f"{n:>6}{mark}" for n in range(first, first + count)]


@functools.cache
def _first_numbers(mark: str) -> list[str]:
    return [f"{n:>6}{mark}" for n in range(1, NUMBERED_MAX + 1)]


def _outcome(block: dict[str, Any], structured: Any, text: str, denial: str) -> Outcome:
    if isinstance(structured, dict) and structured.get("interrupted") is True:
        return "interrupted"
    if block.get("is_error") is not True:
        return "succeeded"
    if denial:
        return _DENIALS.get(denial, "denied")
    if _SIBLING.match(text):
        return "cancelled"
    if _INTERRUPTED.match(text):
        return "interrupted"
    return "denied" if _DENIED.search(text[:400]) else "failed"


def _changed_files(details: dict[str, Any], folder: str) -> tuple[FileChanged, ...]:
    path = details.get("filePath") or details.get("notebook_path")
    if not isinstance(path, str) or not path or details.get("type") in ("text", "image", "notebook", "pdf", "parts"):
        return ()
    lines = patch_counts(details.get("structuredPatch"))
    before = details.get("originalFile", details.get("originalFileContents"))
    before = before if isinstance(before, str) else None
    edits, after = _edits(details), details.get("content")
    if edits is None and isinstance(after, str):
        is_new = details.get("type") == "create" or (before is None and not details.get("structuredPatch"))
        lines = (after.count("\n") + (not after.endswith("\n") and bool(after)), 0) if is_new else lines
    elif edits is not None or "structuredPatch" in details or "new_source" in details:
        edits = edits or []
        is_new = len(edits) == 1 and edits[0][0] == "" and not before
        after = edits[0][1] if is_new else _apply_edits(before, edits)
        lines = lines if lines and lines != (0, 0) else edited_lines((old, new) for old, new, _ in edits)
    else:
        return ()
    change: Literal["created", "modified"] = "created" if is_new else "modified"
    return (file_change(path, folder=folder, before=before, after=after, change=change, lines=lines),)


def _edits(details: dict[str, Any]) -> list[tuple[str, str, bool]] | None:
    """The edits of a result: old text, new text, and whether all occurrences are replaced. None if it has no edits."""
    old, new, edits = details.get("oldString"), details.get("newString"), details.get("edits")
    if isinstance(old, str) and isinstance(new, str):
        return [(old, new, bool(details.get("replaceAll")))]
    if not isinstance(edits, list):
        return None
    return [
        (str(edit.get("old_string", "")), str(edit.get("new_string", "")), bool(edit.get("replace_all")))
        for edit in dicts_in(edits)
    ]


def _apply_edits(before: str | None, edits: list[tuple[str, str, bool]]) -> str | None:
    text = before
    for old, new, every in edits:
        if text is None:
            return None
        text = replace_text(text, old, new, all=every)
    return text if edits else None
