"""Follows a conversation through its requests: each repeats what was said before, and only the rest is new.

A request continues a conversation if it starts with everything that the conversation's last request held. If an agent
drops old messages, the request is recognised by the last item of the previous request, followed by the answer to it. If
the provider keeps the history, it is recognised by the id of the previous answer. Any other request starts a new
conversation.

Nothing here writes. New items count as known only after the caller says that they are recorded (`take_request`): after
a failed write, the next request repeats them.
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
"""How many conversations are remembered. The least recently used one is forgotten first."""


class SeenCallResult(msgspec.Struct, frozen=True):
    """A finished tool call: what the model requested, and the result."""

    action: str
    tool: str
    input: Value
    output: Value
    is_error: bool


class Conversation:
    """What is known about one conversation."""

    def __init__(self) -> None:
        self.call: Any = None
        """The request that is being answered, if any. Set by the recorder."""
        self.is_failed = False
        """Whether the last request has no complete answer."""
        self.lane: Any = None
        """Where it is recorded. Set by the recorder."""
        self._digests: list[bytes] = []
        self._asked: dict[str, Asked] = {}
        """Calls that the model requested, by id, until their results come."""
        self._unnamed: set[str] = set()
        """Ids that were made up here, because the provider gave none."""
        self._answered: set[str] = set()
        self._said: set[str] = set()
        """The normalised texts of the model's answers."""

    @property
    def is_busy(self) -> bool:
        return self.call is not None

    def new_items(self, request: ModelRequest) -> tuple[ConversationItem, ...] | None:
        """The new items of a request, if it continues this conversation; otherwise None."""
        items, known = request.items, len(self._digests)
        digests = [item.digest for item in items]
        if known and digests[:known] == self._digests:
            # A repeated request is a retry if the last one failed, otherwise a new conversation.
            return items[known:] if len(items) > known or self.is_failed else None
        for place in range(len(items) - 2, -1, -1):
            if known and digests[place] == self._digests[-1] and self._is_echo(items[place + 1]):
                return items[place + 1 :]
        return None

    def count_shared(self, request: ModelRequest) -> int:
        """How many items a request shares with this conversation, up to its newest input."""
        inputs = [n for n, item in enumerate(request.items) if item.role == "user"]
        most = min(len(self._digests), inputs[-1] if inputs else len(request.items))
        for place in range(most):
            if request.items[place].digest != self._digests[place]:
                return place
        return most

    def take_request(self, request: ModelRequest, results: Sequence[SeenCallResult]) -> None:
        """Call after a request and the results in it are recorded."""
        for item in request.items:
            self.note_calls(item)
            self._answered.update(r.id for r in item.results if r.id)
        for action in (*(result.action for result in results), *self._answered & self._asked.keys()):
            self._answered.add(action)
            self._asked.pop(action, None)
        digests = [item.digest for item in request.items]
        self._digests = [*self._digests, *digests] if request.previous else digests

    def note_calls(self, item: ConversationItem, *, is_first: bool = False) -> None:
        """Notes the calls in a message of the model whose answer was not seen. Calls without an id are only noted the
        first time: nothing tells them apart later."""
        for call in map(_with_id, item.asked) if is_first else (call for call in item.asked if call.id):
            if call.id not in self._answered:
                self._asked.setdefault(call.id, call)

    def take_answer(self, answer: Value) -> tuple[Asked, ...]:
        """Notes an answer of the model, and returns the calls that it requests, each with an id."""
        parts = parts_of(answer)
        self._said.add(_normalise(flat(p for p in parts if isinstance(p, Text))))
        given = [p for p in parts if isinstance(p, Asked)]
        asked = tuple(map(_with_id, given))
        self._asked.update({call.id: call for call in asked})
        self._unnamed.update(call.id for call, before in zip(asked, given, strict=True) if not before.id)
        return asked

    def is_known(self, item: ConversationItem) -> bool:
        """Whether an item only repeats an answer that is recorded."""
        return item.role == "assistant" and self._is_echo(item)

    def _is_echo(self, item: ConversationItem) -> bool:
        if item.role != "assistant":
            return False
        if calls := [call for call in item.asked if call.id]:  # whatever a program changed around them
            return all(c.id in self._asked or c.id in self._answered or self._made_up_id(c) for c in calls)
        text = _normalise(flat(p for p in item.parts if isinstance(p, Text)))
        return not text or any(text in said for said in self._said)

    def _made_up_id(self, call: Asked) -> str:
        """The id that was made up for a call, if the program has given it one of its own. Empty if there is none."""
        same = (id for id in self._asked if id in self._unnamed and _is_same_call(self._asked[id], call))
        return next(same, "")

    def adopt_ids(self, items: Sequence[ConversationItem]) -> None:
        """Takes over the ids that the program gave to calls for which its provider has none, as Gemini CLI does."""
        for call in (call for item in items for call in item.asked if call.id and call.id not in self._asked):
            if id := self._made_up_id(call):
                self._unnamed.discard(id)
                del self._asked[id]
                self._asked[call.id] = call

    def results(self, items: Sequence[ConversationItem]) -> list[SeenCallResult]:
        """The calls whose results are new in these items."""
        waiting = dict(self._asked)
        out = []
        for result in (r for item in items for r in item.results):
            call = _call_of(result, waiting)
            if result.id and result.id in self._answered:
                continue
            if call is None:  # requested where nobody observed it
                call = Asked(result.id or f"call-{secrets.token_hex(6)}", result.name or "tool", None)
            waiting.pop(call.id, None)
            out.append(SeenCallResult(call.id, call.name or "tool", call.input, result.output, result.is_error))
        return out


