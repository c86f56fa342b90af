"""A conversation seen through its requests: each repeats what was said before, and only the rest is new.

A request goes on with a conversation if it begins with everything that the last request of that conversation held. An
agent that drops old messages is known by the place where the last request ended, if the answer to it follows there; one
that leaves the history to the provider, by the id of the answer it goes on from. Everything else begins a conversation.

Nothing here writes. What is new in a request counts as known only when the caller says that it is recorded
(`take_request`): after a failed write the next request, which repeats it all, brings it again.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import msgspec

from wakelog.instruments.model_request import CallResult, ConversationItem, ModelRequest
from wakelog.model.parts import Asked, Text, flat, parts_of
from wakelog.model.values import Value

KEPT_MAX = 64
"""Conversations that are remembered; the one that was silent longest is forgotten first."""


class SeenCallResult(msgspec.Struct, frozen=True):
    """A tool call that is over: what the model asked for, and what it was given."""

    action: str
    tool: str
    input: Value
    output: Value
    is_error: bool


class Conversation:
    """What is known of one conversation."""

    def __init__(self) -> None:
        self.call: Any = None
        """The request of it that is being answered, if one is; the recorder's."""
        self.is_failed = False
        """Whether the last request has no whole answer."""
        self.lane: Any = None
        """Where it is recorded; the recorder's."""
        self._digests: list[bytes] = []
        self._asked: dict[str, Asked] = {}
        """Calls that the model asked for, by their ids, until their results come."""
        self._answered: set[str] = set()
        self._said: set[str] = set()
        """What the model answered, by its words."""

    @property
    def is_busy(self) -> bool:
        return self.call is not None

    def news(self, request: ModelRequest) -> tuple[ConversationItem, ...] | None:
        """What a request adds, if it goes on with this conversation; else None."""
        items, known = request.items, len(self._digests)
        digests = [item.digest for item in items]
        if known and digests[:known] == self._digests:
            # The same once more is another try if the last one failed, and else a new conversation.
            return items[known:] if len(items) > known or self.is_failed else None
        for place in range(len(items) - 2, -1, -1):
            if known and digests[place] == self._digests[-1] and self._is_echo(items[place + 1]):
                return items[place + 1 :]
        return None

    def shared(self, request: ModelRequest) -> int:
        """How many items a request has in common with this conversation, up to its newest input."""
        inputs = [n for n, item in enumerate(request.items) if item.role == "user"]
        most = min(len(self._digests), inputs[-1] if inputs else len(request.items))
        for place in range(most):
            if request.items[place].digest != self._digests[place]:
                return place
        return most

    def take_request(self, request: ModelRequest, results: Sequence[SeenCallResult]) -> None:
        """A request of it is recorded, and with it the results of these calls."""
        for item in request.items:
            self.hear(item)
            self._answered.update(r.id for r in item.results if r.id)
        for action in (*(result.action for result in results), *self._answered & self._asked.keys()):
            self._answered.add(action)
            self._asked.pop(action, None)
        digests = [item.digest for item in request.items]
        self._digests = [*self._digests, *digests] if request.previous else digests

    def hear(self, item: ConversationItem, *, is_first: bool = False) -> None:
        """The calls that a message of the model asks for, where its answer was not seen. Those without an id are only
        taken the first time: nothing tells whether they are the same."""
        for call in map(_named, item.asked) if is_first else (call for call in item.asked if call.id):
            if call.id not in self._answered:
                self._asked.setdefault(call.id, call)

    def take_answer(self, answer: Value) -> tuple[Asked, ...]:
        """The model answered; returns the calls that it asks for, each with an id."""
        parts = parts_of(answer)
        self._said.add(_words(flat(p for p in parts if isinstance(p, Text))))
        asked = tuple(_named(p) for p in parts if isinstance(p, Asked))
        self._asked.update({call.id: call for call in asked})
        return asked

    def is_known(self, item: ConversationItem) -> bool:
        """Whether an item only repeats what the model answered, which is recorded."""
        return item.role == "assistant" and self._is_echo(item)

    def _is_echo(self, item: ConversationItem) -> bool:
        if item.role != "assistant":
            return False
        ids = {call.id for call in item.asked if call.id}
        if ids:  # whatever a program made of the words around them
            return ids <= self._asked.keys() | self._answered
        text = _words(flat(p for p in item.parts if isinstance(p, Text)))
        return not text or any(text in said for said in self._said)

    def results(self, items: Sequence[ConversationItem]) -> list[SeenCallResult]:
        """The calls whose results are among these items, and were not before."""
        waiting = dict(self._asked)
        out = []
        for result in (r for item in items for r in item.results):
            call = _call_of(result, waiting)
            if result.id and result.id in self._answered:
                continue
            if call is None:  # asked for where nobody looked
                call = Asked(result.id or f"call-{secrets.token_hex(6)}", result.name or "tool", None)
            waiting.pop(call.id, None)
            out.append(SeenCallResult(call.id, call.name or "tool", call.input, result.output, result.is_error))
        return out


def _call_of(result: CallResult, waiting: dict[str, Asked]) -> Asked | None:
    """The call that a result answers. Where a provider gives no ids, the oldest of that name."""
    if result.id:
        return waiting.get(result.id)
    return next((call for call in waiting.values() if call.name == result.name), None)


def _named(call: Asked) -> Asked:
    """A call with an id, also where the provider gives none."""
    return call if call.id else Asked(f"{call.name}-{secrets.token_hex(6)}", call.name, call.input)


def _words(text: str) -> str:
    return " ".join(text.split())


class Conversations:
    """The conversations of one program, newest last."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[str, Conversation]] = OrderedDict()
        self._by_id: OrderedDict[str, Conversation] = OrderedDict()

    def find(self, request: ModelRequest, scope: str) -> tuple[Conversation, tuple[ConversationItem, ...]]:
        """The conversation that a request goes on with, or a new one; and what is new in it. `scope` tells sessions
        apart: a request in one does not go on with a conversation of another."""
        if request.previous and (known := self._by_id.get(request.previous)) is not None:
            return known, request.items
        for key, (where, conversation) in reversed(self._known.items()):
            news = conversation.news(request) if where == scope else None
            # A reader that stopped at the model's last word has the answer before we know that it is whole.
            has_answer = news and news[0].role == "assistant"
            if news is not None and (has_answer or not conversation.is_busy):
                self._known.move_to_end(key)
                return conversation, news
        conversation = Conversation()
        for item in request.items:
            conversation.hear(item, is_first=True)
        return conversation, request.items

    def keep(self, conversation: Conversation, scope: str) -> None:
        self._known[id(conversation)] = scope, conversation
        self._known.move_to_end(id(conversation))
        while len(self._known) > KEPT_MAX:
            self._known.popitem(last=False)

    def name(self, conversation: Conversation, *ids: str) -> None:
        """What a later request may call this conversation."""
        for name in filter(None, ids):
            self._by_id[name] = conversation
            self._by_id.move_to_end(name)
        while len(self._by_id) > KEPT_MAX:
            self._by_id.popitem(last=False)
