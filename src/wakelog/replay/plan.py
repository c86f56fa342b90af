"""A plan: recorded tool calls as data, with references where a value came from an input or an earlier result.

A plan is JSON. Arguments are kept as they were recorded, except for

    {"$use": "order_id"}                      the value of a parameter
    {"$use": "step:2/ticket/id"}              a value in the result of step 2, by JSON Pointer
    {"$use": "step:2", "between": ["ticket ", " for"]}   text in a text, between two others
    {"$use": "step:2", "line": 3}             the third line of a text, empty ones not counted
    {"$text": ["orders/", {"$use": "order_id"}, "/refund"]}   text in parts
    {"$use": "item/name"}                     in a step over a list: a value in the current item
    {"$value": …}                             a value that only looks like one of these

A reference also has its recorded value (`recorded`), the type it is converted to (`as`: text, int or float), and how it
is known: `matched` by its content, which a person should check; `given` by a person; `unknown` when the log does not
have the value, so that you must give it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.model.described import described
from wakelog.model.ids import Seq, SessionId
from wakelog.model.values import Value
from wakelog.state.patch import MISSING, child_of, escape, get, tokens_of

if TYPE_CHECKING:
    from wakelog.replay.plan_run import PlanProgress, Tools

SCHEMA: Literal["wakelog.plan/1"] = "wakelog.plan/1"
Known = Literal["matched", "given", "unknown"]
FORMS = ("$use", "$text", "$value")
ITEM = "item"
"""The name of the current item in a step over a list."""


class Parameter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that may differ in the next run."""

    name: str
    value: Value = None
    """As recorded; None if the log does not have it."""
    origin: str = ""
    """Where it came from: input of @4."""
    known: Known = "given"
    item: tuple[str, int, int] | None = None
    """For an item of a list: the list's name, the position, and how many items the recording had."""


class PlanTurn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A turn to open, with its input."""

    turn: int
    input: Value = None


class PlanStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call to make."""

    number: int
    tool: str
    input: dict[str, Value]
    effect: str = "external"
    turn: int = 0
    """The turn of the plan it belongs to; 0 for none."""
    seq: Seq = 0
    """The recorded event."""
    items: dict[str, int] = {}
    """Lists in its result that later steps used item by item: pointer → number of items. A run that gets another number
    stops."""
    over: Value = None
    """A reference to a list, or to a text with lines: the call is made for each item, and the result is the list of
    results."""


class LeftOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """A recorded call that is not made again, and why."""

    seq: Seq
    tool: str
    why: str


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """Recorded calls that can run again on new inputs."""

    name: str
    session: SessionId
    parameters: tuple[Parameter, ...]
    turns: tuple[PlanTurn, ...]
    steps: tuple[PlanStep, ...]
    left_out: tuple[LeftOut, ...] = ()
    id: str = ""
    """For a promoted plan; runs record it."""
    sources: tuple[str, ...] = ()
    """For a promoted plan: the calls it was made from, each by its first event as `session@seq`."""
    schema: Literal["wakelog.plan/1"] = SCHEMA

    def run(self, session: Any, inputs: Mapping[Any, Value] | None = None, *, tools: Tools = ()) -> PlanProgress:
        """Makes the calls in order, with real tools and through a session: recorded, with their policies and approvals.

        `inputs` gives parameters new values, by name or by the recorded value: `{"order_id": "4712"}` or `{"4711":
        "4712"}`. The tools of the session and those in `tools` are available. It stops at the first call that does not
        succeed.
        """
        from wakelog.replay.plan_run import run_plan

        return run_plan(self, session, inputs or {}, tools)

    async def arun(self, session: Any, inputs: Mapping[Any, Value] | None = None, *, tools: Tools = ()) -> PlanProgress:
        """Like `run`, for tools that are coroutine functions."""
        from wakelog.replay.plan_run import run_plan_async

        return await run_plan_async(self, session, inputs or {}, tools)

    def with_values(self, inputs: Mapping[Any, Value]) -> Plan:
        """The plan with new values for some parameters; `inputs` as for `run`."""
        from wakelog.replay.plan_run import parameter_values

        values = parameter_values(self, inputs, require_all=False)
        changed = tuple(msgspec.structs.replace(p, value=values[p.name]) for p in self.parameters)
        return msgspec.structs.replace(self, parameters=changed)

    @staticmethod
    def reference(value: Value) -> Reference | None:
        """The reference in a value of a template; None for an ordinary value."""
        return as_reference(value)

    def to_json(self) -> str:
        """The plan as text, to read, edit and keep."""
        document = {"schema": SCHEMA, **msgspec.to_builtins(self)}
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"

    @staticmethod
    def from_json(text: str | bytes) -> Plan:
        """Reads a plan from text and checks it: every reference must name a parameter or an earlier step."""
        try:
            document = msgspec.json.decode(text)
            if type(document) is dict and "steps" not in document:
                document = document.get("data")  # the output of `wakelog replay --plan --json`
            plan = msgspec.convert(document, described(Plan))
        except msgspec.DecodeError as exc:
            raise InvalidInputError(
                f"this is not a plan: {exc}", kind="bad-plan", hint="wakelog replay SEL --plan --json writes one"
            ) from exc
        check(plan)
        return plan