def _is_same_call(one: Asked, other: Asked) -> bool:
    return (one.name, one.input) == (other.name, other.input)


def _call_of(result: CallResult, waiting: dict[str, Asked]) -> Asked | None:
    """The call of a result. If a provider gives no ids, the oldest call with that name."""
    if result.id:
        return waiting.get(result.id)
    return next((call for call in waiting.values() if call.name == result.name), None)


def _with_id(call: Asked) -> Asked:
    """The call with an id, which is made up if the provider gives none."""
    return call if call.id else Asked(f"{call.name}-{secrets.token_hex(6)}", call.name, call.input)


def _normalise(text: str) -> str:
    return " ".join(text.split())


class Conversations:
    """The conversations of one program, most recent last."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[str, Conversation]] = OrderedDict()
        self._by_id: OrderedDict[str, Conversation] = OrderedDict()

    def find(self, request: ModelRequest, scope: str) -> tuple[Conversation, tuple[ConversationItem, ...]]:
        """The conversation that a request continues, or a new one; and the new items. A request only continues a
        conversation in the same `scope` (session)."""
        if request.previous and (known := self._by_id.get(request.previous)) is not None:
            return known, request.items
        for key, (where, conversation) in reversed(self._known.items()):
            new_items = conversation.new_items(request) if where == scope else None
            # A reader that stopped at the end of the text may continue before we know that the answer is complete.
            has_answer = new_items and new_items[0].role == "assistant"
            if new_items is not None and (has_answer or not conversation.is_busy):
                self._known.move_to_end(key)
                return conversation, new_items
        conversation = Conversation()
        for item in request.items:
            conversation.note_calls(item, is_first=True)
        return conversation, request.items

    def keep(self, conversation: Conversation, scope: str) -> None:
        self._known[id(conversation)] = scope, conversation
        self._known.move_to_end(id(conversation))
        while len(self._known) > KEPT_MAX:
            self._known.popitem(last=False)

    def add_ids(self, conversation: Conversation, *ids: str) -> None:
        """Adds ids by which a later request may refer to this conversation."""
        for name in filter(None, ids):
            self._by_id[name] = conversation
            self._by_id.move_to_end(name)
        while len(self._by_id) > KEPT_MAX:
            self._by_id.popitem(last=False)
