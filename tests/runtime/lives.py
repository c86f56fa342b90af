"""Processes that die, within one process, and the world they act on.

A `Life` counts the moments of a process at which it can be killed: before and after each commit, and before and after
each effect. At its last moment it raises `Killed`, and from then on nothing it tries reaches the store or the world:
what is left is what a process killed there leaves. The next life opens the same engine anew.

The `World` is the other side: it keeps what was done to it, and under which key, for ever.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import wakelog
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotAllowedError, WakelogError
from wakelog.model.records import Commit
from wakelog.session import Session
from wakelog.store import Store


class Killed(BaseException):
    """The process is dead."""


class Life:
    """A process that is killed at its `last` moment; 0: it lives on."""

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self.moments = 0
        self.is_dead = False

    def moment(self) -> None:
        """One more point where the process could be killed."""
        self.breathe()
        self.moments += 1
        if self.moments == self.last:
            self.is_dead = True
            raise Killed

    def breathe(self) -> None:
        if self.is_dead:
            raise Killed


class MortalEngine:
    """An engine as one process sees it."""

    def __init__(self, engine: Engine, life: Life) -> None:
        self._engine = engine
        self._life = life

    def submit(self, *commits: Commit) -> Any:
        self._life.moment()
        pending = self._engine.submit(*commits)
        with contextlib.suppress(WakelogError):
            pending.result()
        self._life.moment()
        return pending

    def close(self) -> None:
        """The engine outlives the process."""

    def __getattr__(self, name: str) -> Any:
        self._life.breathe()
        return getattr(self._engine, name)


def born(engine: Engine, life: Life) -> Store:
    """The store as a new process opens it."""
    return Store(MortalEngine(engine, life))


class World:
    """What was done, each thing with the tool, the input and the key it came under."""

    def __init__(self) -> None:
        self.done: list[tuple[str, Any, str]] = []

    def do(self, tool: str, given: Any, key: str) -> str:
        """Does something, and says how many times it was done by now."""
        self.done.append((tool, given, key))
        return self.answer(len(self.done) - 1)

    def do_once(self, tool: str, given: Any, key: str) -> str:
        """The same for a side that knows its keys."""
        found = self.find(key)
        return found if found is not None else self.do(tool, given, key)

    def answer(self, place: int) -> str:
        tool, given, _ = self.done[place]
        nth = sum(each[:2] == (tool, given) for each in self.done[: place + 1])
        return f"{tool}({given}) no {nth}"

    def find(self, key: str) -> str | None:
        """What was answered under a key, or None when nothing came under it."""
        places = [i for i, each in enumerate(self.done) if each[2] == key]
        return self.answer(places[0]) if places else None

    def count(self) -> Counter[tuple[str, Any]]:
        return Counter((tool, given) for tool, given, _ in self.done)

    def reconcile(self, session: Session[Any]) -> list[str]:
        """Says the truth about every call whose outcome nobody knows; also of those whose process is gone."""
        settled = []
        for action, pending in session.log.state()["pending_actions"].items():
            if pending["status"] in ("running", "uncertain"):
                found = self.find(pending["key"])
                session.calls.reconcile(
                    action, "succeeded" if found is not None else "never_ran", output=found, by="test"
                )
                settled.append(action)
        return settled


def effect(world: World, life: Life, tool: str, *, once: bool = False) -> Callable[[int], str]:
    """A function that does something to the world, and can be killed before and after."""

    def act(n: int) -> str:
        call = wakelog.current_call()
        assert call is not None
        life.moment()
        answer = (world.do_once if once else world.do)(tool, n, call.key)
        life.moment()
        return answer

    act.__name__ = tool
    return act


def seem_dead(session: Session[Any]) -> None:
    """Nothing is heard any longer of the process that has the session's open turn. It may come back."""
    turn = session._runtime.turn
    assert turn is not None
    assert turn.hold is not None
    turn.hold.release()


@contextlib.contextmanager
def stopped(kind: str) -> Iterator[None]:
    import pytest  # not for the processes that only live here: it takes longer to load than all else

    with pytest.raises(NotAllowedError) as caught:
        yield
    assert caught.value.kind == kind


def found(store: Store, name: str = "agent") -> Session[Any]:
    """The session in a new process: created when there is none."""
    return store.session(name, data={"said": []})


class Desk:
    """One engine and one world, and a new process whenever one is needed."""

    def __init__(self) -> None:
        self.engine = MemoryEngine()
        self.world = World()

    def process(self, last: int = 0) -> tuple[Session[Any], Life]:
        life = Life(last)
        return found(born(self.engine, life)), life

    @property
    def operator(self) -> Session[Any]:
        """Somebody at the command line."""
        return self.process()[0]

    def kinds(self) -> list[str]:
        return [e.kind for e in self.operator.events(kind="action")]

    def statuses(self) -> list[str]:
        return [p.status for p in self.operator.state().pending_actions.values()]
