"""The holder of an open turn: the process that opened it, while it is alive.

The holder is a field of `turn.started`, so it costs no commit of its own, and it is in the state while the turn is
open. It names a process so that another one can tell whether it is alive:

- on the same machine, by its pid and the time it was started (pids are used again);
- from elsewhere, by its last heartbeat: the turn's start, then a heartbeat row of the engine.

A process that has ended, or was silent too long, has lost its turn. The turn's attempt number makes a takeover safe
(`turn-taken-over`), never a clock.

One daemon thread sends the heartbeats for all turns of a process. It wakes every few seconds, so a short turn is over
before its first heartbeat: a loop of short turns pays only for an entry in a set.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from wakelog.errors import ConflictError, UnavailableError
from wakelog.log.append import now_us
from wakelog.model.records import Heartbeat

if TYPE_CHECKING:
    from wakelog.log.log import Log

TTL_S = 30.0
"""How long a heartbeat is valid."""
LOOK_S = 5.0
"""How often the heartbeat thread wakes."""
_PLATFORM: str = sys.platform


class TurnHolder(msgspec.Struct, frozen=True):
    """A process, and which of its turns."""

    pid: int
    host: str
    machine: str
    """One boot of one machine and one pid namespace in it; empty where unknown."""
    born: str
    """When the process was started, on its machine's clock."""
    since: int
    """When it opened the turn, in microseconds."""
    token: str

    def __str__(self) -> str:
        return f"{self.pid}@{self.host}#{self.machine}.{self.born}.{self.since:x}.{self.token}"

    @property
    def name(self) -> str:
        """For people."""
        return f"process {self.pid} on {self.host}"

    @property
    def is_here(self) -> bool:
        """Whether it is this process."""
        return (self.pid, self.machine, self.born) == (os.getpid(), _machine(), _born_here(os.getpid()))

    @property
    def is_held_here(self) -> bool:
        """Whether the turn is open in this process, and still has a holder."""
        return self.is_here and any(hold.holder.token == self.token for hold in _held())

    @property
    def is_gone(self) -> bool:
        """Whether the process is known to have ended or released the turn. False where that is unknown."""
        if self.is_here:
            return not self.is_held_here
        if not self.machine or self.machine != _machine():
            return False
        born = _born(self.pid)
        return born is not None and born != self.born

    def has_valid_beat(self, now: int, beat: Heartbeat | None) -> bool:
        """Whether its last heartbeat is still valid."""
        until = self.since + int(TTL_S * 1e6)
        if beat is not None and beat.holder == str(self):
            until = max(until, beat.until)
        return now <= until


def parse_holder(text: str) -> TurnHolder | None:
    """Parses a stored holder; None for one of another form."""
    who, _, rest = text.rpartition("#")
    pid, _, host = who.partition("@")
    parts = rest.split(".")
    with contextlib.suppress(ValueError):
        machine, born, since, token = parts
        return TurnHolder(int(pid), host, machine, born, int(since, 16), token)
    return None


class TurnHold:
    """A turn of this process. It is kept alive until it is released or garbage collected."""

    def __init__(self, log: Log) -> None:
        pid = os.getpid()
        self.log = log
        self.holder = TurnHolder(pid, _host(), _machine(), _born_here(pid), now_us(), os.urandom(3).hex())
        self.text = str(self.holder)
        self._until = self.holder.since + int(TTL_S * 1e6)
        _pulse.add(self)

    def release(self) -> None:
        _pulse.remove(self)

    def beat(self) -> None:
        """Sends a heartbeat, if the last one is getting old."""
        log, now = self.log, now_us()
        if self._until - now > int(TTL_S * 2e6 / 3):
            return
        turn, lease = log.part("turn"), log.part("lease")
        if turn.get("holder") != self.text:
            self.release()  # it is over, or was taken over
            return
        self._until = now + int(TTL_S * 1e6)
        last = log.engine.last_beat(log.id)
        if lease["holder"] and last is not None and last.holder == lease["holder"] and last.until > now:
            return  # a lease of another holder is what counts
        log.engine.beat(log.id, Heartbeat(lease["epoch"], self.text, self._until))


def hold_turn(log: Log) -> TurnHold | None:
    """A hold on the turn that is about to be opened. None where the log has a clock of its own, as in made-up sessions:
    no process lives by that."""
    return TurnHold(log) if log.clock is now_us else None


def living_turn(log: Log) -> TurnHolder | None:
    """The process that has the open turn, unless it has ended or was silent too long."""
    holder = open_turn_holder(log)
    if holder is None or holder.is_gone:
        return None
    if holder.is_held_here or holder.has_valid_beat(now_us(), log.engine.last_beat(log.id)):
        return holder
    return None


