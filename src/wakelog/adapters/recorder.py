"""Records a conversation from its messages. For frameworks without an adapter, and the base of some adapters.

    recorder = Recorder(store.session("support-42"))
    recorder.add({"role": "user", "content": "What is the weather in Paris?"})
    recorder.add(response)                      # a message, or a client's whole answer with model and usage
    recorder.sync(messages)                     # or: the whole list so far, as often as you like

Messages have the shape of OpenAI's chat completions or responses, or of Anthropic's messages. They become turns, model
calls, tool calls and their outcomes (message_events.py), and `messages()` returns them unchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from wakelog.adapters.item_log import ItemLog, KeptItem, PlannedItem, check_items
from wakelog.adapters.message_events import CallFacts, MessagePlan, ReadMessage, ReplyFacts, read_message
from wakelog.errors import ConflictError, InvalidInputError
from wakelog.importers.common.provider_messages import is_message
from wakelog.importers.writer.reply_costs import ReplyCosts
from wakelog.model import events as ev
from wakelog.model.events import Cost, Effect
from wakelog.model.json_fields import as_text
from wakelog.model.parts import is_answer
from wakelog.model.records import EventDraft
from wakelog.model.usage import Usage, usage_of
from wakelog.runtime.models import token_cost
from wakelog.session import Session
from wakelog.store import Store

FORMAT = "messages"
OnEdit = Literal["rewind", "fork", "refuse"]


class ListChange(msgspec.Struct, frozen=True):
    """What a list of messages changed."""

    added: int = 0
    removed: int = 0
    """Recorded messages that are no longer in the list."""
    how: Literal["", "append", "rewind", "fork"] = ""
    """How the change was recorded; empty if there was none."""
    session: str = ""
    """For a fork, the id of the new session, which the recorder uses from then on."""


def _check_known(value: object, kind: Any, what: str) -> None:
    known = get_args(kind)
    if value not in known:
        raise InvalidInputError(f"{value!r} is not {what}", hint=f"one of {', '.join(known)}")


class Recorder:
    """Records messages into a session, each once."""

    def __init__(
        self,
        session: Session[Any],
        *,
        on_edit: OnEdit = "rewind",
        effects: Mapping[str, Effect] | None = None,
        format: str = FORMAT,
        takes_any: bool = False,
    ) -> None:
        """`on_edit` says what to do if a list differs from the recorded messages: rewind the session to the last common
        message (`rewind`), fork it there (`fork`), or raise ConflictError (`refuse`). `effects` are the effects of
        tools by name: `{"get_weather": "read"}`; other tools count as external. `takes_any` accepts dicts that are not
        messages too, such as encrypted ones: they are stored, and nothing is read from them."""
        if not isinstance(session, Session):
            raise InvalidInputError(
                f"a Recorder records into a session, and this is a {type(session).__name__}",
                hint='Recorder(store.session("a-name"))',
            )
        _check_known(on_edit, OnEdit, "a value of on_edit")
        for tool, effect in (effects or {}).items():
            _check_known(effect, Effect, f"an effect, as {tool} has")
        self.on_edit: OnEdit = on_edit
        self._format = format
        self._takes_any = takes_any
        self._effects = dict(effects or {})
        self._digests: dict[bytes, bytes] = {}
        self._last_speaker: tuple[bytes, str] = b"", ""
        self._open(session)

    def _open(self, session: Session[Any]) -> None:
        self.session = session
        self.log = ItemLog(session, self._format)
        self._costs = ReplyCosts(session.store) if isinstance(session.store, Store) else None

    # Reading

    def messages(self, last: int | None = None) -> list[Any]:
        """The messages in view, or only the `last` of them, as they were given."""
        return [item.original for item in self.log.refresh(last)]

    # Recording

    def add(
        self,
        *messages: Any,
        model: str = "",
        usage: Usage | Mapping[str, Any] | None = None,
        reply: ReplyFacts | None = None,
        calls: Mapping[str, CallFacts] | None = None,
        turn_id: str = "",
        shown_from: int = 0,
        stays_open: bool = False,
    ) -> int:
        """Adds messages in one commit; returns how many. A client's whole answer is split into its messages, and its
        model and usage are recorded; for a plain message, pass `model` and `usage`. `reply` and `calls` (by call id)
        add facts that messages do not have: the cost of an answer, the outcome of a call. `shown_from` is the event
        that the model's history began with, if it was given only the end of it. `stays_open` keeps the turn open.
        """
        plain, answer_facts = self._unpack(messages, model, usage)
        if not plain:
            return 0
        read = [read_message(message, self._effects) for message in check_items(plain, "messages")]
        self.log.write(
            lambda parts: self._plan(parts, read, reply or answer_facts, calls, turn_id, stays_open, shown_from)
        )
        return len(read)

    def sync(
        self,
        messages: Sequence[Any],
        *,
        reply: ReplyFacts | None = None,
        calls: Mapping[str, CallFacts] | None = None,
        stays_open: bool = False,
    ) -> ListChange:
        """Records what is new in the whole conversation so far. If the list is shorter than the recorded one or differs
        from it, it was edited: see `on_edit`. Messages are compared by role and content, not by cache marks or by the
        order of their fields."""
        plain, answer_facts = self._unpack(messages)
        given = [read_message(message, self._effects) for message in check_items(plain, "messages")]
        kept = self.log.refresh()
        same = _common_length(given, [self._digest(item) for item in kept])
        new, removed = given[same:], len(kept) - same
        if not new and not removed:
            return ListChange()
        reply = reply or answer_facts
        if not removed:
            self.log.write(lambda parts: self._plan(parts, new, reply, calls, "", stays_open))
            return ListChange(len(new), 0, "append")
        why = f"the list of messages was edited after {same} of {len(kept)}"
        if self.on_edit == "refuse":
            raise ConflictError(
                f"{why}, and this recorder does not accept edits",
                kind="history-edited",
                hint='pass the same list with new messages at its end; or use on_edit="rewind" or "fork"',
            )
        if self.on_edit == "fork":
            self._open(self.session.fork(kept[same].first - 1, why=why))
            self.log.write(lambda parts: self._plan(parts, new, reply, calls, "", stays_open))
            return ListChange(len(new), removed, "fork", self.session.id)
        self.log.write(lambda parts: self._plan(parts, new, reply, calls, "", stays_open), keep=same, why=why)
        return ListChange(len(new), removed, "rewind")

    def pop(self, *, why: str = "the last message was taken back") -> Any:
        """Removes the newest message by a rewind and returns it; None if there is none."""
        taken = self.log.pop(why=why)
        return taken.original if taken is not None else None

    def clear(self, *, why: str = "the conversation was cleared") -> int:
        """Removes all messages by a rewind; returns how many there were. The log keeps them."""
        kept = self.log.refresh()
        if kept:
            self.log.write(lambda parts: (), keep=0, why=why)
        return len(kept)

    def replace(
        self, *messages: Any, instead_of: Sequence[KeptItem] = (), why: str = "the conversation was replaced"
    ) -> bool:
        """Removes all messages by a rewind and adds these, in one commit. With `instead_of`, removes only these items
        at the end. False, and nothing is written, if they are not the newest any more."""
        read = [read_message(message, self._effects) for message in check_items(self._unpack(messages)[0], "messages")]
        plan = functools.partial(self._plan, read=read, reply=None, calls=None, turn_id="", stays_open=False)
        return self.log.write(plan, keep=0, instead_of=instead_of, why=why)

    def end_turn(self, outcome: Literal["completed", "failed", "interrupted"] = "completed", error: str = "") -> None:
        """Ends the open turn, if there is one: for a run that stops without a final answer."""
        if self.session.log.part("turn")["status"] == "open":
            failure = ev.Failure("failed", error) if error else None
            self.session.append(EventDraft(ev.TurnEnded(outcome=outcome, error=failure), actor="runtime"))

    def _plan(
        self,
        parts: dict[str, Any],
        read: Sequence[ReadMessage],
        reply: ReplyFacts | None,
        calls: Mapping[str, CallFacts] | None,
        turn_id: str,
        stays_open: bool,
        shown_from: int = 0,
    ) -> list[PlannedItem]:
        return MessagePlan(
            parts,
            has_reply=self._last_role() in ("assistant", "tool"),
            find_call=lambda call: self.log.find_call(call, lambda value: read_message(value, self._effects).asks),
            reply=reply,
            calls=calls,
            turn_id=turn_id,
            stays_open=stays_open,
            shown=(shown_from, self.log.seen + 2) if shown_from else None,  # an event that marks the items comes first
        ).plan(read)

    def _last_role(self) -> str:
        if not self.log.items:
            return ""
        raw, role = self._last_speaker
        if raw is not self.log.items[-1].raw:
            role = read_message(self.log.items[-1].value).role
            self._last_speaker = self.log.items[-1].raw, role
        return role

    def _digest(self, item: KeptItem) -> bytes:
        if item.raw not in self._digests:
            self._digests[item.raw] = read_message(item.value).digest
        return self._digests[item.raw]

    def _unpack(
        self, given: Iterable[Any], model: str = "", usage: Usage | Mapping[str, Any] | None = None
    ) -> tuple[list[dict[str, Any]], ReplyFacts | None]:
        """The messages in the given values, and the facts about the last whole answer among them."""
        out: list[dict[str, Any]] = []
        used = usage if isinstance(usage, Usage) else usage_of({"usage": dict(usage)}) if usage else Usage()
        facts = self.facts(model, used) if model or used.is_known else None
        for place, each in enumerate(given):
            value = _plain(each, place, self._takes_any)
            if not is_answer(value) or ("usage" not in value and value.get("object") is None):
                out.append(value)
                continue
            out += _messages_of(value)
            facts = self.facts(
                str(value.get("model") or model),
                usage_of(value),
                id=str(value.get("id") or ""),
                stop_reason=_stop_reason(value),
            )
        return out, facts

    def facts(
        self, model: str, usage: Usage, *, id: str = "", stop_reason: str = "", duration_us: int = 0
    ) -> ReplyFacts:
        """The usage of an answer, and its cost by the store's prices."""
        at = self.session.log.clock()
        cost: Cost = self._costs.cost(model, usage, 0, at) if self._costs is not None else token_cost(usage)
        return ReplyFacts(id, model, msgspec.structs.replace(cost, duration_us=duration_us), stop_reason)


