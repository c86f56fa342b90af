"""`make chaos`: a cluster and a synchronous PostgreSQL pair under the same load, with faults, for as long as you like.

    python -m tests.chaos --rounds 2 --to chaos-report

Each round does every fault once. The report has a table with what was checked, the longest stall after each fault, and
a plot of the throughput with the faults marked. The histories are kept beside it."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.chaos.faults import FAULTS, SPREAD_FAULTS, settle
from tests.chaos.history import Operation, Verdict, longest_stall
from tests.chaos.load import Load, impatient, judge_store
from tests.chaos.network import SpreadCluster, not_permitted
from tests.engines.nats_server import NatsCluster
from tests.engines.postgres_server import Pair
from wakelog.maintenance.shards import create_store

CLIENTS = 3
_WIDTH, _HEIGHT = 900, 220


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--rounds", type=int, default=3, help="how often every fault is done")
    parser.add_argument("--to", type=Path, default=Path("chaos-report"), help="where the report goes")
    parser.add_argument("--only", choices=["nats", "postgres"], help="only one of the two")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    runs = {"nats": _on_cluster, "postgres": _on_pair}
    pages, bad = [], 0
    for name, run in runs.items():
        if options.only in (None, name):
            folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=options.to))
            page, verdict = run(options.rounds, folder)
            pages.append(page)
            bad += len(verdict.faults)
    report = options.to / "report.md"
    report.write_text("\n\n".join(["# Chaos report", *pages]) + "\n", encoding="utf-8")
    print(report.read_text(encoding="utf-8"))
    return 1 if bad else 0


def _on_cluster(rounds: int, folder: Path) -> tuple[str, Verdict]:
    missing = not_permitted()
    cluster = NatsCluster() if missing else SpreadCluster()
    try:
        cluster.start()
        urls = impatient([cluster.url_from(i) for i in range(CLIENTS)])
        create_store(urls[0], shards=3)
        all_faults: dict[str, Callable[[Any, Load], None]] = {**FAULTS, **({} if missing else SPREAD_FAULTS)}
        faults = {what: _settled(cluster, do) for what, do in all_faults.items()}
        page, verdict = _run("NATS JetStream, three servers, three shards", urls, urls[0], faults, rounds, folder)
        return (f"{page}\n\nNot done: {', '.join(SPREAD_FAULTS)} ({missing})." if missing else page), verdict
    finally:
        cluster.stop()


def _settled(cluster: NatsCluster, do: Callable[[Any, Load], None]) -> Callable[[Load], None]:
    """A fault, over when every replica follows again."""

    def run(load: Load) -> None:
        do(cluster, load)
        settle(cluster)

    return run


def _on_pair(rounds: int, folder: Path) -> tuple[str, Verdict]:
    pair = Pair()
    try:
        url = f"{pair.url}&patience=60"

        def fail_over(load: Load) -> None:
            pair.fail_over()
            load.go_on(5)
            pair.rejoin()

        faults: dict[str, Callable[[Load], None]] = {"kill the primary, promote the standby": fail_over}
        return _run("PostgreSQL, a synchronous pair", [url] * CLIENTS, url, faults, rounds, folder)
    finally:
        pair.stop()


def _run(
    title: str,
    urls: Sequence[str],
    url: str,
    faults: dict[str, Callable[[Load], None]],
    rounds: int,
    folder: Path,
) -> tuple[str, Verdict]:
    load = Load(urls, folder)
    windows: list[tuple[str, float, float]] = []
    try:
        load.go_on(20)
        for _ in range(rounds):
            for what, do in faults.items():
                print(f"{title}: {what}", file=sys.stderr)
                load.mark(what)
                began = time.monotonic()
                do(load)
                load.go_on(20)
                windows.append((what, began, time.monotonic()))
        history = load.finish()
    finally:
        load.kill()
    verdict = judge_store(url, history, load.effects)
    (folder / "throughput.svg").write_text(plot(history, load.marks, load.began), encoding="utf-8")
    return _page(title, history, windows, verdict, folder), verdict


def _page(
    title: str,
    history: Sequence[Operation],
    windows: Sequence[tuple[str, float, float]],
    verdict: Verdict,
    folder: Path,
) -> str:
    lasted = max(o.ended for o in history) - min(o.began for o in history)
    lines = [
        f"## {title}",
        "",
        f"{verdict.appends:,} appends were acknowledged in {lasted:.0f} s by {CLIENTS} processes, and {verdict.heads:,}"
        f" heads were read. {verdict.effects:,} calls had an effect. Without an answer at the end: {verdict.unknown}."
        f" Refused: {verdict.refused}."
        f" Old heads told to somebody who had not seen the newer one: {verdict.stale}.",
        "",
        f"Lost, doubled, out of order or altered, or done twice: **{len(verdict.faults)}**.",
        *(f"- {fault}" for fault in verdict.faults[:20]),
        "",
        "| fault | times | longest time without any append, s | longest append, s |",
        "|---|---:|---:|---:|",
    ]
    for what in dict.fromkeys(w for w, _, _ in windows):
        times = [(a, b) for w, a, b in windows if w == what]
        stall = max(longest_stall(history, a, b) for a, b in times)
        appends = [o for o in history if o.verb == "append" and any(a <= o.ended <= b for a, b in times)]
        slowest = max((o.ended - o.began for o in appends), default=0.0)
        lines.append(f"| {what} | {len(times)} | {stall:.1f} | {slowest:.1f} |")
    return "\n".join([*lines, "", f"![throughput]({folder.name}/throughput.svg)"])


def plot(history: Sequence[Operation], marks: Sequence[tuple[float, str]], began: float) -> str:
    """Acknowledged appends in each second, with a line for each fault."""
    times = [o.ended - began for o in history if o.verb == "append" and o.seq]
    seconds = int(max(times, default=0)) + 1
    counts = [0] * seconds
    for at in times:
        counts[max(0, int(at))] += 1
    top = max(counts, default=1) or 1

    def x(at: float) -> float:
        return 40 + (_WIDTH - 50) * at / seconds

    points = " ".join(f"{x(i + 0.5):.1f},{_HEIGHT - 20 - (_HEIGHT - 40) * c / top:.1f}" for i, c in enumerate(counts))
    lines = [
        f'<line x1="{x(at - began):.1f}" x2="{x(at - began):.1f}" y1="10" y2="{_HEIGHT - 20}" stroke="#c33">'
        f"<title>{what}</title></line>"
        for at, what in marks
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
        f' font-size="11">{"".join(lines)}<polyline fill="none" stroke="#246" points="{points}"/>'
        f'<text x="4" y="18">{top}/s</text><text x="40" y="{_HEIGHT - 6}">0 s</text>'
        f'<text x="{_WIDTH - 50}" y="{_HEIGHT - 6}">{seconds} s</text></svg>\n'
    )


if __name__ == "__main__":
    sys.exit(main())
