"""An interrupt at every place of an append: nothing that this process believes afterwards is wrong.

The interrupt is raised by a trace function, at one line or return after another, in the rooms that move the tip.
"""

import itertools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import wakelog
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotAllowedError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.testing.builders import new_session

ROOMS = tuple(str(Path(wakelog.__file__).parent / room) for room in ("log", "state"))

EMPTY_THE_LIST = ev.StatePatched(
    patch=[{"op": "add", "path": "/data/list/0", "value": 0}, {"op": "remove", "path": "/data/list"}]
)
"""Half applied, its first operation cannot be taken back: the place is gone."""


def append(log: Log, other: Log) -> None:
    log.append(ev.FactRecorded(key="a", value="b"), EMPTY_THE_LIST)


def append_something_illegal(log: Log, other: Log) -> None:
    with pytest.raises(NotAllowedError):
        log.append(EMPTY_THE_LIST, ev.TurnEnded())


def append_as_the_second(log: Log, other: Log) -> None:
    other.append(ev.FactRecorded(key="a", value="other"))
    log.append(EMPTY_THE_LIST)


def ask_for_the_hash(log: Log, other: Log) -> None:
    log.append(ev.FactRecorded(key="a", value="b"), EMPTY_THE_LIST)
    log.state_hash()


class Strike:
    """Interrupts a call at the nth place it comes to; knows whether there was one."""

    def __init__(self, nth: int) -> None:
        self.left = nth

    def __call__(self, act: Callable[[], None]) -> None:
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            act()
        except KeyboardInterrupt:
            assert self.left == 0
        finally:
            sys.settrace(before)

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(ROOMS):
            return None
        if event in ("line", "return") and self.left:
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
        return self._trace


ACTS: list[Callable[[Log, Log], None]] = [append, append_something_illegal, append_as_the_second, ask_for_the_hash]
STRIDE = 7


@pytest.mark.parametrize("act", ACTS)
def test_an_interrupt_leaves_no_wrong_belief(act: Callable[[Log, Log], None]) -> None:
    strike_everywhere(act, itertools.count(1 + ACTS.index(act), STRIDE))


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS)
def test_an_interrupt_at_any_place_leaves_no_wrong_belief(act: Callable[[Log, Log], None]) -> None:
    strike_everywhere(act, itertools.count(1))


def strike_everywhere(act: Callable[[Log, Log], None], places: Iterable[int]) -> None:
    for nth in places:
        engine = MemoryEngine()
        log = Log.create(engine, new_session(), ev.SessionOpened())
        log.append(ev.StatePatched(patch=[{"op": "add", "path": "/data/list", "value": [1]}]))
        log.state_hash()
        other = Log(engine, log.id)
        strike = Strike(nth)
        strike(lambda: act(log, other))  # noqa: B023
        believes_the_truth(log, nth)
        if strike.left:
            assert nth > 100, "the test does not interrupt"
            return


def believes_the_truth(log: Log, nth: int) -> None:
    """What the log tells is what is stored, also when another writer goes on, and it can be built on."""
    other = Log(log.engine, log.id)
    for _ in range(2):
        assert log.state() == other.state(), nth
        assert log.state_hash() == other.state_hash(), nth
        assert log.part("facts") == other.state()["facts"], nth
        head = other.append(ev.FactRecorded(key="c", value=f"{nth}"))
        log.append(ev.FactRecorded(key="d", value=f"{nth}"), expect=head.seq)
