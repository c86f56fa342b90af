"""Stores that many machines share: PostgreSQL and a synchronous pair, beside the bare driver doing the same inserts.

    python -m benchmarks.shared [--quick] [--pair] [--growth] [--only appends|growth] [--folder /dev/shm]

The bare driver inserts the bytes of each turn with asyncpg, one row and one transaction a turn, a task for each
session, over as many connections as our engine has, which go back to the pool as they are, like ours. It checks nothing
and seals nothing. SQLite stands beside a bare apsw loop: one row and one transaction a turn, full sync, a thread and a
connection for each session would only wait for each other, so one does all. Both of a pair run in the same round,
interleaved, at default durability (fsync on), and in both the first turn of each session is stored before the clock
runs. The servers are started from the test suite's wheel, on loopback.

Beside the rates stand the processor time of the client's process, and how long the quickest tenth of the appends took:
on a busy machine these are the ones that were not interrupted. A folder in memory leaves the disk out.

Growth fills a store with small sessions and measures the same questions at each size. The sessions are copies of one
that was sealed, under ids of their own: a chain does not name its session.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import asyncpg
import msgspec

import wakelog
from benchmarks.workload import Turn, events_of, make_turns
from wakelog.engines.postgres import PostgresEngine
from wakelog.engines.postgres.connections import POOL_MAX
from wakelog.maintenance.info import info
from wakelog.model.ids import root_id
from wakelog.store import Store

TABLE = """create table if not exists bare (session text, turn bigint, data bytea, primary key (session, turn))"""
WANTED = {1: 0.7, 64: 0.9}
"""At so many sessions, of the bare driver's rate: what PostgreSQL should keep."""
INSERT = "insert into bare (session, turn, data) values ($1::text, $2::bigint, $3::bytea)"
_encode = msgspec.json.Encoder().encode


class Measured(NamedTuple):
    """One run: turns a second, microseconds of processor a turn, and microseconds of the quickest tenth of appends."""

    rate: float
    own_us: float
    tenth_us: float


Run = Callable[[list[Turn], int, str], Measured]
"""Given the turns, the number of sessions and a mark for what is made."""


