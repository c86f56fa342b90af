"""Sessions of the OpenAI Agents SDK: ours beside theirs, as the SDK's runner uses them.

For each turn the runner reads the whole history, saves the user's input, and saves what the model and the tools gave.
Both do that here, in one process, turn by turn in alternation, so that a noisy machine is noisy for both. Both are
durable: WAL with a full sync for every `add_items`. Needs the environment of `make bench-venv`:

    python -m benchmarks.agents_sessions            200 turns, as a table
    python -m benchmarks.agents_sessions 1000
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.openai_agents import items_of
from benchmarks.turns import make_turn

TURNS = 200


async def one_turn(session: Any, items: list[dict[str, Any]]) -> int:
    """What the runner does with a session in a turn; how many items it read."""
    history = await session.get_items()
    await session.add_items(items[:1])
    await session.add_items(items[1:])
    return len(history)


async def run(turns: int) -> dict[str, dict[str, float]]:
    """Seconds and bytes of both for so many turns."""
    from agents import SQLiteSession

    import wakelog
    from wakelog.adapters.openai_agents import WakelogSession

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        theirs = SQLiteSession("bench", place / "theirs.db")
        store = wakelog.open(place / "ours", redact=None)
        sessions: dict[str, Any] = {"theirs": theirs, "ours": WakelogSession("bench", store)}
        spent = dict.fromkeys(sessions, 0.0)
        for number in range(1, turns + 1):
            items = items_of(make_turn(number))
            for name, session in sessions.items():
                started = time.perf_counter()
                read = await one_turn(session, items)
                spent[name] += time.perf_counter() - started
                assert read == (number - 1) * len(items)
        opened: dict[str, float] = {}
        again: dict[str, Any] = {
            "theirs": SQLiteSession("bench", place / "theirs.db"),
            "ours": WakelogSession("bench", store),
        }
        whole = {}
        for name, session in again.items():
            started = time.perf_counter()
            whole[name] = await session.get_items()
            opened[name] = time.perf_counter() - started
        assert whole["ours"] == whole["theirs"]
        for each in (theirs, again["theirs"]):
            each.close()
        store.close()
        sizes = {
            "theirs": sum(p.stat().st_size for p in place.glob("theirs.db*")),
            "ours": sum(p.stat().st_size for p in (place / "ours").rglob("*") if p.is_file()),
        }
    return {
        name: {"turns_s": turns / spent[name], "open_ms": opened[name] * 1e3, "bytes_a_turn": sizes[name] / turns}
        for name in sessions
    }


def main(argv: list[str]) -> int:
    turns = int(argv[0]) if argv else TURNS
    found = asyncio.run(run(turns))
    print(f"{turns} turns      turns a second   first read (ms)   bytes a turn")
    for name, told in found.items():
        print(f"{name:<14}{told['turns_s']:>15,.1f}{told['open_ms']:>18,.1f}{told['bytes_a_turn']:>15,.0f}")
    print(f"ours / theirs: {found['ours']['turns_s'] / found['theirs']['turns_s']:.2f} x turns a second")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
