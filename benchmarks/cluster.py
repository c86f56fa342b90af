"""A store on a NATS cluster of three servers, beside the bare driver that publishes the same turns.

    python -m benchmarks.cluster [--quick] [--growth 10000] [--only appends|processes|growth|failover]

The bare driver publishes the bytes of each turn with nats-py, one message a turn behind the one before it in its
session, with a message id, a task for each session and one connection. It checks nothing, seals nothing and packs
nothing, so its messages are longer than ours. Ours is measured twice: *threads* has a thread for each session, as plain
calls need, and *tasks* has a task for each, as the bare driver does, and awaits `session.aio.append`. All run in the
same round, interleaved, on streams with three replicas that sync each message, and the first turn of each session is
stored before the clock runs: what opening a session costs, growth tells. In one round all are connected to the same
server, in the next round to the next: which server it is decides much of what the servers have to do, and a client
that knows several picks one by chance. The servers are started from the test suite's wheel, on loopback. Processor time
is told of the client's process and of the three servers.

A fleet has many processes. So 64 sessions are also spread over several, on both sides: each process has its interpreter
and its connection, all begin together, and the rate is that until the last one is done.

Failover kills the server that leads the stream, and measures the longest time without an answered append, of both
sides at once on the same stream: an election takes four to nine seconds, and a different time at each kill.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import multiprocessing
import os
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from nats.aio.client import Client
from nats.errors import Error
from nats.js.client import JetStreamContext
from nats.js.errors import BadRequestError, NoStreamResponseError
from nats.js.errors import Error as StreamError

import wakelog
from benchmarks.shared import median_ms, ours, within
from benchmarks.workload import Turn, events_of, make_turns
from tests.engines.nats_server import NatsCluster
from wakelog.engines.nats import NatsEngine, messages
from wakelog.engines.nats.errors import IN_FLIGHT
from wakelog.engines.nats.subjects import Subjects
from wakelog.maintenance.shards import create_store, placement
from wakelog.model.ids import root_id
from wakelog.session import Session
from wakelog.store import Store

WANTED = {1: 0.7, 16: 0.8, 64: 0.8, 256: 0.8}
"""At so many sessions, of the bare driver's rate."""
SPREAD = 64
"""Sessions over several processes."""
Rates = tuple[float, float, float, float]
"""Turns a second and microseconds a turn: of the bare driver, and ours."""
STREAM = "bare"
AT_ONCE = 256
ALONE_MAX = 1024
"""The most turns of one session: alone it takes many times as long as among others."""
KILLS = 10
_encode = msgspec.json.Encoder().encode
_EXPECTED = "Nats-Expected-Last-Subject-Sequence"


def bare(
    servers: list[str], turns: list[Turn], sessions: int, mark: str, ready: Callable[[], object] = lambda: None
) -> tuple[float, float]:
    """Turns a second of the bare driver, and its processor time a turn in microseconds. `ready` is called before the
    clock runs."""

    async def run() -> tuple[float, float]:
        client = Client()
        await client.connect(servers)
        stream = client.jetstream(timeout=30)

        names = [f"{mark}-{i}" for i in range(sessions)]
        places = dict.fromkeys(names, 0)

        async def write(session: str, some: list[Turn]) -> None:
            for turn in some:
                headers = {_EXPECTED: str(places[session]), "Nats-Msg-Id": f"{session}.{turn['n']}"}
                places[session] = await _publish(stream, f"bare.{session}", _encode(turn), headers)

        await asyncio.gather(*(write(name, turns[:1]) for name in names))
        await asyncio.to_thread(ready)
        begun, own = time.perf_counter(), time.process_time()
        await asyncio.gather(*(write(name, turns[1:]) for name in names))
        took, spent = time.perf_counter() - begun, time.process_time() - own
        await client.close()
        count = sessions * (len(turns) - 1)
        return count / took, spent / count * 1e6

    return asyncio.run(run())


async def _publish(stream: JetStreamContext, subject: str, data: bytes, headers: dict[str, str]) -> int:
    """Publishes, and asks again while the server takes an append that it has just stored for one in flight, or a stream
    that was just made has no leader yet."""
    while True:
        try:
            return (await stream.publish(subject, data, headers=headers)).seq
        except NoStreamResponseError:
            await asyncio.sleep(0.05)
        except BadRequestError as exc:
            if exc.err_code != IN_FLIGHT:
                raise
            await asyncio.sleep(0.005)


