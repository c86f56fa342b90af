"""What encryption costs: the same work in a plain and in an encrypted store, in turn, as a ratio.

    .venv/bin/python -m benchmarks.encryption [--events 3000] [--rounds 5]

Both stores are SQLite on the same disk. Times are of the processor: waiting for the disk is the same for both.
`append` is durable and one event a commit; `batch` a hundred events a commit; `read` all events with their bodies;
`open` the state of a session in a new store object; `search` the first question of a process, which makes the index;
`search again` that of another process: of an encrypted store each makes its own.
"""

from __future__ import annotations

import argparse
import base64
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import wakelog
from wakelog import events as ev
from wakelog.store import Store

TEXT = "The tests fail because the fixture returns a naive time. I make it aware, and run them again. " * 4


def measure(events: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Processor seconds of each kind of work, the median of all rounds: plain, encrypted; and bytes on disk."""
    taken: dict[str, tuple[list[float], list[float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["WAKELOG_KEY_RINGS"] = str(folder / "rings")
        key = folder / "key"
        key.touch(0o600)
        key.write_text(base64.b64encode(os.urandom(32)).decode())
        sources = ("", f"file:{key}")
        for round_ in range(rounds):
            for side, source in enumerate(sources):
                place = folder / f"{round_}-{side}"
                for what, seconds in _work(place, source, events).items():
                    taken.setdefault(what, ([], []))[side].append(seconds)
    return {what: (statistics.median(plain), statistics.median(sealed)) for what, (plain, sealed) in taken.items()}


def _work(place: Path, source: str, events: int) -> dict[str, float]:
    out: dict[str, float] = {}
    with wakelog.open(place, encryption_key=source) as store:
        session = store.session("one")
        out["append"] = _timed(lambda: [session.message("assistant", f"{n} {TEXT}") for n in range(events // 10)])
        many = [ev.MessageAdded(role="assistant", content=f"{n} {TEXT}") for n in range(events)]
        out["batch"] = _timed(lambda: [session.append(*many[at : at + 100]) for at in range(0, events, 100)])
        out["read"] = _timed(lambda: sum(len(entry.body) for entry in session.events()))
    out["bytes"] = float(sum(path.stat().st_size for path in place.glob("log.db*")))
    with wakelog.open(place, encryption_key=source) as store:
        out["open"] = _timed(lambda: store.resume("one").state())
        out["search"] = _timed(lambda: store.index.search("fixture", limit=1))
    with wakelog.open(place, encryption_key=source) as store:
        out["search again"] = _timed(lambda: _first(store))
    return out


def _first(store: Store) -> None:
    store.index.search("fixture", limit=1)


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(f"{'':<14}{'plain':>12}{'encrypted':>12}{'ratio':>8}")
    for what, (plain, sealed) in measure(given.events, given.rounds).items():
        shown = (f"{each:,.0f}" if what == "bytes" else f"{each * 1e3:,.1f} ms" for each in (plain, sealed))
        print(f"{what:<14}{next(shown):>12}{next(shown):>12}{sealed / plain:>8.2f}")


if __name__ == "__main__":
    main()
