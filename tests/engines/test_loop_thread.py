"""An event loop in its own thread."""

import asyncio
import threading

from wakelog.engines.loop_thread import LoopThread


def test_what_was_scheduled_beside_the_stop_still_runs() -> None:
    """Such as the call that wakes a task whose append was answered: without it the task would wait for ever."""
    loop, may_go_on, has_run = LoopThread("test"), threading.Event(), threading.Event()
    loop.soon(may_go_on.wait, 30)  # so that the loop finds the next two together
    loop.soon(lambda: asyncio.get_running_loop().call_soon(has_run.set))
    loop.soon(lambda: asyncio.get_running_loop().stop())
    may_go_on.set()
    loop.stop()
    assert has_run.is_set()
