"""Hooks of the Claude Agent SDK that record: `ClaudeAgentOptions(hooks=hooks(session))`.

With a wakelog session they record alone: prompts, calls before they run, their outcomes, the end of turns. With a
`WakelogSessionStore` the transcript says all of that a moment later, so they only record each call before it runs:
after a crash it is known which calls may have had effects. A hook never changes what the agent does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from claude_agent_sdk import HookMatcher, project_key_for_directory

from wakelog.adapters.claude_agent.session_store import WakelogSessionStore
from wakelog.errors import WakelogError
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import storable
from wakelog.importers.steps import CallStep, ResultStep
from wakelog.importers.writer.call_events import requested_call, settled_call, source_of, trust_of
from wakelog.model import events as ev
from wakelog.model.events import Cost
from wakelog.model.records import EventDraft
from wakelog.runtime.bridge import in_thread_to_the_end
from wakelog.runtime.resume import settle_pending
from wakelog.session import Session

ALONE = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStart", "SubagentStop")
BESIDE = ("PreToolUse",)
Plan = Callable[[Session[Any], dict[str, Any]], list[EventDraft]]


def hooks(target: Session[Any] | WakelogSessionStore, *, project_key: str = "") -> dict[str, list[Any]]:
    """The `hooks=` of the options. `project_key` is the one of the session store, by default that of the folder."""

    def session_of(given: dict[str, Any]) -> Session[Any] | None:
        if isinstance(target, Session):
            return target
        project = project_key or project_key_for_directory(given.get("cwd"))
        key = {"project_key": project, "session_id": str(given.get("session_id", ""))}
        if agent := given.get("agent_id"):
            key["subpath"] = f"subagents/agent-{agent}"
        return target.opened(key)

    def record(given: dict[str, Any]) -> None:
        try:
            session = session_of(given)
            plan = _PLANS.get(str(given.get("hook_event_name")))
            drafts = plan(session, given) if plan is not None and session is not None else []
            if drafts and session is not None:
                session.append(*drafts)
        except WakelogError as exc:
            warnings.warn(f"wakelog could not record a hook: {exc}", stacklevel=2)

    async def hook(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        await in_thread_to_the_end(record, dict(given))
        return {}

    names = ALONE if isinstance(target, Session) else BESIDE
    return {name: [HookMatcher(hooks=[hook])] for name in names}


def _prompted(session: Session[Any], given: dict[str, Any]) -> list[EventDraft]:
    drafts = settle_pending(session.log, "the next prompt came")
    return [*drafts, EventDraft(ev.TurnStarted(input=storable(given.get("prompt"))), actor="user")]


def _asked(session: Session[Any], given: dict[str, Any]) -> list[EventDraft]:
    ask = _ask(given)
    if ask.id in session.log.part("pending_actions"):
        return []
    return [EventDraft(requested_call(ask)), EventDraft(ev.ActionStarted(action=ask.id), actor="runtime")]


def _answered(session: Session[Any], given: dict[str, Any]) -> list[EventDraft]:
    ask = _ask(given)
    if ask.id not in session.log.part("pending_actions"):
        return []
    took = given.get("duration_ms")
    cost = Cost(duration_us=int(took * 1000)) if isinstance(took, int | float) else Cost()
    if given.get("hook_event_name") == "PostToolUse":
        answer = ResultStep(ask.id, storable(given.get("tool_response")), cost=cost)
    else:
        outcome = "interrupted" if given.get("is_interrupt") else "failed"
        answer = ResultStep(ask.id, None, outcome, error=str(given.get("error") or ""), cost=cost)  # type: ignore[arg-type]
    return [EventDraft(settled_call(answer, answer.output), actor="tool", trust=trust_of(ask), source=source_of(ask))]


def _stopped(session: Session[Any], given: dict[str, Any]) -> list[EventDraft]:
    drafts = []
    if said := given.get("last_assistant_message"):
        drafts.append(EventDraft(ev.MessageAdded(role="assistant", content=storable(said))))
    if session.log.part("turn")["status"] == "open":
        drafts.append(EventDraft(ev.TurnEnded(), actor="runtime"))
    return drafts


def _noted(session: Session[Any], given: dict[str, Any]) -> list[EventDraft]:
    verb = "started" if given.get("hook_event_name") == "SubagentStart" else "stopped"
    text = f"sub-agent {given.get('agent_type') or ''} {given.get('agent_id') or ''} {verb}"
    return [EventDraft(ev.NoteAdded(text=" ".join(text.split())), actor="runtime")]


def _ask(given: dict[str, Any]) -> CallStep:
    tool, sent = str(given.get("tool_name") or "unknown"), storable(given.get("tool_input"))
    return CallStep(str(given.get("tool_use_id") or ""), tool, sent, effect_of(tool, sent))


_PLANS: dict[str, Plan] = {
    "UserPromptSubmit": _prompted,
    "PreToolUse": _asked,
    "PostToolUse": _answered,
    "PostToolUseFailure": _answered,
    "Stop": _stopped,
    "SubagentStart": _noted,
    "SubagentStop": _noted,
}
