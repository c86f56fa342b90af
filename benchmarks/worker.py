"""One contender in a process of its own: `python -m benchmarks.worker KIND`, asked over its standard input.

Each line of input is a request, each line of output its answer. A process serves one measurement and ends, so that no
contender carries another's imports, memory or garbage. What a library prints is thrown away.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.check import WrongResult, check_diff, check_files, check_state
from benchmarks.kinds import Kind
from benchmarks.memory import peak_mb
from benchmarks.protocol import Contender, Unsupported
from benchmarks.turns import Turn, read_turns

RECENT = 5
"""Turns back, in the question about files."""
_REPEATS = 5
_LONG_S = 0.5
"""What takes longer is not repeated."""

Answer = dict[str, Any]


class Worker:
    """What one process can be asked."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.contender: Contender | None = None

    def open(self, place: str, session: str = "bench") -> Answer:
        self.contender = self.kind.load_class()(place, session)
        return {}

    def append(self, first: int, last: int, cap_s: float) -> Answer:
        """Appends turns until all are there or the time is up. Seconds of each, and of the processor for all but the
        very first, which imports what was not needed before."""
        assert self.contender is not None
        turns = read_turns(first, last)
        gc.collect()
        gc.freeze()  # the turns belong to no contender: without this, the collector would walk them on its time
        append, clock = self.contender.append, time.perf_counter
        times: list[float] = []
        cpu, until = time.process_time(), clock() + cap_s
        for turn in turns:
            start = clock()
            append(turn)
            end = clock()
            times.append(end - start)
            if turn["n"] == 1:
                cpu = time.process_time()
            if end > until:
                break
        spent = time.process_time() - cpu
        gc.unfreeze()
        return {"times": times, "cpu_s": spent}

    def check(self, turns: int) -> Answer:
        """Whether the state is the reference's, in the process that wrote it."""
        assert self.contender is not None
        try:
            check_state(self.contender, self.contender.load(), read_turns(1, turns))
        except WrongResult as exc:
            return {"wrong": str(exc)}
        return {}

    def close(self) -> Answer:
        """How it was set, and what the process took at most."""
        assert self.contender is not None
        settings = self.contender.settings()
        self.contender.close()
        return {"settings": {key: str(value) for key, value in settings.items()}, "memory_mb": peak_mb()}

    def resume(self, place: str) -> Answer:
        """The first thing of a process: open and load, with every import that takes."""
        self.contender = self.kind.load_class()(place)
        self.contender.load()
        return {"memory_mb": peak_mb()}

    def read(self, place: str, turns: int, verify: bool) -> Answer:
        """The same again, now that the imports are done; then questions about the past. All answers are checked; one
        that is wrong has no time."""
        return _Reader(self, place, read_turns(1, turns)).answer(verify)

    def together(self, place: str, sessions: int, turns: int, cap_s: float) -> Answer:
        from benchmarks.crowd import together

        return together(self.kind.load_class(), place, sessions, read_turns(1, turns), cap_s)

    def same(self, place: str, writers: int, turns: int) -> Answer:
        from benchmarks.crowd import same

        return same(self.kind.load_class(), place, writers, read_turns(1, turns))


class _Reader:
    """Questions to one stored session of so many turns."""

    def __init__(self, worker: Worker, place: str, turns: list[Turn]) -> None:
        self.kind, self.place, self.turns = worker.kind, place, turns
        self.half = len(turns) // 2
        self.ms: dict[str, float] = {}
        self.wrong: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self._class = worker.kind.load_class()
        self.contender = worker.contender or self._class(place)
        gc.collect()
        gc.freeze()  # as above

    def answer(self, verify: bool) -> Answer:
        self._ask("load", self._open_and_load, lambda found: check_state(self.contender, found, self.turns))
        half, half_turns = self.half, self.turns[: self.half]
        self._ask(
            "middle", lambda: self.contender.load(half), lambda found: check_state(self.contender, found, half_turns)
        )
        if not self.kind.reads:
            # Before the fork and the diff: with some, both of them write.
            self._ask("files_first", lambda: self.contender.recent_files(RECENT), self._check_files, once=True)
            self._ask("files", lambda: self.contender.recent_files(RECENT), self._check_files)
            later = self.turns[half]
            self._ask(
                "diff",
                lambda: self.contender.diff(half, half + 1),
                lambda found: check_diff(self.contender, found, later),
            )
            self._ask(
                "fork",
                lambda: self.contender.fork(half),
                lambda load: check_state(self.contender, load(), half_turns, is_fork=True),
                once=True,
            )
        events = self._verify() if verify else 0
        self.contender.close()
        return {"ms": self.ms, "wrong": self.wrong, "failed": self.failed, "events": events}

    def _open_and_load(self) -> Any:
        if not self._class.one_in_a_process:
            self.contender = self._class(self.place)
        return self.contender.load()

    def _check_files(self, found: list[str]) -> None:
        check_files(found, self.turns[-RECENT:])

    def _ask(self, name: str, work: Callable[[], Any], check: Callable[[Any], None], once: bool = False) -> None:
        times: list[float] = []
        found: Any = None
        try:
            for _ in range(1 if once else _REPEATS):
                found = None  # what was loaded before goes before the clock starts
                gc.collect()
                start = time.perf_counter()
                found = work()
                times.append(time.perf_counter() - start)
                if times[-1] > _LONG_S:
                    break
            check(found)
        except (Unsupported, NotImplementedError):
            return
        except WrongResult as exc:
            self.wrong[name] = str(exc)
            return
        except Exception as exc:
            self.failed[name] = error_text(exc)
            return
        self.ms[name] = sorted(times)[len(times) // 2] * 1e3

    def _verify(self) -> int:
        log = getattr(self.contender, "log", None)
        if log is None or self.kind.reads:
            return 0
        from benchmarks.check import check_log

        try:
            return check_log(log, self.turns, one_commit_each=not self.kind.home.endswith("WakelogFully"))
        except WrongResult as exc:
            self.wrong["log"] = str(exc)
            return 0


def error_text(exc: BaseException) -> str:
    """One line, without the place of the store: a name of a folder says nothing about a contender."""
    text = " ".join(f"{type(exc).__name__}: {exc}".split())
    return text.replace(str(Path.cwd()), "").replace(str(Path.home()), "~")[:160]


def main() -> None:
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    worker = Worker(msgspec.json.decode(sys.argv[1], type=Kind))
    for line in sys.stdin.buffer:
        request: Answer = msgspec.json.decode(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as exc:
            answer = {"error": error_text(exc)}
        answers.write(msgspec.json.encode(answer) + b"\n")
        answers.flush()
    answers.close()
    os._exit(0)  # threads that a library left running must not hold the process


if __name__ == "__main__":
    main()
