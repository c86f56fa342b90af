"""Removes the wrappers of a prompt: what an editor or a harness adds to the user's own words."""

from __future__ import annotations

import re
from typing import Final

from wakelog.insight.sentences import TEXT_MAX

ASIDES_MAX: Final = 20
"""How many asides to remove from a prompt."""

_STARTS: Final = (
    re.compile(r"^## My request for [^\n]*:\s*\n", re.MULTILINE),
    re.compile(r"^(?:Here's the issue text:\s*\n)?ISSUE:\s*\n", re.MULTILINE),
    re.compile(r"^<pr_description>\s*\n(?:Consider the following PR description:\s*\n)?", re.MULTILINE),
    re.compile(
        r"^[ \t]*<(?:issue|task|user_query|user_request|user_message|userRequest|USER_REQUEST|feedback"
        r"|uploaded_files_issue)>\s*"
        r"|<command-args>\s*",
        re.MULTILINE,
    ),
)
_ENDS: Final = re.compile(
    r"^(?:INSTRUCTIONS:|<instructions>|# Task Instructions)|</(?:pr_description|issue|task|user_query|user_request"
    r"|user_message|userRequest|USER_REQUEST|feedback|command-args)>|^Files included in the challenge\b"
    r"|^--- Content from referenced files ---",
    re.MULTILINE,
)
_ASIDE: Final = re.compile(
    r"<(system-reminder|environment_context|environment_details|user_info|git_status|rules|project_layout|additional_data"
    r"|open_and_recently_viewed_files|attachments|editorContext|reminderInstructions|user_action|image_files|ide_selection|ide_opened_file|local-command-\w+|command-name"
    r"|user_instructions|timestamp|ADDITIONAL_METADATA|USER_SETTINGS_CHANGE"
    r"|command-message|bash-input|bash-stdout|bash-stderr|task-notification|hook\w*|attached_files)\b[^>]*>.*?</\1>",
    re.DOTALL,
)
_NO_WORDS: Final = re.compile(
    r"\s*(?:\[Request interrupted|Caveat: The messages below|This session is being continued"
    r"|Read the output file to retrieve the result:|This is the Gemini CLI\. We are setting up the context"
    r"|kind: subagent\b|# AGENTS\.md instructions|Your task is to create a detailed summary of the conversation so far"
    r"|/(?:exit|quit|clear|compact|help|model|login|logout|status|cost|config|resume|memory|mcp|agents"
    r"|permissions|doctor"
    r"|hooks|context|usage|vim|theme|add-dir|bug|release-notes|export|rewind|undo|redo|new|sessions?)(?: \S+)?\s*$"
    r"|/(?:add|drop|read-only|ls|map|tokens|reset|run|git|lint|diff)(?: \S+)*\s*$)"
)

_PLACEHOLDER: Final = re.compile(r"(?:\[(?:REDACTED|Image|Pasted|Attach)[^\]\n]*\]\s*)+$", re.IGNORECASE)
"""A placeholder for words or images that are not here."""
_NOTICE: Final = re.compile(
    r"\s*(?:<timestamp>[^<]*</timestamp>\s*)?<(?:system[-_]notification|task[-_]notification|new-diagnostics|background[-_]task)\b",
    re.IGNORECASE,
)
"""A prompt that a harness wrote, whatever it asks for."""
_STOP: Final = re.compile(r"\s*#+(?:STOP|END|TRANSFER)#+\s*$")


def own_words(text: str) -> tuple[int, int]:
    """The range of the user's own words in a prompt, without wrappers; empty if there are none."""
    start, end = 0, len(text)
    if _NOTICE.match(text):
        return 0, 0
    for pattern in _STARTS:
        match = pattern.search(text)
        if match:
            start = match.end()
            break
    match = _ENDS.search(text, start)
    if match:
        end = match.start()
    for _ in range(ASIDES_MAX):
        aside = _ASIDE.search(text, start, min(end, start + TEXT_MAX))
        if aside is None:
            break
        before, after = text[start : aside.start()].strip(), text[aside.end() : end].strip()
        if (before and after and len(after) <= len(before)) or (before and not after):
            end = aside.start()
        else:
            start = aside.end()
    stop = _STOP.search(text, max(start, end - 40), end)
    end = stop.start() if stop else end
    start += len(text[start:end]) - len(text[start:end].lstrip())
    end -= len(text[start:end]) - len(text[start:end].rstrip())
    if _NO_WORDS.match(text, start, end) or _PLACEHOLDER.match(text, start, end):
        return start, start
    return start, end
