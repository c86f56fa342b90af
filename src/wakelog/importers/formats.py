"""The supported formats, each a module of this room, and how the format of a file is detected."""

from __future__ import annotations

import codecs
import importlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, cast

from wakelog.errors import UnsupportedError
from wakelog.importers.source.files import Sample, read_sample
from wakelog.importers.steps import Transcript

FORMATS = {
    "qwen-code": "coding_agents.qwen_code",
    "claude-code": "coding_agents.claude_code.transcript",
    "codex-rollout": "coding_agents.codex.rollout",
    "codex-exec-json": "coding_agents.codex.exec",
    "gemini-cli": "coding_agents.gemini_cli.chat_file",
    "goose": "coding_agents.goose",
    "kimi-code": "coding_agents.kimi_code",
    "pi": "coding_agents.pi_agent",
    "opencode": "coding_agents.opencode.sessions",
    "cursor": "coding_agents.cursor",
    "cursor-export": "coding_agents.cursor_export",
    "cline": "coding_agents.cline.task",
    "cline-sessions": "coding_agents.cline.session_file",
    "continue": "coding_agents.continue_dev",
    "copilot-cli": "coding_agents.copilot_cli",
    "copilot-chat": "coding_agents.copilot_chat",
    "aider": "coding_agents.aider",
    "specstory": "coding_agents.specstory",
    "openai-agents": "frameworks.openai_agents",
    "langgraph": "frameworks.langgraph.checkpoints",
    "swe-agent": "benchmarks.swe_agent.run",
    "mini-swe-agent": "benchmarks.mini_swe_agent",
    "openhands-conversation": "coding_agents.openhands.conversation",
    "openhands": "coding_agents.openhands.events",
    "inspect": "benchmarks.inspect.logs",
    "tau-bench": "benchmarks.tau_bench",
    "ag-ui": "event_streams.ag_ui",
    "adk": "frameworks.adk_database",
    "otel-spans": "event_streams.otel.spans",
}
"""Name → module, most specific first: the first format that recognises a file reads it."""


class Format(Protocol):
    """What the module of a format provides."""

    NAME: str
    TITLE: str
    """The program's usual name."""

    def recognises(self, sample: Sample) -> bool:
        """Whether a file with this beginning has this format."""
        ...

    def transcripts(self, path: Path) -> Iterator[Transcript]:
        """The sessions in a file."""
        ...

    def find_in_home(self, home: Path) -> Iterator[Path]:
        """The transcripts in a home folder. Empty for programs without a fixed location."""
        ...


def get_format(name: str) -> Format:
    if name not in FORMATS:
        raise UnsupportedError(
            f"unknown format {name!r}", kind="unknown-format", hint=f"one of {', '.join(sorted(FORMATS))}"
        )
    return cast(Format, importlib.import_module(f"wakelog.importers.{FORMATS[name]}"))


def all_formats() -> Iterator[Format]:
    return map(get_format, FORMATS)


def detect_format(path: Path) -> Format:
    """The format of a file. Raises UnsupportedError if no format recognises it."""
    start = read_sample(path)
    for format in all_formats():
        if format.recognises(start):
            return format
    raise _unknown_format(start)


def _unknown_format(sample: Sample) -> UnsupportedError:
    problem = "is not a transcript of a known format"
    hint = f"supported are wakelog bundles and {', '.join(sorted(FORMATS))}"
    if not sample.start.strip():
        problem, hint = "is empty", "an agent may not have written to it yet; import it again later"
    elif sample.start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        problem = "is UTF-16 text, and transcripts are UTF-8"
        hint = f"convert a copy of it: iconv -f UTF-16 -t UTF-8 {shlex.quote(str(sample.path))}"
    elif any("body_hash" in line or str(line.get("schema", "")).startswith("wakelog.") for line in sample.lines):
        problem = "is what wakelog wrote for programs to read, and cannot be imported"
        hint = "export the session as a bundle: wakelog export SESSION -o FILE.wakelog"
    return UnsupportedError(f"{sample.path} {problem}", kind="unknown-format", hint=hint)