def _common_length(given: Sequence[ReadMessage], known: Sequence[bytes]) -> int:
    """How many messages at the start of a list are recorded."""
    for place, (message, digest) in enumerate(zip(given, known, strict=False)):
        if message.digest != digest:
            return place
    return min(len(given), len(known))


def _plain(given: Any, place: int, takes_any: bool) -> dict[str, Any]:
    """A message as plain data. Clients return objects."""
    dump = getattr(given, "model_dump", None)
    value = dump(mode="json", exclude_unset=True) if callable(dump) else given
    if isinstance(value, dict) and (takes_any or is_answer(value) or is_message(value)):
        return value
    found = f"it has no role and no type, only {list(value)}" if isinstance(value, dict) else type(given).__name__
    raise InvalidInputError(
        f"messages[{place}] is not a message: {found}",
        kind="not-a-message",
        hint='pass {"role": "user", "content": "…"}, or an answer of the OpenAI or Anthropic client',
    )


def _messages_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages in a client's whole answer, in the form that the next request has them."""
    if isinstance(choices := answer.get("choices"), list):
        return [choices[0]["message"]]
    if isinstance(output := answer.get("output"), list):
        return list(output)
    return [{"role": "assistant", "content": answer.get("content")}]


def _stop_reason(answer: dict[str, Any]) -> str:
    choices = answer.get("choices")
    return as_text(choices[0].get("finish_reason") if isinstance(choices, list) else answer.get("stop_reason"))
