"""Makes a plan from a recording: finds by content where each value came from.

Nothing in a log says that the order number in a tool call is the one the user wrote. But it is the same text, and
distinctive enough that this is no accident, so it becomes a parameter. In the same way, a value that an earlier call
returned, or that is part of a returned text, becomes a reference to that call. Every such match is labelled, and can be
changed.

Model calls are not part of a plan: what they decided is fixed in the arguments. Calls that did not succeed are left out
too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import msgspec

from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.model.values import Value
from wakelog.replay.plan import (
    FORMS,
    LeftOut,
    Parameter,
    Plan,
    PlanStep,
    PlanTurn,
    Reference,
    find_looped_lists,
    lines_of,
    references,
)
from wakelog.replay.recorded_outcome import recall
from wakelog.replay.recording import RecordedCall, Recording, Where, read_recording
from wakelog.runtime.values import HIDDEN
from wakelog.state.patch import equal, escape

DISTINCTIVE = 6
"""A text of this many characters is distinctive enough to search for."""
_WORDS = re.compile(r"\"[^\"]{3,}\"|'[^']{3,}'|[^\s\"'<>()\[\]{},;]+")
_SECRET = re.compile(r"\[redacted:[\w-]+\]")
_ANCHOR, _LINE = 24, "\n"
LEAVES_MAX, PIECE_MAX, TEXT_MAX = 5000, 200, 20_000
"""Limits: how many values of a result are searched, the longest text to search for, and the longest to search in."""


def read_plan(log: Log, where: Where = None) -> Plan:
    """The plan of a turn, an attempt or a range; without a position, of the whole session."""
    return _PlanMaker(read_recording(log, where)).plan()


def is_distinctive(value: Value) -> bool:
    """Whether finding the same value elsewhere is unlikely to be chance."""
    if isinstance(value, str):
        return len(value) >= DISTINCTIVE or (len(value) >= 3 and any(c.isdigit() for c in value))
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return abs(value) >= 100 or value != int(value)
    return len(msgspec.json.encode(value)) >= 2 * DISTINCTIVE


def _is_searchable(piece: str) -> bool:
    """Whether to search for a text inside others. A plain word is in many texts by chance."""
    return is_distinctive(piece) and not piece.isalpha() and len(piece) <= PIECE_MAX


def _leaves(value: Value, pointer: str = "") -> Iterator[tuple[str, Value]]:
    """Every value inside a value, the whole first."""
    yield pointer, value
    if type(value) is dict:
        for key, item in value.items():
            yield from _leaves(item, f"{pointer}/{escape(key)}")
    elif type(value) is list:
        for n, item in enumerate(value):
            yield from _leaves(item, f"{pointer}/{n}")


def _words(text: str) -> Iterator[str]:
    for word in _WORDS.findall(text[:TEXT_MAX]):
        bare = word.strip("\"'").rstrip(".,:!?")
        if bare != text and is_distinctive(bare):
            yield bare


class _Known(msgspec.Struct, frozen=True):
    """A value that is known already: from a turn's input or an earlier result."""

    value: Value
    use: str
    """For a result, the reference to it; empty for an input, which becomes a parameter."""
    origin: str
    name: str = ""
    """Its key in the input or result."""
    between: tuple[str, str] | None = None
    item: tuple[str, int, int] | None = None
    """For an item of a list: the list's name, the position, and the number of items."""
    line: int = 0


class _KnownValues:
    """Known values, by content."""

    def __init__(self) -> None:
        self._exact: dict[bytes, _Known] = {}
        self.pieces: dict[str, _Known] = {}

    def add(self, known: _Known) -> None:
        """Adds a value; it replaces an older one with the same content."""
        value = known.value
        if is_distinctive(value):
            self._exact[msgspec.json.encode(value)] = known
        written = _as_written(value)
        if written is not None and _is_searchable(written):
            self.pieces[written] = known

    def find(self, value: Value) -> _Known | None:
        """The same value; also a number for the same text, or a text for the same number."""
        if not is_distinctive(value):
            return None
        written = _as_written(value)
        forms = [msgspec.json.encode(value)]
        if written is not None:
            forms.append(written.encode() if isinstance(value, str) else msgspec.json.encode(written))
        return next((self._exact[form] for form in forms if form in self._exact), None)


