"""What looking costs: the index, searches, diffs, and the command line from a cold start.

Questions are asked of one long session and of many short ones. The command line is timed as fresh processes, as a ratio
to an empty Python program started next to it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wakelog
from benchmarks.results import Looking, Sample
from benchmarks.scratch import empty_folder
from benchmarks.workload import Turn, events_of

WHY = "why the newest decision"
BRIEF = "brief"
WINDOW = 8_000
_COMMANDS = (["--version"], ["log", "-n", "20"], ["diff", "@-1", "@"], ["state", "/goal"])


def measure_long(turns: list[Turn], times: int, folder: Path) -> list[Looking]:
    """One session: catching up, queries, a diff of two neighbouring turns, and commands on it."""
    where = f"{len(turns):,} turns"
    with empty_folder(folder) as here, wakelog.open(here / "store", redact=None) as store:
        session = store.session("long")
        for turn in turns:
            session.append(*events_of(turn))
        catch_up = _time(1, store.index.catch_up)
        per_turn = Looking("index catch-up, a turn", where, Sample([catch_up.median / len(turns)]))
        last = session.head.turn
        found = [
            per_turn,
            Looking("files modified in the last 5 turns", where, _time(times, lambda: _files(store))),
            Looking("search for two words", where, _time(times, lambda: store.index.search("session retry"))),
            Looking(
                "diff of the last two turns", where, _time(times, lambda: session.diff(f"@{last - 1}", f"@{last}"))
            ),
            Looking("diff of turns 5 and 6", where, _time(times, lambda: session.diff("@5", "@6"))),
            _why(session, where, times),
            Looking(BRIEF, where, _time(times, session.brief)),
            _context(session, where, times),
        ]
        return found + [_command(words, here / "store", where, times) for words in _COMMANDS]


def measure_many(turns: list[Turn], sessions: int, times: int, folder: Path) -> list[Looking]:
    """Many sessions of one turn each."""
    where = f"{sessions:,} sessions"
    with empty_folder(folder) as here, wakelog.open(here / "store", redact=None) as store:
        for number in range(sessions):
            store.session(f"s{number}").append(*events_of(turns[0]))
        catch_up = _time(1, store.index.catch_up)
        return [
            Looking("index catch-up, a turn", where, Sample([catch_up.median / sessions])),
            Looking("search for two words", where, _time(times, lambda: store.index.search("session retry"))),
            Looking("the newest 100 sessions", where, _time(times, lambda: store.index.sessions(limit=100))),
            _command(["ls", "-n", "20"], here / "store", where, times),
        ]


def _why(session: wakelog.Session[Any], where: str, times: int) -> Looking:
    """Why the newest decision, from nothing: how many plain reads of the whole log it takes."""
    decision = max(map(int, session.log.state()["decisions_made"]))
    ratios = []
    for _ in range(times):
        reading = _time(1, lambda: sum(1 for _ in session.log.entries())).median
        ratios.append(_time(1, lambda: session.why(decision)).median / reading)
    return Looking(WHY, where, Sample(ratios), unit="× reading the log")


def _context(session: wakelog.Session[Any], where: str, times: int) -> Looking:
    """The window of a long session, once what does not fit has left it."""
    session.context.window(WINDOW)
    return Looking(f"context of {WINDOW:,} tokens", where, _time(times, lambda: session.context.window(WINDOW)))


def _files(store: wakelog.Store) -> Any:
    return store.index.files_modified(store.engine.find("long"), last_turns=5)


def _time(times: int, work: Callable[[], object]) -> Sample:
    """Milliseconds, once per repetition."""
    values = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        values.append((time.perf_counter() - start) * 1e3)
    return Sample(values)


def _command(words: list[str], store: Path, where: str, times: int) -> Looking:
    """How many empty Python programs one command takes."""
    ratios = []
    for _ in range(times):
        nothing = _process([sys.executable, "-c", "pass"])
        ratios.append(
            _process([sys.executable, "-m", "wakelog", words[0], "--store", str(store), *words[1:]]) / nothing
        )
    return Looking(f"wakelog {' '.join(words)}", where, Sample(ratios), unit="× python -c pass")


def _process(command: list[str]) -> float:
    if command[3:4] == ["--version"]:
        command = command[:4]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start
