"""What an event costs each part of a cluster, for `benchmarks.capacity` to compute with.

    python -m benchmarks.capacity_run [--turns N] [--save benchmarks/capacity.json]

Three NATS servers, a PostgreSQL and this process share one machine, so a rate by the clock would say how busy it is.
What is measured instead is processor time, which servers spend on their own, and bytes. The workload is the one of the
other benchmarks, fully recorded: eight durable commits a turn.
"""

from __future__ import annotations

import argparse
import datetime
import os
import tempfile
import threading
import time
from pathlib import Path

import msgspec

import wakelog
from benchmarks.capacity import SAVED, CapacityRun
from benchmarks.machine import describe
from benchmarks.workload import COMMITS_FULLY_RECORDED, full_recording, make_turn
from tests.engines.nats_server import NatsCluster
from tests.engines.postgres_server import Server
from wakelog.maintenance.copy import copy_store
from wakelog.maintenance.parquet_archive import archive_parquet
from wakelog.store import Store

SESSIONS = 32
MANY = 1_000
"""How many sessions are opened to see what one costs a server's memory."""
_TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20, help="turns of each of the 32 sessions")
    parser.add_argument("--save", type=Path, default=SAVED)
    given = parser.parse_args()
    found = measured(given.turns)
    given.save.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    print(given.save.read_text())


def measured(turns: int) -> CapacityRun:
    """Fills a cluster, copies it to PostgreSQL, has its index made and archives it."""
    cluster, server = NatsCluster().start(), Server().create().start()
    try:
        with tempfile.TemporaryDirectory() as folder, wakelog.open(cluster.url) as store:
            return _measured(turns, cluster, server, store, Path(folder))
    finally:
        cluster.stop()
        server.stop()


def _measured(turns: int, cluster: NatsCluster, server: Server, store: Store, folder: Path) -> CapacityRun:
    processes = [s.process.pid for s in cluster.servers if s.process is not None]
    # Each session has its own turns: what repeats would compress away in the archive.
    given = [[make_turn(turn, seed=number) for turn in range(turns)] for number in range(SESSIONS)]
    logs = [store.session(f"s{number}").log for number in range(SESSIONS)]

    def record(number: int) -> None:
        for turn in given[number]:
            full_recording(logs[number], turn)

    before, own, begun = sum(map(_cpu_s, processes)), time.process_time(), time.monotonic()
    threads = [threading.Thread(target=record, args=(number,)) for number in range(SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, own, spent = time.monotonic() - begun, time.process_time() - own, sum(map(_cpu_s, processes)) - before
    commits, events = SESSIONS * turns * COMMITS_FULLY_RECORDED, sum(log.head().seq for log in logs)
    stream = _size(cluster.servers[0].data)

    assert server._process is not None
    with wakelog.open(f"{server.url}?namespace=capacity") as shared:
        copy_store(store, shared)
        indexing, there = time.process_time(), _tree_cpu_s(server._process.pid)
        shared.index.catch_up()
        indexing, there = time.process_time() - indexing, _tree_cpu_s(server._process.pid) - there
        index = int(
            server.ask(
                "select sum(pg_total_relation_size(c.oid)) from pg_class c where relname ~ '^wi_' and relkind = 'r'"
            )
        )

    archiving = time.process_time()
    archive_parquet(store, str(folder / "archive"))
    archiving = time.process_time() - archiving

    memory = _memory(processes[0])
    for number in range(MANY):
        store.session(f"many-{number}")
    return CapacityRun(
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        command=f"python -m benchmarks.capacity_run --turns {turns}",
        machine=describe()["processor"],
        events=events,
        commits=commits,
        commits_a_second=round(commits / took),
        client_us=round(own / commits * 1e6, 1),
        server_us=round(spent / commits * 1e6, 1),
        stream_bytes=round(stream / events),
        session_memory_bytes=round((_memory(processes[0]) - memory) / MANY),
        index_client_us=round(indexing / events * 1e6, 1),
        index_server_us=round(there / events * 1e6, 1),
        index_bytes=round(index / events),
        archive_us=round(archiving / events * 1e6, 1),
        archive_bytes=round(_size(folder / "archive") / events),
    )


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICK  # its own, and that of children that ended


def _tree_cpu_s(process: int) -> float:
    """Of a process and its children."""
    total = _cpu_s(process)
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if int((path / "stat").read_text().rpartition(")")[2].split()[1]) == process:
                total += _cpu_s(int(path.name))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
    return total


def _memory(process: int) -> int:
    [line] = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