def open_turn_holder(log: Log) -> TurnHolder | None:
    """The process that opened the open turn, dead or alive; None where no turn is open or it names none."""
    turn = log.part("turn")
    return parse_holder(turn.get("holder", "")) if turn["status"] == "open" else None


def refuse_if_held(log: Log) -> None:
    """ConflictError, with the pid and the host, while a living process has the open turn."""
    holder = living_turn(log)
    if holder is None:
        return
    name, number = str(log), log.part("turn")["number"]
    where = "in this process" if holder.is_here else f"in {holder.name}"
    raise ConflictError(
        f"turn @{number} of {name} is open {where}, which is alive",
        kind="leased",
        hint="wait until it is over, end that process, or take it over: session.life.take_lease(…, force=True)",
    )


def end_of_holder(log: Log) -> str:
    """Why an open turn is over, as far as that is known."""
    holder = open_turn_holder(log)
    if holder is None:
        return "another turn was begun"
    if holder.is_here:
        return "its process left it"
    if holder.is_gone:
        return "the process ended inside it"
    if living_turn(log) is None:
        return f"{holder.name} sent no heartbeat for {int(TTL_S)} s"
    return f"it was taken over from {holder.name}"


class _Pulse:
    """The thread that sends heartbeats for the long turns of the process."""

    def __init__(self) -> None:
        self.holds: weakref.WeakSet[TurnHold] = weakref.WeakSet()
        # Reentrant: a signal handler may fork while its own thread holds this, even inside another fork's hooks.
        self.lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def add(self, hold: TurnHold) -> None:
        with self.lock:
            self.holds.add(hold)
            self._start()

    def remove(self, hold: TurnHold) -> None:
        with self.lock:
            self.holds.discard(hold)

    def list(self) -> list[TurnHold]:
        with self.lock:
            return list(self.holds)

    def _start(self) -> None:
        if self._thread is None:
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._stop,), name="wakelog beat", daemon=True)
            self._thread.start()

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(LOOK_S):
            for hold in self.list():
                self.beat(hold)
            with self.lock:
                if not self.holds and self._stop is stop:
                    self._thread = None
                    return

    def beat(self, hold: TurnHold) -> None:
        try:
            hold.beat()
        except UnavailableError:
            return  # the next look tries again
        except Exception:  # the store was closed or the session deleted: nothing is left to keep alive
            self.remove(hold)

    # A thread does not survive a fork, and a lock may be held then.

    def before_fork(self) -> None:
        with self.lock:
            thread, self._thread = self._thread, None
            self._stop.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(1.0)
        self.lock.acquire()

    def after_fork_in_parent(self) -> None:
        if self.holds:
            self._start()
        self.lock.release()


_pulse = _Pulse()


def _held() -> list[TurnHold]:
    return _pulse.list()


def _after_fork_in_child() -> None:
    global _pulse
    _pulse = _Pulse()  # the turns are the parent's


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _pulse.before_fork(),
        after_in_parent=lambda: _pulse.after_fork_in_parent(),
        after_in_child=_after_fork_in_child,
    )


# Processes


@functools.lru_cache(maxsize=1)
def _host() -> str:
    import platform  # not for a process that opens no turn

    return platform.node() or "unknown"


@functools.lru_cache(maxsize=1)
def _machine() -> str:
    if _PLATFORM == "win32":
        return ""
    where = [_host()]
    with contextlib.suppress(OSError):
        where.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        where.append(os.readlink("/proc/self/ns/pid"))  # a container has its own pids
    return hashlib.sha256("\n".join(where).encode()).hexdigest()[:8]


@functools.lru_cache(maxsize=4)
def _born_here(pid: int) -> str:
    return _born(pid) or ""


def _born(pid: int) -> str | None:
    """When a process of this machine was started; empty when there is none; None where unknown."""
    if _PLATFORM == "win32":
        return None
    if _PLATFORM == "linux":
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return "" if Path("/proc/self/stat").exists() else None
        except OSError:
            return None
        state, *fields = stat[stat.rfind(b")") + 2 :].split()
        return "" if state in (b"Z", b"X") else fields[18].decode()
    import subprocess

    try:
        shown = subprocess.run(
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False, timeout=5
        ).stdout.split(None, 1)
    except (OSError, subprocess.SubprocessError):
        return None
    return "" if len(shown) < 2 or shown[0].startswith("Z") else hashlib.sha256(shown[1].encode()).hexdigest()[:8]
