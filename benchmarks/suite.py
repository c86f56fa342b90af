"""One run: which measurements, at which sizes, in which order."""

from __future__ import annotations

import datetime
import gc
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks import looking, many_sessions, one_session, profiling, startup
from benchmarks.machine import describe
from benchmarks.results import Results, Sample
from benchmarks.scratch import time_plain_sync
from benchmarks.workload import make_turns


class Size(msgspec.Struct, frozen=True):
    """How much is run."""

    rounds: int
    lengths: tuple[int, ...]
    sessions: tuple[int, ...]
    together_turns: int
    """Turns of all sessions of one run together."""
    recording_turns: int
    starts: int
    many: int
    """Sessions of one turn, for looking."""
    parts_turns: int = 1_000
    short_factor: int = 3
    """Short sessions are measured in that many times more rounds, because they are noisier."""


FULL = Size(5, (100, 1_000, 10_000), (1, 8, 64), together_turns=1_600, recording_turns=200, starts=15, many=1_000)
QUICK = Size(3, (100, 1_000), (1, 8, 64), together_turns=640, recording_turns=60, starts=7, many=200)
_SHORT = 100


def run(size: Size, folder: Path, *, command: str, parts: bool, say: Callable[[str], None]) -> Results:
    """Measures everything and checks what was measured; raises when anything is wrong."""
    say("making the workload")
    turns = make_turns(max(*size.lengths, size.together_turns, size.recording_turns, size.parts_turns))
    # The workload belongs to no contender: without this, the collector would walk it while they are timed.
    gc.collect()
    gc.freeze()
    try:
        results = Results(
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
            command=command,
            rounds=size.rounds,
            machine=describe(),
            load=os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
            sync_us=Sample([time_plain_sync(folder) * 1e6 for _ in range(size.rounds)]),
        )
        for length in size.lengths:
            say(f"one session of {length:,} turns")
            rounds = size.rounds * (size.short_factor if length <= _SHORT else 1)
            appending, reading, checked = one_session.measure(turns[:length], rounds, folder)
            results.appending += appending
            results.reading += reading
            results.checked.add(checked)
        for sessions in size.sessions:
            say(f"{sessions} sessions at once")
            share = turns[: max(1, size.together_turns // sessions)]
            together, checked = many_sessions.measure_together(share, sessions, size.rounds, folder)
            results.together += together
            results.checked.add(checked)
        say("full recording")
        results.recording, checked = many_sessions.measure_recording(turns[: size.recording_turns], size.rounds, folder)
        results.checked.add(checked)
        say("starting up")
        results.startup = startup.measure(size.starts, folder)
        for length in size.lengths:
            say(f"looking at {length:,} turns")
            results.looking += looking.measure_long(turns[:length], size.rounds, folder)
        say(f"looking at {size.many:,} sessions")
        results.looking += looking.measure_many(turns, size.many, size.rounds, folder)
        if parts:
            say("the parts of an append")
            results.parts = profiling.break_down(turns[: size.parts_turns], folder)
        return results
    finally:
        gc.unfreeze()
