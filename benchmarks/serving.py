"""The server: durable appends over HTTP beside the library in one process, and a tail to many watchers.

    python -m benchmarks.serving [--quick]

Appends: as many clients as are named, each with a session of its own, one durable commit a turn. "library" is threads
in one process on one store. "one client" is the same threads sharing one remote store; what waits goes in one request.
"clients" have a store, and so a connection, each. The server is a process of its own, started fresh for each round,
behind it SQLite. Rounds are interleaved; the ratio is over the library in the same round. All sessions are verified.

Tail: watchers in a third process read one session while it is appended to; a delivery is one event at one watcher.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import wakelog
from benchmarks.scratch import FOLDER, empty_folder
from benchmarks.workload import Turn, events_of, make_turns
from wakelog.store import Store

LIBRARY, SHARED, OWN = "library", "one client", "clients"
WANTED = 0.5
"""Of the library's rate, by 64 clients."""


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """A server in a process of its own: its address and a key."""
    command = [sys.executable, "-m", "wakelog", "serve", "--store", str(folder), "--port", "0", "--rate", "0", "--json"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        said = ""
        assert process.stdout is not None
        while not said.endswith("\n}\n"):
            line = process.stdout.readline()
            assert line, "the server did not start"
            said += line
        data = json.loads(said)["data"]
        yield data["url"], data["key"]
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _connect(url: str, key: str) -> Store:
    """A store behind the server, which may just be starting."""
    for _ in range(1000):
        try:
            return wakelog.open(url, key=key)
        except wakelog.UnavailableError:
            time.sleep(0.01)
    raise SystemExit(f"nothing answers at {url}")


def _append(stores: list[Store], turns: list[Turn]) -> float:
    """Turns per second of all clients, from the common start to the last one's end."""
    logs = [store.session(f"client-{i}").log for i, store in enumerate(stores)]
    barrier = threading.Barrier(len(logs) + 1)
    errors: list[BaseException] = []

    def work(place: int) -> None:
        barrier.wait()
        try:
            for turn in turns:
                logs[place].append(*events_of(turn))
        except BaseException as exc:
            errors.append(exc)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(logs))]
    for thread in threads:
        thread.start()
    barrier.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - start
    if errors:
        raise errors[0]
    return len(logs) * len(turns) / elapsed


def _verified(folder: Path, clients: int, turns: list[Turn]) -> None:
    with wakelog.open(folder) as store:
        for i in range(clients):
            session = store.resume(f"client-{i}")
            assert session.verify().ok
            assert len({entry.commit_id for entry in session.log.entries(after=1)}) == len(turns)


def _library(folder: Path, clients: int, turns: list[Turn]) -> float:
    with wakelog.open(folder) as store:
        return _append([store] * clients, turns)


def _one_client(folder: Path, clients: int, turns: list[Turn]) -> float:
    with served(folder) as (url, key), _connect(url, key) as store:
        return _append([store] * clients, turns)


def _clients(folder: Path, clients: int, turns: list[Turn]) -> float:
    with served(folder) as (url, key):
        stores = [_connect(url, key) for _ in range(clients)]
        try:
            return _append(stores, turns)
        finally:
            for store in stores:
                store.close()


CONTENDERS: dict[str, Callable[[Path, int, list[Turn]], float]] = {
    LIBRARY: _library,
    SHARED: _one_client,
    OWN: _clients,
}


def measure_appends(counts: tuple[int, ...], total: int, rounds: int, folder: Path) -> list[tuple[str, ...]]:
    turns = make_turns(total)
    rows: list[tuple[str, ...]] = []
    for clients in counts:
        share = turns[: max(5, total // clients)]
        rates: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(rounds):
            for name, run in CONTENDERS.items():
                with empty_folder(folder) as here:
                    rates[name].append(run(here / "store", clients, share))
                    _verified(here / "store", clients, share)
        for name, found in rates.items():
            ratios = [own / base for own, base in zip(found, rates[LIBRARY], strict=True)]
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            wanted = f"≥ {WANTED:g}" if (clients, name) == (64, OWN) else ""
            ratio = f"{statistics.median(ratios):.2f}"
            rows.append((str(clients), name, f"{statistics.median(found):,.0f}", ratio, spread, wanted))
    return rows


# Tails


async def _watch(url: str, key: str, watchers: int, events: int) -> None:
    """Reads `events` events at each of so many watchers; says when all are there, and when all have everything."""
    host, _, port = url.removeprefix("http://").partition(":")
    request = f"GET /v1/sessions/watched/tail HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    ready = [asyncio.Event() for _ in range(watchers)]

    async def read(place: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
        writer.write(request)
        seen, rest = 0, b""
        while seen < events:
            data = await reader.read(1 << 18)
            assert data, "the tail ended"
            whole = rest + data
            if b"retry:" in whole:
                ready[place].set()
            seen += whole.count(b"\nid: ")
            rest = whole[-4:]
        writer.close()

    tasks = [asyncio.create_task(read(i)) for i in range(watchers)]
    await asyncio.gather(*(each.wait() for each in ready))
    print("ready", flush=True)
    await asyncio.gather(*tasks)
    print("done", flush=True)


def measure_tail(watchers: int, events: int, rounds: int, folder: Path) -> tuple[str, ...]:
    rates, alone = [], []
    for _ in range(rounds):
        with empty_folder(folder) as here, served(here / "store") as (url, key), _connect(url, key) as store:
            session = store.session("watched")
            began = time.perf_counter()
            for n in range(events):
                session.fact("n", n)
            alone.append(time.perf_counter() - began)
            command = [sys.executable, "-m", "benchmarks.serving", "--watch", url, key, str(watchers), str(events)]
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                began = time.perf_counter()
                for n in range(events):
                    session.fact("n", n)
                assert process.stdout.readline() == "done\n"
                rates.append(watchers * events / (time.perf_counter() - began))
    slower = statistics.median(events * watchers / rate / single for rate, single in zip(rates, alone, strict=True))
    return str(watchers), f"{statistics.median(rates):,.0f}", f"{slower:.2f}"


def _show(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    for row in (titles, ("---",) * len(titles), *rows):
        print("| " + " | ".join(row) + " |")
    print()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer turns and rounds")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write; should be on a real disk")
    parser.add_argument("--watch", nargs=4, metavar=("URL", "KEY", "WATCHERS", "EVENTS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.watch:
        url, key, watchers, events = options.watch
        asyncio.run(_watch(url, key, int(watchers), int(events)))
        return
    rounds, total, events = (2, 320, 200) if options.quick else (5, 960, 500)
    rows = measure_appends((1, 16, 64), total, rounds, options.folder)
    _show(("clients", "contender", "turns/s", "x library", "spread", "target"), rows)
    tails = [measure_tail(watchers, events, rounds, options.folder) for watchers in (1, 100)]
    _show(("watchers", "deliveries/s", "x time of the appends alone"), tails)


if __name__ == "__main__":
    main()