def _measured(count: int, took: float, own: float, times: list[float]) -> Measured:
    return Measured(count / took, own / count * 1e6, sorted(times)[len(times) // 10] * 1e6)


# Appending


async def _leave(db: Any) -> None:
    """As our engine does: nothing was set that would have to be undone."""


def bare(url: str, turns: list[Turn], sessions: int, mark: str) -> Measured:
    """The bare driver."""
    times: list[float] = []

    async def run() -> Measured:
        async with asyncpg.create_pool(url, min_size=POOL_MAX, max_size=POOL_MAX, reset=_leave) as pool:
            await pool.execute(TABLE)

            async def write(session: str, some: list[Turn]) -> None:
                for turn in some:
                    began = time.perf_counter()
                    await pool.execute(INSERT, session, turn["n"], _encode(turn))
                    times.append(time.perf_counter() - began)

            names = [f"{mark}-{i}" for i in range(sessions)]
            await asyncio.gather(*(write(name, turns[:1]) for name in names))
            times.clear()
            start, own = time.perf_counter(), time.process_time()
            await asyncio.gather(*(write(name, turns[1:]) for name in names))
            took, spent = time.perf_counter() - start, time.process_time() - own
            return _measured(sessions * (len(turns) - 1), took, spent, times)

    return asyncio.run(run())


def bare_sqlite(folder: Path, turns: list[Turn], sessions: int, mark: str) -> Measured:
    """The same with one apsw connection."""
    db = apsw.Connection(str(folder / f"{mark}.db"))
    for text in ("pragma journal_mode = wal", "pragma synchronous = full", TABLE.replace("bigint", "integer")):
        db.execute(text).fetchall()

    times: list[float] = []

    def write(some: list[Turn]) -> None:
        for turn in some:
            for number in range(sessions):
                began = time.perf_counter()
                with db:
                    db.execute("insert into bare values (?, ?, ?)", (str(number), turn["n"], _encode(turn)))
                times.append(time.perf_counter() - began)

    write(turns[:1])
    start, own = time.perf_counter(), time.process_time()
    write(turns[1:])
    took, spent = time.perf_counter() - start, time.process_time() - own
    db.close()
    return _measured(sessions * (len(turns) - 1), took, spent, times)


def ours(url: str, turns: list[Turn], sessions: int, mark: str, ready: Callable[[], object] = lambda: None) -> Measured:
    """Through the library: sealed, chained, folded, one durable commit a turn. The first turn of each session is stored
    before the clock runs; `ready` is called then."""
    times: list[float] = []
    with wakelog.open(url, redact=None) as store:
        logs = [store.log(f"{mark}-{i}") for i in range(sessions)]
        barrier = threading.Barrier(sessions + 1)

        def write(place: int) -> None:
            logs[place].append(*events_of(turns[0]))
            barrier.wait()
            barrier.wait()
            for turn in turns[1:]:
                began = time.perf_counter()
                logs[place].append(*events_of(turn))
                times.append(time.perf_counter() - began)

        threads = [threading.Thread(target=write, args=(i,)) for i in range(sessions)]
        for thread in threads:
            thread.start()
        barrier.wait()
        ready()
        barrier.wait()
        start, own = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.join()
        took, spent = time.perf_counter() - start, time.process_time() - own
        assert all(log.head().turn == len(turns) for log in logs)
        return _measured(sessions * (len(turns) - 1), took, spent, times)


def within(url: str, namespace: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}namespace={namespace}"


def measure_appends(
    low: Run, high: Run, counts: list[int], total: int, rounds: int, wanted: dict[int, float] | None = None
) -> None:
    turns = make_turns(total)
    heading = "ratio (median, spread)  quickest tenth  processor us a turn: bare, ours"
    print(f"{'sessions':>8}  {'bare/s':>9}  {'ours/s':>9}  {heading}")
    for count in counts:
        share = turns[: max(8, total // count)]
        low(share[:4], count, f"w{count}")  # both warm up
        high(share[:4], count, f"w{count}")
        pairs: list[tuple[Measured, Measured]] = []
        for number in range(rounds):
            mark = f"n{count}-{number}"
            pairs.append((low(share, count, mark), high(share, count, mark)))
        ratios = sorted(o.rate / b.rate for b, o in pairs)
        bare_rate, our_rate = (statistics.median(pair[i].rate for pair in pairs) for i in (0, 1))
        tenth = statistics.median(b.tenth_us / o.tenth_us for b, o in pairs)
        bare_us, our_us = (statistics.median(pair[i].own_us for pair in pairs) for i in (0, 1))
        ratio = f"{statistics.median(ratios):.2f}  ({ratios[0]:.2f}-{ratios[-1]:.2f})"
        target = f"  target: {wanted[count]:g}" if wanted and count in wanted else ""
        cost = f"{tenth:.2f}  {bare_us:,.0f}, {our_us:,.0f}"
        print(f"{count:>8}  {bare_rate:>9,.0f}  {our_rate:>9,.0f}  {ratio}  {cost}{target}")
        sys.stdout.flush()


# Reading, news


def measure_states(url: str, length: int, rounds: int) -> None:
    """Milliseconds to open a session and read its state: now, and at a point in the middle."""
    with wakelog.open(url, redact=None) as store:
        log = store.log("long")
        for turn in make_turns(length):
            log.append(*events_of(turn))
        last = log.head().seq
        now = median_ms(lambda: store.resume("long").log.state(), rounds)
        then = median_ms(lambda: store.resume("long").log.state(last // 2), rounds)
    print(f"state of a session of {length} turns: {now:.1f} ms now, {then:.1f} ms in the middle (with opening it)")


def _hear(follow: Iterator[Any], times: list[float]) -> None:
    next(follow)
    times.append(time.perf_counter())


def measure_news(url: str, rounds: int) -> None:
    """Milliseconds from an answered append in one store object to its follower in another."""
    waits = []
    with wakelog.open(url) as here, wakelog.open(url) as there:
        session = here.session("news")
        follow = there.resume("news").log.follow(after=session.head.seq)
        for number in range(rounds):
            times: list[float] = []
            thread = threading.Thread(target=_hear, args=(follow, times))
            thread.start()
            time.sleep(0.02)
            session.fact("n", number)
            stored = time.perf_counter()
            thread.join()
            waits.append(max(0.0, times[0] - stored) * 1000)
    print(f"news: {statistics.median(waits):.1f} ms to a follower in the median, {max(waits):.1f} at most")


def median_ms(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


# Growth


def fill(url: str, ns: str, count: int) -> Sequence[str]:
    """Adds sessions of three commits each; returns their ids."""
    with Store(PostgresEngine(url, ns=ns)) as store:
        pattern = store.find("pattern") if store.engine.find("pattern") else _pattern(store)
    ids = [root_id(1_700_000_000_000_000 + random.randrange(10**15), random.randbytes(10)) for _ in range(count)]

    async def copy() -> None:
        db = await asyncpg.connect(url)
        rows = await db.fetch("select * from wl_commit where ns = $1 and session = $2 order by first", ns, pattern)
        columns = list(rows[0].keys())
        base = await db.fetchval("select max(stored_at) from wl_commit where ns = $1", ns)
        made = [
            tuple({**row, "root": each, "session": each, "stored_at": base + 10 * place + n}.values())
            for place, each in enumerate(ids)
            for n, row in enumerate(rows)
        ]
        await db.copy_records_to_table("wl_commit", records=made, columns=columns)
        tree = [(ns, each, each) for each in ids]
        await db.copy_records_to_table("wl_session", records=tree, columns=["ns", "root", "session"])
        names = [(ns, f"small-{each}", each) for each in ids]
        await db.copy_records_to_table("wl_name", records=names, columns=["ns", "name", "session"])
        titles = [(ns, each, each, f"small-{each}") for each in ids]
        await db.copy_records_to_table("wl_title", records=titles, columns=["ns", "root", "session", "name"])
        await db.execute("analyze")
        await db.close()

    asyncio.run(copy())
    return ids


def _pattern(store: Store) -> str:
    session = store.session("pattern", goal="be small")
    with session.turn("go"):
        session.fact("k", "v")
    return session.id


def measure_growth(url: str, sizes: list[int], rounds: int) -> None:
    print("sessions   append  open+state  by name   a page    news      info  ms")
    ids: list[str] = []
    for size in sizes:
        ids += fill(url, "growth", size - len(ids))
        print(f"{size:>8}  {_line(within(url, 'growth'), ids, rounds)}")
        sys.stdout.flush()


def _line(url: str, ids: Sequence[str], rounds: int) -> str:
    with wakelog.open(url, redact=None) as store:
        engine = store.engine
        logs = iter([store.resume(each).log for each in random.sample(ids, rounds)])
        append = median_ms(lambda: next(logs).append(wakelog.UserMessage("hello")), rounds)
        state = median_ms(lambda: store.resume(random.choice(ids)).log.state(), rounds)
        named = median_ms(lambda: store.find(f"small-{random.choice(ids)}"), rounds)
        page = median_ms(lambda: engine.sessions(after=random.choice(ids), limit=100), rounds)
        end = [engine.end_of_feed()]  # type: ignore[attr-defined]
        writing = store.resume(ids[0]).log

        def news() -> None:
            found = engine.changes(end[0], 100)
            assert [c.session for c in found] == [writing.id]
            end[0] = found[-1].cursor

        waits = []
        for _ in range(rounds):
            writing.append(wakelog.UserMessage("hello"))
            waits.append(median_ms(news, 1))
        whole = median_ms(lambda: info(store), 1)
    return f"{append:7.2f}  {state:10.2f}  {named:7.2f}  {page:7.2f}  {statistics.median(waits):6.2f}  {whole:8,.0f}"


# All of it


def measure(url: str, counts: list[int], total: int, rounds: int) -> None:
    def low(turns: list[Turn], sessions: int, mark: str) -> Measured:
        return bare(url, turns, sessions, mark)

    def high(turns: list[Turn], sessions: int, mark: str) -> Measured:
        return ours(within(url, mark), turns, sessions, "s")

    measure_appends(low, high, counts, total, rounds, WANTED)
    measure_states(within(url, "states"), 1000 if rounds > 3 else 100, 20)
    measure_news(within(url, "news"), 20)


def measure_sqlite(counts: list[int], total: int, rounds: int, place: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="wakelog-bench-", dir=place) as name:
        folder = Path(name)

        def low(turns: list[Turn], sessions: int, mark: str) -> Measured:
            return bare_sqlite(folder, turns, sessions, mark)

        def high(turns: list[Turn], sessions: int, mark: str) -> Measured:
            return ours(str(folder / mark), turns, sessions, "s")

        measure_appends(low, high, counts, total, rounds)
        measure_states(str(folder / "states"), 1000 if rounds > 3 else 100, 20)
        measure_news(str(folder / "news"), 20)


def _folder(place: Path | None) -> Path | None:
    """A folder that the server's user can enter."""
    if place is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="wakelog-pg-", dir=place))
    folder.chmod(0o755)
    return folder


def main() -> None:
    from tests.engines.postgres_server import Pair, Server

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="Fewer turns, rounds and sessions.")
    parser.add_argument("--pair", action="store_true", help="Also a synchronous pair.")
    parser.add_argument("--growth", action="store_true", help="Also growth to 100,000 sessions (quick: 10,000).")
    parser.add_argument("--only", choices=["appends", "growth"], help="This part alone.")
    parser.add_argument("--folder", type=Path, help="Where the stores are; /dev/shm leaves the disk out.")
    options = parser.parse_args()
    counts, total, rounds = ([1, 16, 64], 192, 3) if options.quick else ([1, 16, 64, 256], 1024, 5)
    if options.only != "growth":
        print("SQLite, one file")
        measure_sqlite(counts, total, rounds, options.folder)
    server = Server(_folder(options.folder)).create().start()
    try:
        if options.only != "growth":
            print("PostgreSQL, one server")
            measure(server.url, counts, total, rounds)
        if options.growth or options.only == "growth":
            print("PostgreSQL, growth")
            measure_growth(server.url, [1_000, 10_000] if options.quick else [1_000, 10_000, 100_000], 30)
    finally:
        server.stop()
    if options.pair and options.only != "growth":
        pair = Pair()
        try:
            print("PostgreSQL, a synchronous pair")
            measure(pair.url, counts, total, rounds)
        finally:
            pair.stop()


if __name__ == "__main__":
    main()
