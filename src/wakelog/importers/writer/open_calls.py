"""Calls of a transcript that have no result yet, and those that were cut off.

A call is *asked* until its result comes. At the end of the file it is *pending* in the log. If its turn ends without a
result it is *cut off*: the log says that it was interrupted. A result that comes later, in the same import or in the
next one, is recorded as evidence, so the call is not recorded twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from wakelog.importers.steps import CallStep
from wakelog.model import events as ev


class OpenCalls:
    """Tracks which calls wait for a result. `pending` and `given_up` are those of the log when the import starts. A
    question to a person is no call: hooks report it, and how it was answered."""

    def __init__(self, pending: Mapping[str, Any], given_up: Set[str]) -> None:
        self.asked: dict[str, CallStep] = {}
        self._questions = [id for id, about in pending.items() if about["tool"] == "input"]
        self.pending = pending.keys() - self._questions
        self._uncertain = {id for id, about in pending.items() if about["status"] == "uncertain"}
        self._given_up = given_up
        self._cut_off: dict[str, CallStep] = {}
        self._settled: set[str] = set()

    # Records that the session already has

    def skip_call(self, call: CallStep) -> None:
        if call.id in self._given_up and call.id not in self.pending:
            self._cut_off[call.id] = call
        else:
            self.asked[call.id] = call

    def skip_result(self, id: str) -> None:
        self.asked.pop(id, None)
        self._cut_off.pop(id, None)
        self._settled.add(id)

    def is_settled(self, id: str) -> bool:
        """Whether a record that the session already has holds its result."""
        return id in self._settled

    # New records

    def add(self, call: CallStep) -> None:
        self._cut_off.pop(call.id, None)  # the id is used a second time
        self.asked[call.id] = call

    def unrecorded(self) -> list[CallStep]:
        """Calls without a result that the log does not have yet."""
        return [call for call in self.asked.values() if call.id not in self.pending]

    def waiting(self) -> list[str]:
        """Calls in the log that wait for a result. One that is uncertain waits for somebody to resolve it."""
        return [id for id in self.pending if id not in self._uncertain]

    def cut_off(self) -> None:
        """Marks all open calls as cut off: the turn is over."""
        self._cut_off.update(self.asked)
        self.asked.clear()
        self.pending &= self._uncertain

    def unanswered(self) -> Iterator[ev.ActionAbandoned]:
        """Gives up questions to a person, when the session is idle."""
        yield from (ev.ActionAbandoned(action=id) for id in self._questions)
        self._questions.clear()

    def pop_cut_off(self, id: str) -> CallStep | None:
        """The call that a late result belongs to, if the call was cut off before."""
        if id in self.asked or id in self.pending:
            return None
        return self._cut_off.pop(id, None)
