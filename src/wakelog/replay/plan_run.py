"""Runs a plan: makes real calls through a session, one after another, until one does not succeed.

All calls go through the runtime, so they are recorded, policies and approvals apply, and an interrupted run continues
where it stopped when the same plan is run again with the same inputs."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, NoReturn

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.replay.call_text import call_text, value_text
from wakelog.replay.plan import ITEM, Plan, PlanStep, check, count_items, fill, lines_of
from wakelog.runtime.outcome import Outcome
from wakelog.runtime.values import plain

Tools = Mapping[str, Callable[..., Any]] | Iterable[Callable[..., Any]]
_Call = tuple[Any, dict[str, Value]]
"""A tool and its arguments."""


class PlanCall(msgspec.Struct, frozen=True):
    """A call that was made."""

    number: int
    tool: str
    call: str
    status: str
    seq: Seq
    note: str = ""


class PlanProgress(msgspec.Struct, frozen=True):
    """How far a plan came."""

    plan: str
    total: int
    done: tuple[PlanCall, ...]
    stopped: str = ""
    """Why it stopped early; empty if it was completed."""
    results: dict[int, Value] = {}
    """The result of each step."""

    @property
    def ok(self) -> bool:
        return not self.stopped

    def __str__(self) -> str:
        made = sum(d.status == "succeeded" for d in self.done)
        return f"{self.plan}: {made} of {self.total} steps" + (f"; stopped: {self.stopped}" if self.stopped else "")


class _StopError(Exception):
    """Ends the turn as failed."""


class _Run:
    """One run of a plan."""

    def __init__(self, plan: Plan, session: Any, inputs: Mapping[Any, Value], tools: Tools) -> None:
        check(plan)
        self.plan = plan
        self.session = session
        self.values = parameter_values(plan, inputs)
        self.tools = _tools(plan, session, tools)
        self.done: list[PlanCall] = []
        self.results: dict[int, Value] = {}
        self.stopped = ""

    def turns(self) -> list[tuple[Value, list[PlanStep]]]:
        """The steps grouped by turn, each group with the turn's input. Steps outside of turns have none."""
        inputs = {t.turn: fill(t.input, self.values, {}) for t in self.plan.turns}
        groups = itertools.groupby(self.plan.steps, key=lambda step: step.turn)
        return [(inputs.get(turn), list(steps)) for turn, steps in groups]

    def steps(self, steps: list[PlanStep]) -> Generator[_Call, Outcome, None]:
        """Yields each call in order, and is sent its outcome."""
        for step in steps:
            if step.over is None:
                self.results[step.number] = yield from self._call(step, self.values)
            else:
                results: list[Value] = []
                for item in self._items(step):
                    results.append((yield from self._call(step, {**self.values, ITEM: item})))
                self.results[step.number] = results
            self._check_lengths(step)

    def _call(self, step: PlanStep, values: Mapping[str, Value]) -> Generator[_Call, Outcome, Value]:
        """Yields one call, is sent its outcome, and returns its result."""
        try:
            input = fill(step.input, values, self.results)
        except InvalidInputError as exc:
            self._stop(step, exc.message)
        outcome = yield self.tools[step.tool], input
        text = call_text(step.tool, input)
        note = f"{outcome.error.type}: {outcome.error.message}" if outcome.error is not None else ""
        self.done.append(PlanCall(step.number, step.tool, text, outcome.status, outcome.seq, note))
        if outcome.error is not None and outcome.error.type == "bad-arguments":
            self._stop(step, f"its arguments do not fit: {outcome.error.message}")
        if not outcome.ok:
            self._stop(step, f"it {outcome.status.replace('_', ' ')}, where the recording succeeded ({note})")
        return plain(outcome.result)

    def _items(self, step: PlanStep) -> list[Value]:
        """The list that a step loops over."""
        try:
            found = fill(step.over, self.values, self.results)
        except InvalidInputError as exc:
            self._stop(step, exc.message)
        if isinstance(found, str):
            return list(lines_of(found))
        if type(found) is not list:
            self._stop(step, "the value to loop over is not a list")
        return found

    def _check_lengths(self, step: PlanStep) -> None:
        """Stops if a list that the recording used item by item has another length now."""
        for pointer, recorded in step.items.items():
            count = count_items(self.results[step.number], pointer)
            if count is not None and count != recorded:
                where = f" at {pointer}" if pointer else ""
                self._stop(
                    step,
                    f"its result{where} has {count} items, where the recording had {recorded} and a step for each: what"
                    " to do with the others is not in the plan. Record the work again over such a list, or change the"
                    " plan: its steps, and `items` of this one",
                )

    def _stop(self, step: PlanStep, why: str) -> NoReturn:
        self.stopped = f"step {step.number} of {len(self.plan.steps)}, {step.tool}: {why}"
        raise _StopError(self.stopped)

    def record_plan(self, steps: list[PlanStep]) -> None:
        """Records in the turn which plan it runs, so that runs can be counted."""
        if self.plan.id and steps[0].turn:
            self.session.append(ev.ResourceTouched(resource=f"plan:{self.plan.id}"))

    def report(self) -> PlanProgress:
        return PlanProgress(self.plan.name, len(self.plan.steps), tuple(self.done), self.stopped, self.results)


