"""Where the time of an append goes.

`profile` is cProfile's view, which is complete but makes small functions look dear. `break_down` times each part by
itself on the same turns: admitting the events, sealing without an engine, packing the sealed commits, inserting them
without sync, and syncing as many bytes to a plain file. Parts inside sealing are timed by wrapping the functions it
calls, less what the wrapping costs; a function that is no longer there counts as nothing.
"""

from __future__ import annotations

import contextlib
import cProfile
import functools
import io
import pstats
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec

from benchmarks.contenders import BareApsw, Wakelog
from benchmarks.results import Part
from benchmarks.scratch import empty_folder, time_sync
from benchmarks.workload import Turn, events_of
from wakelog.codec.pack import pack as pack_blobs
from wakelog.engines.sqlite import tables
from wakelog.engines.sqlite.connection import connect, transaction
from wakelog.engines.sqlite.rows import pack
from wakelog.log import seal as sealing
from wakelog.log.admission import admit, default_redact
from wakelog.model import events as ev
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit
from wakelog.state.changes import StateChanges
from wakelog.state.fold import Fold

_ROUNDS = 3
_SESSION = SessionId("s_00000000000000000000000000")
_INSIDE: tuple[tuple[str, tuple[tuple[Any, str], ...]], ...] = (
    ("ask the state machines", ((sealing, "_check_legal"),)),
    ("find the delta, encode it, fold it", ((sealing, "write_effect"), (StateChanges, "finish"))),
    ("encode the events", ((sealing, "encode_event"),)),
    ("headers, hashes, chain", ((sealing, "seal_records"),)),
    ("snapshots", ((sealing, "_snapshot_if_due"),)),
)  # fmt: skip


def profile(turns: list[Turn], folder: Path, lines: int = 20) -> str:
    """The functions an append spends its own time in, most first."""
    profiler, out = cProfile.Profile(), io.StringIO()
    with empty_folder(folder) as here:
        contender = Wakelog(here)
        profiler.enable()
        for turn in turns:
            contender.append(turn)
        profiler.disable()
        contender.close()
    stats = pstats.Stats(profiler, stream=out).strip_dirs()
    stats.sort_stats("tottime").print_stats(lines)
    return out.getvalue().strip()


def break_down(turns: list[Turn], folder: Path) -> list[Part]:
    """The parts of an append, beside those of the bare apsw loop; medians of a few rounds."""
    rounds = [_break_down_once(turns, folder) for _ in range(_ROUNDS)]
    inside = [_time_inside([admit(events_of(turn), None) for turn in turns]) for _ in range(_ROUNDS)]
    us = {name: statistics.median(each[name] for each in rounds) / len(turns) * 1e6 for name in rounds[0]}
    return [
        Part("make the events", us["events"]),
        Part("look for secrets", us["redact"]),
        Part("check the values, hash the payloads", us["check"]),
        Part("seal the commit (bare: encode the turn)", us["seal"], us["bare encode"]),
        *(
            Part(name, statistics.median(each[name] for each in inside) / len(turns) * 1e6, level=1)
            for name, _ in _INSIDE
        ),
        Part("pack records and payloads (zstd)", us["pack"]),
        Part("insert, without sync", us["insert"] - us["pack"], us["bare insert"]),
        Part("the same bytes to a file, with sync", us["sync"], us["bare sync"]),
        Part("a whole append, measured", us["whole"], us["bare whole"]),
    ]


def _break_down_once(turns: list[Turn], folder: Path) -> dict[str, float]:
    """Seconds of each part, over all turns."""
    encode = msgspec.json.Encoder().encode
    events = [events_of(turn) for turn in turns]
    admitted = [admit(each, None) for each in events]
    commits = list(_seal_all(admitted))
    rows = [encode(turn) for turn in turns]
    with contextlib.ExitStack() as stack:
        here = stack.enter_context(empty_folder(folder))
        db = connect(here / "parts.db", create=True)
        db.pragma("synchronous", "off")
        stack.callback(db.close)
        ours, bare, bare_unsynced = Wakelog(here / "ours"), _open_bare(here / "bare"), _open_bare(here / "unsynced")
        bare_unsynced.run("pragma synchronous = off").fetchall()
        for contender in (ours, bare, bare_unsynced):
            stack.callback(contender.close)
        found = {
            "events": _each(turns, events_of),
            "admit": _each(events, lambda each: admit(each, default_redact)),
            "check": _each(events, lambda each: admit(each, None)),
            "seal": _each([admitted], lambda steps: deque(_seal_all(steps), maxlen=0)),
            "pack": _each(commits, lambda c: pack_blobs(c.records, c.payloads)),
            "insert": _each(commits, functools.partial(_insert, db)),
            "whole": _each(turns, ours.append),
            "bare encode": _each(turns, encode),
            "bare encode and insert": _each(turns, bare_unsynced.append),
            "bare whole": _each(turns, bare.append),
        }
    packed = [b"".join(pack_blobs(c.records, c.payloads)) for c in commits]
    return found | {
        "redact": found["admit"] - found["check"],
        "sync": time_sync(folder, packed) * len(turns),
        "bare insert": found["bare encode and insert"] - found["bare encode"],
        "bare sync": time_sync(folder, rows) * len(turns),
    }


def _open_bare(folder: Path) -> BareApsw:
    folder.mkdir()
    return BareApsw(folder)


def _insert(db: apsw.Connection, commit: Commit) -> None:
    with transaction(db):
        tables.insert_commit(db, 1, pack(commit))


def _each(items: list[Any], work: Callable[[Any], Any]) -> float:
    start = time.perf_counter()
    for item in items:
        work(item)
    return time.perf_counter() - start


def _seal_all(admitted: list[list[sealing.SealStep]]) -> Iterator[Commit]:
    tip = sealing.Tip(Fold())
    sealing.seal(tip, _SESSION, admit([ev.SessionOpened(name="bench")], None), now=1)
    for steps in admitted:
        yield sealing.seal(tip, _SESSION, steps, now=1).commit


# Inside sealing


def _time_inside(admitted: list[list[sealing.SealStep]]) -> dict[str, float]:
    """Seconds in each group of functions that sealing calls."""
    spent: dict[str, list[int]] = {}
    with contextlib.ExitStack() as stack:
        for name, functions in _INSIDE:
            spent[name] = [0, 0]
            for owner, attribute in functions:
                stack.enter_context(_metered(owner, attribute, spent[name]))
        for _ in _seal_all(admitted):
            pass
    own = _cost_of_metering()
    return {name: max(0.0, (total - calls * own) / 1e9) for name, (total, calls) in spent.items()}


@contextlib.contextmanager
def _metered(owner: Any, attribute: str, spent: list[int]) -> Iterator[None]:
    original = getattr(owner, attribute, None)
    if original is None:
        yield
        return
    setattr(owner, attribute, _meter(original, spent))
    try:
        yield
    finally:
        setattr(owner, attribute, original)


def _meter(function: Callable[..., Any], spent: list[int]) -> Callable[..., Any]:
    clock = time.perf_counter_ns

    def metered(*args: Any, **kwargs: Any) -> Any:
        start = clock()
        try:
            return function(*args, **kwargs)
        finally:
            spent[0] += clock() - start
            spent[1] += 1

    return metered


def _cost_of_metering(times: int = 20_000) -> float:
    """Nanoseconds that a metered call seems to take when it does nothing."""
    spent = [0, 0]
    nothing = _meter(lambda *args: None, spent)
    for _ in range(times):
        nothing(1, 2)
    return spent[0] / times
