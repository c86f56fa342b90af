"""A long run of one process, and whether it grows: `python -m benchmarks.soak --minutes 60`.

Four sessions take turns in threads, as in a server: each appends the workload's turns, and begins a new session every
500. Beside them one more thread does what people do: it catches up with the index, searches, loads the state of a
session, diffs its last turn. Every few seconds a sample is taken: memory, open files, threads, and what an append, a
state and a search took since the last one, in wall and in processor time of the thread that did it.

What it tells are slopes: a straight line is laid through the samples after the first tenth, in which caches fill. A
process that leaks has a slope of memory that stays, whatever the length of the run; one that gets slower has one of
latency. Wall times say as much about the machine's other work as about us, so look at processor time first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import wakelog
from benchmarks.machine import describe
from benchmarks.scratch import FOLDER, empty_folder
from benchmarks.tables import number, table
from benchmarks.workload import events_of, make_turns

WRITERS = 4
TURNS_A_SESSION = 500
PAUSE_S = 0.02
"""Between two turns of a session, and two looks: a machine at its limit shows how it is shared, not whether we grow."""
_SETTLED = 10
"""The first of so many parts of a run is left out: imports, caches and the first files are in it."""


class Spent(msgspec.Struct):
    """Times of one kind of work since the last sample, in seconds."""

    wall: list[float] = []
    cpu: list[float] = []


class SoakSample(msgspec.Struct, frozen=True):
    at_s: float
    values: dict[str, float]


class Soak:
    """The threads, and what they took."""

    def __init__(self, store: wakelog.Store) -> None:
        self.store = store
        self.turns = make_turns(TURNS_A_SESSION)
        self.spent: dict[str, Spent] = {}
        self.done = 0
        self.errors: list[BaseException] = []
        self._over = threading.Event()
        self._newest: wakelog.Session[Any] | None = None
        self._lock = threading.Lock()

    def run(self, seconds: float, every_s: float, say: Callable[[str], None]) -> list[SoakSample]:
        works = [*(lambda i=i: self._write(i) for i in range(WRITERS)), self._look]
        threads = [threading.Thread(target=self._guarded, args=(work,), daemon=True) for work in works]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        samples: list[SoakSample] = []
        try:
            while not self.errors and time.monotonic() - began < seconds:
                self._over.wait(min(every_s, max(0.0, seconds - (time.monotonic() - began))))
                samples.append(SoakSample(time.monotonic() - began, self._sampled()))
                say(f"{samples[-1].at_s:6.0f} s  {self.done:8,} turns  {samples[-1].values['memory, MB']:6.1f} MB")
        except KeyboardInterrupt:
            say("stopped; what was measured so far follows")
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        if self.errors:
            raise self.errors[0]
        return samples

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as exc:
            self.errors.append(exc)
            self._over.set()

    def _write(self, writer: int) -> None:
        number = 0
        while not self._over.is_set():
            session = self.store.session(f"soak-{writer}-{number}")
            number += 1
            self._newest = session
            for turn in self.turns:
                self._timed("append", lambda session=session, turn=turn: session.append(*events_of(turn)))  # type: ignore[misc]
                self.done += 1
                if self._over.wait(PAUSE_S):
                    return

    def _look(self) -> None:
        while not self._over.wait(PAUSE_S):
            session = self._newest
            if session is None or session.head.turn < 2:
                continue
            self._timed("catch up", self.store.index.catch_up)
            self._timed("search", lambda: self.store.index.search("session retry"))
            self._timed("load a state", lambda session=session: self.store.resume(session.id).log.state())  # type: ignore[misc]
            self._timed("diff", lambda session=session: session.diff())  # type: ignore[misc]

    def _timed(self, name: str, work: Callable[[], object]) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        work()
        took = time.perf_counter() - wall, time.thread_time() - cpu
        with self._lock:
            spent = self.spent.setdefault(name, Spent())
            spent.wall.append(took[0])
            spent.cpu.append(took[1])

    def _sampled(self) -> dict[str, float]:
        with self._lock:
            spent, self.spent = self.spent, {}
        found = {"memory, MB": memory_mb(), "threads": float(threading.active_count())}
        if (files := _open_files()) is not None:
            found["open files"] = files
        for name, times in sorted(spent.items()):
            found[f"{name}, ms of processor"] = statistics.median(times.cpu) * 1e3
            found[f"{name}, ms"] = statistics.median(times.wall) * 1e3
            if name == "append":
                found[f"{name}, slowest of a hundred, ms"] = statistics.quantiles(times.wall, n=100)[-1] * 1e3
        return found


def memory_mb() -> float:
    """What the process has now; where the system does not tell, the most it had."""
    try:
        with open("/proc/self/status", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    from benchmarks.memory import peak_mb

    return peak_mb()


def _open_files() -> float | None:
    try:
        return float(len(os.listdir("/proc/self/fd")))
    except OSError:
        return None


def slope(points: list[tuple[float, float]]) -> float:
    """Of the straight line through points, per hour."""
    if len({x for x, _ in points}) < 2:
        return 0.0
    return statistics.linear_regression(*zip(*points, strict=True)).slope * 3600


def report(samples: list[SoakSample]) -> str:
    """Each value: in the first part of the settled run, in the last, and its slope."""
    settled = samples[len(samples) // _SETTLED :]
    part = max(1, len(settled) // 5)
    rows = []
    for name in dict.fromkeys(name for sample in settled for name in sample.values):
        points = [(sample.at_s, sample.values[name]) for sample in settled if name in sample.values]
        first, last = (statistics.median(v for _, v in some) for some in (points[:part], points[-part:]))
        grows = slope(points)
        rows.append([name, number(first), number(last), f"{grows:+.3g}", f"{grows / first:+.1%}" if first else ""])
    return table(["what", "first fifth", "last fifth", "slope an hour", "of the first"], rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak", description="a long run of one process, and the slopes of memory and latency"
    )
    parser.add_argument("--minutes", type=float, default=60, help="how long")
    parser.add_argument("--every", type=float, metavar="SECONDS", help="between two samples (default: a 120th)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write; should be on a real disk")
    options = parser.parse_args(arguments)
    seconds = options.minutes * 60
    every = options.every or max(1.0, seconds / 120)
    with empty_folder(options.folder) as here, wakelog.open(here / "store") as store:
        soak = Soak(store)
        samples = soak.run(seconds, every, lambda line: print(line, file=sys.stderr, flush=True))
    for name, value in describe().items():
        print(f"{name}: {value}")
    print(f"{samples[-1].at_s / 60:.1f} minutes, {soak.done:,} turns, {len(samples)} samples\n")
    print(report(samples))


if __name__ == "__main__":
    main()
