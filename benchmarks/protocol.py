"""What every contender can be asked, whether it is a bare loop, a peer, or wakelog.

A contender is one session of a store that has a place to itself: a folder, or a database of a PostgreSQL server. Points
in a session are turn numbers. A contender that has no way to do something raises `Unsupported`, and the tables show a
dash. Peers are untyped here: what their libraries give is `Any`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

from benchmarks.turns import State, Turn, differences

A = TypeVar("A")
Settings = dict[str, Any]
PRAGMAS = ("journal_mode", "synchronous", "busy_timeout")


class Unsupported(Exception):
    """There is no way to ask this of a contender."""


class Contender:
    """One session. It is created where there is none."""

    is_bounded = False
    """Whether `load` gives a summary, as our state document is one, rather than the reference state with its lists."""
    abandons = False
    """Whether calls pending at a fork point stay the parent's to finish, so that the child has none."""

    one_in_a_process = False
    """Whether the library has one object for the whole process, so that nothing is opened twice."""

    def __init__(self, place: str, session: str = "bench", beside: Self | None = None) -> None:
        """`beside` is another session of the same store in this process; what the documentation shares is shared."""
        self.place, self.session = place, session

    def append(self, turn: Turn) -> None:
        """Stores a turn; it is durable on return."""
        raise NotImplementedError

    def load(self, at: int | None = None) -> Any:
        """The state now, or as of the end of a turn."""
        raise Unsupported

    def fork(self, at: int) -> Callable[[], Any]:
        """Makes another session with the same history up to a turn, durable on return; gives the way to load it."""
        raise Unsupported

    def diff(self, a: int, b: int) -> Any:
        """What changed from the end of one turn to the end of another. Only wakelog has this verb; others load both."""
        return differences(self.load(a), self.load(b))

    def recent_files(self, turns: int) -> list[str]:
        """The files modified in the last turns, by whatever reads least."""
        state: State = self.load()
        return list(state["files_modified"][-turns:])

    def settings(self) -> Settings:
        """How durable it is, asked of its own connection."""
        return {}

    def close(self) -> None: ...


class AsyncContender(Contender):
    """A contender whose library is asynchronous. Its sessions are tasks of one loop."""

    def __init__(self, place: str, session: str = "bench", beside: Self | None = None) -> None:
        super().__init__(place, session, beside)
        self.loop: asyncio.AbstractEventLoop = beside.loop if beside else asyncio.new_event_loop()
        self.run(self.aopen(beside))

    def run(self, work: Awaitable[A]) -> A:
        async def wait() -> A:
            return await work

        return self.loop.run_until_complete(wait())

    async def aopen(self, beside: Self | None) -> None:
        raise NotImplementedError

    async def aappend(self, turn: Turn) -> None:
        raise NotImplementedError

    async def aload(self, at: int | None = None) -> Any:
        raise Unsupported

    async def aclose(self) -> None: ...

    def append(self, turn: Turn) -> None:
        self.run(self.aappend(turn))

    def load(self, at: int | None = None) -> Any:
        return self.run(self.aload(at))

    def close(self) -> None:
        self.run(self.aclose())


def pragmas(ask: Callable[[str], Any]) -> Settings:
    """SQLite's settings through a function that gives the one value of a statement."""
    return {name: ask(f"pragma {name}") for name in PRAGMAS}


def is_full(settings: Settings) -> bool | None:
    """Whether an acknowledged turn survives a power cut, by what the settings say; None where they say nothing."""
    if "synchronous" in settings:
        # 2 is FULL, 3 EXTRA. At 1 a WAL loses the newest turns.
        return str(settings["synchronous"]).lower() in ("2", "3", "full", "extra")
    if "synchronous_commit" in settings:
        return str(settings["synchronous_commit"]) == "on"
    if "sync" in settings:
        return bool(settings["sync"])
    return None
