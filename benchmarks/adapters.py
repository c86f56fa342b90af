"""Our checkpointer for LangGraph beside LangGraph's own: the same graph, the same durability, in one run.

    python -m benchmarks.adapters [--turns 1000] [--quick] [--durability sync]

Both run the workload of `turns.py` through the framework, and so does a checkpointer that stores nothing and only holds
the newest checkpoint: what it takes is LangGraph's own. They take turns in small chunks, in shuffled order, because
the time of a sync drifts. After the run each must give back the reference state, or no figure is shown. Each row tells
of all turns up to that one, because a store that writes everything again gets slower with each turn. Processor time is
shown beside time: it tells the same on a busy machine. What a checkpointer adds to storing nothing is all that another
one can save, so the share that ours saves is shown too. Peers live in `.venv-bench`; `WAKELOG_PURE=1` leaves the native
core aside.
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
from wakelog.native import IN_USE

CHUNK = 20
DURABILITIES = ("sync", "async", "exit")
MARKS = (100, 400, 1000, 3000)


class LangGraphWakelog(LangGraphSqlite):
    """The same graph with our checkpointer."""

    def _open(self) -> Any:
        from wakelog.adapters.langgraph import WakelogSaver

        return WakelogSaver(Path(self.place) / "store")

    def settings(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self.saver.close()


class LangGraphNothing(LangGraphSqlite):
    """The same graph with a checkpointer that holds the newest checkpoint, and stores none."""

    def _open(self) -> Any:
        from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

        class HoldsOne(BaseCheckpointSaver):  # type: ignore[misc]  # untyped where LangGraph is not installed
            newest: Any = None

            def get_tuple(self, config: Any) -> Any:
                return self.newest

            def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
                place = {"thread_id": config["configurable"]["thread_id"], "checkpoint_ns": ""}
                told: Any = {"configurable": {**place, "checkpoint_id": checkpoint["id"]}}
                held = {**checkpoint, "channel_values": dict(checkpoint["channel_values"])}
                self.newest = CheckpointTuple(told, held, metadata, None, [])
                return told

            def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
                pass

            def get_next_version(self, current: Any, channel: None) -> Any:
                return 1 if current is None else int(current) + 1

        return HoldsOne()

    def settings(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        pass


CONTENDERS: tuple[tuple[str, type[LangGraphSqlite]], ...] = (
    ("langgraph-checkpoint-sqlite", LangGraphSqlite),
    ("WakelogSaver", LangGraphWakelog),
    ("nothing stored", LangGraphNothing),
)


class Measured:
    """One contender in the middle of its work."""

    def __init__(self, name: str, place: Path, contender: Contender) -> None:
        self.name = name
        self.place = place
        self.contender = contender
        self.times: list[float] = []
        self.processor_s: list[float] = []

    def append(self, first: int, last: int) -> None:
        for n in range(first, last + 1):
            turn = make_turn(n)
            start, spent = time.perf_counter(), time.process_time()
            self.contender.append(turn)
            self.times.append(time.perf_counter() - start)
            self.processor_s.append(time.process_time() - spent)

    def bytes_a_turn(self) -> float:
        return sum(each.stat().st_size for each in self.place.rglob("*") if each.is_file()) / len(self.times)

    def rate(self, upto: int) -> float:
        return upto / sum(self.times[:upto])

    def processor_ms(self, upto: int) -> float:
        return sum(self.processor_s[:upto]) / upto * 1e3


def contenders(durability: str, folder: Path) -> list[Measured]:
    made = []
    for name, home in CONTENDERS:
        place = folder / home.__name__
        place.mkdir()
        kind: Any = type(home.__name__, (home,), {"durability": durability})
        made.append(Measured(name, place, kind(str(place))))
    return made


def run(all_of_them: list[Measured], turns: int, tell: Callable[[str], None]) -> None:
    """Appends in chunks, then holds what each loads against the reference."""
    rng = random.Random(turns)
    for first in range(1, turns + 1, CHUNK):
        for each in rng.sample(all_of_them, len(all_of_them)):
            each.append(first, min(turns, first + CHUNK - 1))
        tell(f"turn {first:,} of {turns:,}")
    done = [make_turn(n) for n in range(1, turns + 1)]
    for each in all_of_them:
        check_state(each.contender, each.contender.load(), done)
        each.contender.close()
        for database in each.place.rglob("*.db"):  # so that what was written is in the file, and counted once
            with sqlite3.connect(database) as db:
                db.execute("pragma wal_checkpoint(truncate)")
            db.close()


def show(title: str, theirs: Measured, ours: Measured, nothing: Measured) -> None:
    turns = len(ours.times)
    print(f"\n{title}")
    print(f"{'turns':>7}{'':4}{'turns a second':^40}{'':4}{'processor ms a turn':^40}")
    heads = ("theirs", "ours", "nothing", "ratio")
    print(f"{'':11}{''.join(f'{head:>10}' for head in heads)}{'':4}{''.join(f'{head:>10}' for head in heads)}")
    for upto in [*(mark for mark in MARKS if mark < turns), turns]:
        rates = [each.rate(upto) for each in (theirs, ours, nothing)]
        spent = [each.processor_ms(upto) for each in (theirs, ours, nothing)]
        told = "".join(f"{number:10.1f}" for number in rates) + f"{rates[1] / rates[0]:9.2f}×"
        print(f"{upto:7,}{'':4}{told}{'':4}{''.join(f'{n:10.2f}' for n in spent)}{spent[0] / spent[1]:9.2f}×")
    for unit, costs in (
        ("time", [1 / each.rate(turns) for each in (theirs, ours, nothing)]),
        ("processor time", [each.processor_ms(turns) for each in (theirs, ours, nothing)]),
    ):
        saved = (costs[0] - costs[1]) / (costs[0] - costs[2])
        print(f"of the {unit} that theirs adds to storing nothing, ours saves {saved:.0%}")
    a, b = theirs.bytes_a_turn(), ours.bytes_a_turn()
    print(f"KB a turn: theirs {a / 1024:,.0f}, ours {b / 1024:,.1f}, which is 1/{a / b:,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="200 turns, one durability")
    parser.add_argument("--durability", choices=DURABILITIES, action="append")
    given = parser.parse_args()
    turns = 200 if given.quick else given.turns
    print(f"wakelog in {IN_USE}")
    for durability in given.durability or (DURABILITIES[:1] if given.quick else DURABILITIES):
        with ExitStack() as stack:
            folder = stack.enter_context(empty_folder(FOLDER))
            found = contenders(durability, folder)
            run(found, turns, lambda text: print(f"\r{text}   ", end="", file=sys.stderr, flush=True))
            show(f"LangGraph, durability {durability}", *found)


if __name__ == "__main__":
    main()
