"""From items to a conversation that any provider accepts: who says what, and which calls were requested together.

Every call has exactly one answer, right after it. Calls come from actions. If a model's recorded answer also contains
the call it requested, that is the same call: it is found by its id, or by tool and input among the calls that the
answer led to. A call without an answer in view gets an error as its answer. A result without its call becomes text.

Ids are made from the turn of a call and its number in the turn, not from the recorded id. So they are valid for every
provider, unique, and the same in an attempt that continues another one: the model is shown the same again.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from wakelog.context.call_answers import error
from wakelog.context.items import Item
from wakelog.context.quotes import fence
from wakelog.model.ids import Seq
from wakelog.model.parts import Answered, Asked, Image, Part, Text, Thinking, text_of
from wakelog.model.values import Value

_encode = msgspec.json.Encoder(order="sorted").encode
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ShownCall(msgspec.Struct, frozen=True):
    id: str
    name: str
    input: dict[str, Any]
    answer: str
    is_error: bool


class Said(msgspec.Struct, frozen=True):
    """Something said by one speaker: text, pictures, and a provider's own blocks."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]
    name: str = ""


class ShownCalls(msgspec.Struct):
    """Calls that were asked for together."""

    calls: list[ShownCall]
    group: Seq
    until: Seq
    """The event at which the last of them was answered."""


Exchange = Said | ShownCalls


def exchanges(items: Sequence[Item]) -> list[Exchange]:
    """The conversation that some items make."""
    return _Linker(items).run()


class _Linker:
    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._out: list[Exchange] = []
        self._numbers: defaultdict[int, int] = defaultdict(int)
        calls = [i for i in items if i.kind == "call"]
        self._actions = {i.action for i in calls}
        self._led_to: defaultdict[Seq, list[Item]] = defaultdict(list)
        self._same: dict[bytes, Item] = {}
        for item in calls:
            self._led_to[item.group].append(item)
            self._same[_what(item.name, item.input)] = item
        self._results: defaultdict[str, list[tuple[int, Answered]]] = defaultdict(list)
        for place, item in enumerate(items):
            for part in item.parts:
                if isinstance(part, Answered):
                    self._results[part.id].append((place, part))
        self._used: set[int] = set()

    def run(self) -> list[Exchange]:
        for place, item in enumerate(self._items):
            if item.kind == "call":
                call = self._call(item.turn, item.name, item.input, item.answer, item.is_error)
                self._ask(call, item.group, item.seq, max(item.events))
            else:
                self._say(place, item)
        return self._out

    def _say(self, place: int, item: Item) -> None:
        spoken = tuple(p for p in item.parts if isinstance(p, Text | Image | Thinking))
        if spoken:
            self._out.append(Said(item.role, spoken, item.name))
        for question in self._unmatched(item):
            answer, is_error = self._result(place, question)
            call = self._call(item.turn, question.name, question.input, answer, is_error)
            self._ask(call, item.group or item.seq, item.seq, item.seq)
        for part in item.parts:
            if isinstance(part, Answered) and id(part) not in self._used and part.id not in self._actions:
                text = fence(part.text, trust=item.trust, source=item.source or "a tool")
                self._out.append(Said("user", (Text(text),)))

    def _unmatched(self, item: Item) -> list[Asked]:
        """The calls in a message that have no action."""
        questions = [p for p in item.parts if isinstance(p, Asked) and p.id not in self._actions]
        led_to = self._led_to[item.group] if item.group else []
        for is_same in (
            lambda asked, call: _what(asked.name, asked.input) == _what(call.name, call.input),
            lambda asked, call: asked.name == call.name,
        ):
            for asked in list(questions):
                found = next((call for call in led_to if is_same(asked, call)), None)
                if found is not None:
                    led_to.remove(found)
                    questions.remove(asked)
        return questions

    def _result(self, place: int, question: Asked) -> tuple[str, bool]:
        for later, part in self._results[question.id]:
            if later > place and id(part) not in self._used:
                self._used.add(id(part))
                return part.text, part.is_error
        what = _what(question.name, question.input)
        if what in self._same:  # requested again, and answered from the record
            return self._same[what].answer, self._same[what].is_error
        missing = error("unanswered", "no answer to it is in view")
        return missing.text, True

    def _call(self, turn: int, name: str, input: Value, answer: str, is_error: bool) -> ShownCall:
        self._numbers[turn] += 1
        is_gone = isinstance(input, bytes) or (isinstance(input, dict) and input.keys() & {"$erased", "gone"})
        value = text_of(input) if is_gone else input
        data = value if isinstance(value, dict) else {} if value is None else {"input": value}
        return ShownCall(
            f"call_{turn}_{self._numbers[turn]}",
            valid_name(name),
            data,
            answer if answer.strip() else "(no output)",
            is_error,
        )

    def _ask(self, call: ShownCall, group: Seq, seq: Seq, until: Seq) -> None:
        """Adds a call: to the calls before it if one answer requested them, or if they ran at the same time."""
        last = self._out[-1] if self._out else None
        if isinstance(last, ShownCalls) and ((group and group == last.group) or seq < last.until):
            last.calls.append(call)
            last.until = max(last.until, until)
        else:
            self._out.append(ShownCalls([call], group, until))


def _what(name: str, input: Value) -> bytes:
    return f"{name} ".encode() + _encode(input)


def valid_name(name: str) -> str:
    """A tool's name as every provider accepts it; a changed one ends with a hash of the original."""
    if _NAME.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:8]
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:50] + f"_{digest}"
