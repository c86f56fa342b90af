"""Several sessions at once: a thread each, one process, one store. And one session recorded as it goes on.

The bare loop is written as plain programs are: a connection per thread and a busy timeout. One connection behind a lock
runs beside it, so that nobody need wonder.
"""

from __future__ import annotations

import gc
import random
import sqlite3
import threading
import time
from collections import defaultdict
from pathlib import Path

import apsw

from benchmarks.check import check_log, check_state
from benchmarks.contenders import BASE, FOR_SESSIONS, LOOPS, Contender, Kind, Wakelog
from benchmarks.results import Checked, Recording, Sample, Together
from benchmarks.scratch import empty_folder
from benchmarks.workload import COMMITS_FULLY_RECORDED, Turn, fold, summary_of

_BUSY = (sqlite3.OperationalError, apsw.BusyError)


def measure_together(turns: list[Turn], sessions: int, rounds: int, folder: Path) -> tuple[list[Together], Checked]:
    """`sessions` sessions at once, each appending all of `turns`."""
    rates: defaultdict[str, list[float]] = defaultdict(list)
    cpu: defaultdict[str, list[float]] = defaultdict(list)
    failed: defaultdict[str, int] = defaultdict(int)
    checked = Checked()
    for number in range(rounds):
        for kind in random.Random(number).sample(FOR_SESSIONS, len(FOR_SESSIONS)):
            with empty_folder(folder) as here:
                rate, spent, refused = _run_together(kind, turns, sessions, here, checked)
            rates[kind.name].append(rate)
            cpu[kind.name].append(spent)
            failed[kind.name] += refused
    found = [
        Together(
            kind.name,
            sessions,
            ratio=Sample([own / base for own, base in zip(rates[kind.name], rates[BASE], strict=True)]),
            turns_per_s=Sample(rates[kind.name]),
            cpu_us=Sample(cpu[kind.name]),
            failed=failed[kind.name],
        )
        for kind in FOR_SESSIONS
    ]
    return found, checked


def _run_together(
    kind: Kind, turns: list[Turn], sessions: int, folder: Path, checked: Checked
) -> tuple[float, float, int]:
    """Turns per second of all sessions, from the common start to the last one's end, processor microseconds a turn, and
    how many turns were refused."""
    contenders = kind.open_many(folder, sessions)
    barrier = threading.Barrier(sessions + 1)
    refused: list[int] = []
    errors: list[BaseException] = []

    def work(contender: Contender) -> None:
        barrier.wait()
        try:
            for turn in turns:
                try:
                    contender.append(turn)
                except _BUSY:
                    refused.append(turn["n"])
        except BaseException as exc:
            errors.append(exc)

    threads = [threading.Thread(target=work, args=(contender,)) for contender in contenders]
    for thread in threads:
        thread.start()
    gc.collect()
    barrier.wait()
    start, cpu = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.join()
    elapsed, cpu = time.perf_counter() - start, time.process_time() - cpu
    if errors:
        raise errors[0]
    if not refused:
        for contender in contenders:
            checked.add(check_state(contender, turns))
            if isinstance(contender, Wakelog):
                checked.add(check_log(contender.log, turns))
    for contender in contenders:
        contender.close()
    done = sessions * len(turns) - len(refused)
    return done / elapsed, cpu / done * 1e6, len(refused)


def measure_recording(turns: list[Turn], rounds: int, folder: Path) -> tuple[list[Recording], Checked]:
    """Turns with every call's intent durable before it and its outcome after; the bare loops sync as often."""
    rates: defaultdict[str, list[float]] = defaultdict(list)
    checked = Checked()
    for number in range(rounds):
        with empty_folder(folder) as here:
            for name, rate in _record(turns, here, random.Random(number), checked).items():
                rates[name].append(rate)
    found = [
        Recording(
            kind.name,
            ratio=Sample([own / base for own, base in zip(rates[kind.name], rates[BASE], strict=True)]),
            turns_per_s=Sample(rates[kind.name]),
            commits_per_s=Sample([rate * COMMITS_FULLY_RECORDED for rate in rates[kind.name]]),
        )
        for kind in LOOPS
    ]
    return found, checked


def _record(turns: list[Turn], folder: Path, rng: random.Random, checked: Checked) -> dict[str, float]:
    contenders: dict[str, Contender] = {}
    for kind in LOOPS:
        own = folder / kind.name.replace(" ", "-")
        own.mkdir()
        contenders[kind.name] = kind.open(own)
    spent = dict.fromkeys(contenders, 0.0)
    gc.collect()
    for start in range(0, len(turns), 5):
        for name in rng.sample(list(contenders), len(contenders)):
            record = contenders[name].record
            began = time.perf_counter()
            for turn in turns[start : start + 5]:
                record(turn)
            spent[name] += time.perf_counter() - began
    for contender in contenders.values():
        if isinstance(contender, Wakelog):
            assert summary_of(contender.load()) == fold(turns), "full recording leads to another state"
            checked.add(check_log(contender.log, turns, one_commit_each=False))
        contender.close()
    return {name: len(turns) / seconds for name, seconds in spent.items()}