def addresses(cluster: NatsCluster) -> list[str]:
    return [f"nats://{s.address}" for s in cluster.servers]


async def make_stream(cluster: NatsCluster) -> None:
    client = Client()
    await client.connect(addresses(cluster))
    await client.jetstream(timeout=30).add_stream(name=STREAM, subjects=["bare.>"], num_replicas=3)
    await client.close()


def in_tasks(
    url: str, turns: list[Turn], sessions: int, mark: str, ready: Callable[[], object] = lambda: None
) -> tuple[float, float]:
    """The same as `ours` of the benchmark of shared databases, with a task for each session instead of a thread."""

    async def run(store: Store) -> tuple[float, float]:
        made = [store.session(f"{mark}-{i}") for i in range(sessions)]

        async def write(session: Session[Any], some: list[Turn]) -> None:
            for turn in some:
                await session.aio.append(*events_of(turn))

        await asyncio.gather(*(write(each, turns[:1]) for each in made))
        await asyncio.to_thread(ready)
        begun, own = time.perf_counter(), time.process_time()
        await asyncio.gather(*(write(each, turns[1:]) for each in made))
        took, spent = time.perf_counter() - begun, time.process_time() - own
        assert all(each.head.turn == len(turns) for each in made)
        count = sessions * (len(turns) - 1)
        return count / took, spent / count * 1e6

    with wakelog.open(url, redact=None) as store:
        return asyncio.run(run(store))


