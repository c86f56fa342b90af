"""Makes one plan from several recordings of the same work: what is the same stays, what varies becomes a parameter.

Each recording is first made a plan (plan_from_recording.py), with references where a value came from an input or an
earlier result. The plans are compared step by step and value by value:

- the same value everywhere is a constant;
- the same reference to an earlier step stays a reference;
- values that came from the input of each turn are a parameter, the same one wherever they vary together;
- a run of calls that went through a list becomes one step over that list.

Everything else is refused, naming the step and the argument: if the log does not show where a varying value came from,
no caller could supply it. The result contains nothing from only one recording: parameters have no values.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence

import msgspec

from wakelog.errors import NotAllowedError
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.replay.plan import FORMS, ITEM, Parameter, Plan, PlanStep, PlanTurn, as_reference, check, references

RECORDINGS_MIN = 3
"""How many recordings are needed, each from another fork tree."""
_encode = msgspec.json.Encoder(order="sorted").encode


def not_promotable(why: str, hint: str = "") -> NotAllowedError:
    return NotAllowedError(f"this cannot become a plan: {why}", kind="not-promotable", hint=hint)


def align(name: str, plans: Sequence[Plan], sources: Sequence[str]) -> Plan:
    """The plan that these are instances of. If they make different calls, the largest group with the same calls is
    used."""
    folded = [(fold_loops(plan), source) for plan, source in zip(plans, sources, strict=True)]
    if len({_shape(plan) for plan, _ in folded}) > 1:
        folded = [(fold_loops(plan, singles=True), source) for plan, source in zip(plans, sources, strict=True)]
    groups: dict[tuple[tuple[str, bool], ...], list[tuple[Plan, str]]] = {}
    for plan, source in folded:
        groups.setdefault(_shape(plan), []).append((plan, source))
    chosen = max(groups.values(), key=len, default=[])
    if len(chosen) < RECORDINGS_MIN:
        made = "; ".join(" → ".join(tool for tool, _ in shape) for shape in list(groups)[:3])
        raise not_promotable(
            f"fewer than {RECORDINGS_MIN} successful instances make the same calls ({made})",
            "a loop must go through a list that is in an input or a result",
        )
    return _Alignment(name, [plan for plan, _ in chosen]).plan([source for _, source in chosen])


def cut_plan(plan: Plan, first: Seq, last: Seq) -> Plan:
    """The steps of a plan that were recorded in a range, renumbered. References to earlier steps become values."""
    steps = [step for step in plan.steps if first <= step.seq <= last]
    numbers = {step.number: number for number, step in enumerate(steps, 1)}
    return msgspec.structs.replace(plan, steps=_renumber(steps, numbers))


def fold_loops(plan: Plan, *, singles: bool = False) -> Plan:
    """The plan with each run of calls over a whole list folded to one step; with `singles`, also for lists of one
    item."""
    out: list[PlanStep] = []
    numbers: dict[int, int] = {}
    for _, group in itertools.groupby(plan.steps, key=lambda step: (step.tool, step.effect)):
        run = list(group)
        folded = _fold_run(plan, run) if len(run) > 1 or singles else None
        for step in run:
            if folded is None:
                out.append(step)
            elif step is run[0]:
                out.append(folded)
            numbers[step.number] = len(out)
    return msgspec.structs.replace(plan, steps=_renumber(out, numbers))


def _renumber(steps: Sequence[PlanStep], numbers: Mapping[int, int]) -> tuple[PlanStep, ...]:
    """The steps with new numbers, also in references. A reference to a step without a new number becomes a value."""

    def renumber(template: Value) -> Value:
        reference = as_reference(template)
        if reference is None or not reference.step:
            return _map_inside(template, renumber)
        if reference.step not in numbers:
            return reference.recorded
        _, slash, rest = reference.use.partition("/")
        return {**template, "$use": f"step:{numbers[reference.step]}{slash}{rest}"}

    return tuple(
        msgspec.structs.replace(
            step, number=number, input={k: renumber(v) for k, v in step.input.items()}, over=renumber(step.over)
        )
        for number, step in enumerate(steps, 1)
    )


def _fold_run(plan: Plan, run: Sequence[PlanStep]) -> PlanStep | None:
    """A run of calls as one step over a list; None if it did not go through a whole list, item by item."""
    sources: set[str] = set()
    inputs = []
    for place, step in enumerate(run):
        inputs.append({k: _generalize_item(plan, v, place, len(run), sources) for k, v in step.input.items()})
    if len(sources) != 1 or any(_without_recorded(input) != _without_recorded(inputs[0]) for input in inputs):
        return None
    items = [r.recorded for input in inputs for r in references(input) if r.use.partition("/")[0] == ITEM]
    over = {"$use": next(iter(sources)), "recorded": items, "known": "matched"}
    return msgspec.structs.replace(run[0], input=inputs[0], over=over, items={})


def _generalize_item(plan: Plan, template: Value, place: int, length: int, sources: set[str]) -> Value:
    """A template in which references to item `place` of a list of `length` become references to the current item."""
    reference = as_reference(template)
    if reference is None:
        return _map_inside(template, lambda inner: _generalize_item(plan, inner, place, length, sources))
    parameter = next((p for p in plan.parameters if p.name == reference.use), None)
    if parameter is not None and parameter.item is not None and parameter.item[1:] == (place, length):
        sources.add(parameter.item[0])
        return {**template, "$use": ITEM}
    counts = next((step.items for step in plan.steps if step.number == reference.step), {})
    for pointer, count in counts.items():
        if count != length:
            continue
        if reference.line == place + 1 and reference.pointer == pointer:
            sources.add(f"step:{reference.step}{pointer}")
            return {k: v for k, v in template.items() if k != "line"} | {"$use": ITEM}
        here = f"{pointer}/{place}"
        if reference.pointer == here or reference.pointer.startswith(here + "/"):
            sources.add(f"step:{reference.step}{pointer}")
            return {**template, "$use": ITEM + reference.pointer[len(here) :]}
    return template


class _Alignment:
    """Plans with the same calls, to be made one."""

    def __init__(self, name: str, plans: Sequence[Plan]) -> None:
        self._name = name
        self._plans = plans
        self._parameters: dict[bytes, Parameter] = {}

    def plan(self, sources: Sequence[str]) -> Plan:
        steps = tuple(self._step(steps) for steps in zip(*(plan.steps for plan in self._plans), strict=True))
        turn = (PlanTurn(1, self._name),)
        digest = hashlib.sha256(_encode((self._name, [(s.tool, s.input, s.over) for s in steps]))).hexdigest()[:8]
        plan = Plan(
            name=self._name,
            session=self._plans[0].session,
            parameters=tuple(self._parameters.values()),
            turns=turn,
            steps=steps,
            id=f"p{digest}",
            sources=tuple(sources),
        )
        check(plan)
        return plan

    def _step(self, steps: Sequence[PlanStep]) -> PlanStep:
        first = steps[0]
        if effects := {step.effect for step in steps} - {first.effect}:
            raise not_promotable(f"{first.tool} has different effects: {', '.join(sorted({first.effect, *effects}))}")
        names = [tuple(sorted(step.input)) for step in steps]
        if len(set(names)) > 1:
            either = " or ".join(", ".join(arguments) or "none" for arguments in dict.fromkeys(names))
            raise not_promotable(f"{first.tool} is called with different arguments: {either}")
        where = f"step {first.number} ({first.tool})"
        over = self._align_values([step.over for step in steps], where, "items") if first.over is not None else None
        input = {key: self._align_values([step.input[key] for step in steps], where, key) for key in first.input}
        items = first.items if all(step.items == first.items for step in steps) else {}
        uses = {r.use for step in self._plans[0].steps for r in references(step.over)}
        kept = {pointer: n for pointer, n in items.items() if f"step:{first.number}{pointer}" not in uses}
        return PlanStep(first.number, first.tool, input, first.effect, 1, items=kept, over=over)

    def _align_values(self, values: Sequence[Value], where: str, name: str) -> Value:
        results = [as_reference(value) for value in values]
        are_results = all(r is not None and (r.step or r.use.partition("/")[0] == ITEM) for r in results)
        if are_results and len({_encode(_without_recorded(value)) for value in values}) == 1:
            return _without_recorded(values[0])
        recorded = [_recorded_value(value) for value in values]
        if len({_encode(value) for value in recorded}) == 1:
            return {"$value": recorded[0]} if _looks_special(recorded[0]) else recorded[0]
        if all(r is not None and not r.step for r in results):
            used = results[0]
            assert used is not None
            convert = {"as": used.convert} if used.convert else {}
            return {"$use": self._parameter(name, recorded, used.use), **convert}
        if all(type(value) is dict and "$text" in value for value in values):
            return self._align_texts(values, where, name)
        if all(type(value) is dict and not _looks_special(value) for value in values):
            keys = [tuple(sorted(value)) for value in values]
            if len(set(keys)) == 1:
                return {key: self._align_values([v[key] for v in values], where, key) for key in values[0]}
        if all(type(value) is list for value in values) and len({len(value) for value in values}) == 1:
            return [self._align_values(items, where, name) for items in zip(*values, strict=True)]
        raise not_promotable(
            f"{where} is called with different values of {name!r}, and not all of them come from an input or an"
            " earlier result",
            "plan one of them by hand: wakelog replay NAME@TURN --plan --json",
        )

    def _align_texts(self, values: Sequence[Value], where: str, name: str) -> Value:
        texts = [value["$text"] for value in values]
        if len({len(parts) for parts in texts}) > 1:
            raise not_promotable(f"the text {name!r} of {where} is put together in different ways")
        return {"$text": [self._align_values(parts, where, name) for parts in zip(*texts, strict=True)]}

    def _parameter(self, name: str, values: Sequence[Value], wanted: str) -> str:
        """The parameter that has these values in the recordings."""
        key = _encode(values)
        if (known := self._parameters.get(key)) is not None:
            return known.name
        base = name if name not in ("items", "value") else wanted
        taken = {p.name for p in self._parameters.values()} | {ITEM}
        fresh = next(n for i in itertools.count(1) if (n := base if i == 1 else f"{base}_{i}") not in taken)
        self._parameters[key] = Parameter(fresh, None, "the input", "unknown")
        return fresh


def _shape(plan: Plan) -> tuple[tuple[str, bool], ...]:
    return tuple((step.tool, step.over is not None) for step in plan.steps)


def _without_recorded(template: Value) -> Value:
    """A template without the values of its recording."""
    reference = as_reference(template)
    if reference is not None:
        return {k: v for k, v in template.items() if k not in ("recorded", "known")}
    return _map_inside(template, _without_recorded)


def _recorded_value(template: Value) -> Value:
    """The value that a template had in its recording."""
    reference = as_reference(template)
    if reference is not None:
        return reference.recorded
    if type(template) is dict and "$value" in template:
        return template["$value"]
    if type(template) is dict and "$text" in template:
        return "".join(str(_recorded_value(part)) for part in template["$text"])
    return _map_inside(template, _recorded_value)


def _map_inside(template: Value, change: Callable[[Value], Value]) -> Value:
    """A template with each value directly inside it changed."""
    if type(template) is dict and "$value" not in template:
        return {key: change(item) for key, item in template.items()}
    return [change(item) for item in template] if type(template) is list else template


def _looks_special(value: Value) -> bool:
    return type(value) is dict and any(form in value for form in FORMS)
