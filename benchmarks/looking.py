"""What looking costs: the index, searches, diffs, the past of a long session, and the command line from a cold start.

Questions are asked of one long session and of many short ones. Times are the processor's, so that other work on the
machine matters less; what is asked from cold is asked of a store that was just opened, or in a process of its own. The
command line is given as a ratio to an empty Python program that was started next to it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import wakelog
from benchmarks.results import Looking, Sample
from benchmarks.scratch import empty_folder
from benchmarks.workload import Turn, events_of

WHY = "why the newest decision"
BRIEF = "brief"
DIFF = "diff of the last two turns"
FILES = "files modified in the last 5 turns, cold"
CATCH_UP = "index catch-up"
WORDS = "words for the first search"
INDEX_SIZE = "size of the index"
MESSAGES = "all messages, cold"
PAGE = "the last 100 messages, cold"
CONTEXT = "context of 8,000 tokens, cold"
STATUS = "wakelog status"
COMPLETION = "completion of a session's name"
LS, PS = "wakelog ls", "wakelog ps"
FIRST, AGAIN = "first", "again"
WINDOW = 8_000
_COMMANDS = (["--version"], ["status"], ["log", "-n", "20"], ["diff", "@-1", "@"], ["state", "/goal"])
_COLD = """
import sys, time, wakelog
from benchmarks.memory import peak_mb
session = wakelog.open(sys.argv[1], redact=None).session("long")
session.log.state()
import wakelog.session.context
before, began = peak_mb(), time.process_time()
ask = {
    "messages": session.messages,
    "page": lambda: session.messages(limit=100),
    "context": lambda: session.context.window(8_000),
}
ask[sys.argv[2]]()
print((time.process_time() - began) * 1e3, peak_mb() - before)
"""


def measure_long(turns: list[Turn], times: int, folder: Path) -> list[Looking]:
    """One session: catching up, queries, a diff of two neighbouring turns, and commands on it."""
    where = f"{len(turns):,} turns"
    with empty_folder(folder) as here:
        place = here / "store"
        with _unsynced(place) as store:
            session = store.session("long")
            for turn in turns:
                session.append(*events_of(turn))
            last = session.head.turn
        found = [
            Looking(FILES, where, _cold(place, times, lambda session: session.files.modified(5))),
            *_alone(place, where, MESSAGES, "messages"),
            *_alone(place, where, PAGE, "page"),
            *_alone(place, where, CONTEXT, "context"),
        ]
        with _unsynced(place) as store:
            session = store.session("long")
            catch_up = _time(1, store.index.catch_up)
            found += [
                Looking(CATCH_UP, where, catch_up),
                Looking(WORDS, where, _time(1, store.index.catch_up_words)),
                Looking("search for two words", where, _time(times, lambda: store.index.search("session retry"))),
                Looking(DIFF, where, _time(times, lambda: session.diff(f"@{last - 1}", f"@{last}"))),
                Looking("diff of turns 5 and 6", where, _time(times, lambda: session.diff("@5", "@6"))),
                *_why(session, where, times),
                Looking(BRIEF, where, _time(times, session.brief)),
                Looking("context, again", where, _time(times, lambda: session.context.window(WINDOW))),
            ]
        sizes = [_size(place, name) for name in ("index.db", "log.db")]  # now that both are closed
        found.append(Looking(INDEX_SIZE, where, Sample([sizes[0] / sizes[1]]), unit="× the log"))
        found += [_command(words, place, where, times) for words in _COMMANDS]
        return [*found, _completion(place, where, times)]


def measure_many(turns: list[Turn], sessions: int, times: int, folder: Path) -> list[Looking]:
    """Many sessions of one turn each, with nothing pending."""
    where = f"{sessions:,} sessions"
    done = [event for event in events_of(turns[0]) if event.kind != "action.requested"]
    with empty_folder(folder) as here:
        place = here / "store"
        with _unsynced(place) as store:
            for number in range(sessions):
                store.session(f"s{number}").append(*done)
        commands = ((LS, ["ls", "-n", "20"]), (PS, ["ps"]))
        found = []
        for name, words in commands:
            # As for a person: who only looks gets a first page while the index is not made yet.
            found.append(Looking(f"{name}, {FIRST}", where, _watched(words, place, 1)))
            for file in place.glob("index.db*"):
                file.unlink()
        with _unsynced(place) as store:
            catch_up = _time(1, store.index.catch_up)
            found += [
                Looking(CATCH_UP, where, catch_up),
                Looking(WORDS, where, _time(1, store.index.catch_up_words)),
                Looking("search for two words", where, _time(times, lambda: store.index.search("session retry"))),
                Looking("the newest 100 sessions", where, _time(times, lambda: store.index.sessions(limit=100))),
            ]
        found += [Looking(f"{name}, {AGAIN}", where, _watched(words, place, times)) for name, words in commands]
        return found


@contextlib.contextmanager
def _unsynced(place: Path) -> Iterator[wakelog.Store]:
    """A store to be filled, or asked, without a wait for the disk: that is measured elsewhere."""
    with wakelog.open(place, redact=None) as store:
        engine: Any = store.engine
        engine._pool.write(lambda db: db.pragma("synchronous", "off"))
        yield store


def _why(session: wakelog.Session[Any], where: str, times: int) -> list[Looking]:
    """Why the newest decision, from nothing; also in plain reads of the whole log."""
    decision = max(map(int, session.log.state()["decisions_made"]))
    spent, ratios = [], []
    for _ in range(times):
        reading = _time(1, lambda: sum(1 for _ in session.log.entries())).median
        spent.append(_time(1, lambda: session.why(decision)).median)
        ratios.append(spent[-1] / reading)
    return [
        Looking(WHY, where, Sample(spent)),
        Looking(f"{WHY}, by reads", where, Sample(ratios), "× reading the log"),
    ]


def _cold(place: Path, times: int, ask: Callable[[wakelog.Session[Any]], object]) -> Sample:
    """Milliseconds of a question to a session that was just opened."""
    values = []
    for _ in range(times):
        with wakelog.open(place, redact=None) as store:
            session = store.session("long")
            values += _time(1, lambda session=session: ask(session)).values  # type: ignore[misc]
    return Sample(values)


def _alone(place: Path, where: str, name: str, what: str) -> list[Looking]:
    """What one question takes in a process of its own, and how much more memory. A window that is too large says so in
    the log, and the next one is small: so this is asked once."""
    root = Path(__file__).parents[1]
    command = [sys.executable, "-c", _COLD, str(place), what]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=root, stdin=subprocess.DEVNULL)
    spent_ms, memory_mb = map(float, done.stdout.split())
    return [
        Looking(name, where, Sample([spent_ms])),
        Looking(f"{name}, more memory", where, Sample([memory_mb]), unit="MB"),
    ]


def _size(place: Path, name: str) -> int:
    return sum(file.stat().st_size for file in place.glob(f"{name}*"))


def _time(times: int, work: Callable[[], object]) -> Sample:
    """Milliseconds of the processor, once per repetition."""
    values = []
    for _ in range(times):
        start = time.process_time()
        work()
        values.append((time.process_time() - start) * 1e3)
    return Sample(values)


# Commands


def _words(words: list[str], store: Path) -> list[str]:
    if words == ["--version"]:
        return [sys.executable, "-m", "wakelog", *words]
    return [sys.executable, "-m", "wakelog", words[0], "--store", str(store), *words[1:]]


def _command(words: list[str], store: Path, where: str, times: int) -> Looking:
    """How many empty Python programs one command takes."""
    ratios = [_process(_words(words, store)) / _process([sys.executable, "-c", "pass"]) for _ in range(times)]
    return Looking(f"wakelog {' '.join(words)}", where, Sample(ratios), unit="× python -c pass")


def _completion(store: Path, where: str, times: int) -> Looking:
    """What a shell runs after Tab."""
    asked = {"_WAKELOG_COMPLETE": "bash_complete", "COMP_WORDS": "wakelog status lo", "COMP_CWORD": "2"}
    command = [sys.executable, "-m", "wakelog"]
    environment = {**os.environ, **asked, "WAKELOG_STORE": str(store)}
    ratios = [_process(command, environment) / _process([sys.executable, "-c", "pass"]) for _ in range(times)]
    return Looking(COMPLETION, where, Sample(ratios), unit="× python -c pass")


def _process(command: list[str], environment: dict[str, str] | None = None) -> float:
    """Seconds of the processor that a program takes."""
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    before = _spent_by_children()
    subprocess.run(command, check=True, env=environment, **quiet)
    return _spent_by_children() - before


def _watched(words: list[str], store: Path, times: int) -> Sample:
    """Milliseconds of the processor that a command takes which writes to a terminal."""
    import pty

    values, command = [], [*_words(words, store), "--no-pager"]
    for _ in range(times):
        before = _spent_by_children()
        main, terminal = pty.openpty()
        with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal) as process:
            os.close(terminal)
            with contextlib.suppress(OSError):  # its end is an error on Linux
                while os.read(main, 65536):
                    pass
        os.close(main)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        values.append((_spent_by_children() - before) * 1e3)
    return Sample(values)


def _spent_by_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
