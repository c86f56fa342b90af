"""A Pydantic AI capability that records runs live: `Agent(…, capabilities=[WakelogCapability(session)])`.

With a wakelog session, it records the new messages after every answer of the model, so that a call is durable before
its tool runs, and how the run ended. With a `WakelogConversationStore`, messages are recorded when the conversation is
saved, so it only opens the turn and records each call before it runs: after a crash it is known which calls may have
had effects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic_ai.capabilities import AbstractCapability

from wakelog.adapters.pydantic_ai.message_log import MessageLog
from wakelog.adapters.pydantic_ai.message_shape import dump_message
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import storable
from wakelog.importers.steps import CallStep
from wakelog.importers.writer.call_events import requested_call
from wakelog.model import events as ev
from wakelog.model.events import Effect
from wakelog.model.records import EventDraft
from wakelog.runtime.bridge import in_thread_to_the_end
from wakelog.session import Session

if TYPE_CHECKING:
    from wakelog.adapters.pydantic_ai.conversation_store import WakelogConversationStore


class WakelogCapability(AbstractCapability):  # type: ignore[misc]  # Any if it is not installed
    """Records the runs of an agent."""

    def __init__(
        self, target: Session[Any] | WakelogConversationStore, *, effects: Mapping[str, Effect] | None = None
    ) -> None:
        self._effects = dict(effects or {})
        self._log = MessageLog(target, effects) if isinstance(target, Session) else None
        self._conversations = None if isinstance(target, Session) else target

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        """Records how the run ended. Beside a conversation store only if it failed: a save ends the turn."""
        try:
            result = await handler()
        except BaseException as exc:
            if self._log is not None:
                await in_thread_to_the_end(self._end, list(ctx.messages), exc)
            elif self._conversations is not None and ctx.conversation_id:
                await in_thread_to_the_end(_fail_unsaved, self._conversations, str(ctx.conversation_id), exc)
            raise
        if self._log is not None:
            await in_thread_to_the_end(self._end, list(result.all_messages()), None)
        return result

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        """Records an answer of the model before its tool calls run."""
        if self._log is not None:
            messages = list(ctx.messages)
            if not messages or messages[-1] is not response:
                messages.append(response)
            await in_thread_to_the_end(self._sync, messages)
        return response

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        """Records a call before it runs."""
        if self._conversations is not None and ctx.conversation_id:
            await in_thread_to_the_end(self._record_intent, self._conversations, str(ctx.conversation_id), call)
        return args

    def _sync(self, messages: list[Any], *, ends: bool = False) -> None:
        log = self._log
        assert log is not None
        given = [{"message": dump_message(message, f"messages[{n}]")} for n, message in enumerate(messages)]
        log.refresh(0)
        new = given[_count_recorded(given, log) :]
        if new:
            log.write(
                lambda parts: log.plan_messages(
                    parts, [("", item) for item in new], after=log.items[-1] if log.items else None, ends=ends
                )
            )

    def _end(self, messages: list[Any], error: BaseException | None) -> None:
        self._sync(messages)
        log = self._log
        assert log is not None
        if log.session.log.part("turn")["status"] == "open":
            log.session.append(EventDraft(_ending(error), actor="runtime"))

    def _record_intent(self, conversations: WakelogConversationStore, conversation_id: str, call: Any) -> None:
        session = conversations.opened(conversation_id)
        pending = session.log.part("pending_actions").get(call.tool_call_id)
        if pending is not None:
            if pending["status"] == "waiting":  # it runs now, so somebody approved it
                approved = EventDraft(ev.ActionApproved(action=call.tool_call_id), actor="user")
                session.append(approved, EventDraft(ev.ActionStarted(action=call.tool_call_id), actor="runtime"))
            return
        input = storable(call.args_as_dict())
        effect = self._effects.get(call.tool_name) or effect_of(call.tool_name, input)
        step = CallStep(call.tool_call_id, call.tool_name, input, effect)
        is_open = session.log.part("turn")["status"] == "open"
        session.append(
            *(() if is_open else (EventDraft(ev.TurnStarted(), actor="runtime"),)),
            EventDraft(requested_call(step)),
            EventDraft(ev.ActionStarted(action=step.id), actor="runtime"),
        )


def _fail_unsaved(conversations: WakelogConversationStore, conversation_id: str, error: BaseException) -> None:
    """Ends the turn that calls of the run have opened, if they did."""
    if (log := conversations.find_log(conversation_id)) is not None and log.has_unsaved_turn():
        log.session.append(EventDraft(_ending(error), actor="runtime"))


def _ending(error: BaseException | None) -> ev.TurnEnded:
    if error is None:
        return ev.TurnEnded()
    if isinstance(error, Exception):
        return ev.TurnEnded(outcome="failed", error=ev.Failure(type(error).__name__, str(error)))
    return ev.TurnEnded(outcome="interrupted")


def _count_recorded(given: list[dict[str, Any]], log: MessageLog) -> int:
    """How many of the messages are recorded. The list starts with the newest recorded messages, or with all of them."""
    known = [item.value["message"] for item in log.items]
    for start in range(max(0, len(known) - len(given)), len(known)):
        part = known[start:]
        if all(_same(a, b["message"]) for a, b in zip(part, given, strict=False)):
            return len(part)
    return 0


def _same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """True if both are the same message. Other fields do not count: the framework fills them in later."""
    return bool(a["kind"] == b["kind"] and a["parts"] == b["parts"])
