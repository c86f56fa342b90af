"""Durable steps: ours beside those of DBOS, in one run.

    python -m benchmarks.steps [--turns 200] [--postgres]

A turn of the workload (turns.py) is a DBOS workflow of four steps, the message and three calls of tools, that returns
what the turn changes (peers/dbos.py). Here it is `run_turn` with four calls. Both record the result of each step before
the next, so that after a crash a step that has ended is not run again, and a turn that is done is answered from the
record. With the effect `pure` a call is one commit, as a step is; with `external` its intent is durable before it runs,
which DBOS does not do. They take turns in small chunks, in shuffled order. After the run every turn is asked for again,
and must be answered from the record. Needs the environment of `make bench-venv`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import wakelog
from benchmarks.peers.dbos import DbosPostgres, DbosSqlite
from benchmarks.process import Places
from benchmarks.scratch import FOLDER, empty_folder
from benchmarks.turns import Turn, delta, make_turn
from wakelog.model.events import Effect
from wakelog.native import IN_USE

CHUNK = 10
STEPS = 4


class WakelogSteps:
    """The same four steps as calls of a session."""

    def __init__(self, place: str, effect: Effect) -> None:
        self._store = wakelog.open(place)
        self._session = self._store.session(f"steps-{effect}")
        self.runs = 0

        @self._session.tool(effect=effect)
        def say(message: Any) -> Any:
            self.runs += 1
            return message

        @self._session.tool(effect=effect)
        def call_tool(call: Any) -> Any:
            self.runs += 1
            return {"id": call["id"], "output": call["output"], "summary": call["summary"]}

        self._say, self._call_tool = say, call_tool

    def append(self, turn: Turn) -> Any:
        return self._session.run_turn(f"turn-{turn['n']:06d}", lambda _: self._play(turn))

    def _play(self, turn: Turn) -> Any:
        self._say(turn["message"])
        for call in turn["tools"]:
            self._call_tool(call)
        return delta(turn)

    def check(self, turns: list[Turn]) -> None:
        ran = self.runs
        if ran != STEPS * len(turns) or any(self.append(turn) != delta(turn) for turn in turns) or self.runs != ran:
            raise SystemExit("wakelog does not answer a turn from the record")

    def close(self) -> None:
        self._store.close()


class DbosSteps:
    def __init__(self, contender: DbosSqlite) -> None:
        self._contender = contender
        self.append = contender.append
        self.close = contender.close

    def check(self, turns: list[Turn]) -> None:
        if self._contender._changes() != [delta(turn) for turn in turns]:
            raise SystemExit("DBOS does not answer a turn from the record")


class Measured:
    """One contender in the middle of its work."""

    def __init__(self, contender: Any) -> None:
        self.contender = contender
        self.time_s = self.processor_s = 0.0

    def append(self, turns: list[Turn]) -> None:
        start, spent = time.perf_counter(), time.process_time()
        for turn in turns:
            self.contender.append(turn)
        self.time_s += time.perf_counter() - start
        self.processor_s += time.process_time() - spent


def run(contenders: dict[str, Any], turns: int, tell: Callable[[str], None]) -> dict[str, Measured]:
    made = [make_turn(n) for n in range(1, turns + 1)]
    measured = {name: Measured(contender) for name, contender in contenders.items()}
    rng = random.Random(turns)
    for each in measured.values():
        each.append(made[:1])  # what is done once: imports, tables, expressions
        each.time_s = each.processor_s = 0.0
    for first in range(1, turns, CHUNK):
        for each in rng.sample(list(measured.values()), len(measured)):
            each.append(made[first : first + CHUNK])
        tell(f"turn {first:,} of {turns:,}")
    for each in measured.values():
        each.contender.check(made)
        each.contender.close()
    return measured


def show(title: str, measured: dict[str, Measured], turns: int) -> None:
    print(f"\n{title}, {turns:,} turns of {STEPS} steps")
    print(f"{'':24}{'steps a second':>16}{'ratio':>8}{'processor ms a step':>22}{'ratio':>8}")
    first = next(iter(measured.values()))
    for name, each in measured.items():
        steps = (turns - 1) * STEPS
        print(
            f"{name:24}{steps / each.time_s:16,.0f}{first.time_s / each.time_s:7.1f}×"
            f"{each.processor_s / steps * 1e3:22.2f}{first.processor_s / each.processor_s:7.1f}×"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--postgres", action="store_true", help="also on a PostgreSQL server, started for this")
    given = parser.parse_args()
    print(f"wakelog in {IN_USE}")
    for on_postgres in (False, True) if given.postgres else (False,):
        with ExitStack() as stack:
            folder = stack.enter_context(empty_folder(FOLDER))
            peer: DbosSqlite
            if on_postgres:
                places = Places(folder)
                stack.callback(places.close)
                theirs, ours = (stack.enter_context(places.database()) for _ in range(2))
                peer = DbosPostgres(theirs)
            else:
                (folder / "dbos").mkdir()
                peer, ours = DbosSqlite(str(folder / "dbos")), str(folder / "ours")
            contenders = {
                "DBOS": DbosSteps(peer),
                "wakelog, pure": WakelogSteps(ours, "pure"),
                "wakelog, external": WakelogSteps(ours, "external"),
            }
            found = run(contenders, given.turns, lambda text: print(f"\r{text}   ", end="", file=sys.stderr))
            show("PostgreSQL" if on_postgres else "SQLite", found, given.turns)


if __name__ == "__main__":
    main()
