"""One session of a given length: appending it, its size on disk, and reading it again.

Every contender has a process of its own, and they take turns in small chunks, in an order shuffled for each chunk,
because the time of a sync drifts by a factor of several within seconds: only what ran side by side can be compared.
A contender whose time is up is stopped where it is. What was appended is read in fresh processes in the same round.
The first turn of a process imports late and opens files; it is reported by itself and not in the rates.
"""

from __future__ import annotations

import contextlib
import random
import statistics
import time
from typing import Any

import msgspec

from benchmarks.kinds import BASE, OURS, Kind
from benchmarks.process import Failed, Process, Round
from benchmarks.protocol import is_full
from benchmarks.results import Trouble

CHUNKS = 50
CURVE = tuple(step * 10**power for power in range(1, 6) for step in (1, 2, 5))
"""The turns at which a growth curve has its points."""
_PATIENCE = 4
_READ = ("load", "middle", "fork", "diff", "files_first", "files")


class Length(msgspec.Struct, frozen=True):
    """A length of one session, the seconds a contender may take for it, in how many rounds it is measured, in how many
    one takes part that needs more, in how many it is read again, and who takes part, if not all."""

    turns: int
    cap_s: float
    rounds: int = 99
    rounds_if_slow: int = 99
    rounds_read: int = 99
    only: tuple[str, ...] = ()

    def cap_of(self, kind: Kind) -> float:
        """Ours and the limits may take longer, because their curves should be whole; where they do, they are not
        repeated either. The base has no end but its own: every ratio depends on it."""
        if kind.name == BASE:
            return 1e6
        return self.cap_s if kind.group == "peer" else self.cap_s * _PATIENCE


class Runner(msgspec.Struct):
    """One contender in the middle of a session."""

    kind: Kind
    process: Process
    place: str
    times: list[float] = []
    cpu_s: float = 0.0
    is_over: bool = False

    @property
    def name(self) -> str:
        return self.kind.name


class Late(msgspec.Struct):
    """Who took longer than a length allows, and who of them was stopped."""

    slow: set[str] = set()
    stopped: set[str] = set()


def measure(kinds: list[Kind], length: Length, now: Round) -> Late:
    """One round."""
    rng = random.Random(f"{now.number}-{length.turns}")
    with contextlib.ExitStack() as stores:
        with contextlib.ExitStack() as processes:
            takes_part = [kind for kind in kinds if kind.does("one")]
            runners = _start(takes_part, length, now, stores, processes)
            _append(runners, length, rng, now)
            for runner in runners:
                if runner.times:
                    _close(runner, length, now)
        _note(runners, length, now)
        if now.number < length.rounds_read:
            have = [runner for runner in runners if runner.times]
            readers = [(kind, runner) for runner in have for kind in kinds if _is_reader(kind, runner)]
            for kind, runner in rng.sample(readers, len(readers)):
                now.tell(f"{kind.name} reads")
                _read(kind, runner.place, length, len(runner.times), now)
    slow = {runner.name for runner in runners if sum(runner.times) > length.cap_s} - {BASE, OURS}
    stopped = {runner.name for runner in runners if 0 < len(runner.times) < length.turns}
    return Late(slow, stopped)


def _is_reader(kind: Kind, runner: Runner) -> bool:
    return kind.does("read") and runner.name in (kind.name, kind.reads)


def _start(
    kinds: list[Kind], length: Length, now: Round, stores: contextlib.ExitStack, processes: contextlib.ExitStack
) -> list[Runner]:
    runners = []
    for kind in kinds:
        place = stores.enter_context(now.places.place(kind))
        runner = Runner(kind, processes.enter_context(Process(kind)), place)
        runner.process.send("open", place=place)
        runners.append(runner)
    ready = []
    for runner in runners:
        now.tell(f"{runner.name} starts")
        try:
            runner.process.receive()
            ready.append(runner)
        except Failed as exc:
            _failed(runner, "one", length, exc, now)
    return ready


