"""One session of a given length: appending it, its size on disk, and reading it again.

Contenders take turns in small chunks, in an order shuffled for each chunk, because the time of a sync drifts by a
factor of several within seconds: only what ran side by side can be compared. What was appended is read in the same
round.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections import defaultdict
from pathlib import Path

from benchmarks.check import check_fork, check_log, check_state
from benchmarks.contenders import BASE, LOOPS, Contender, Kind, Wakelog
from benchmarks.results import Appending, Checked, Reading, Sample
from benchmarks.scratch import empty_folder
from benchmarks.workload import Turn, seq_after

_REPEATS = 5
"""How often one round opens and loads; the median counts."""

Round = dict[str, dict[str, float]]
"""contender → measure → value, of one round."""


def measure(turns: list[Turn], rounds: int, folder: Path) -> tuple[list[Appending], list[Reading], Checked]:
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    checked = Checked()
    for number in range(rounds):
        with empty_folder(folder) as here:
            for who, measures in _one_round(turns, here, random.Random(number), checked).items():
                for what, value in measures.items():
                    found[who, what].append(value)
    appending, reading = [], []
    for kind in LOOPS:
        samples = {what: Sample(values) for (who, what), values in found.items() if who == kind.name}
        appending.append(Appending(kind.name, len(turns), **_only(Appending, samples)))
        reading.append(Reading(kind.name, len(turns), **_only(Reading, samples)))
    return appending, reading, checked


def _only(struct: type, samples: dict[str, Sample]) -> dict[str, Sample]:
    return {name: sample for name, sample in samples.items() if name in struct.__annotations__}


def _one_round(turns: list[Turn], folder: Path, rng: random.Random, checked: Checked) -> Round:
    folders = {kind.name: folder / kind.name.replace(" ", "-") for kind in LOOPS}
    for each in folders.values():
        each.mkdir()
    found = _append(turns, folders, rng, checked)
    for kind in rng.sample(LOOPS, len(LOOPS)):
        measures = found[kind.name]
        size = sum(path.stat().st_size for path in folders[kind.name].iterdir())
        measures["bytes_per_turn"] = size / len(turns)
        measures |= _read(kind, folders[kind.name], turns, checked)
    return found


def _append(turns: list[Turn], folders: dict[str, Path], rng: random.Random, checked: Checked) -> Round:
    contenders = {kind.name: kind.open(folders[kind.name]) for kind in LOOPS}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    cpu = dict.fromkeys(contenders, 0.0)
    gc.collect()
    step = max(5, len(turns) // 50)
    for start in range(0, len(turns), step):
        chunk = turns[start : start + step]
        for name in rng.sample(list(contenders), len(contenders)):
            cpu[name] += _timed(contenders[name], chunk, times[name])
    for contender in contenders.values():
        checked.add(check_state(contender, turns))
        if isinstance(contender, Wakelog):
            checked.add(check_log(contender.log, turns))
        contender.close()
    base = sum(times[BASE])
    tenth = max(1, len(turns) // 10)
    return {
        name: {
            "ratio": base / sum(spent),
            "turns_per_s": len(turns) / sum(spent),
            "cpu_us": cpu[name] / len(turns) * 1e6,
            "first_tenth_us": statistics.mean(spent[:tenth]) * 1e6,
            "last_tenth_us": statistics.mean(spent[-tenth:]) * 1e6,
        }
        for name, spent in times.items()
    }


def _timed(contender: Contender, chunk: list[Turn], times: list[float]) -> float:
    """Appends a chunk, notes the time of each turn, and returns the processor time of all."""
    append, clock = contender.append, time.perf_counter
    before = time.process_time()
    for turn in chunk:
        start = clock()
        append(turn)
        times.append(clock() - start)
    return time.process_time() - before


def _read(kind: Kind, folder: Path, turns: list[Turn], checked: Checked) -> dict[str, float]:
    half = turns[: len(turns) // 2]
    clock = time.perf_counter
    load, middle = [], []
    for _ in range(_REPEATS):
        gc.collect()
        start = clock()
        contender = kind.open(folder)
        contender.load()
        load.append(clock() - start)
        contender.close()

    contender = kind.open(folder)
    place = contender.place_of(len(half), seq_after(half))
    for _ in range(_REPEATS):
        gc.collect()
        start = clock()
        contender.load(place)
        middle.append(clock() - start)
    checked.add(check_state(contender, half, place))

    gc.collect()
    start = clock()
    child = contender.fork(place)
    fork = clock() - start
    checked.add(check_fork(child, half))
    contender.close()
    return {
        "load_ms": statistics.median(load) * 1e3,
        "middle_ms": statistics.median(middle) * 1e3,
        "fork_ms": fork * 1e3,
    }
