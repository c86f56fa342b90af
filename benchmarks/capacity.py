"""How many machines a load takes, what they cost, and what breaks first: arithmetic over one measured run.

    python -m benchmarks.capacity [--sessions N] [--events-a-day N] [--help for every assumption]

What an event costs is measured (`benchmarks.capacity_run`, kept in capacity.json). What machines can do and what they
cost is assumed, and every assumption is a flag. A day is played minute by minute, with a peak and with some projectors
away for an hour, to see how far the index falls behind.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import msgspec

SAVED = Path(__file__).with_name("capacity.json")
DAY_S = 86_400
YEAR_DAYS = 365


class CapacityRun(msgspec.Struct, frozen=True):
    """What was measured, for each event unless it is said otherwise. Times are of processors."""

    date: str
    command: str
    machine: str
    events: int
    commits: int
    commits_a_second: int
    """By the clock, one shard, three replicas, everything on the one machine: what a shard does at the least."""
    client_us: float
    """A commit, in the process that seals it."""
    server_us: float
    """A commit, in all three NATS servers together."""
    stream_bytes: int
    """On the disk of one replica."""
    session_memory_bytes: int
    """A session, in the memory of one NATS server."""
    index_client_us: float
    index_server_us: float
    index_bytes: int
    archive_us: float
    archive_bytes: int


class Assumptions(msgspec.Struct, frozen=True):
    """What is asked for, and what machines can do. Each is a flag of the script."""

    sessions: int = 1_000_000
    """live sessions"""
    events_a_day: int = 1_000_000_000
    """events a day"""
    peak: float = 3.0
    """the busiest minute, over the mean"""
    keep_days: int = 7
    """days that events stay in the streams and in the index, before the archive alone has them"""
    archive_years: float = 3.0
    """years that the archive keeps"""
    replicas: int = 3
    """servers that keep each event"""
    events_a_commit: float = 1.9
    """events a durable commit; 1.9 is full recording, 10 is one commit a turn"""
    lost: float = 0.34
    """share of the projectors that is away in the busiest hour"""
    cores: int = 16
    """processor cores of a server"""
    busy: float = 0.5
    """share of its processor that a server may use at the peak"""
    slower: float = 1.0
    """processor time there, over the processor time that was measured"""
    disk_tb: float = 4.0
    """disk of a server, in TB"""
    full: float = 0.7
    """share of a disk that may be used"""
    memory_gb: float = 64.0
    """memory of a server, in GB"""
    core_month: float = 20.0
    """cost of a core with its memory, a month"""
    disk_gb_month: float = 0.10
    """cost of a GB of disk, a month"""
    object_gb_month: float = 0.02
    """cost of a GB in an object store, a month"""


class Need(msgspec.Struct, frozen=True):
    """What one part of the cluster needs."""

    part: str
    count: int
    because: str
    month: float


class Limit(msgspec.Struct, frozen=True):
    """How much one unit of a part can take, and what to do beyond."""

    part: str
    events_a_day: float
    remedy: str


class PlayedDay(msgspec.Struct, frozen=True):
    """The index over a day with some projectors away for the busiest hour."""

    behind_events: float
    behind_min: float
    """How long all projectors need for what waits, at the worst."""
    caught_up: bool


def needs(given: Assumptions, run: CapacityRun) -> list[Need]:
    """What the load takes, part by part."""
    peak = given.events_a_day / DAY_S * given.peak
    commits = peak / given.events_a_commit
    core_us = given.busy * 1e6 / given.slower
    disk = given.disk_tb * 1e12 * given.full
    kept = given.events_a_day * given.keep_days

    shards = math.ceil(commits / run.commits_a_second)
    by_core = commits * run.server_us * given.replicas / 3 / core_us / given.cores
    by_disk = kept * run.stream_bytes * given.replicas / disk
    by_memory = given.sessions * run.session_memory_bytes * given.replicas / (given.memory_gb * 1e9 * given.busy)
    nodes, why = _most({"processor": by_core, "disk": by_disk, "memory": by_memory}, given.replicas)

    index_core = peak * run.index_server_us / core_us / given.cores
    index_disk = kept * run.index_bytes / disk
    index, index_why = _most({"processor": index_core, "disk": index_disk}, 1)
    servers = math.ceil(commits * run.client_us / core_us / given.cores)
    projectors = math.ceil(peak * run.index_client_us / core_us)
    archivers = math.ceil(given.events_a_day / DAY_S * run.archive_us / core_us)
    archived = given.events_a_day * YEAR_DAYS * given.archive_years * run.archive_bytes
    server = given.cores * given.core_month
    with_disk = server + given.disk_tb * 1000 * given.disk_gb_month
    return [
        Need("streams (shards)", shards, f"{commits:,.0f} commits/s at the peak", 0.0),
        Need("NATS servers", nodes, why, nodes * with_disk),
        Need("wakelog servers", max(2, servers), "processor: sealing", max(2, servers) * server),
        Need("projectors, a core each", projectors, "processor: reading events", projectors * given.core_month),
        Need("PostgreSQL servers of the index", index, index_why, index * with_disk),
        Need("archivers, a core each", archivers, "processor: writing Parquet", archivers * given.core_month),
        Need(
            "archive, TB",
            math.ceil(archived / 1e12),
            f"{given.archive_years:g} years",
            archived / 1e9 * given.object_gb_month,
        ),
    ]


def _most(wanted: dict[str, float], least: int) -> tuple[int, str]:
    name = max(wanted, key=lambda key: wanted[key])
    count = math.ceil(wanted[name])
    return (count, name) if count > least else (least, f"replicas; {name} would take {wanted[name]:.2g}")


def limits(given: Assumptions, run: CapacityRun) -> list[Limit]:
    """What one of each can take, the smallest first: that is what breaks first as a cluster grows from one of each."""
    core_us = given.busy * 1e6 / given.slower
    day = DAY_S / given.peak
    disk = given.disk_tb * 1e12 * given.full / given.keep_days
    server = given.cores * core_us
    out = [
        Limit("one archiver", core_us / run.archive_us * DAY_S, "one for each namespace, to places of their own"),
        Limit("one projector", core_us / run.index_client_us * day, "start more: they share the shards"),
        Limit("one shard", run.commits_a_second * given.events_a_commit * day, "wakelog store shards N"),
        Limit("one wakelog server", server / run.client_us * given.events_a_commit * day, "start more"),
        Limit(
            "processors of three NATS servers",
            3 * server / run.server_us * given.events_a_commit * day,
            "more servers, then more shards",
        ),
        Limit(
            "disks of three NATS servers", 3 * disk / run.stream_bytes / given.replicas, "keep fewer days, more servers"
        ),
        Limit(
            "processor of one index server", server / run.index_server_us * day, "namespaces on servers of their own"
        ),
        Limit("disk of one index server", disk / run.index_bytes, "keep fewer days, or split by namespace"),
    ]
    return sorted(out, key=lambda each: each.events_a_day)


def play(given: Assumptions, run: CapacityRun) -> PlayedDay:
    """A day of the projectors, minute by minute: half the mean at night, a peak at noon, and some away in that hour."""
    count = next(need.count for need in needs(given, run) if need.part.startswith("projectors"))
    able = count * given.busy * 1e6 / given.slower / run.index_client_us * 60
    mean = given.events_a_day / 1440
    waiting = worst = 0.0
    for minute in range(1440):
        height = math.sin(math.pi * (minute - 360) / 720) ** 3 if 360 <= minute < 1080 else 0.0
        load = mean * (0.5 + (given.peak - 0.5) * height)
        is_away = 690 <= minute < 750
        waiting = max(0.0, waiting + load - able * (1 - given.lost if is_away else 1))
        worst = max(worst, waiting)
    return PlayedDay(worst, worst / able, waiting == 0.0)


# What is shown


def report(given: Assumptions, run: CapacityRun) -> str:
    """The tables of the page."""
    found, day = needs(given, run), play(given, run)
    rows = [[n.part, f"{n.count:,}", n.because, f"{n.month:,.0f}" if n.month else "–"] for n in found]
    rows.append(["together", "", "", f"{sum(n.month for n in found):,.0f}"])
    first = [[each.part, _amount(each.events_a_day), each.remedy] for each in limits(given, run)]
    asked = (
        f"{given.sessions:,} live sessions, {given.events_a_day:,} events a day,\n"
        f"a peak of {given.peak:g} times the mean, {given.keep_days} days in the streams:"
    )
    end = "has" if day.caught_up else "has not"
    played = (
        f"Played minute by minute with {given.lost:.0%} of the projectors away in the busiest hour: the index\n"
        f"is at most {day.behind_min:,.0f} minutes behind, and {end} caught up by the end of the day."
    )
    return "\n\n".join(
        [
            asked,
            _table(["part", "how many", "what decides", "cost a month"], rows, "lrlr"),
            "What one of each can take, smallest first:",
            _table(["part", "events a day", "what to do beyond"], first, "lrl"),
            played,
        ]
    )


def measured_table(run: CapacityRun) -> str:
    """What the page computes with."""
    rows = [
        ["run", f"{run.date}, `{run.command}`"],
        ["machine", f"{run.machine}, shared by three NATS servers, PostgreSQL and the clients"],
        ["measured over", f"{run.events:,} events in {run.commits:,} commits"],
        ["a commit: sealing, in the client", f"{run.client_us:,.0f} µs of a processor"],
        ["a commit: three NATS servers together", f"{run.server_us:,.0f} µs of a processor"],
        ["one shard, three replicas", f"{run.commits_a_second:,} commits/s by the clock, at the least"],
        ["an event in the stream", f"{run.stream_bytes:,} bytes a replica"],
        ["a session in a NATS server's memory", f"{run.session_memory_bytes:,} bytes"],
        ["an event into the index: projector", f"{run.index_client_us:,.0f} µs of a processor"],
        ["an event into the index: PostgreSQL", f"{run.index_server_us:,.0f} µs of a processor"],
        ["an event in the index", f"{run.index_bytes:,} bytes"],
        ["an event into the archive", f"{run.archive_us:,.0f} µs of a processor, {run.archive_bytes:,} bytes"],
    ]
    return _table(["what", "measured"], rows, "ll")


def page() -> str:
    """The part of docs/explanation/capacity.md that follows from the run and the assumptions as they stand here."""
    run = load(SAVED)
    return f"{measured_table(run)}\n\n{report(Assumptions(), run)}"


def load(path: Path) -> CapacityRun:
    return msgspec.json.decode(path.read_bytes(), type=CapacityRun)


def _amount(events: float) -> str:
    for size, word in ((1e9, "billion"), (1e6, "million")):
        if events >= size:
            return f"{events / size:,.1f} {word}"
    return f"{events:,.0f}"


def _table(titles: list[str], rows: list[list[str]], sides: str) -> str:
    rule = ["---:" if side == "r" else "---" for side in sides]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (titles, rule, *rows))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=SAVED, help="the measured run to compute with")
    told = _sentences()
    for field in msgspec.structs.fields(Assumptions):
        flag = "--" + field.name.replace("_", "-")
        parser.add_argument(
            flag, type=field.type, default=field.default, help=f"{told[field.name]} ({field.default:,})"
        )
    given = vars(parser.parse_args(argv))
    run = load(given.pop("run"))
    print(measured_table(run), "", report(Assumptions(**given), run), sep="\n")


def _sentences() -> dict[str, str]:
    """What each assumption means: the string below its field."""
    lines = [line.strip() for line in Path(__file__).read_text(encoding="utf-8").splitlines()]
    return {
        line.partition(":")[0]: lines[at + 1].strip('"')
        for at, line in enumerate(lines[:-1])
        if lines[at + 1].startswith('"""') and ": " in line and " = " in line
    }


if __name__ == "__main__":
    main()