def _append(runners: list[Runner], length: Length, rng: random.Random, now: Round) -> None:
    step = max(5, length.turns // CHUNKS)
    for first in range(1, length.turns + 1, step):
        last = min(length.turns, first + step - 1)
        going = [runner for runner in runners if not runner.is_over]
        for runner in rng.sample(going, len(going)):
            now.tell(f"{runner.name} at turn {first:,} of {length.turns:,}")
            left = length.cap_of(runner.kind) - sum(runner.times)
            try:
                answer = runner.process.ask("append", first=first, last=last, cap_s=left)
            except Failed as exc:
                runner.is_over, runner.times = True, []
                _failed(runner, "one", length, exc, now)
                continue
            runner.times += answer["times"]
            runner.cpu_s += answer["cpu_s"]
            runner.is_over = len(runner.times) < last or sum(runner.times) > length.cap_of(runner.kind)


def _close(runner: Runner, length: Length, now: Round) -> None:
    """Asks for the state where it is not read again, and how the contender was set."""
    try:
        if now.number >= length.rounds_read:
            wrong = runner.process.ask("check", turns=len(runner.times)).get("wrong")
            if wrong:
                now.results.complain(Trouble(runner.name, "one", length.turns, "wrong", wrong))
        closed: dict[str, Any] = runner.process.ask("close")
    except Failed as exc:
        _failed(runner, "close", length, exc, now)
        return
    now.note(runner.name, "one.memory_mb", length.turns, closed["memory_mb"])
    for about in now.results.about:
        if about.name == runner.name:
            about.settings, about.is_full = closed["settings"], is_full(closed["settings"])


def _failed(runner: Runner, what: str, length: Length, exc: Failed, now: Round) -> None:
    now.results.complain(Trouble(runner.name, what, length.turns, "failed", str(exc)))


def _note(runners: list[Runner], length: Length, now: Round) -> None:
    base = next((runner.times for runner in runners if runner.name == BASE), [])
    for runner in runners:
        done = len(runner.times)
        if 0 < done < length.turns:
            text = f"at turn {done:,} after {length.cap_of(runner.kind):.0f} s"
            now.results.stop(runner.name, length.turns, text)
        if done < 2 or now.results.trouble(runner.name, "one", length.turns, ("wrong",)):
            continue
        times = runner.times[1:]
        tenth, spent = max(1, len(times) // 10), sum(times)
        found = {
            "turns_per_s": len(times) / spent,
            "cpu_us": runner.cpu_s / len(times) * 1e6,
            "cold_ms": runner.times[0] * 1e3,
            "first_us": statistics.mean(times[:tenth]) * 1e6,
            "last_us": statistics.mean(times[-tenth:]) * 1e6,
            "bytes": now.places.size(runner.kind, runner.place) / done,
            "done": done,
        }
        if len(base) >= done:
            found["ratio"] = sum(base[1:done]) / spent
        for what, value in found.items():
            now.note(runner.name, f"one.{what}", length.turns, value)
        _note_curve(runner, length, now)


def _note_curve(runner: Runner, length: Length, now: Round) -> None:
    """The mean between two points, at the second. The points are the same for all, so that rounds of a contender that
    is stopped somewhere else each time can be laid over each other."""
    before = 1
    for end in CURVE:
        if end > len(runner.times):
            return
        now.note(runner.name, f"curve.{length.turns}", end, statistics.mean(runner.times[before:end]) * 1e6)
        before = end


def _read(kind: Kind, place: str, length: Length, done: int, now: Round) -> None:
    with Process(kind) as process:
        try:
            resumed = process.ask("resume", place=place)
            taken = time.perf_counter() - process.started
            answer = process.ask("read", place=place, turns=done, verify=now.number == 0)
        except Failed as exc:
            now.results.complain(Trouble(kind.name, "read", length.turns, "failed", str(exc)))
            return
    for what, text in answer["wrong"].items():
        now.results.complain(Trouble(kind.name, f"read.{what}", length.turns, "wrong", text))
    for what, text in answer["failed"].items():
        now.results.complain(Trouble(kind.name, f"read.{what}", length.turns, "failed", text))
    now.results.events_verified += answer["events"]
    if "load" in answer["wrong"]:
        return
    now.note(kind.name, "read.resume_ms", length.turns, taken * 1e3)
    now.note(kind.name, "read.memory_mb", length.turns, resumed["memory_mb"])
    for what in _READ:
        if what in answer["ms"]:
            now.note(kind.name, f"read.{what}_ms", length.turns, answer["ms"][what])