class _PlanMaker:
    """Makes a plan, one recorded call after another."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._inputs = _KnownValues()
        self._results = _KnownValues()
        self._named: dict[str, _Known] = {}
        self._parameters: list[Parameter] = []
        self._left_out: list[LeftOut] = []
        self._outputs: dict[int, Value] = {}
        self._tool = ""
        self._arguments: dict[tuple[str, str], set[bytes]] = {}
        """All values of each argument of each tool."""
        self._loops: dict[tuple[str, str, bytes], _Known] = {}
        """Values of an argument that are items of one list. Together they are distinctive, however short they are."""

    def plan(self) -> Plan:
        steps: list[PlanStep] = []
        chosen = [step for step in self.recording.steps if self._choose(step)]
        turns_ahead = list(self.recording.turns)
        for step in chosen:
            for name, value in _arguments(self.recording.input_of(step)).items():
                self._arguments.setdefault((step.tool, name), set()).add(msgspec.json.encode(value))
        for number, step in enumerate(chosen, 1):
            while turns_ahead and turns_ahead[0].seq < step.seq:
                turn = turns_ahead.pop(0)
                self._learn_input(turn.turn, turn.input)
            self._tool = step.tool
            input = {n: self._template(v, n) for n, v in _arguments(self.recording.input_of(step)).items()}
            steps.append(PlanStep(number, step.tool, input, step.effect, step.turn if step.place else 0, step.seq))
            self._learn_result(number, step)
        steps = [self._with_looped_lists(step, steps) for step in steps]
        used = {step.turn for step in steps}
        turns = tuple(
            PlanTurn(t.turn, self._insert_parameters(t.input)) for t in self.recording.turns if t.turn in used
        )
        if not steps:
            raise NotFoundError(
                f"no tool call in {self.recording.name} succeeded, so there is nothing to plan",
                kind="nothing-to-replay",
            )
        return Plan(
            self.recording.name,
            self.recording.log.id,
            tuple(self._parameters),
            turns,
            tuple(steps),
            tuple(self._left_out),
        )

    def _with_looped_lists(self, step: PlanStep, steps: list[PlanStep]) -> PlanStep:
        """A step with the lists in its result that later steps looped over."""
        uses = (r for later in steps for r in references(later.input) if r.step == step.number)
        items = find_looped_lists(self._outputs[step.number], uses)
        return msgspec.structs.replace(step, items=items) if items else step

    def _choose(self, step: RecordedCall) -> bool:
        """Whether a call is part of the plan; if not, notes why."""
        why = ""
        if step.inside:
            return False
        if step.is_model:
            why = "a model call: what it decided is fixed in the arguments"
        elif step.gone:
            why = f"its content is {step.gone}"
        elif step.status != "succeeded":
            why = f"it {step.status.replace('_', ' ') or 'has no outcome'}"
        if why:
            self._left_out.append(LeftOut(step.seq, step.tool, why))
        return not why

    # Known values

    def _learn_input(self, turn: int, value: Value) -> None:
        origin = f"input of @{turn}"
        lists = {"": value}
        for pointer, leaf in itertools.islice(_leaves(value), LEAVES_MAX):
            above, _, name = pointer.rpartition("/")
            lists[pointer] = leaf
            item = _item_of(above, name, lists[above]) if pointer else None
            known = _Known(leaf, "", origin, f"{item[0]}_{item[1] + 1}" if item else name, item=item)
            self._inputs.add(known)
            self._learn_items(leaf, pointer, origin)
            if name and item is None:
                self._named[name] = known
            for word in _words(leaf) if isinstance(leaf, str) else ():
                self._inputs.add(_Known(word, "", origin))

    def _learn_result(self, number: int, step: RecordedCall) -> None:
        output, origin = recall(self.recording.log, step, None).output, f"result of step {number}"
        self._outputs[number] = output
        for pointer, leaf in itertools.islice(_leaves(output), LEAVES_MAX):
            use = f"step:{number}{pointer}"
            for word in _words(leaf) if isinstance(leaf, str) else ():
                between = _anchors(leaf, word) if _is_searchable(word) else None
                if between is not None:
                    self._results.add(_Known(word, use, origin, between=between))
            self._results.add(_Known(leaf, use, origin))
            self._learn_items(leaf, pointer, origin, number)

    def _learn_items(self, items: Value, pointer: str, origin: str, number: int = 0) -> None:
        """Adds the items of a list, or one field of each, if an argument had several of them as values."""
        for field, places in _columns(items).items() if number or not isinstance(items, str) else ():
            for (tool, argument), values in self._arguments.items():
                both = places.keys() & values
                for encoded in both if len(both) > 1 else ():
                    n, value = places[encoded], msgspec.json.decode(encoded)
                    if number and field == _LINE:
                        known = _Known(value, f"step:{number}{pointer}", origin, line=n + 1)
                    elif number:
                        known = _Known(value, f"step:{number}{pointer}/{n}{field}", origin)
                    else:
                        item = _item_of(pointer, str(n), items) if not field else None
                        known = _Known(value, "", origin, f"{item[0]}_{n + 1}" if item else field[1:], item=item)
                    self._loops.setdefault((tool, argument, encoded), known)

    # Templates

    def _template(self, value: Value, name: str) -> Value:
        """A value with references for the parts that are known."""
        whole = self._refer_whole(value, name)
        if whole is not None:
            return whole
        if type(value) is dict:
            if any(form in value for form in FORMS):
                return {"$value": value}
            return {key: self._template(item, key) for key, item in value.items()}
        if type(value) is list:
            return [self._template(item, name) for item in value]
        if isinstance(value, str) and len(value) <= TEXT_MAX and (parts := self._split_text(value)) is not None:
            return {"$text": parts}
        return value

    def _refer_whole(self, value: Value, name: str) -> Value | None:
        if isinstance(value, str) and (value == HIDDEN or _SECRET.search(value)):
            return self._use(self._parameter(name, None, "not in the log", "unknown"), value, "unknown")
        loop = self._loops.get((self._tool, name, msgspec.json.encode(value)))
        if loop is not None:
            return self._refer(loop, value, name)
        named = self._named.get(name)
        if named is not None and equal(named.value, value):
            return self._refer(named, value, name)
        # Inputs first, because results may repeat them.
        known = self._inputs.find(value) or self._results.find(value)
        return self._refer(known, value, name) if known is not None else None

    def _refer(self, known: _Known, value: Value, name: str) -> Value:
        use = known.use or self._parameter(known.name or name, known.value, known.origin, item=known.item)
        convert = "" if type(known.value) is type(value) else _type_name(value)
        return self._use(use, value, "matched", convert=convert, between=known.between, line=known.line)

    @staticmethod
    def _use(
        name: str,
        recorded: Value,
        known: str,
        *,
        convert: str = "",
        between: tuple[str, str] | None = None,
        line: int = 0,
    ) -> Value:
        reference = Reference(name, recorded, known, between, line, convert)  # type: ignore[arg-type]
        return msgspec.json.decode(msgspec.json.encode(reference))

    def _parameter(
        self, name: str, value: Value, origin: str, known: str = "matched", item: tuple[str, int, int] | None = None
    ) -> str:
        """The name of the parameter with that value, created if there is none yet."""
        for parameter in self._parameters:
            if parameter.known == "matched" and known == "matched" and equal(parameter.value, value):
                return parameter.name
        base = re.sub(r"\W+", "_", name).strip("_") or "value"
        taken = {p.name for p in self._parameters}
        fresh = next(n for i in range(1, len(taken) + 3) if (n := base if i == 1 else f"{base}_{i}") not in taken)
        self._parameters.append(Parameter(fresh, value, origin, known, item))  # type: ignore[arg-type]
        return fresh

    # Text

    def _split_text(self, text: str) -> list[Value] | None:
        """The text split at known values, the longest first; None if it contains none."""
        found = ((piece, known) for store in (self._inputs, self._results) for piece, known in store.pieces.items())
        best = max(
            ((piece, known) for piece, known in found if piece != text and _place_of(piece, text) >= 0),
            key=lambda pair: len(pair[0]),
            default=None,
        )
        if best is None:
            return None
        piece, known = best
        at = _place_of(piece, text)
        out: list[Value] = []
        for part in (text[:at], None, text[at + len(piece) :]):
            if part is None:
                out.append(self._refer(known, piece, known.name or "value"))
            elif part:
                out += self._split_text(part) or [part]
        return out

    def _insert_parameters(self, value: Value) -> Value:
        """A turn's input with references to the parameters that were found in it."""
        for parameter in self._parameters:
            if parameter.known == "matched" and equal(parameter.value, value):
                return self._use(parameter.name, value, "matched")
        if type(value) is dict:
            if any(form in value for form in FORMS):
                return {"$value": value}
            return {key: self._insert_parameters(item) for key, item in value.items()}
        if type(value) is list:
            return [self._insert_parameters(item) for item in value]
        if not isinstance(value, str):
            return value
        for parameter in sorted(self._parameters, key=lambda p: -len(_as_written(p.value) or "")):
            piece = _as_written(parameter.value)
            at = _place_of(piece, value) if piece and parameter.known == "matched" else -1
            if piece and at >= 0:
                around = (self._insert_parameters(value[:at]), self._insert_parameters(value[at + len(piece) :]))
                inner = [p["$text"] if type(p) is dict and "$text" in p else [p] for p in around]
                parts = [*inner[0], self._use(parameter.name, piece, "matched"), *inner[1]]
                return {"$text": [p for p in parts if p != ""]}
        return value


