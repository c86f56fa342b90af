"""Our stores for frameworks beside the frameworks' own: the same program, the same durability, in one run.

    python -m benchmarks.adapters [--turns 1000] [--quick] [--durability sync]

Both run the workload of `turns.py` through the framework. They take turns in small chunks, in shuffled order, because
the time of a sync drifts. After the run each must give back the reference state, or no figure is shown. Peers live in
`.venv-bench`. The rate of the last tenth is shown too: a store that writes everything again gets slower with each turn.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.check import check_state
from benchmarks.peers.langgraph import LangGraphSqlite
from benchmarks.protocol import Contender
from benchmarks.scratch import FOLDER, empty_folder
from benchmarks.turns import make_turn

CHUNK = 20
DURABILITIES = ("sync", "async", "exit")


class LangGraphWakelog(LangGraphSqlite):
    """The same graph with our checkpointer."""

    def _open(self) -> Any:
        from wakelog.adapters.langgraph import WakelogSaver

        return WakelogSaver(Path(self.place) / "store")

    def settings(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self.saver.close()


class Measured:
    """One contender on its way."""

    def __init__(self, name: str, place: Path, contender: Contender) -> None:
        self.name = name
        self.place = place
        self.contender = contender
        self.times: list[float] = []

    def append(self, first: int, last: int) -> None:
        for n in range(first, last + 1):
            turn = make_turn(n)
            start = time.perf_counter()
            self.contender.append(turn)
            self.times.append(time.perf_counter() - start)

    def bytes_a_turn(self) -> float:
        return sum(each.stat().st_size for each in self.place.rglob("*") if each.is_file()) / len(self.times)

    def rate(self, part: slice = slice(1, None)) -> float:
        times = self.times[part]
        return len(times) / sum(times)


def langgraph_pair(durability: str, folder: Path) -> tuple[Measured, Measured]:
    made = []
    for name, home in (("langgraph-checkpoint-sqlite", LangGraphSqlite), ("WakelogSaver", LangGraphWakelog)):
        place = folder / name
        place.mkdir()
        kind: Any = type(home.__name__, (home,), {"durability": durability})
        made.append(Measured(name, place, kind(str(place))))
    return made[0], made[1]


def run(pair: tuple[Measured, Measured], turns: int, tell: Callable[[str], None]) -> None:
    """Appends in chunks, then holds what each loads against the reference."""
    rng = random.Random(turns)
    for first in range(1, turns + 1, CHUNK):
        for each in rng.sample(pair, 2):
            each.append(first, min(turns, first + CHUNK - 1))
        tell(f"turn {first:,} of {turns:,}")
    done = [make_turn(n) for n in range(1, turns + 1)]
    for each in pair:
        check_state(each.contender, each.contender.load(), done)
        each.contender.close()
        for database in each.place.rglob("*.db"):  # so that what was written is in the file, and counted once
            with sqlite3.connect(database) as db:
                db.execute("pragma wal_checkpoint(truncate)")
            db.close()


def show(title: str, theirs: Measured, ours: Measured) -> None:
    last = slice(-max(1, len(ours.times) // 10), None)
    print(f"\n{title}, {len(ours.times):,} turns")
    for each in (theirs, ours):
        print(
            f"  {each.name:28} {each.rate():8.1f} turns/s {each.rate(last):8.1f} at the end"
            f" {each.bytes_a_turn() / 1024:9.1f} KB a turn"
        )
    faster, at_the_end = ours.rate() / theirs.rate(), ours.rate(last) / theirs.rate(last)
    smaller = theirs.bytes_a_turn() / ours.bytes_a_turn()
    print(f"  {'ours / theirs':28} {faster:7.1f} ×       {at_the_end:8.1f} ×           1/{smaller:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="200 turns, one durability")
    parser.add_argument("--durability", choices=DURABILITIES, action="append")
    given = parser.parse_args()
    turns = 200 if given.quick else given.turns
    for durability in given.durability or (DURABILITIES[:1] if given.quick else DURABILITIES):
        with ExitStack() as stack:
            folder = stack.enter_context(empty_folder(FOLDER))
            pair = langgraph_pair(durability, folder)
            run(pair, turns, lambda text: print(f"\r{text}   ", end="", file=sys.stderr, flush=True))
            show(f"LangGraph, durability {durability}", *pair)


if __name__ == "__main__":
    main()
