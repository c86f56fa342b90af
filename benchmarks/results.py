"""What a run found, as values that can be written to a file and read again."""

from __future__ import annotations

import statistics

import msgspec


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


class Appending(msgspec.Struct):
    """One session of `turns` turns, one durable commit each. Ratios are of turns per second, over the base."""

    contender: str
    turns: int
    ratio: Sample
    turns_per_s: Sample
    cpu_us: Sample
    first_tenth_us: Sample
    last_tenth_us: Sample
    bytes_per_turn: Sample


class Reading(msgspec.Struct):
    """A closed session of `turns` turns, opened again in the same process, with warm file caches."""

    contender: str
    turns: int
    load_ms: Sample
    middle_ms: Sample
    fork_ms: Sample


class Together(msgspec.Struct):
    """Several sessions at once, a thread each; turns per second are of all of them."""

    contender: str
    sessions: int
    ratio: Sample
    turns_per_s: Sample
    cpu_us: Sample
    failed: int
    """Turns that a busy store refused."""


class Recording(msgspec.Struct):
    """Turns recorded as they go on, several durable commits each."""

    contender: str
    ratio: Sample
    turns_per_s: Sample
    commits_per_s: Sample


class Startup(msgspec.Struct):
    """What a fresh interpreter takes for some code beyond what it takes for nothing."""

    code: str
    ms: Sample


class Looking(msgspec.Struct):
    """A question and what it takes, at one size."""

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


class Checked(msgspec.Struct):
    """What was verified after the timing, so that no number is of something that does not work."""

    logs: int = 0
    events: int = 0
    states: int = 0

    def add(self, other: Checked) -> None:
        self.logs += other.logs
        self.events += other.events
        self.states += other.states


class Results(msgspec.Struct):
    """One run."""

    date: str
    command: str
    rounds: int
    machine: dict[str, str]
    load: float
    """Processes that wanted a core in the minute before the run; its own start is one of them at most."""
    sync_us: Sample
    """An 8 KB append to a file and its sync: the unit everything durable is made of."""
    appending: list[Appending] = []
    reading: list[Reading] = []
    together: list[Together] = []
    recording: list[Recording] = []
    startup: list[Startup] = []
    looking: list[Looking] = []
    parts: list[Part] = []
    checked: Checked = msgspec.field(default_factory=Checked)