class Reference(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A place in a template where a value is inserted."""

    use: str = msgspec.field(name="$use")
    recorded: Value = None
    known: Known = "given"
    between: tuple[str, str] | None = None
    line: int = 0
    """The number of a line in a text, without empty lines; 0 for the whole text."""
    convert: Literal["", "text", "int", "float"] = msgspec.field(name="as", default="")

    @property
    def step(self) -> int:
        """The step whose result it uses; 0 for a parameter."""
        head = self.use.partition("/")[0]
        return int(head[5:]) if head.startswith("step:") and head[5:].isdigit() else 0

    @property
    def pointer(self) -> str:
        """The position in the result."""
        slash = self.use.find("/")
        return self.use[slash:] if slash >= 0 else ""


def as_reference(value: Value) -> Reference | None:
    """The reference in a value; None for an ordinary value."""
    if type(value) is not dict or "$use" not in value:
        return None
    try:
        return msgspec.convert(value, described(Reference))
    except msgspec.ValidationError as exc:
        raise InvalidInputError(f"{value!r} is not a reference: {exc}", kind="bad-plan") from exc


def references(template: Value) -> Iterator[Reference]:
    """All references inside a template."""
    reference = as_reference(template)
    if reference is not None:
        yield reference
    elif type(template) is dict and "$value" not in template:
        for item in template.values():
            yield from references(item)
    elif type(template) is list:
        for item in template:
            yield from references(item)


def check(plan: Plan) -> None:
    """InvalidInputError if a reference names something that does not exist or comes later."""
    names = [p.name for p in plan.parameters]
    if len(set(names)) != len(names):
        raise InvalidInputError("two parameters of the plan have the same name", kind="bad-plan")
    seen: set[int] = set()
    turns = {turn.turn for turn in plan.turns}
    for step in plan.steps:
        known = [*names, ITEM] if step.over is not None else names
        for reference in references(step.input):
            _check(reference, known, seen, f"step {step.number}")
        for reference in references(step.over):
            _check(reference, names, seen, f"step {step.number}")
        if step.turn and step.turn not in turns:
            raise InvalidInputError(f"step {step.number} is in turn {step.turn}, which is not there", kind="bad-plan")
        seen.add(step.number)
    for turn in plan.turns:
        for reference in references(turn.input):
            _check(reference, names, set(), f"the input of @{turn.turn}")


def _check(reference: Reference, names: list[str], seen: set[int], where: str) -> None:
    is_item = ITEM in names and reference.use.startswith(f"{ITEM}/")
    if reference.use not in names and reference.step not in seen and not is_item:
        raise InvalidInputError(
            f"{where} uses {reference.use}, which is neither a parameter nor an earlier step",
            kind="bad-plan",
            hint=f"parameters: {', '.join(names) or 'none'}; steps are written as step:2",
        )
    tokens_of(reference.pointer)


def fill(template: Value, values: Mapping[str, Value], results: Mapping[int, Value]) -> Value:
    """A template with all references replaced by their values."""
    reference = as_reference(template)
    if reference is not None:
        return _resolve(reference, values, results)
    if type(template) is dict:
        if "$value" in template:
            return template["$value"]
        if "$text" in template:
            return "".join(_as_text(fill(part, values, results)) for part in template["$text"])
        return {key: fill(item, values, results) for key, item in template.items()}
    if type(template) is list:
        return [fill(item, values, results) for item in template]
    return template


def _resolve(reference: Reference, values: Mapping[str, Value], results: Mapping[int, Value]) -> Value:
    value = values[reference.use] if reference.use in values else _look_up(reference, values, results)
    if reference.line:
        value = _extract_line(reference, _as_text(value))
    if reference.between is not None:
        value = _extract_between(reference, _as_text(value))
    try:
        if reference.convert == "text":
            return _as_text(value)
        if reference.convert == "int":
            return int(value)
        return float(value) if reference.convert == "float" else value
    except (TypeError, ValueError) as exc:
        raise InvalidInputError(
            f"{value!r}, from {reference.use}, cannot be converted to {reference.convert}", kind="reference-not-found"
        ) from exc


def _look_up(reference: Reference, values: Mapping[str, Value], results: Mapping[int, Value]) -> Value:
    is_item = reference.use.startswith(f"{ITEM}/")
    node = values[ITEM] if is_item else results[reference.step]
    for token in tokens_of(reference.pointer):
        if (node := child_of(node, token)) is MISSING:
            where = "the item" if is_item else f"the result of step {reference.step}"
            raise _reference_error(f"{where} has nothing at {reference.pointer}")
    return node


def _reference_error(what: str) -> InvalidInputError:
    hint = "check the call's result, and change the reference in the plan"
    return InvalidInputError(what, kind="reference-not-found", hint=hint)


def lines_of(text: str) -> list[str]:
    """The lines of a text, without empty ones."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _extract_line(reference: Reference, text: str) -> str:
    lines = lines_of(text)
    if reference.line > len(lines):
        raise _reference_error(f"the text at {reference.use} has no line {reference.line}")
    return lines[reference.line - 1]


def _extract_between(reference: Reference, text: str) -> str:
    assert reference.between is not None
    before, after = reference.between
    _, found, rest = text.partition(before) if before else ("", True, text)
    part, ended, _ = rest.partition(after) if after else (rest, True, "")
    if not found or not ended:
        raise _reference_error(f"the text at {reference.use} has nothing between {before!r} and {after!r}")
    return part


def _as_text(value: Value) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def find_looped_lists(output: Value, uses: Iterable[Reference]) -> dict[str, int]:
    """The lists in a result that later steps may have looped over: pointer → number of items.

    A recording has one call for each item of a loop, but not the loop itself. So a run that gets another number of
    items must stop. Using one item of several is a choice; using two, or the only one, may have been a loop. The lines
    of a text count as a list if each of them was used.
    """
    used_items: dict[str, set[str]] = {}
    pieces: dict[str, set[str]] = {}
    for use in uses:
        tokens = tokens_of(use.pointer)
        for place, token in enumerate(tokens):
            pointer = _pointer(tokens[:place])
            if type(_at(output, pointer)) is list:
                used_items.setdefault(pointer, set()).add(token)
        if use.line:
            used_items.setdefault(use.pointer, set()).add(str(use.line))
        elif use.between is not None:
            pieces.setdefault(use.pointer, set()).add(str(use.recorded))
    counts = {pointer: count_items(output, pointer) or 0 for pointer in (*used_items, *pieces)}
    results = {p: counts[p] for p, items in used_items.items() if len(items) > 1 or counts[p] == 1}
    for pointer, used in pieces.items():
        text = _at(output, pointer)
        lines = lines_of(text) if isinstance(text, str) else []
        if len(lines) > 1 and all(any(piece in line for piece in used) for line in lines):
            results[pointer] = counts[pointer]
    return results


def count_items(output: Value, pointer: str) -> int | None:
    """The number of items of a list, or of lines of a text; None if there is neither."""
    value = _at(output, pointer)
    if type(value) is list:
        return len(value)
    return len(lines_of(value)) if isinstance(value, str) else None


def _at(value: Value, pointer: str) -> Value:
    """The value at a pointer, or None."""
    try:
        return get(value, pointer)
    except InvalidInputError:
        return None


def _pointer(tokens: Iterable[str]) -> str:
    return "".join(f"/{escape(token)}" for token in tokens)
