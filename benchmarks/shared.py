"""Stores that many machines share: durable appends on PostgreSQL, beside the bare driver doing the same inserts.

    python -m benchmarks.shared [--quick] [--pair]

The bare driver inserts the bytes of each turn with asyncpg, one row and one transaction a turn, a task for each
session, over as many connections as our engine has. It checks nothing and seals nothing. Both run on the same server
in the same round, with its default durability (fsync on), interleaved. The server is started from the test suite's
wheel, on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import asyncpg
import msgspec

import wakelog
from benchmarks.workload import Turn, events_of, make_turns
from wakelog.engines.postgres.engine import POOL_MAX

TABLE = """create table if not exists bare (session text, turn bigint, data bytea, primary key (session, turn))"""
INSERT = "insert into bare (session, turn, data) values ($1::text, $2::bigint, $3::bytea)"
_encode = msgspec.json.Encoder().encode


def bare(url: str, turns: list[Turn], sessions: int, mark: str) -> float:
    """Turns per second of the bare driver."""

    async def run() -> float:
        async with asyncpg.create_pool(url, min_size=POOL_MAX, max_size=POOL_MAX) as pool:
            await pool.execute(TABLE)

            async def write(session: str) -> None:
                for turn in turns:
                    await pool.execute(INSERT, session, turn["n"], _encode(turn))

            start = time.perf_counter()
            await asyncio.gather(*(write(f"{mark}-{i}") for i in range(sessions)))
            return sessions * len(turns) / (time.perf_counter() - start)

    return asyncio.run(run())


def ours(url: str, turns: list[Turn], sessions: int, mark: str) -> float:
    """Turns per second through the library: sealed, chained, folded, one durable commit a turn."""
    with wakelog.open(url, redact=None) as store:
        logs = [store.log(f"{mark}-{i}") for i in range(sessions)]
        barrier = threading.Barrier(sessions + 1)

        def write(place: int) -> None:
            barrier.wait()
            for turn in turns:
                logs[place].append(*events_of(turn))

        threads = [threading.Thread(target=write, args=(i,)) for i in range(sessions)]
        for thread in threads:
            thread.start()
        barrier.wait()
        start = time.perf_counter()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - start
        assert all(log.head().turn == len(turns) for log in logs)
        return sessions * len(turns) / took


def _hear(follow: Iterator[Any], times: list[float]) -> None:
    next(follow)
    times.append(time.perf_counter())


def news(url: str, rounds: int) -> float:
    """Milliseconds from an append in one store object to its follower in another."""
    waits = []
    with wakelog.open(url) as here, wakelog.open(url) as there:
        session = here.session("news")
        follow = there.resume("news").follow(after=session.head.seq)
        for number in range(rounds):
            times: list[float] = []
            thread = threading.Thread(target=_hear, args=(follow, times))
            thread.start()
            time.sleep(0.02)
            session.fact("n", number)
            stored = time.perf_counter()
            thread.join()
            waits.append(max(0.0, times[0] - stored) * 1000)
    return statistics.median(waits)


def within(url: str, namespace: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}namespace={namespace}"


def measure(url: str, counts: list[int], total: int, rounds: int) -> None:
    turns = make_turns(total)
    print(f"{'sessions':>8}  {'bare/s':>9}  {'ours/s':>9}  ratio (median, spread)")
    for count in counts:
        share = turns[: max(3, total // count)]
        rates: defaultdict[str, list[float]] = defaultdict(list)
        for number in range(rounds):
            rates["bare"].append(bare(url, share, count, f"b{count}-{number}"))
            rates["ours"].append(ours(within(url, f"n{count}-{number}"), share, count, "s"))
        ratios = sorted(o / b for o, b in zip(rates["ours"], rates["bare"], strict=True))
        middle = statistics.median(ratios)
        bare_rate, our_rate = (statistics.median(rates[k]) for k in ("bare", "ours"))
        print(f"{count:>8}  {bare_rate:>9,.0f}  {our_rate:>9,.0f}  {middle:.2f}  ({ratios[0]:.2f}-{ratios[-1]:.2f})")
        sys.stdout.flush()
    print(f"news: {news(within(url, 'news'), 20):.1f} ms to a follower in the median")


def main() -> None:
    from tests.engines.postgres_server import Pair, Server

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pair", action="store_true", help="Also a synchronous pair.")
    options = parser.parse_args()
    counts, total, rounds = ([1, 16, 64], 192, 3) if options.quick else ([1, 16, 64, 256], 1024, 5)
    server = Server().create().start()
    try:
        print("one server")
        measure(server.url, counts, total, rounds)
    finally:
        server.stop()
    if options.pair:
        pair = Pair()
        try:
            print("a synchronous pair")
            measure(pair.url, counts, total, rounds)
        finally:
            pair.stop()


if __name__ == "__main__":
    main()
