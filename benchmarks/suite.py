"""One run: which measurements, at which sizes, in which order.

A round measures everything once; rounds are repeated. So a run that is stopped has whole rounds of everything, and a
slow hour of the machine is spread over all. A contender that did not reach the end of a length within its time is not
sent to the longer ones, and not often again to this one.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import time
import traceback
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import msgspec

from benchmarks import looking, many_sessions, one_session, profiling, startup
from benchmarks.kinds import BASE, OURS, Kind
from benchmarks.machine import describe
from benchmarks.one_session import Late, Length
from benchmarks.process import Places, Round
from benchmarks.results import About, Results, Sample, Trouble
from benchmarks.scratch import empty_folder, time_plain_sync
from benchmarks.turns import BLOCK, make_turns, read_turns
from benchmarks.worker import error_text

Say = Callable[[str], None]
_QUIET_S = 15


class Size(msgspec.Struct, frozen=True):
    """How much is run."""

    rounds: int
    lengths: tuple[Length, ...]
    sessions: tuple[int, ...]
    together_turns: int
    """Turns of all sessions of one run together."""
    together_cap_s: float
    many: int
    """Sessions of one turn, for looking; none, and there is no looking."""
    parts_turns: int = 0
    same_rounds: int = 3
    """For counting errors, not times."""
    minutes: float = 1e9
    """No round begins that would end later."""


FULL = Size(
    rounds=5,
    lengths=(
        Length(100, 10, rounds_read=2),
        Length(1_000, 4, rounds_read=3),
        Length(10_000, 15, rounds_if_slow=1),
        # For the plots: whose cost grows is known by then, and does not get here.
        Length(100_000, 100, rounds=1, only=(BASE, OURS)),
    ),
    sessions=(8, 64),
    together_turns=640,
    together_cap_s=1.5,
    many=20_000,
    parts_turns=1_000,
)
QUICK = Size(
    rounds=3,
    lengths=(Length(100, 5, rounds_read=0), Length(1_000, 5)),
    sessions=(8,),
    together_turns=640,
    together_cap_s=1.5,
    many=0,
)
QUICK_KINDS = ("bare sqlite3", "bare file", "bare sqlite3, 8 commits", "wakelog", "wakelog, full recording")


class Progress:
    """Tells what is going on and how long it may still take, by what each step took when it last ran."""

    def __init__(self, steps: list[str], rounds: int, known: dict[str, float], say: Say) -> None:
        self._steps, self._rounds, self._say = steps, rounds, say
        self.seconds = {step: known[step] for step in steps if step in known}
        self._began = self._told = 0.0
        self._step = ""

    def begin(self, step: str, number: int) -> None:
        self._began = self._told = time.monotonic()
        self._step = f"round {number + 1} of {self._rounds}, {step}"
        self._say(f"{self._step}; {self._left(step, number)}")

    def tell(self, what: str) -> None:
        """Who is at work, now and then."""
        if time.monotonic() - self._told > _QUIET_S:
            self._told = time.monotonic()
            self._say(f"{self._step}: {what}")

    def end(self, step: str) -> None:
        self.seconds[step] = time.monotonic() - self._began

    def _left(self, step: str, number: int) -> str:
        to_come = [*self._steps[self._steps.index(step) :], *self._steps * (self._rounds - number - 1)]
        if any(each not in self.seconds for each in to_come):
            return "how long it takes is known after the first round"
        return f"about {sum(self.seconds[each] for each in to_come) / 60:.0f} min left in the rounds"


def run(
    size: Size,
    kinds: list[Kind],
    folder: Path,
    *,
    command: str,
    say: Say,
    keep: Callable[[Results], None] = lambda results: None,
    known: dict[str, float] | None = None,
    before: Results | None = None,
) -> Results:
    """Measures everything and checks what was measured. Ctrl-C ends it early; what there is by then is given. `keep`
    gets it after each round. `before` is a run of the same contenders that this one adds rounds to."""
    say("making the workload")
    longest = max(length.turns for length in size.lengths)
    most = max(longest, size.together_turns, size.parts_turns)
    for first in range(1, most + 1, BLOCK):
        read_turns(first, min(first + BLOCK - 1, most))  # kept on disk; all of them would not fit into memory
    results = before or Results(
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        command=command,
        machine=describe(),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
        sync_us=Sample([time_plain_sync(folder) * 1e6]),
        packages={package: version(package) for package in sorted({p for kind in kinds for p in kind.packages})},
        about=[About(kind.name, kind.group, kind.note) for kind in kinds],
    )
    try:
        with empty_folder(folder) as here:
            here.chmod(0o755)  # the PostgreSQL server may run as another user
            places = Places(here)
            try:
                with _surviving("run", 0, results, say):
                    _rounds(size, kinds, places, folder, results, say, keep, known or {})
            finally:
                places.close()
            if before is None and any(kind.name == OURS for kind in kinds):
                _ours(size, folder, results, say)
    except KeyboardInterrupt:
        say("stopped; what was measured so far follows")
        results.is_cut = True
    return results


def _rounds(
    size: Size,
    kinds: list[Kind],
    places: Places,
    folder: Path,
    results: Results,
    say: Say,
    keep: Callable[[Results], None],
    known: dict[str, float],
) -> None:
    lengths = {f"one session of {length.turns:,} turns": length for length in size.lengths}
    crowds = {f"{sessions} sessions at once": sessions for sessions in size.sessions}
    same, starting = "four writers on one session", "starting up"
    steps = [*lengths, *crowds, same, starting]
    progress = Progress(steps, size.rounds, known, say)
    late = {length.turns: Late() for length in size.lengths}
    for each in results.troubles:
        if each.kind == "stopped" and each.size in late:
            late[each.size].stopped.add(each.contender)
    began, first = time.monotonic(), results.rounds
    for number in range(first, size.rounds):
        if number > first and time.monotonic() - began + sum(progress.seconds.values()) > size.minutes * 60:
            say(f"{number} rounds are what {size.minutes:g} minutes allow")
            return
        now = Round(number, places, results, progress.tell)
        for step in steps:
            progress.begin(step, number)
            if step in lengths:
                length = lengths[step]
                able = [kind for kind in kinds if _may_run(kind, length, number, late)]
                new = one_session.measure(able, length, now) if able else Late()
                late[length.turns].slow |= new.slow
                late[length.turns].stopped |= new.stopped
            elif step in crowds:
                share = max(1, size.together_turns // crowds[step])
                many_sessions.measure_together(kinds, crowds[step], share, size.together_cap_s, now)
            elif step == same and number < size.same_rounds:
                many_sessions.measure_same(kinds, now)
            elif step == starting:
                startup.measure(kinds, now, folder)
            progress.end(step)
        if number:
            results.sync_us.values.append(time_plain_sync(folder) * 1e6)
        results.rounds = number + 1
        results.seconds = progress.seconds
        keep(results)


def _may_run(kind: Kind, length: Length, number: int, late: dict[int, Late]) -> bool:
    name = kind.reads or kind.name
    if number >= length.rounds or (length.only and name not in length.only):
        return False
    if any(name in each.stopped for turns, each in late.items() if turns < length.turns):
        return False
    return name not in late[length.turns].slow or number < length.rounds_if_slow


def _ours(size: Size, folder: Path, results: Results, say: Say) -> None:
    """What only we have: questions to a log, and the parts of an append."""
    times = min(3, results.rounds)
    for length in [each for each in size.lengths if not each.only][-2:] if size.many else ():
        say(f"looking at {length.turns:,} turns")
        with _surviving("looking", length.turns, results, say):
            results.looking += looking.measure_long(make_turns(length.turns), times, folder)
    if size.many:
        say(f"looking at {size.many:,} sessions")
        with _surviving("looking", size.many, results, say):
            results.looking += looking.measure_many(make_turns(1), size.many, times, folder)
    if size.parts_turns:
        say("the parts of an append")
        with _surviving("parts", size.parts_turns, results, say):
            results.parts = profiling.break_down(make_turns(size.parts_turns), folder)


@contextlib.contextmanager
def _surviving(what: str, size: int, results: Results, say: Say) -> Iterator[None]:
    """Half an hour of measuring is not thrown away for what comes after it: an error is reported and kept."""
    try:
        yield
    except Exception as exc:
        say("".join(traceback.format_exception(exc)))
        results.complain(Trouble(OURS, what, size, "failed", error_text(exc)))
