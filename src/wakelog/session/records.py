"""Verbs that record. Each stores one durable event and returns its seq."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, cast

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.session.base import Base, S, Where, check_list, check_text

if TYPE_CHECKING:
    from wakelog.session.session import Session

_SUGGESTIONS = 8
"""How many known keys an error names."""


class Records(Base[S]):
    """Recording."""

    def message(
        self,
        role: str,
        content: Value,
        *,
        name: str = "",
        action: str = "",
        source: str = "",
        trust: Trust = "trusted",
        why: str = "",
    ) -> Seq:
        """Records a message of the conversation; `messages()` reads it back. It is not part of the state. A message
        with a tool's answer names the call's `action`, and is trusted as far as that call's result."""
        check_text(role, "a message's role")
        event = ev.MessageAdded(role=role, content=content, name=name, action=action, why=why)
        actor = "user" if role == "user" else "tool" if action else "agent"
        return self._record(event, actor=actor, source=source, trust=trust, answers=action)

    def decide(
        self,
        choice: str,
        *,
        because: str = "",
        alternatives: Iterable[str] = (),
        assumptions: Iterable[str] = (),
        evidence: Iterable[int | str] = (),
    ) -> Seq:
        """Records a decision: the choice, the alternatives and the reason."""
        check_text(choice, "a decision's choice")
        for values, what in ((alternatives, "alternatives"), (assumptions, "assumptions"), (evidence, "evidence")):
            check_list(values, what)
        event = ev.DecisionMade(
            choice=choice,
            because=because,
            alternatives=tuple(alternatives),
            assumptions=tuple(assumptions),
            evidence=tuple(evidence),
        )
        return self._record(event)

    def fact(self, key: str, value: Value, *, why: str = "", source: str = "", trust: Trust = "trusted") -> Seq:
        """Records a fact under a key. A later fact with the same key replaces it."""
        check_text(key, "a fact's key")
        return self._record(ev.FactRecorded(key=key, value=value, why=why), source=source, trust=trust)

    def retract(self, key: str, *, why: str = "") -> Seq:
        """Removes a fact. Raises NotFoundError if there is none with that key."""
        check_text(key, "a fact's key")
        if instead := self._known_instead(key, "facts"):
            raise NotFoundError(f"{self} has no fact {key!r} ({instead})", kind="fact-not-found")
        return self._record(ev.FactRetracted(key=key, why=why))

    def dead_end(self, tried: str, *, learned: str = "") -> Seq:
        """Records what did not work, so that it is not tried again. A rewind keeps it."""
        check_text(tried, "what was tried")
        return self._record(ev.DeadEndNoted(tried=tried, learned=learned))

    def accept(self, item: str, *, kind: str = "") -> Seq:
        """Records a derived item as a real decision, dead end or goal, with the events it was derived from as evidence.
        `insight()` gives its id, such as "e17"; `kind` chooses one if an event has several."""
        from wakelog.session.insights import accept_item, find_item

        session = cast("Session[S]", self)
        return accept_item(session, find_item(session, item, kind))

    def artefact(self, name: str, *, uri: str = "", media: str = "", content: Value = None, why: str = "") -> Seq:
        """Records something the agent made: a report, a build, a file elsewhere."""
        check_text(name, "an artefact's name")
        return self._record(ev.ArtefactRecorded(name=name, uri=uri, media=media, content=content, why=why))

    def set_goal(self, goal: str | None, *, why: str = "") -> Seq:
        """Sets the session's goal; None removes it."""
        check_text(goal, "a goal")
        return self._record(ev.GoalSet(goal=goal, why=why), actor="user")

    def label(self, labels: Mapping[str, str | None], *, why: str = "") -> Seq:
        """Sets labels; a value of None removes one."""
        if not isinstance(labels, Mapping):
            raise InvalidInputError("labels are a dict of texts", kind="bad-labels", hint='such as {"team": "ops"}')
        for name in labels:
            check_text(name, "a label's name")
        return self._record(ev.LabelsSet(labels=dict(labels), why=why), actor="user")

    def checkpoint(self, name: str, at: Where = None, *, remove: bool = False) -> Seq:
        """Names a point. It is only a name, not a copy. With `remove`, removes the name; raises NotFoundError if there
        is none."""
        check_text(name, "a checkpoint's name")
        if remove and (instead := self._known_instead(name, "checkpoints")):
            raise NotFoundError(
                f"{self} has no checkpoint {name!r} ({instead})",
                kind="checkpoint-not-found",
                hint="list them with wakelog checkpoint ls",
            )
        return self._record(ev.CheckpointNamed(name=name, at=self._existing(at), remove=remove), actor="user")

    def _known_instead(self, key: str, part: Literal["facts", "checkpoints"]) -> str:
        """Returns a text with the known keys, for an error, if the state has no such key; empty if it has. In a turn
        that is already done nothing is checked."""
        known = self.log.part(part)
        if key in known or self._is_answering:
            return ""
        import difflib

        near = difflib.get_close_matches(key, known, _SUGGESTIONS) or list(known)[:_SUGGESTIONS]
        return f"it has: {', '.join(near) or 'none'}{', …' if len(known) > len(near) else ''}"

    def note(self, text: str, on: Where = 0) -> Seq:
        """Records a note on an event, or on the session."""
        check_text(text, "a note's text")
        return self._record(ev.NoteAdded(text=text, on=0 if on == 0 else self._existing(on)), actor="user")