def measure_appends(cluster: NatsCluster, counts: list[int], total: int, rounds: int) -> None:
    turns = make_turns(total)
    print(
        f"{'sessions':>8}  {'':>7}  {'bare/s':>8}  {'ours/s':>8}  ratio (median, spread)"
        "   µs of the client: bare, ours   of the three servers: bare, ours"
    )
    for count in counts:
        share = turns[: max(8, min(ALONE_MAX, total // count))]
        done = count * (len(share) - 1)
        rates: dict[str, list[Rates]] = {"threads": [], "tasks": []}
        served: dict[str, list[tuple[float, float]]] = {"threads": [], "tasks": []}
        for number in range(rounds + 1):  # the first warms up
            server = number % len(cluster.servers)
            url = cluster.url_of(server)
            low = _with_servers(cluster, bare, [addresses(cluster)[server]], share, count, f"b{count}-{number}")
            for how, side in (("threads", ours), ("tasks", in_tasks)):
                high = _with_servers(cluster, side, within(url, f"{how}{count}-{number}"), share, count, "s")
                if number:
                    rates[how].append((*low[:2], *high[:2]))
                    served[how].append((low[2] / done, high[2] / done))
        for how in rates:
            low_us, high_us = (statistics.median(each) for each in zip(*served[how], strict=True))
            _say(count, rates[how], f"target {WANTED[count]:g}", f"   {low_us:,.0f}, {high_us:,.0f}", how)


def _with_servers(cluster: NatsCluster, side: Any, *args: Any) -> tuple[float, float, float]:
    """What a side reaches, and the processor time that the servers used for it."""
    begun: list[float] = []
    rate, own_us = side(*args, lambda: begun.append(_spent_us(cluster)))[:2]
    return rate, own_us, _spent_us(cluster) - begun[0]


def _spent_us(cluster: NatsCluster) -> float:
    """The processor time that the servers have used so far, where the system tells it."""
    if not sys.platform.startswith("linux"):
        return 0.0
    ticks = 0
    for server in cluster.servers:
        assert server.process is not None
        fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK") * 1e6


def measure_processes(cluster: NatsCluster, counts: list[int], total: int, rounds: int) -> None:
    share = make_turns(total)[: max(8, total // SPREAD)]
    print(f"{'processes':>17}  {'bare/s':>8}  {'ours/s':>8}  ratio, with {SPREAD} sessions over all of them")
    for count in counts:
        rates: list[Rates] = []
        for number in range(rounds + 1):
            low = _spread(bare, addresses(cluster), share, count, f"p{count}-{number}")
            high = _spread(ours, within(cluster.url, f"p{count}-{number}"), share, count, "s")
            rates += [(*low, *high[:2])] if number else []
        _say(count, rates, "")


def _spread(side: Any, where: str | list[str], turns: list[Turn], count: int, mark: str) -> tuple[float, float]:
    """What a side reaches with its sessions over so many processes: those of the slowest, times their number."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(count), context.Queue()
    started = [
        context.Process(target=_part, args=(side, where, turns, SPREAD // count, f"{mark}-{n}", barrier, answers))
        for n in range(count)
    ]
    for process in started:
        process.start()
    found = [answers.get(timeout=600) for _ in started]
    for process in started:
        process.join()
    return min(rate for rate, _ in found) * count, statistics.fmean(spent for _, spent in found)


def _part(side: Any, where: Any, turns: list[Turn], sessions: int, mark: str, barrier: Any, answers: Any) -> None:
    answers.put(side(where, turns, sessions, mark, barrier.wait)[:2])


def _say(count: int, rates: list[Rates], target: str, more: str = "", how: str = "") -> None:
    ratios = sorted(high / low for low, _, high, _ in rates)
    low, low_us, high, high_us = (statistics.median(each) for each in zip(*rates, strict=True))
    print(
        f"{count:>8}  {how:>7}  {low:>8,.0f}  {high:>8,.0f}  {statistics.median(ratios):.2f}"
        f"  ({ratios[0]:.2f}-{ratios[-1]:.2f})  {target}   {low_us:,.0f}, {high_us:,.0f}{more}"
    )
    sys.stdout.flush()


def measure_growth(cluster: NatsCluster, sizes: list[int], rounds: int) -> None:
    """The same questions at each number of sessions."""
    print("sessions      new   append  open+state  by name   a page    news  ms")
    made = 0
    with wakelog.open(within(cluster.url, "growth"), redact=None) as store:
        assert isinstance(store.engine, NatsEngine)
        store.session("pattern").fact("k", "v")
        for size in sizes:
            _fill(cluster, store.engine, made, size)
            made = size
            print(f"{size:>8}  {_line(store, size, rounds)}")
            sys.stdout.flush()


def _fill(cluster: NatsCluster, engine: NatsEngine, begin: int, end: int) -> None:
    """Sessions that are copies of one that was sealed, under ids and names of their own: a chain does not name its
    session. Their messages are those that opening and writing to them leaves, sent without waiting for each."""
    subjects, pattern = Subjects(engine.store, engine.ns), engine.find("pattern")
    assert pattern is not None
    data = messages.encode_commits([messages.to_stored(c, None) for c in engine.read(pattern, payloads=True)])

    async def run() -> None:
        client = Client()
        await client.connect([f"nats://{s.address}" for s in cluster.servers])
        stream = client.jetstream(timeout=60)
        limit = asyncio.Semaphore(AT_ONCE)

        async def copy(number: int) -> None:
            async with limit:
                session = root_id(1_700_000_000_000_000 + number * 1000, number.to_bytes(10, "big"))
                name = f"small-{number}"
                binding = msgspec.msgpack.encode((name, session))
                await stream.publish(subjects.name(name), binding)
                await stream.publish(subjects.of(0, "t", session), name.encode())
                await stream.publish(subjects.opening(0, session, None), b"")
                await stream.publish(subjects.of(0, "c", session), data)

        for first in range(begin, end, 10_000):
            await asyncio.gather(*(copy(n) for n in range(first, min(end, first + 10_000))))
        await client.close()

    asyncio.run(run())


def _line(store: Store, size: int, rounds: int) -> str:
    dice, engine = random.Random(size), store.engine

    def any_name() -> str:
        return f"small-{dice.randrange(size)}"

    logs = iter([store.resume(any_name()).log for _ in range(rounds)])
    made = iter(range(rounds))
    opened = median_ms(lambda: store.session(f"new-{size}-{next(made)}"), rounds)
    append = median_ms(lambda: next(logs).append(wakelog.UserMessage("hello")), rounds)
    state = median_ms(lambda: store.resume(any_name()).log.state(), rounds)
    named = median_ms(lambda: store.find(any_name()), rounds)
    page = median_ms(lambda: engine.sessions(after="", limit=100), rounds)
    writing = store.resume(any_name()).log
    cursor = [engine.abilities.feed_end() if engine.abilities.feed_end is not None else ""]

    def news() -> None:
        writing.append(wakelog.UserMessage("hello"))
        cursor[0] = engine.changes(cursor[0], 100)[-1].cursor

    told = median_ms(news, rounds)
    return f"{opened:7.2f}  {append:7.2f}  {state:10.2f}  {named:7.2f}  {page:7.2f}  {told:6.2f}"


# Failover


def measure_failover(cluster: NatsCluster, rounds: int) -> None:
    pairs = [_stalls(cluster, number) for number in range(rounds)]
    print(f"longest time without an answered append when the leader is killed, s, {rounds} kills")
    times = {"bare": [b for b, _ in pairs], "ours": [o for _, o in pairs], "more": [o - b for b, o in pairs]}
    for what, found in times.items():
        print(f"{what:>8}  {statistics.median(found):.2f}  ({min(found):.2f} to {max(found):.2f})")


def _stalls(cluster: NatsCluster, number: int) -> tuple[float, float]:
    """The stall of the bare driver and ours, on the same stream and by the same kill."""
    with wakelog.open(within(cluster.url, "failover")) as store:
        assert isinstance(store.engine, NatsEngine)
        log = store.session(f"f{number}").log
        times: tuple[list[float], list[float]] = ([], [])
        is_over = threading.Event()

        def write() -> None:
            while not is_over.is_set():
                log.append(wakelog.UserMessage("x" * 1000))
                times[1].append(time.monotonic())

        subject = f"{Subjects(store.engine.store, store.engine.ns).fence(0)}.bare"  # nobody reads it
        threads = [
            threading.Thread(target=asyncio.run, args=(_write_bare(addresses(cluster), subject, times[0], is_over),)),
            threading.Thread(target=write),
        ]
        for thread in threads:
            thread.start()
        _kill(cluster, placement(store)[0].leader, lambda: min(map(len, times)))
        is_over.set()
        for thread in threads:
            thread.join()
        return _longest(times[0]), _longest(times[1])


async def _expected(_: Exception) -> None:
    """A killed server is no news."""


async def _write_bare(servers: list[str], subject: str, times: list[float], is_over: threading.Event) -> None:
    client = Client()
    await client.connect(servers, reconnect_time_wait=0.1, error_cb=_expected)  # type: ignore[arg-type]
    stream = client.jetstream(timeout=2)
    while not is_over.is_set():
        try:
            await stream.publish(subject, b"x" * 1000)
            times.append(time.monotonic())
        except (TimeoutError, Error, StreamError):
            await asyncio.sleep(0.01)
    await client.close()


def _kill(cluster: NatsCluster, leader: str, answered: Callable[[], int]) -> None:
    """Kills a server under load, waits until there are answers again, and brings it back."""
    while answered() < 20:
        time.sleep(0.01)
    server = cluster.named(leader)
    server.kill()
    before = answered()
    while answered() < before + 40:
        time.sleep(0.01)
    server.start().wait()


def _longest(times: list[float]) -> float:
    return max(b - a for a, b in itertools.pairwise(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="Fewer turns, rounds and sessions.")
    parser.add_argument("--growth", type=int, default=0, metavar="N", help="Also growth from 1,000 to N sessions.")
    parser.add_argument("--only", choices=["appends", "processes", "growth", "failover"], help="This part alone.")
    options = parser.parse_args()
    counts, total, rounds = ([1, 16, 64, 256], 192, 3) if options.quick else ([1, 16, 64, 256], 6144, 5)
    cluster = NatsCluster().start()
    try:
        create_store(cluster.url, shards=1)
        asyncio.run(make_stream(cluster))
        if options.only in (None, "appends"):
            measure_appends(cluster, counts, total, rounds)
        if options.only in (None, "processes"):
            measure_processes(cluster, [1, 2, 4], min(total, 1024), rounds)
        if options.growth:
            sizes = [size for size in (1_000, 10_000, 100_000, 200_000) if size < options.growth]
            measure_growth(cluster, [*sizes, options.growth], 30)
        if options.only in (None, "failover"):
            measure_failover(cluster, 3 if options.quick else KILLS)
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
