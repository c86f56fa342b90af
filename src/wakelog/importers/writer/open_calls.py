"""Calls of a transcript that have no answer so far, and those that were given up.

A call is *asked* until its answer comes. At the file's end it is *pending* in the log. When its turn ends without an
answer it is *cut off*: the log says that it was interrupted. An answer that comes after all, in the same import or in a
later one, is told as evidence, so that the call stands there once.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from wakelog.importers.steps import CallStep, ResultStep


class OpenCalls:
    """Which calls wait for an answer. Begins with what the log says: what is pending, and what was cut off."""

    def __init__(self, pending: Iterable[str], given_up: Set[str]) -> None:
        self.asked: dict[str, CallStep] = {}
        self.pending = set(pending)
        self._given_up = given_up
        self._cut_off: dict[str, CallStep] = {}
        self._settled: set[str] = set()

    # Of records that the session has

    def skip_ask(self, ask: CallStep) -> None:
        if ask.id in self._given_up and ask.id not in self.pending:
            self._cut_off[ask.id] = ask
        else:
            self.asked[ask.id] = ask

    def skip_answer(self, id: str) -> None:
        self.asked.pop(id, None)
        self._cut_off.pop(id, None)
        self._settled.add(id)

    def is_settled(self, id: str) -> bool:
        """Whether a record that the session has answered it."""
        return id in self._settled

    # Of new ones

    def ask(self, ask: CallStep) -> None:
        self._cut_off.pop(ask.id, None)  # an id that is given a second time
        self.asked[ask.id] = ask

    def unasked(self) -> list[CallStep]:
        """Calls without an answer that the log does not have yet."""
        return [ask for ask in self.asked.values() if ask.id not in self.pending]

    def cut(self) -> None:
        """The turn is over: what was asked and is pending was cut off."""
        self._cut_off.update(self.asked)
        self.asked.clear()
        self.pending.clear()

    def late(self, answer: ResultStep) -> CallStep | None:
        """The call that an answer is for, if it was cut off before."""
        if answer.id in self.asked or answer.id in self.pending:
            return None
        return self._cut_off.pop(answer.id, None)
