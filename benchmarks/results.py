"""What a run found, as values that can be written to a file and read again.

A finding is one number per round for one contender, one question and one size; tables, plots, targets and comparisons
are all made of these. `NAMES` says what a question means and in which unit.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Literal

import msgspec

from benchmarks.kinds import BASE, Group

NAMES = {
    "one.ratio": "turns per second over the base's, for the same turns in the same round",
    "one.turns_per_s": "durable turns per second, one session",
    "one.cpu_us": "processor µs a turn, of the contender's process",
    "one.cold_ms": "the first turn of a process, which is not in the rates",
    "one.first_us": "µs a turn in the first tenth",
    "one.last_us": "µs a turn in the last tenth",
    "one.bytes": "bytes on disk a turn, closed",
    "one.memory_mb": "most memory of the process that appended, MB",
    "one.done": "turns appended before the time was up",
    "read.resume_ms": "a fresh process from its start to the state, imports and all",
    "read.load_ms": "open and load, imports done",
    "read.middle_ms": "the state as of the middle",
    "read.fork_ms": "a durable fork at the middle",
    "read.diff_ms": "what one turn in the middle changed",
    "read.files_first_ms": "files modified in the last 5 turns, asked for the first time",
    "read.files_ms": "the same, asked again",
    "read.memory_mb": "most memory of the process that resumed, MB",
    "together.turns_per_s": "durable turns per second of all sessions",
    "together.done": "turns acknowledged before the time was up",
    "together.cpu_us": "processor µs a turn",
    "together.errors": "turns refused",
    "together.wrong": "sessions with a wrong state",
    "same.done": "turns acknowledged, of four writers on one session",
    "same.errors": "turns refused",
    "same.lost": "acknowledged turns that the state does not show",
    "start.ms": "importing it, beyond an empty program",
    "start.memory_mb": "memory after that, MB",
}


class Sample(msgspec.Struct):
    """One number per round. The median is what is shown, the extremes tell how far to trust it."""

    values: list[float] = []

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)


class Finding(msgspec.Struct):
    """`size` is turns, sessions or writers; 0 where there is none."""

    contender: str
    what: str
    size: int
    rounds: dict[int, float] = {}

    @property
    def sample(self) -> Sample:
        return Sample(list(self.rounds.values()))


class Trouble(msgspec.Struct):
    """Something that is not a number: a wrong answer, a process that broke, an error that a contender raised."""

    contender: str
    what: str
    size: int
    kind: Literal["wrong", "failed", "raised", "stopped"]
    text: str


class About(msgspec.Struct):
    """A contender that took part."""

    name: str
    group: Group
    note: str
    settings: dict[str, str] = {}
    is_full: bool | None = None
    """Whether the settings say that an acknowledged turn survives a power cut."""


class Looking(msgspec.Struct):
    """A question only ours answers and what it takes, at one size."""

    what: str
    where: str
    cost: Sample
    unit: str = "ms"


class Part(msgspec.Struct):
    """A part of one append, in microseconds a turn, beside the same part of a bare loop. `level` 1 is inside the part
    above it."""

    name: str
    us: float
    bare_us: float | None = None
    level: int = 0


class Results(msgspec.Struct):
    """One run."""

    date: str
    command: str
    machine: dict[str, str]
    load: float
    """Processes that wanted a core in the minute before the run; its own start is one of them at most."""
    sync_us: Sample
    """An 8 KB append to a file and its sync: the unit everything durable is made of."""
    rounds: int = 0
    """Complete ones."""
    packages: dict[str, str] = {}
    about: list[About] = []
    findings: list[Finding] = []
    troubles: list[Trouble] = []
    looking: list[Looking] = []
    parts: list[Part] = []
    seconds: dict[str, float] = {}
    """What each step of a round took at last, to tell the next run how long it will be."""
    events_verified: int = 0
    is_cut: bool = False
    """Whether the run was stopped before its end."""

    def note(self, contender: str, what: str, size: int, number: int, value: float) -> None:
        """Keeps the value of one round."""
        found = self.find(contender, what, size)
        if found is None:
            found = Finding(contender, what, size, {})
            self.findings.append(found)
        found.rounds[number] = value

    def complain(self, trouble: Trouble) -> None:
        if trouble not in self.troubles:
            self.troubles.append(trouble)

    def stop(self, contender: str, size: int, text: str) -> None:
        """A contender whose time was up; one note for all rounds, that of the last."""
        self.troubles = [
            each for each in self.troubles if (each.contender, each.size, each.kind) != (contender, size, "stopped")
        ]
        self.troubles.append(Trouble(contender, "one", size, "stopped", text))

    def find(self, contender: str, what: str, size: int = 0) -> Finding | None:
        for each in self.findings:
            if each.contender == contender and each.what == what and each.size == size:
                return each
        return None

    def sample(self, contender: str, what: str, size: int = 0) -> Sample | None:
        found = self.find(contender, what, size)
        return None if found is None else found.sample

    def over_base(self, contender: str, what: str, size: int = 0) -> Sample | None:
        """The value over the base's in the same round."""
        own, base = self.find(contender, what, size), self.find(BASE, what, size)
        if own is None or base is None:
            return None
        both = [own.rounds[n] / base.rounds[n] for n in own.rounds if base.rounds.get(n)]
        return Sample(both) if both else None

    def trimmed(self) -> Results:
        """For a file: four digits are more than a round is worth, and of growth curves only the longest is drawn, by
        its medians."""
        longest: dict[str, int] = {}
        for each in self.findings:
            if each.what.startswith("curve."):
                length = int(each.what.removeprefix("curve."))
                longest[each.contender] = max(length, longest.get(each.contender, 0))
        kept = []
        for each in self.findings:
            rounds = each.rounds
            if each.what.startswith("curve."):
                if each.what != f"curve.{longest[each.contender]}":
                    continue
                rounds = {0: each.sample.median} if len(rounds) > 1 else rounds
            short = {number: float(f"{value:.4g}") for number, value in rounds.items()}
            kept.append(Finding(each.contender, each.what, each.size, short))
        return msgspec.structs.replace(self, findings=kept)

    def sizes(self, prefix: str) -> list[int]:
        return sorted({each.size for each in self.findings if each.what.startswith(prefix)})

    def wrong(self) -> list[Trouble]:
        return [trouble for trouble in self.troubles if trouble.kind == "wrong"]

    def trouble(self, contender: str, what: str, size: int, kinds: Iterable[str] = ()) -> Trouble | None:
        for each in self.troubles:
            is_it = (each.contender, each.what, each.size) == (contender, what, size)
            if is_it and (not kinds or each.kind in kinds):
                return each
        return None
