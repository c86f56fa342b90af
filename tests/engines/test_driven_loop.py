"""Signals while a loop is driven by the main thread: handlers run between two callbacks, never inside one."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from wakelog.engines.driven_loop import DrivenLoop


@pytest.fixture
def loop() -> Iterator[DrivenLoop]:
    loop = DrivenLoop("test")
    yield loop
    loop.close()


@pytest.fixture
def handle() -> Iterator[Callable[[Any], object]]:
    """Sets the handler of alarms."""
    before = signal.getsignal(signal.SIGALRM)
    yield lambda handler: signal.signal(signal.SIGALRM, handler)
    signal.signal(signal.SIGALRM, before)


def strike(*_: object) -> None:
    raise KeyboardInterrupt


async def signalled(steps: list[str]) -> str:
    os.kill(os.getpid(), signal.SIGALRM)
    steps.append("same callback")
    await asyncio.sleep(0.05)
    steps.append("later")
    return "done"


def test_a_handler_that_raises_does_so_after_the_callback(loop: DrivenLoop, handle: Callable[[Any], object]) -> None:
    steps: list[str] = []
    handle(strike)
    with pytest.raises(KeyboardInterrupt):
        loop.run(signalled(steps))
    assert steps == ["same callback"]
    assert signal.getsignal(signal.SIGALRM) is strike


def test_a_handler_that_does_not_raise_runs_and_the_work_goes_on(
    loop: DrivenLoop, handle: Callable[[Any], object]
) -> None:
    steps: list[str] = []

    def note(*_: object) -> None:
        steps.append("handled")

    handle(note)
    assert loop.run(signalled(steps)) == "done"
    assert steps == ["same callback", "handled", "later"]
    assert signal.getsignal(signal.SIGALRM) is note


def test_a_handler_that_sets_another_handler_is_not_overruled(
    loop: DrivenLoop, handle: Callable[[Any], object]
) -> None:
    handle(lambda *_: handle(strike))
    assert loop.run(signalled([])) == "done"
    assert signal.getsignal(signal.SIGALRM) is strike


def test_a_loop_that_waits_is_interrupted_at_once(loop: DrivenLoop, handle: Callable[[Any], object]) -> None:
    handle(strike)
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGALRM))
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        loop.run(asyncio.sleep(60))
    assert time.monotonic() - begun < 30


def test_what_is_not_handled_in_python_is_left_to_the_system(loop: DrivenLoop, handle: Callable[[Any], object]) -> None:
    handle(signal.SIG_IGN)
    assert loop.run(signalled([])) == "done"
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
