"""One client process of the chaos runs. It works until it is told to stop, and writes down what it did.

Each client appends to sessions of its own and to sessions that all clients share, asks for heads, forks, takes leases,
follows a shared session, and makes the same calls with effects as all others. Every append of a thread has an id: one
without an answer is repeated with the same id, until it is answered. Beside the threads are many tasks (crowd.py). What
it does goes to a file, a line of JSON each, written when it is over."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import wakelog
from tests.chaos.crowd import run_crowd, session_names
from tests.chaos.history import Operation
from wakelog.errors import ConflictError, NotAllowedError, UnavailableError, WakelogError
from wakelog.model import events as ev
from wakelog.session import Session
from wakelog.store import Store

SHARED = 2
OWN = 2
T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


class ChaosClient:
    """Writes to a store, and notes what it was told."""

    def __init__(self, url: str, name: str, path: str, seed: int, tasks: int = 0) -> None:
        self.name, self.seed, self.tasks = name, seed, tasks
        self._out = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._stop = threading.Event()
        self._clock = Path(path).with_suffix(".clock")
        self.store: Store = wakelog.open(url, clock=self._now)

    def _now(self) -> int:
        """The time, wrong by as many seconds as a file beside the notes says."""
        try:
            wrong_s = int(self._clock.read_text() or 0)
        except FileNotFoundError:
            wrong_s = 0
        return time.time_ns() // 1000 + wrong_s * 1_000_000

    def note(self, record: object) -> None:
        os.write(self._out, _encode(record) + b"\n")

    def run(self) -> None:
        names = [f"{self.name}-{i}" for i in range(OWN)] + [f"shared-{i}" for i in range(SHARED)]
        threads = [threading.Thread(target=self._guarded, args=(self._write, n)) for n in names]
        threads.append(threading.Thread(target=self._guarded, args=(self._follow, "shared-0")))
        threads.append(threading.Thread(target=self._guarded, args=(self._act, "acts")))
        threads.append(threading.Thread(target=self._guarded, args=(self._run_tasks, "tasks")))
        for thread in threads:
            thread.start()
        sys.stdin.readline()  # until told to stop
        self._stop.set()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive(), "a client hangs"
        self.store.close()

    def _guarded(self, work: Callable[[str], None], name: str) -> None:
        try:
            work(name)
        except BaseException as exc:
            self.note({"error": f"{self.name} on {name}: {exc!r}"})
            raise

    def _write(self, name: str) -> None:
        dice = random.Random(f"{self.seed} {self.name} {name}")
        session = self._patiently(lambda: self.store.session(name))
        number = 0
        while not self._stop.is_set():
            number += 1
            self._append(session, f"{self.name}/{name}/{number}")
            if dice.random() < 0.3:
                self._head(session)
            if dice.random() < 0.02:
                self._fork(session, number)
            if dice.random() < 0.03 and not name.startswith("shared"):
                self._patiently(lambda: session.life.take_lease(self.name, force=True))

    def _append(self, session: Session[Any], key: str) -> None:
        began = time.monotonic()
        event = ev.FactRecorded(key=key, value=1)
        while True:
            try:
                head = session.append(event, commit_id=key)
            except (UnavailableError, ConflictError) as exc:
                self.note({"lost": exc.kind, "at": time.monotonic()})
                if self._stop.is_set():
                    self.note(Operation(self.name, session.id, "append", began, 0.0, 0, key))
                    return
                time.sleep(0.05)
                continue
            self.note(Operation(self.name, session.id, "append", began, time.monotonic(), head.seq, key))
            return

    def _head(self, session: Session[Any]) -> None:
        began = time.monotonic()
        try:
            head = self.store.engine.head(session.id)
        except UnavailableError:
            return
        self.note(Operation(self.name, session.id, "head", began, time.monotonic(), head.seq))

    def _fork(self, session: Session[Any], number: int) -> None:
        try:
            fork = session.fork()
        except WakelogError:
            return  # without an answer it may be there, and then it is empty
        for i in range(2):
            self._append(fork, f"{self.name}/{session.id}/{number}/fork/{i}")

    def _act(self, name: str) -> None:
        """Calls with effects: all clients make the same ones, and one of them may run each."""
        session = self._patiently(lambda: self.store.session(name))

        def effect(step: int) -> None:
            self.note({"effect": f"{name}/{step}"})

        for step in itertools.count(1):
            if self._stop.is_set():
                return
            try:
                session.call(effect, {"step": step}, id=f"step-{step}")
            except WakelogError as exc:  # it may have run or not; the next one is another
                self.note({"lost": exc.kind, "at": time.monotonic()})
            time.sleep(0.02)

    def _run_tasks(self, _: str) -> None:
        sessions = []
        for name in session_names(self.name, self.tasks):
            if self._stop.is_set():
                return
            sessions.append(self._patiently(lambda name=name: self.store.session(name)))  # type: ignore[misc]
        asyncio.run(run_crowd(self.name, sessions, self.note, self._stop.is_set))

    def _follow(self, name: str) -> None:
        """A tail: every event once, in order, without a hole."""
        session = self._patiently(lambda: self.store.session(name))
        engine, seen = self.store.engine, 0
        while not self._stop.is_set():
            try:
                if not engine.wait(session.id, after=seen, timeout_s=0.5):
                    continue
                for commit in engine.read(session.id, after=seen):
                    if commit.first != seen + 1:
                        self.note({"error": f"the tail of {name} jumps from {seen} to {commit.first}"})
                    seen = commit.last
            except UnavailableError:
                time.sleep(0.05)
        self.note({"tail": seen})

    def _patiently(self, work: Callable[[], T]) -> T:
        while True:
            try:
                return work()
            except (UnavailableError, ConflictError, NotAllowedError) as exc:
                if self._stop.is_set():
                    raise
                self.note({"lost": exc.kind, "at": time.monotonic()})
                time.sleep(0.05)


if __name__ == "__main__":
    ChaosClient(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])).run()
