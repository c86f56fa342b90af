"""Recording hooks for the Claude Agent SDK: `ClaudeAgentOptions(hooks=hooks(session))`.

With a wakelog session, the hooks record everything: prompts, calls before they run, their outcomes, the end of turns.
With a `WakelogSessionStore`, the transcript brings all of that a moment later, so the hooks only record each call
before it runs: after a crash it is known which calls may have had effects. A hook never changes what the agent does.
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

FOR_SESSION = (
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "SubagentStart",
    "SubagentStop",
)
FOR_STORE = ("PreToolUse",)
Plan = Callable[[Session[Any], dict[str, Any]], list[EventDraft]]


def hooks(target: Session[Any] | WakelogSessionStore, *, project_key: str = "") -> dict[str, list[Any]]:
    """The value for the option `hooks`. `project_key` is that of the session store; by default it is derived from the
    folder."""

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

    names = FOR_SESSION if isinstance(target, Session) else FOR_STORE
    return {name: [HookMatcher(hooks=[hook])] for name in names}


def _plan_prompt(session: Session[Any], given: dict[str, Any]) -> list[EventDraft]:
    drafts = settle_pending(session.log, "the next prompt came")
    return [*drafts, EventDraft(ev.TurnStarted(input=storable(given.get("prompt"))), actor="user")]


def _plan_call(session: Session[Any], given: dict[str, Any]) -> list[EventDraft]:
    call = _call_step(given)
    if call.id in session.log.part("pending_actions"):
        return []
    return [EventDraft(requested_call(call)), EventDraft(ev.ActionStarted(action=call.id), actor="runtime")]


def _plan_result(session: Session[Any], given: dict[str, Any]) -> list[EventDraft]:
    call = _call_step(given)
    if call.id not in session.log.part("pending_actions"):
        return []
    duration_ms = given.get("duration_ms")
    cost = Cost(duration_us=int(duration_ms * 1000)) if isinstance(duration_ms, int | float) else Cost()
    if given.get("hook_event_name") == "PostToolUse":
        answer = ResultStep(call.id, storable(given.get("tool_response")), cost=cost)
    else:
        outcome = "interrupted" if given.get("is_interrupt") else "failed"
        answer = ResultStep(call.id, None, outcome, error=str(given.get("error") or ""), cost=cost)  # type: ignore[arg-type]
    return [EventDraft(settled_call(answer, answer.output), actor="tool", trust=trust_of(call), source=source_of(call))]


def _plan_stop(session: Session[Any], given: dict[str, Any]) -> list[EventDraft]:
    drafts = []
    if text := given.get("last_assistant_message"):
        drafts.append(EventDraft(ev.MessageAdded(role="assistant", content=storable(text))))
    if session.log.part("turn")["status"] == "open":
        drafts.append(EventDraft(ev.TurnEnded(), actor="runtime"))
    return drafts


def _plan_note(session: Session[Any], given: dict[str, Any]) -> list[EventDraft]:
    verb = "started" if given.get("hook_event_name") == "SubagentStart" else "stopped"
    text = f"sub-agent {given.get('agent_type') or ''} {given.get('agent_id') or ''} {verb}"
    return [EventDraft(ev.NoteAdded(text=" ".join(text.split())), actor="runtime")]


def _call_step(given: dict[str, Any]) -> CallStep:
    tool, input = str(given.get("tool_name") or "unknown"), storable(given.get("tool_input"))
    return CallStep(str(given.get("tool_use_id") or ""), tool, input, effect_of(tool, input))


_PLANS: dict[str, Plan] = {
    "UserPromptSubmit": _plan_prompt,
    "PreToolUse": _plan_call,
    "PostToolUse": _plan_result,
    "PostToolUseFailure": _plan_result,
    "Stop": _plan_stop,
    "SubagentStart": _plan_note,
    "SubagentStop": _plan_note,
}
