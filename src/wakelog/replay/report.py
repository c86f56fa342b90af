"""The report of a replay: for each step, whether it was the same."""

from __future__ import annotations

from typing import Literal

import msgspec

from wakelog.model.ids import Seq, SessionId

Mode = Literal["strict", "fill", "live"]
Verdict = Literal["same", "different", "moved", "new", "missing", "inside", "unreached"]
"""same; different: an argument, a parameter or the result differs; moved: made in another order; new: not in the
recording; missing: the replay did not make it; inside: made by a tool that was answered from the record; unreached: the
replay ended before it."""

AGREES = frozenset({"same", "inside", "unreached"})


class ReplayRow(msgspec.Struct, frozen=True):
    """One step of the recording beside what the replay did, or a call that only the replay made."""

    kind: Literal["tool", "model", "turn"]
    number: int
    """The recorded step, from 1. For a call that is new or too early, the step that the recording has at that point, or
    one more than the last of the turn. 0 for a turn."""
    turn: int
    seq: Seq
    """The event in the recording; 0 if it has none."""
    verdict: Verdict
    tool: str
    recorded: str
    """The call as the recording has it: search(q='login timeout')."""
    made: str
    """The call as the replay made it; empty if it did not."""
    differs: tuple[str, ...] = ()
    """Names of arguments or parameters; also `shown` (to the model), `result`, `order`, `input` (of a turn)."""
    how: Literal["", "recorded", "run", "refused"] = ""
    """Answered from the record, run, or refused because it has effects."""
    event: Seq = 0
    """The event in the replay's session."""
    note: str = ""

    @property
    def agrees(self) -> bool:
        return self.verdict in AGREES


class Report(msgspec.Struct, frozen=True):
    """The comparison of a replay with its recording, step by step."""

    session: SessionId
    name: str
    """What was replayed: fix-auth@4..@7."""
    mode: Mode
    first: Seq
    last: Seq
    fork: SessionId | None
    """The fork in which the replay was recorded; None for a replay in memory."""
    total: int
    """How many steps the recording has."""
    steps: tuple[ReplayRow, ...]
    """In the order of the recording, including calls that it does not have, and turns that differ."""
    error: str = ""
    """The error that ended the replay early."""
    state: tuple[str, ...] = ()
    """Keys of the state that differ between the ends of the replay and of the recording."""
    notes: tuple[str, ...] = ()

    @property
    def divergence(self) -> ReplayRow | None:
        """The first row that is not the same."""
        return next((row for row in self.steps if not row.agrees), None)

    @property
    def first_difference(self) -> str:
        """The divergence as a sentence; empty if there is none."""
        row = self.divergence
        return sentence(row, self.total) if row is not None else ""

    @property
    def ok(self) -> bool:
        """Whether the replay did everything that was recorded, in the same way, and nothing else."""
        return self.divergence is None and not self.error

    def count(self, *verdicts: str) -> int:
        return sum(row.verdict in verdicts for row in self.steps)

    def __str__(self) -> str:
        row = self.divergence
        if row is None:
            return f"{self.name}: the same {self.count('same')} steps" + (f", then {self.error}" if self.error else "")
        words = (f"{self.count(v)} {v}" for v in ("same", "different", "moved", "new", "missing") if self.count(v))
        return f"{self.name}: {', '.join(words)}; first: {self.first_difference}"


def sentence(row: ReplayRow, total: int) -> str:
    """A divergence as a sentence."""
    place = f"turn @{row.turn}" if row.turn else "the replay"
    at = f" at step {row.number} of {total} (e{row.seq})" if row.number else f" (e{row.seq})" if row.seq else ""
    if row.kind == "turn":
        if not row.seq:
            return f"{place} is new: {row.made}"
        if not row.made:
            return f"{place} was not started: {row.recorded}{at}"
        return f"{place} began with {row.made} but the recording has {row.recorded}{at}."
    if row.verdict == "missing":
        return f"{place} did not call {row.recorded}, which the recording has{at}."
    if row.verdict == "new":
        nothing = "the recording has nothing more" if not row.recorded else f"the recording has {row.recorded}{at}"
        nothing += " in this turn" * (row.turn > 0 and not row.recorded)
        return f"{place} called {row.made} but {nothing}."
    if row.verdict == "moved":
        return f"{place} called {row.made} before {row.recorded}, which the recording has first{at}. The order differs."
    if row.differs == ("result",):
        return f"{place} called {row.made}{at}, with another result: {row.note}"
    return f"{place} called {row.made} but the recording has {row.recorded}{at}. {describe_differences(row)}"


def describe_differences(row: ReplayRow) -> str:
    """Which arguments differ, as a sentence."""
    names = [n for n in row.differs if n not in ("shown", "model")]
    parts = ["The model differs."] if "model" in row.differs else []
    if names:
        word = "parameter" if row.kind == "model" else "argument"
        joined = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        parts.append(f"The {word}{'s' * (len(names) > 1)} {joined} differ{'s' * (len(names) == 1)}.")
    if "shown" in row.differs:
        parts.append("What it was shown differs (of that only the hash is recorded).")
    return " ".join(parts)
