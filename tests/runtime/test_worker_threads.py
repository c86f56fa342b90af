"""Functions that run in threads for an event loop: all of them run, and nothing is left behind."""

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from wakelog.runtime.bridge import in_thread, in_thread_to_the_end
from wakelog.runtime.worker_threads import AT_ONCE, ThreadCall, WorkerThreads

TIMEOUT_S = 30.0


def run_forked(work: Callable[[], None]) -> int:
    """The exit code of a forked child that does the work."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_the_result_and_the_error_come_back() -> None:
    async def ask() -> None:
        assert await in_thread(divmod, 7, 2) == (3, 1)
        assert await in_thread_to_the_end(divmod, 7, 2) == (3, 1)
        for run in (in_thread, in_thread_to_the_end):
            with pytest.raises(ZeroDivisionError):
                await run(divmod, 7, 0)

    asyncio.run(ask())


def test_a_function_has_the_context_of_its_caller() -> None:
    place = contextvars.ContextVar("place", default="nowhere")

    async def ask() -> None:
        place.set("here")
        assert await in_thread(place.get) == "here"
        await in_thread(place.set, "there")
        assert place.get() == "here"

    asyncio.run(ask())


def test_more_calls_than_may_run_at_once_all_run() -> None:
    at_work, most, lock = 0, 0, threading.Lock()

    def work(number: int) -> int:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        for _ in range(100):
            os.stat(".")
        with lock:
            at_work -= 1
        return number

    async def ask() -> list[int]:
        return await asyncio.gather(*(in_thread(work, number) for number in range(10 * AT_ONCE)))

    assert asyncio.run(ask()) == list(range(10 * AT_ONCE))
    assert most <= AT_ONCE


def test_a_function_may_run_a_loop_of_its_own_when_all_threads_of_its_loop_are_busy() -> None:
    together = threading.Barrier(AT_ONCE)

    def work() -> int:
        together.wait(TIMEOUT_S)
        return asyncio.run(in_thread(int, "7"))

    async def ask() -> list[int]:
        return await asyncio.gather(*(in_thread(work) for _ in range(AT_ONCE)))

    assert asyncio.run(ask()) == [7] * AT_ONCE


@pytest.mark.parametrize("is_to_the_end", [False, True])
def test_a_cancelled_caller_leaves_its_function_running(is_to_the_end: bool) -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(TIMEOUT_S)
        ended.set()

    async def ask() -> None:
        run = in_thread_to_the_end if is_to_the_end else in_thread
        task = asyncio.ensure_future(run(work))
        await in_thread(begun.wait, TIMEOUT_S)
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert task.done() is not is_to_the_end
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set() or not is_to_the_end

    asyncio.run(ask())
    assert ended.wait(TIMEOUT_S)


def test_a_loop_that_was_closed_is_not_told() -> None:
    loop, go_on, threads = asyncio.new_event_loop(), threading.Event(), WorkerThreads()
    threads.start(ThreadCall(loop, lambda: go_on.wait(TIMEOUT_S)))
    loop.close()
    go_on.set()
    threads.stop()


def test_a_thread_that_is_idle_ends() -> None:
    async def ask(threads: WorkerThreads) -> list[threading.Thread]:
        call = ThreadCall(asyncio.get_running_loop(), threading.current_thread)
        threads.start(call)
        await call.wait()
        return [call.result()]

    threads = WorkerThreads(idle_s=0.001)
    for _ in range(20):  # also in the moment in which it ends
        for thread in asyncio.run(ask(threads)):
            thread.join(TIMEOUT_S if _ % 2 else 0)
    threads.stop()
    assert not threads._threads


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_threads_of_its_own() -> None:
    asyncio.run(in_thread(int, "7"))

    def ask() -> None:
        assert asyncio.run(in_thread(int, "8")) == 8

    assert run_forked(ask) == 0


def test_a_process_ends_after_what_its_threads_are_doing() -> None:
    program = """
import asyncio, threading, time
from wakelog.runtime.bridge import in_thread

def work():
    begun.set()
    time.sleep(0.2)
    print("done", flush=True)

async def ask():
    task = asyncio.ensure_future(in_thread(work))
    await in_thread(begun.wait)
    task.cancel()

begun = threading.Event()
asyncio.run(ask())
print("leaving", flush=True)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert ran.stdout.split() == ["leaving", "done"]
    assert not ran.stderr
