"""Verbs that call: tools and models, recorded around any function; and what settles a call by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, Unpack, cast, overload

from wakelog.errors import InvalidInputError
from wakelog.log.holder import end_of_holder, refuse_if_held
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.runtime import operator as settling
from wakelog.runtime.ambient import answering, carry, enter_session
from wakelog.runtime.bound_tool import Policies, bind
from wakelog.runtime.call_values import Given
from wakelog.runtime.models import model_call, usage_cost
from wakelog.runtime.outcome import Outcome
from wakelog.runtime.policy import Policy
from wakelog.runtime.recovery import settling as left_open
from wakelog.runtime.refusal import bad_arguments, refused, unknown_tool
from wakelog.runtime.streams import unwrapped
from wakelog.runtime.tools import Tool, drive, drive_async
from wakelog.session.base import Base, S

P = ParamSpec("P")
R = TypeVar("R")
MODEL = Policy(effect="model", cost=usage_cost)


class Calling(Base[S]):
    """Calls that are never silently run twice, and never silently lost."""

    @overload
    def tool(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def tool(self, /, *, name: str = "", **policy: Unpack[Policies]) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
    def tool(self, function: Any = None, /, *, name: str = "", **policy: Any) -> Any:
        """Decorates a function, sync or async: each call of it is recorded here, and answered from the record where it
        was made before. Without an `effect` it is taken to be external: never repeated without asking.

        The keywords are those of `Policy`: effect, timeout_s, retry, retry_on, backoff_s, key, uncertain, probe,
        approval, trust, source, redact, summary, cost.
        """

        def decorate(target: Callable[P, R]) -> Callable[P, R]:
            tool = Tool(target, Policy(**policy), name)
            self.runtime.tools[tool.name] = tool
            return cast("Callable[P, R]", bind(tool, lambda: answering(self)))

        return decorate if function is None else decorate(function)

    def call(self, tool: str | Callable[..., Any], input: Mapping[str, Any] | None = None, *, id: str = "") -> Outcome:
        """Calls a tool by name, for loops that dispatch what a model asked for. A tool's error is in the outcome,
        typed, not raised; so is a tool that does not exist (`unknown-tool`), or does not take that input
        (`bad-arguments`), which are recorded as failed calls. `id`, such as the model's tool-call id, makes it the same
        call whenever it is asked for again."""
        given = self._given(tool, input, id)
        if given.tool.is_async:
            raise InvalidInputError(
                f"{given.tool.name} is a coroutine function", kind="async-tool", hint="await session.acall(…)"
            )
        outcome: Outcome = drive(answering(self).conduct(given))
        return outcome

    async def acall(
        self, tool: str | Callable[..., Any], input: Mapping[str, Any] | None = None, *, id: str = ""
    ) -> Outcome:
        """The same, awaited; a plain function runs in a worker thread."""
        return await drive_async(answering(self).conduct(self._given(tool, input, id)))

    def _given(self, tool: str | Callable[..., Any], input: Mapping[str, Any] | None, id: str) -> Given:
        if isinstance(tool, str):
            found = self.runtime.tools.get(tool)
            if found is None:
                return refused(tool, input, id, unknown_tool(tool, self.runtime.tools))
        elif callable(tool):
            found = getattr(tool, "tool", None) or Tool(tool, Policy())
        else:
            raise InvalidInputError(
                f"a tool is called by its name or passed as a function, not as {type(tool).__name__}", kind="bad-tool"
            )
        try:
            arguments = dict(input or {})
            named = found.arguments((), arguments)
        except (TypeError, ValueError) as exc:
            return refused(found.name, input, id, bad_arguments(found, exc))
        return Given(found, named, functools.partial(found.function, **arguments), action=id)

    def model(
        self, function: Callable[..., R], /, *args: Any, context: Any = None, policy: Policy = MODEL, **kwargs: Any
    ) -> R:
        """Calls a model client's function and records it: model, parameters, hash of what it was shown, usage. After a
        crash the recorded answer is given, and nothing is paid twice.

        A stream (`stream=True`, a generator) is passed on as it comes and recorded when it ends: as succeeded when it
        was read to its end, as failed, with what had come, when it broke or was left. Given again it is a stream again.

        `context` is what `session.context()` gave; without it the model is taken to have seen all that is in view.
        """
        runtime = answering(self)
        given = model_call(runtime.flow, function, args, kwargs, context, policy, self.prices)
        return cast("R", unwrapped(drive(runtime.conduct(given)), policy.retry_on))

    async def amodel(
        self, function: Callable[..., Any], /, *args: Any, context: Any = None, policy: Policy = MODEL, **kwargs: Any
    ) -> Any:
        """The same for a client that is awaited."""
        runtime = answering(self)
        given = model_call(runtime.flow, function, args, kwargs, context, policy, self.prices)
        return unwrapped(await drive_async(runtime.conduct(given)), policy.retry_on)

    def bind(self, function: Callable[P, R]) -> Callable[P, R]:
        """`function` for another thread or an executor, with this session as the current one there."""
        before = enter_session(self)
        try:
            return carry(function)
        finally:
            enter_session(before)

    # Settling

    def approve(self, action: str, *, by: str = "", why: str = "") -> Seq:
        """Lets a call that waits for approval run; the agent that asked, or the same script run again, goes on."""
        return settling.decide_approval(self.log, action, True, by=by, why=why)

    def deny(self, action: str, *, by: str = "", why: str = "") -> Seq:
        """Refuses a call that waits for approval; its caller gets an error of type `denied`."""
        return settling.decide_approval(self.log, action, False, by=by, why=why)

    def reconcile(self, action: str, outcome: str = "", *, output: Any = None, by: str = "", why: str = "") -> Seq:
        """Says what became of a call nobody knew the outcome of: `succeeded`, `failed` or `never_ran`. Without an
        outcome, what a late worker reported decides."""
        return settling.reconcile(self.log, action, outcome, output=output, by=by, why=why)

    def answer(self, request: str, given: Any, *, by: str = "", why: str = "") -> Seq:
        """Answers a question the agent asked (`input.requested`): with one of its options, if it has any."""
        return settling.answer(self.log, request, given, by=by, why=why)

    def abandon(self, action: str, *, why: str = "") -> Seq:
        """Gives a pending call up."""
        return settling.abandon(self.log, action, why=why)

    def evidence(self, action: str) -> list[Entry]:
        """What late or fenced workers have said about a pending call."""
        return settling.evidence(self.log, action)

    def recover(self, *, why: str = "", force: bool = False) -> list[str]:
        """Settles what a dead process left open, by each call's own policy; returns the actions that are uncertain now.
        A new turn does this by itself. Refused while a living process has the open turn, unless forced."""
        if not force:
            refuse_if_held(self.log)
        why = why or end_of_holder(self.log)
        events = left_open(self.log, why, at_work=self.runtime.at_work)
        if events:
            self.append(*events)
        return [a for a, p in self.log.part("pending_actions").items() if p["status"] == "uncertain"]
