"""One plan from several recordings of the same work: what is the same stays, what varies becomes a parameter.

Each recording comes as a plan of its own (plan_from_recording.py), with references where a value came from an input or
an earlier result. They are laid side by side, step by step and value by value:

- the same value everywhere is a constant;
- the same reference to an earlier step stays a reference;
- values that came from the input of each turn are a parameter, the same one wherever they vary together;
- a run of calls that went through a list becomes one step over that list.

Everything else is refused, with the step and the argument: a value that varies and came from nowhere that the log
knows cannot be given by anybody. The result holds nothing of one recording alone: parameters have no values.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence

import msgspec

from wakelog.errors import NotAllowedError
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.replay.plan import FORMS, ITEM, Parameter, Plan, PlanStep, PlanTurn, as_reference, check, references

LEAST = 3
"""So many recordings are needed, each of another fork tree."""
_encode = msgspec.json.Encoder(order="sorted").encode


def refused(why: str, hint: str = "") -> NotAllowedError:
    return NotAllowedError(f"this cannot become a plan: {why}", kind="not-promotable", hint=hint)


def align(name: str, plans: Sequence[Plan], sources: Sequence[str]) -> Plan:
    """The plan that all of these are instances of. Of instances with different calls the most frequent sort counts."""
    folded = [(fold_loops(plan), source) for plan, source in zip(plans, sources, strict=True)]
    if len({_shape(plan) for plan, _ in folded}) > 1:
        folded = [(fold_loops(plan, singles=True), source) for plan, source in zip(plans, sources, strict=True)]
    groups: dict[tuple[tuple[str, bool], ...], list[tuple[Plan, str]]] = {}
    for plan, source in folded:
        groups.setdefault(_shape(plan), []).append((plan, source))
    chosen = max(groups.values(), key=len, default=[])
    if len(chosen) < LEAST:
        made = "; ".join(" → ".join(tool for tool, _ in shape) for shape in list(groups)[:3])
        raise refused(
            f"fewer than {LEAST} successful instances make the same calls ({made})",
            "a loop must go through a list that is in an input or a result",
        )
    return _Alignment(name, [plan for plan, _ in chosen]).plan([source for _, source in chosen])


def cut(plan: Plan, first: Seq, last: Seq) -> Plan:
    """The steps of a plan that were recorded in a range, numbered anew. What they took from steps before is a value."""
    steps = [step for step in plan.steps if first <= step.seq <= last]
    numbers = {step.number: number for number, step in enumerate(steps, 1)}

    def moved(template: Value) -> Value:
        reference = as_reference(template)
        if reference is not None and reference.step:
            if reference.step not in numbers:
                return reference.recorded
            _, slash, rest = reference.use.partition("/")
            return {**template, "$use": f"step:{numbers[reference.step]}{slash}{rest}"}
        return _within(template, moved)

    cut_steps = tuple(
        msgspec.structs.replace(step, number=numbers[step.number], input={k: moved(v) for k, v in step.input.items()})
        for step in steps
    )
    return msgspec.structs.replace(plan, steps=cut_steps)


def fold_loops(plan: Plan, *, singles: bool = False) -> Plan:
    """The plan with each run of calls over a whole list as one step; `singles` folds lists of one item too."""
    out: list[PlanStep] = []
    numbers: dict[int, int] = {}
    for _, group in itertools.groupby(plan.steps, key=lambda step: (step.tool, step.effect)):
        run = list(group)
        folded = _folded(plan, run) if len(run) > 1 or singles else None
        for step in [folded] if folded is not None else run:
            out.append(step)
        for step in run:
            numbers[step.number] = len(out) if folded is not None else len(out) - len(run) + run.index(step) + 1

    def moved(template: Value) -> Value:
        reference = as_reference(template)
        if reference is not None and reference.step:
            _, slash, rest = reference.use.partition("/")
            return {**template, "$use": f"step:{numbers[reference.step]}{slash}{rest}"}
        return _within(template, moved)

    steps = [
        msgspec.structs.replace(
            step, number=at, input={k: moved(v) for k, v in step.input.items()}, over=moved(step.over)
        )
        for at, step in enumerate(out, 1)
    ]
    return msgspec.structs.replace(plan, steps=tuple(steps))


def _folded(plan: Plan, run: Sequence[PlanStep]) -> PlanStep | None:
    """A run as one step over a list; None when it did not go through one, item by item to its end."""
    sources: set[str] = set()
    inputs = []
    for place, step in enumerate(run):
        inputs.append({k: _of_item(plan, v, place, len(run), sources) for k, v in step.input.items()})
    if len(sources) != 1 or any(_bare(each) != _bare(inputs[0]) for each in inputs):
        return None
    items = [r.recorded for each in inputs for r in references(each) if r.use.partition("/")[0] == ITEM]
    over = {"$use": next(iter(sources)), "recorded": items, "known": "matched"}
    return msgspec.structs.replace(run[0], input=inputs[0], over=over, items={})


def _of_item(plan: Plan, template: Value, place: int, length: int, sources: set[str]) -> Value:
    """A template in which the item at `place` of a list of `length` is called the item."""
    reference = as_reference(template)
    if reference is None:
        return _within(template, lambda inner: _of_item(plan, inner, place, length, sources))
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
    """Plans of one shape, side by side."""

    def __init__(self, name: str, plans: Sequence[Plan]) -> None:
        self._name = name
        self._plans = plans
        self._parameters: dict[bytes, Parameter] = {}

    def plan(self, sources: Sequence[str]) -> Plan:
        steps = tuple(self._step(steps) for steps in zip(*(plan.steps for plan in self._plans), strict=True))
        turn = (PlanTurn(1, self._name),)
        digest = hashlib.sha256(_encode((self._name, [(s.tool, s.input, s.over) for s in steps]))).hexdigest()[:8]
        made = Plan(
            name=self._name,
            session=self._plans[0].session,
            parameters=tuple(self._parameters.values()),
            turns=turn,
            steps=steps,
            id=f"p{digest}",
            sources=tuple(sources),
        )
        check(made)
        return made

    def _step(self, steps: Sequence[PlanStep]) -> PlanStep:
        first = steps[0]
        if effects := {step.effect for step in steps} - {first.effect}:
            raise refused(f"{first.tool} has different effects: {', '.join(sorted({first.effect, *effects}))}")
        names = [tuple(sorted(step.input)) for step in steps]
        if len(set(names)) > 1:
            raise refused(f"{first.tool} is called with different arguments: {_either(names)}")
        where = f"step {first.number} ({first.tool})"
        over = self._aligned([step.over for step in steps], where, "items") if first.over is not None else None
        given = {key: self._aligned([step.input[key] for step in steps], where, key) for key in first.input}
        items = first.items if all(step.items == first.items for step in steps) else {}
        uses = {r.use for step in self._plans[0].steps for r in references(step.over)}
        kept = {pointer: n for pointer, n in items.items() if f"step:{first.number}{pointer}" not in uses}
        return PlanStep(first.number, first.tool, given, first.effect, 1, items=kept, over=over)

    def _aligned(self, values: Sequence[Value], where: str, name: str) -> Value:
        found = [as_reference(value) for value in values]
        are_results = all(each is not None and (each.step or each.use.partition("/")[0] == ITEM) for each in found)
        if are_results and len({_encode(_bare(value)) for value in values}) == 1:
            return _bare(values[0])
        plain = [_literal(value) for value in values]
        if len({_encode(each) for each in plain}) == 1:
            return {"$value": plain[0]} if _looks_special(plain[0]) else plain[0]
        if all(each is not None and not each.step for each in found):
            used = found[0]
            assert used is not None
            convert = {"as": used.convert} if used.convert else {}
            return {"$use": self._parameter(name, plain, used.use), **convert}
        if all(type(value) is dict and "$text" in value for value in values):
            return self._aligned_text(values, where, name)
        if all(type(value) is dict and not _looks_special(value) for value in values):
            keys = [tuple(sorted(value)) for value in values]
            if len(set(keys)) == 1:
                return {key: self._aligned([v[key] for v in values], where, key) for key in values[0]}
        if all(type(value) is list for value in values) and len({len(value) for value in values}) == 1:
            return [self._aligned(parts, where, name) for parts in zip(*values, strict=True)]
        raise refused(
            f"{where} is called with different values of {name!r}, and not all of them come from an input or an"
            " earlier result",
            "plan one of them by hand: wakelog replay NAME@TURN --plan --json",
        )

    def _aligned_text(self, values: Sequence[Value], where: str, name: str) -> Value:
        parts = [value["$text"] for value in values]
        if len({len(each) for each in parts}) > 1:
            raise refused(f"the text {name!r} of {where} is put together in different ways")
        return {"$text": [self._aligned(each, where, name) for each in zip(*parts, strict=True)]}

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


def _bare(template: Value) -> Value:
    """A template without the values of one recording."""
    reference = as_reference(template)
    if reference is not None:
        return {k: v for k, v in template.items() if k not in ("recorded", "known")}
    return _within(template, _bare)


def _literal(template: Value) -> Value:
    """What a template was in its recording."""
    reference = as_reference(template)
    if reference is not None:
        return reference.recorded
    if type(template) is dict and "$value" in template:
        return template["$value"]
    if type(template) is dict and "$text" in template:
        return "".join(str(_literal(part)) for part in template["$text"])
    return _within(template, _literal)


def _within(template: Value, change: object) -> Value:
    """A template with what is inside it changed."""
    assert callable(change)
    if type(template) is dict and "$value" not in template:
        return {key: change(item) for key, item in template.items()}
    return [change(item) for item in template] if type(template) is list else template


def _looks_special(value: Value) -> bool:
    return type(value) is dict and any(form in value for form in FORMS)


def _either(names: Sequence[tuple[str, ...]]) -> str:
    return " or ".join(", ".join(each) or "none" for each in dict.fromkeys(names))
