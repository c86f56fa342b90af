"""Calls of Cline: written as XML in a text, and their results."""

from __future__ import annotations

import contextlib
import re
from typing import Any, Final

import msgspec

from wakelog.importers.common.file_changes import file_change
from wakelog.importers.source.files import decode_json, storable
from wakelog.importers.steps import ERROR_MAX, CallStep, Outcome, ResultStep
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, as_list, as_text, text_in
from wakelog.model.values import Value

_TOOLS: Final = (
    r"execute_command|read_file|write_to_file|replace_in_file|search_files|list_files|list_code_definition_names"
    r"|browser_action|use_mcp_tool|access_mcp_resource|ask_followup_question|attempt_completion|new_task"
    r"|plan_mode_respond|load_mcp_documentation|web_fetch|condense|report_bug|new_rule|apply_diff|insert_content"
    r"|search_and_replace|switch_mode|fetch_instructions|update_todo_list|codebase_search|use_subagents|run_slash_command"
)
_CALL = re.compile(rf"<({_TOOLS})>(.*?)</\1>", re.DOTALL)
_ARGUMENT = re.compile(r"<([a-z_]+)>(.*?)</\1>", re.DOTALL)
_RESULT = re.compile(r"\[(\w+)(?: [^\n]*)?\] Result:\s*")
_DENIED = re.compile(r"The user denied this operation|denied by the user", re.IGNORECASE)
_FAILED = re.compile(
    r"\s*(?:The tool execution failed|\{\"status\": ?\"error\"|<error>|Error executing|\[ERROR\]"
    r"|Command failed with exit code|Command executed[^\n]*\nExit code: [1-9])",
    re.IGNORECASE,
)
USER_WORDS = re.compile(r"<(task|feedback|user_message|answer)>\s*(.*?)\s*</\1>", re.DOTALL)
_JSON_WORDS = re.compile(
    r'(?:\[[^\n]*\] Result:\s*)?\{"status": ?"(?:denied|approved)".*?"feedback": ?("(?:[^"\\]|\\.)*")', re.DOTALL
)
"""Roo Code answers with JSON: what was decided, and what the user said about it."""
_SAVED = re.compile(r"<final_file_content[^>\n]*>\n(.*?)\n*</final_file_content>", re.DOTALL)
_NOTICE = re.compile(r"\s*# (?:task_progress|TODO LIST)\b")
"""Cline asks the model for a list of tasks, in a text after the results."""
_WRITES = frozenset({"write_to_file", "replace_in_file", "apply_diff", "insert_content", "search_and_replace"})


def words_in(text: str) -> list[str]:
    """What the user said, in a message or in the result of a call."""
    results = [words for _, words in USER_WORDS.findall(text)]
    if match := _JSON_WORDS.match(text):
        with contextlib.suppress(ValueError):
            results.append(as_text(decode_json(match[1])).strip())
    return [words for words in results if words]


def xml_call(text: str) -> tuple[str, dict[str, Value]] | None:
    """The last call in a text, and its input."""
    calls = list(_CALL.finditer(text))
    if not calls:
        return None
    match = calls[-1]
    return match[1], {name: value.strip("\n") for name, value in _ARGUMENT.findall(match[2])}


class TextResults(msgspec.Struct):
    """Results that came back as texts: a text starts the result of a call, and the next ones may continue it."""

    found: list[tuple[CallStep, list[str]]] = []
    other: list[str] = []

    def take(self, text: str, waiting: list[CallStep]) -> None:
        """Adds a text. A call that it answers is removed from those that wait."""
        start = _RESULT.match(text)
        # A result may name its tool by a part of the name: `subagents` for `use_subagents`.
        ask = next((a for a in waiting if start and a.tool.endswith(start[1])), None)
        if start is not None and ask is not None:
            waiting.remove(ask)
            self.found.append((ask, [text[start.end() :]]))
        elif self.found and start is None and not _NOTICE.match(text):
            self.found[-1][1].append(text)
        else:
            self.other.append(text)


def outcome_of(text: str) -> Outcome:
    if _DENIED.search(text[:400]):
        return "denied"
    return "failed" if _FAILED.match(text) else "succeeded"


def result_of(ask: CallStep, content: Any, folder: str, *, is_error: bool = False) -> ResultStep:
    text = plain_text(content)
    start = _RESULT.match(text)
    if start is not None and start[1] == ask.tool:
        text = text[start.end() :]
    outcome = outcome_of(text)
    if is_error and outcome == "succeeded":
        outcome = "failed"
    has_more = any(as_dict(b).get("type") != "text" for b in as_list(content))
    return ResultStep(
        ask.id,
        storable(content) if has_more else text,
        outcome,
        error="" if outcome == "succeeded" else text[:ERROR_MAX],
        files=_files(ask, folder, text) if outcome == "succeeded" else (),
    )


def plain_text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(text_in(as_dict(b), "text") for b in as_list(content))


def _files(ask: CallStep, folder: str, text: str) -> tuple[FileChanged, ...]:
    data = as_dict(ask.input)
    path = text_in(data, "path") or text_in(data, "absolutePath")
    if ask.tool not in _WRITES or not path:
        return ()
    content = data.get("content")
    # The transcript does not say whether the file existed, or what was in it. The result may say what is in it now.
    saved = _SAVED.search(text)
    after = content if ask.tool == "write_to_file" and isinstance(content, str) else None
    after = saved[1] + "\n" if saved else after
    return (file_change(path, folder=folder, after=after, action=ask.id),)
