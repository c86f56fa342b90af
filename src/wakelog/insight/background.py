"""Commands that outlive their call: it answers with an id, and a later call asks for the rest of the output.

Codex names a session, which `write_stdin` takes; Claude Code a shell or task, which `BashOutput` and `TaskOutput` take,
or a file with the output; editors a terminal or a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from wakelog.insight.blocks import Did

HEAD: Final = 600
"""How many characters at the start and at the end of an output may tell the id."""

_ID: Final = re.compile(
    r"\b(?:running|started|background\w*)\b[^\n]{0,60}?\b(?:session |command |terminal |shell ?|process |task )?"
    r"(?:ID|PID)\b ?[:= ] ?(?P<id>[\w-]+)",
    re.IGNORECASE,
)
_RUNS: Final = re.compile(
    r"(?:running|moved|continu\w+) (?:in|to) (?:the )?background|\bstill running\b|started in (?:the )?background"
    r"|\brunning (?:in terminal )?with (?:session )?id\b|backgrounded by (?:the )?user|<status>running</status>"
    r"|^status: running\b|background command id:",
    re.IGNORECASE | re.MULTILINE,
)


def still_runs(output: str) -> bool:
    """Whether an output says that the command has not ended."""
    return bool(_RUNS.search(output[:HEAD]) or _RUNS.search(output[-HEAD:]))


def with_later_output(call: Did, later: Iterable[Did]) -> tuple[Did, Did]:
    """A call with the output of the `later` calls that ask for the rest of it, and the call that tells its end: the
    last one of these, or the call itself."""
    match = (_ID.search(call.output[:HEAD]) or _ID.search(call.output[-HEAD:])) if still_runs(call.output) else None
    if match is None:
        return call, call
    asked = [other for other in later if _asks_for(other, match["id"])]
    if not asked:
        return call, call
    output = "\n".join(_RUNS.sub(" ", _ID.sub(" ", each.output)) for each in asked[:-1])
    return msgspec.structs.replace(call, outcome=asked[-1].outcome, output=f"{output}\n{asked[-1].output}"), asked[-1]


def _asks_for(call: Did, id: str) -> bool:
    """Whether a call asks for the output of a command: by its id, or in a file that is named after it. An id may be a
    small number, which other arguments have too."""
    data = call.input if isinstance(call.input, dict) else {}
    is_named = any(str(value) == id for name, value in data.items() if name.lower().endswith("id"))
    return is_named or any(isinstance(value, str) and f"/{id}.output" in value for value in data.values())
