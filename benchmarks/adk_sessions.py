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


def measure(kind: type[AdkSqlite], turns: int) -> tuple[float, float, float]:
    """Turns a second, bytes a turn on disk, and the seconds that reading the session takes."""
    made = [make_turn(n) for n in range(1, turns + 1)]
    with tempfile.TemporaryDirectory() as place:
        contender = kind(place)
        start = time.perf_counter()
        for turn in made:
            contender.append(turn)
        rate = turns / (time.perf_counter() - start)
        start = time.perf_counter()
        state = contender.load()
        read = time.perf_counter() - start
        if state["turn"] != turns or len(state["messages"]) != turns:
            raise SystemExit(f"{kind.__name__} does not give back what it was given")
        contender.close()
        size = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file())
    return rate, size / turns, read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    best: dict[str, tuple[float, float, float]] = {}
    for _ in range(options.rounds):
        for name, kind in CONTENDERS.items():
            found = measure(kind, options.turns)
            known = best.get(name, found)
            best[name] = max(found[0], known[0]), found[1], min(found[2], known[2])
    first = best["ADK DatabaseSessionService"][0]
    print(f"{'':28}{'turns/s':>10}{'KB/turn':>10}{'read ms':>10}{'times':>8}")
    for name, (rate, size, read) in best.items():
        print(f"{name:28}{rate:>10.0f}{size / 1000:>10.1f}{read * 1000:>10.1f}{rate / first:>8.1f}")


if __name__ == "__main__":
    main()