def run_plan(plan: Plan, session: Any, inputs: Mapping[Any, Value], tools: Tools) -> PlanProgress:
    run = _Run(plan, session, inputs, tools)
    coroutines = [name for name, tool in run.tools.items() if _is_async(tool, session)]
    if coroutines:
        raise InvalidInputError(
            f"{', '.join(coroutines)} is a coroutine function", kind="async-tool", hint="await plan.arun(…)"
        )
    with contextlib.suppress(_StopError):
        for input, steps in run.turns():
            with session.turn(user=input) if steps[0].turn else contextlib.nullcontext():
                run.record_plan(steps)
                calls = run.steps(steps)
                call = next(calls, None)
                while call is not None:
                    call = _send(calls, session.call(*call))
    return run.report()


async def run_plan_async(plan: Plan, session: Any, inputs: Mapping[Any, Value], tools: Tools) -> PlanProgress:
    run = _Run(plan, session, inputs, tools)
    with contextlib.suppress(_StopError):
        for input, steps in run.turns():
            async with session.turn(user=input) if steps[0].turn else contextlib.nullcontext():
                run.record_plan(steps)
                calls = run.steps(steps)
                call = next(calls, None)
                while call is not None:
                    call = _send(calls, await session.aio.call(*call))
    return run.report()


def _send(calls: Generator[_Call, Outcome, None], outcome: Outcome) -> _Call | None:
    """Sends the outcome of a call; the next call, or None at the end."""
    try:
        return calls.send(outcome)
    except StopIteration:
        return None


def parameter_values(plan: Plan, inputs: Mapping[Any, Value], *, require_all: bool = True) -> dict[str, Value]:
    """The parameters' values: new ones by name or by the recorded value, the others as recorded. With `require_all`,
    values that the log does not have must be among the inputs."""
    values = {p.name: p.value for p in plan.parameters}
    passed: set[str] = set()
    for key, value in _split_lists(plan, inputs):
        name = key if key in values else next((p.name for p in plan.parameters if str(p.value) == str(key)), None)
        if name is None:
            known = ", ".join(f"{p.name} ({value_text(p.value)})" for p in plan.parameters) or "none"
            raise InvalidInputError(
                f"the plan has no parameter {key!r} (it has: {known})",
                kind="unknown-parameter",
                hint="name it, or the value it had; other values are changed in the plan itself",
            )
        is_text = isinstance(values[name], str) and isinstance(value, int | float) and not isinstance(value, bool)
        values[name] = str(value) if is_text else plain(value)
        passed.add(name)
    missing = [p.name for p in plan.parameters if p.known == "unknown" and p.name not in passed]
    if missing and require_all:
        raise InvalidInputError(
            f"the log has no value for {', '.join(missing)}: pass one",
            kind="unknown-parameter",
            hint=f"inputs={{{missing[0]!r}: …}}",
        )
    return values


def _split_lists(plan: Plan, inputs: Mapping[Any, Value]) -> Iterator[tuple[Any, Value]]:
    """The inputs, with a list split into its items if the plan has a parameter for each item."""
    for key, value in inputs.items():
        items = [p for p in plan.parameters if p.item is not None and p.item[0] == key]
        if not items or type(value) is not list:
            yield key, value
            continue
        recorded = items[0].item[2] if items[0].item else 0
        if len(value) != recorded:
            raise InvalidInputError(
                f"{key} has {len(value)} items, where the recording had {recorded} and a step for each: what to do with"
                " the others is not in the plan",
                kind="list-length",
                hint="record the work over such a list, or change the plan's steps",
            )
        for parameter in items:
            assert parameter.item is not None
            yield parameter.name, value[parameter.item[1]]
        if any(p.name == key for p in plan.parameters):
            yield key, value


def _tools(plan: Plan, session: Any, tools: Tools) -> dict[str, Any]:
    """The tools of the plan by name. All must exist before anything is called."""
    passed = dict(tools) if isinstance(tools, Mapping) else {_name(tool): tool for tool in tools}
    results = {step.tool: passed.get(step.tool, step.tool) for step in plan.steps}
    known = {*passed, *session._runtime.tools}
    missing = sorted({step.tool for step in plan.steps} - known)
    if missing:
        there = f"the tools here are {', '.join(sorted(known))}" if known else "the session has no tools"
        raise InvalidInputError(
            f"the plan calls {', '.join(missing)}, and no such tool was given: {there}",
            kind="unknown-tool",
            hint="plan.run(session, tools=[function, …])",
        )
    return results


def _name(tool: Callable[..., Any]) -> str:
    return str(getattr(getattr(tool, "tool", None), "name", "") or getattr(tool, "__name__", type(tool).__name__))


def _is_async(tool: Any, session: Any) -> bool:
    bound = session._runtime.tools.get(tool) if isinstance(tool, str) else getattr(tool, "tool", None)
    return bool(bound.is_async) if bound is not None else inspect.iscoroutinefunction(tool)
