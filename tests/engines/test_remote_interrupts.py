"""An interrupt while a connection to a server is taken or given back leaves the others usable."""

import contextlib
import queue
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from wakelog.engines.remote.connection import KEPT_MAX, Connections

STEPS_MAX = 1000


class _Interrupt(BaseException):
    pass


def _interrupt_at(step: int, act: Callable[[], object]) -> bool:
    """Raises inside `act`, before its instruction number `step`; false if it has fewer. A signal can come before any
    instruction."""
    left = step

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise _Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except _Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def _hangs(pool: Any) -> bool:
    def use() -> None:
        with contextlib.suppress(queue.Empty, queue.Full):
            pool.put(pool.get(block=False), block=False)

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(5)
    return thread.is_alive()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_interrupt_at_any_step_leaves_the_idle_connections_usable(scheme: str) -> None:
    def take_and_give_back() -> None:
        pool.put(pool.get(block=False), block=False)

    for step in range(STEPS_MAX):
        connections = Connections(f"{scheme}://127.0.0.1:1", {})  # its end would empty the pool
        pool: Any = connections._pool.pool
        if not _interrupt_at(step, take_and_give_back):
            break
        assert not _hangs(pool), f"interrupted before instruction {step}"
    assert 0 < step < STEPS_MAX - 1


def test_idle_connections_are_kept_up_to_a_limit_and_the_newest_is_taken() -> None:
    connections = Connections("http://127.0.0.1:1", {})
    pool: Any = connections._pool.pool
    assert pool.qsize() == KEPT_MAX
    with pytest.raises(queue.Full):
        pool.put("one more", block=False)
    for _ in range(KEPT_MAX):
        assert pool.get(block=False) is None
    with pytest.raises(queue.Empty):
        pool.get(block=False)
    pool.put("older")
    pool.put("newer")
    assert [pool.get(), pool.get()] == ["newer", "older"]