def _arguments(recorded: Value) -> dict[str, Value]:
    return recorded if type(recorded) is dict else {}


def _columns(items: Value) -> dict[str, dict[bytes, int]]:
    """The plain values of a list's items (of each field, if they are objects): field → value → its first position. For
    a text, its lines."""
    if isinstance(items, str):
        lines = lines_of(items[:TEXT_MAX])
        return {_LINE: {msgspec.json.encode(line): n for n, line in reversed(list(enumerate(lines)))}}
    results: dict[str, dict[bytes, int]] = {}
    for n, item in enumerate(items[:LEAVES_MAX] if type(items) is list else ()):
        fields = {f"/{escape(k)}": v for k, v in item.items()} if type(item) is dict else {"": item}
        for field, value in fields.items():
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                results.setdefault(field, {}).setdefault(msgspec.json.encode(value), n)
    return results


def _item_of(above: str, name: str, container: Value) -> tuple[str, int, int] | None:
    """For an item of a list: the list's name, the position, and the number of items; else None."""
    if type(container) is not list:
        return None
    return above.rpartition("/")[2] or "items", int(name), len(container)


def _type_name(value: Value) -> str:
    return {str: "text", int: "int", float: "float"}.get(type(value), "")


def _as_written(value: Value) -> str | None:
    """A value as it would be written in a text."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _place_of(piece: str, text: str) -> int:
    """The position of a piece in a text, at word boundaries; -1 if it is not there."""
    for match in re.finditer(re.escape(piece), text):
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        if not (before.isalnum() and piece[0].isalnum()) and not (after.isalnum() and piece[-1].isalnum()):
            return match.start()
    return -1


def _anchors(text: str, piece: str) -> tuple[str, str] | None:
    """The shortest text before and after a piece by which it can be found again; None if there is none."""
    at = text.find(piece)
    line = text.rfind("\n", 0, at) + 1
    before, after = text[max(line, at - _ANCHOR) : at], text[at + len(piece) :].partition("\n")[0][:_ANCHOR]
    for length in range(1, len(before) + 1):
        start = before[-length:]
        if text.find(start) == at - length and not start[0].isalnum() and not start.isspace():
            before = start
            break
    stop = next(
        (after[:n] for n in range(1, len(after) + 1) if after[:n] not in piece and not after[:n].isalnum()), after
    )
    if not before and at > 0:
        return None
    if not stop and at + len(piece) < len(text):
        stop = "\n"
    found = (before, stop)
    rest = text.partition(before)[2] if before else text
    return found if (rest.partition(stop)[0] if stop else rest) == piece else None
