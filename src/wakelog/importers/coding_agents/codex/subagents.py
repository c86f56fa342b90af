"""The sub-agents that a session of Codex starts. They work beside it, and a notice tells when one stops."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wakelog.importers.coding_agents.codex.calls import arguments_of
from wakelog.importers.steps import Outcome, ResultStep, ReturnStep
from wakelog.model.json_fields import as_dict, text_in

_NOTICE = re.compile(r"\s*<subagent_notification>\s*(\{.*\})\s*</subagent_notification>\s*$", re.DOTALL)
_ENDS: dict[str, Outcome] = {
    "completed": "succeeded",
    "errored": "failed",
    "interrupted": "interrupted",
    "shutdown": "cancelled",
}


class StartedSubagents:
    """Those that have not been told to have stopped."""

    def __init__(self) -> None:
        self._running: set[str] = set()

    def note(self, result: ResultStep) -> ResultStep:
        """Notes the sub-agent that a call started, if it did."""
        if result.child:
            self._running.add(result.child)
        return result

    def told(self, text: str) -> Iterator[ReturnStep]:
        """The end of a sub-agent, if this is the notice of one."""
        notice = _NOTICE.match(text)
        about = as_dict(arguments_of(notice[1])) if notice else {}
        child, status = text_in(about, "agent_path"), about.get("status")
        name = status if isinstance(status, str) else next(iter(as_dict(status)), "")
        if child in self._running and name in _ENDS:
            self._running.remove(child)
            yield ReturnStep(child, _ENDS[name], text_in(as_dict(status), name) or None)
