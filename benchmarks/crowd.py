"""Several sessions of one store at once, and several writers of one session, inside a contender's process.

Sessions are threads, or tasks where the library is asynchronous. Errors are counted and the turn counts as not done;
what was acknowledged must be there afterwards.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks.check import WrongResult, check_state, count_lost
from benchmarks.protocol import AsyncContender, Contender
from benchmarks.turns import Turn

_SHOWN = 3
"""Kinds of errors that are kept."""


class _Writer:
    """One session's work: its turns in order, until they are done or the time is up."""

    def __init__(self, contender: Contender, turns: list[Turn], clock: Callable[[], float], cap_s: float) -> None:
        self.contender, self.turns, self.clock, self.cap_s = contender, turns, clock, cap_s
        self.done: list[Turn] = []
        self.errors: list[str] = []

    def write(self) -> None:
        until = self.clock() + self.cap_s
        for turn in self.turns:
            try:
                self.contender.append(turn)
                self.done.append(turn)
            except Exception as exc:
                self._note(exc)
            if self.clock() > until:
                return

    async def awrite(self) -> None:
        assert isinstance(self.contender, AsyncContender)
        until = self.clock() + self.cap_s
        for turn in self.turns:
            try:
                await self.contender.aappend(turn)
                self.done.append(turn)
            except Exception as exc:
                self._note(exc)
            if self.clock() > until:
                return

    def _note(self, exc: Exception) -> None:
        from benchmarks.worker import error_text

        self.errors.append(error_text(exc))


def together(kind: type[Contender], place: str, sessions: int, turns: list[Turn], cap_s: float) -> dict[str, Any]:
    """`sessions` sessions at once, each appending `turns`; every session's state is compared afterwards."""
    first = kind(place, "bench-0")
    contenders = [first, *(kind(place, f"bench-{i}", first) for i in range(1, sessions))]
    kind(place, "bench-warm", first).append(turns[0])  # what a process does once is not what this is about
    writers = [_Writer(contender, turns, time.perf_counter, cap_s) for contender in contenders]
    elapsed, cpu = _run(writers)
    wrong = 0
    for writer in writers:
        try:
            if not writer.errors and writer.done:
                check_state(writer.contender, writer.contender.load(), writer.done)
        except WrongResult:
            wrong += 1
    done = sum(len(writer.done) for writer in writers)
    return _counted(writers) | {"turns_per_s": done / elapsed, "cpu_us": cpu / max(1, done) * 1e6, "wrong": wrong}


def same(kind: type[Contender], place: str, writers: int, turns: list[Turn]) -> dict[str, Any]:
    """Writers of one session, each with a handle of its own and every so-many-th turn.

    No turn ends the action of another, because who comes first is not known."""
    alone = [{**turn, "pop": None} for turn in turns]
    first = kind(place)
    share = kind.one_in_a_process or issubclass(kind, AsyncContender)
    handles = [first, *(_another(kind, place, first, share) for _ in range(1, writers))]
    crowd = [_Writer(handle, alone[i::writers], time.perf_counter, 60) for i, handle in enumerate(handles)]
    _run(crowd)
    reader = first if kind.one_in_a_process else kind(place)
    acknowledged = [turn for writer in crowd for turn in writer.done]
    return _counted(crowd) | {"lost": count_lost(reader, acknowledged)}


def _another(kind: type[Contender], place: str, first: Contender, share: bool) -> Contender:
    return kind(place, first.session, first) if share else kind(place, first.session)


def _counted(writers: list[_Writer]) -> dict[str, Any]:
    errors = [error for writer in writers for error in writer.errors]
    done = sum(len(writer.done) for writer in writers)
    return {"done": done, "errors": len(errors), "said": sorted(set(errors))[:_SHOWN]}


def _run(writers: list[_Writer]) -> tuple[float, float]:
    """Seconds from the common start to the last one's end, and of the processor."""
    gc.collect()
    gc.freeze()
    cpu = time.process_time()
    first = writers[0].contender
    if isinstance(first, AsyncContender):

        async def all_of_them() -> None:
            await asyncio.gather(*(writer.awrite() for writer in writers))

        start = time.perf_counter()
        first.run(all_of_them())
    else:
        barrier = threading.Barrier(len(writers) + 1)

        def work(writer: _Writer) -> None:
            barrier.wait()
            writer.write()

        threads = [threading.Thread(target=work, args=(writer,)) for writer in writers]
        for thread in threads:
            thread.start()
        barrier.wait()
        start = time.perf_counter()
        for thread in threads:
            thread.join()
    elapsed = time.perf_counter() - start
    return elapsed, time.process_time() - cpu
