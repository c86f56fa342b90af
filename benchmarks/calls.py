"""What a recorded call costs: `python -m benchmarks.calls [--quick]`.

A function that does almost nothing is called bare, and as a tool with each effect; beside them one durable commit of a
bare sqlite3 loop with the same argument and result. All take turns within a round, so that a busy moment of the machine
hits all of them; ratios are made within a round. A pure call is one commit, a call with intent is two.

Then the beginning of a turn after a crash: in a short session, in one with many past calls, and where all of those were
made in the cut turn itself, which has to remember them; and what a call costs that is answered from the record.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec

import wakelog
from benchmarks import machine
from benchmarks.contenders import BareSqlite
from benchmarks.results import Sample
from benchmarks.scratch import FOLDER, empty_folder, time_plain_sync
from benchmarks.tables import table
from wakelog.model.events import Effect

P = ParamSpec("P")
T = TypeVar("T")

COMMIT = "one sqlite3 commit"
EFFECTS: tuple[Effect, ...] = ("pure", "read", "external")
PAST = 10_000
_IN_A_TURN = 10


class Size(msgspec.Struct, frozen=True):
    """How much is measured."""

    rounds: int
    calls: int
    """Of each kind, in a round."""
    openings: int


FULL = Size(rounds=15, calls=300, openings=9)
QUICK = Size(rounds=5, calls=100, openings=3)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description="what a recorded call costs")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--past", type=int, default=PAST, metavar="N", help="calls in the session that is opened again")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write; should be on a real disk")
    options = parser.parse_args(arguments)
    size = QUICK if options.quick else FULL
    for name, value in machine.describe().items():
        print(f"{name}: {value}")
    print(f"one write and sync of 8 KB: {time_plain_sync(options.folder) * 1e6:,.0f} µs\n")
    print(render_calls(measure_calls(size, options.folder)), "\n")
    print(render_openings(measure_openings(size, options.past, options.folder)))


def look(n: int) -> dict[str, Any]:
    """The function that is called: about what a small tool takes and gives."""
    return {"n": n, "text": "SESSION_TTL = 300"}


# A call


def measure_calls(size: Size, folder: Path) -> dict[str, list[float]]:
    """Seconds a call, by round."""
    times: dict[str, list[float]] = {}
    with empty_folder(folder) as here, wakelog.open(here / "store") as store:
        session, bare = store.session("calls"), BareSqlite(here)
        work: dict[str, Callable[[int], Any]] = {"bare": look, COMMIT: lambda n: bare.append({"n": n, **look(n)})}
        for effect in EFFECTS:
            work[effect] = session.tool(effect=effect, name=effect)(look)
        names = list(work)
        with session.turn("measure"):
            _time(work, names, 10, 0)
            for each in range(size.rounds):
                turned = names[each % len(names) :] + names[: each % len(names)]
                for name, taken in _time(work, turned, size.calls, (each + 1) * size.calls).items():
                    times.setdefault(name, []).append(taken)
        bare.close()
    return {name: times[name] for name in names}


def _time(work: dict[str, Callable[[int], Any]], names: list[str], count: int, first: int) -> dict[str, float]:
    taken = {}
    for name in names:
        function, start = work[name], time.perf_counter()
        for n in range(first, first + count):
            function(n)
        taken[name] = (time.perf_counter() - start) / count
    return taken


def render_calls(times: dict[str, list[float]]) -> str:
    rows = []
    for name, values in times.items():
        ratio = Sample([a / b for a, b in zip(values, times[COMMIT], strict=True)])
        over = Sample([(a - b) * 1e6 for a, b in zip(values, times["bare"], strict=True)])
        shown = name if name not in EFFECTS else f"recorded, {name}"
        per_call = f"{Sample([v * 1e6 for v in values]).median:,.1f}"
        spread = f"{ratio.median:.2f} ({ratio.low:.2f} – {ratio.high:.2f})"
        rows.append([shown, per_call, f"{over.median:,.1f}", spread])
    return table(["a call", "µs", "µs over bare", "× one sqlite3 commit"], rows)


# The beginning of a turn


def measure_openings(size: Size, past: int, folder: Path) -> dict[str, dict[str, Sample]]:
    """Milliseconds, by what lies behind the session."""
    few = f"{_IN_A_TURN} calls, in the cut turn"
    many = f"{past:,} calls, {_IN_A_TURN} of them in the cut turn"
    long = f"{past:,} calls, all in the cut turn"
    with empty_folder(folder) as here:
        for name, turns in ((few, [_IN_A_TURN]), (many, [_IN_A_TURN] * (past // _IN_A_TURN)), (long, [past])):
            _in_process(_leave_cut, here / "store", name, turns)
        found: dict[str, dict[str, list[float]]] = {}
        for _ in range(size.openings):
            for name in (few, many, long):
                for part, taken in _in_process(_opened, here / "store", name).items():
                    found.setdefault(name, {}).setdefault(part, []).append(taken)
    return {name: {part: Sample(values) for part, values in parts.items()} for name, parts in found.items()}


def _in_process(work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
    """Runs work in a process that ends then. A turn that is open in a living process is not taken over."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        return pool.submit(work, *args, **more).result()


def _leave_cut(path: Path, name: str, turns: list[int]) -> None:
    """A session whose last turn was never ended, as a dead process leaves it."""
    with wakelog.open(path) as store:
        session = store.session(name)
        tool = session.tool(effect="read")(look)
        for number, calls in enumerate(turns, start=1):
            turn = session.turn("work" if number == len(turns) else f"earlier work {number}")
            turn.__enter__()
            for n in range(calls):
                tool(n)
            if number < len(turns):
                turn.__exit__(None, None, None)


def _opened(path: Path, name: str) -> dict[str, float]:
    """One process after the crash, which dies too, so that the next one finds the same."""
    start = time.perf_counter()
    with wakelog.open(path) as store:
        session = store.session(name)
        tool = session.tool(effect="read")(look)
        is_there = time.perf_counter()
        turn = session.turn("work")
        turn.__enter__()
        begun = time.perf_counter()
        for n in range(_IN_A_TURN):
            tool(n)
        answered = time.perf_counter()
        assert turn.attempt > 1, "the turn was not continued"
        assert not any(e.kind == "action.started" for e in session.events(after=session.head.seq - _IN_A_TURN))
    parts = {"open": is_there - start, "turn": begun - is_there, "answer": (answered - begun) / _IN_A_TURN}
    return {part: taken * 1e3 for part, taken in parts.items()}


def render_openings(found: dict[str, dict[str, Sample]]) -> str:
    header = ["after a crash", "open, ms", "begin the turn, ms", "a call given again, ms"]
    return table(
        header,
        [
            [name, *(f"{parts[part].median:,.2f}" for part in ("open", "turn", "answer"))]
            for name, parts in found.items()
        ],
    )


if __name__ == "__main__":
    main()
