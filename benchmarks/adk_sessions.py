"""wakelog's session service for Google ADK beside ADK's own, on the same workload, in one run.

    python -m benchmarks.adk_sessions               300 turns each, best of 3 rounds
    python -m benchmarks.adk_sessions --turns 50 --rounds 1

Each turn is three events, as ADK's runner appends them (peers/adk.py). The rounds take turns, so that a machine that
gets slower does so for all. Needs the environment of `make bench-venv`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.adk import AdkDatabase, AdkSqlite
from benchmarks.protocol import Settings
from benchmarks.turns import make_turn


class AdkWakelog(AdkSqlite):
    """The same calls of the same interface, with wakelog behind them."""

    def _serve(self) -> Any:
        from wakelog.adapters.adk import WakelogSessionService

        return WakelogSessionService(self._file())

    def settings(self) -> Settings:
        return {"journal_mode": "wal", "synchronous": "full"}


CONTENDERS: dict[str, type[AdkSqlite]] = {
    "ADK DatabaseSessionService": AdkDatabase,
    "ADK SqliteSessionService": AdkSqlite,
    "wakelog": AdkWakelog,
}


def measure(kind: type[AdkSqlite], turns: int) -> tuple[float, float, float, float, float]:
    """Turns a second, bytes a turn on disk, the seconds that reading the session takes; and the seconds of processor
    time that a turn and the reading take, which tell the same on a busy machine."""
    made = [make_turn(n) for n in range(1, turns + 1)]
    with tempfile.TemporaryDirectory() as place:
        contender = kind(place)
        start, spent = time.perf_counter(), time.process_time()
        for turn in made:
            contender.append(turn)
        rate, work = turns / (time.perf_counter() - start), (time.process_time() - spent) / turns
        start, spent = time.perf_counter(), time.process_time()
        state = contender.load()
        read, read_work = time.perf_counter() - start, time.process_time() - spent
        if state["turn"] != turns or len(state["messages"]) != turns:
            raise SystemExit(f"{kind.__name__} does not give back what it was given")
        contender.close()
        size = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file())
    return rate, size / turns, read, work, read_work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    best: dict[str, tuple[float, float, float, float, float]] = {}
    for _ in range(options.rounds):
        for name, kind in CONTENDERS.items():
            found = measure(kind, options.turns)
            known = best.get(name, found)
            best[name] = max(found[0], known[0]), *map(min, found[1:], known[1:])  # type: ignore[assignment]
    first = best["ADK DatabaseSessionService"]
    columns = ("turns/s", "times", "KB/turn", "read ms", "cpu ms/turn", "times", "cpu ms/read")
    print(f"{'':28}{''.join(f'{column:>13}' for column in columns)}")
    for name, (rate, size, read, work, read_work) in best.items():
        shown = (rate, rate / first[0], size / 1000, read * 1e3, work * 1e3, first[3] / work, read_work * 1e3)
        print(f"{name:28}{''.join(f'{number:13.1f}' for number in shown)}")


if __name__ == "__main__":
    main()
