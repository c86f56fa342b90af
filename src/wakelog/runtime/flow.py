"""What rests on what: stamped here, by the runtime, and not by the model.

A model call rests on what was in its window; its answer is trusted as little as the least trusted of that (its
*exposure*). What the agent then asks for, decides or notes in the same turn was caused by that answer, and inherits its
mark. A tool's result has the trust its policy gives it, for a pure tool at most that of its input.
"""

from __future__ import annotations

from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.runtime.ambient import TRUSTED, Mark, mark_here

Ranges = tuple[tuple[Seq, Seq], ...]


class Flow:
    """The newest model answer of the open turn, and its mark."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.cause: Seq = 0
        self.mark = TRUSTED
        self._results: dict[str, tuple[Seq, Mark]] = {}

    def new_turn(self) -> None:
        """A new input: nothing of this turn has been said by the model yet."""
        self.cause, self.mark = 0, TRUSTED
        self._results.clear()

    def result(self, action: str, seq: Seq, mark: Mark) -> None:
        """A call came back: a message that gives its answer to the model will rest on it."""
        self._results[action] = (seq, mark)

    def answered(self, seq: Seq, mark: Mark) -> None:
        """The model's answer at `seq` is what the agent now acts on."""
        self.cause, self.mark = seq, mark

    def draft(
        self,
        event: ev.Event,
        *,
        actor: str = "agent",
        mark: Mark = TRUSTED,
        derived_from: Ranges = (),
        answers: str = "",
    ) -> EventDraft:
        """An event with its header: what the agent says rests on the model's newest answer, a message that `answers` a
        call on its result. `mark` is that of the events it was derived from."""
        mark = mark.lowered(mark_here())
        cause = 0
        if answers in self._results:
            seq, of_result = self._results[answers]
            derived_from, mark = (*derived_from, (seq, seq)), mark.lowered(of_result)
        if actor == "agent":
            cause, mark = self.cause, self.mark_of_agent(mark)
        return EventDraft(
            event, actor=actor, cause=cause, derived_from=derived_from, source=mark.source, trust=mark.trust
        )

    def mark_of_agent(self, mark: Mark = TRUSTED) -> Mark:
        """The mark of what the agent does now."""
        return mark.lowered(self.mark)

    def window(self) -> tuple[Ranges, Mark]:
        """What a model may have seen when nobody said what it was shown: everything in view, and for its trust
        everything ever met, which the state knows without looking."""
        least = TRUSTED
        for source, met in self.log.part("trust").items():
            least = least.lowered(Mark(met["trust"], source))
        return tuple(self.log.view()), least
