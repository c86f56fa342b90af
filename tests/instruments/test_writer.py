"""The thread that writes: in order, waited for, and never in the way."""

import asyncio
import contextvars
import functools
import os
import threading

import pytest
import trio

from wakelog.instruments.writer_thread import RecordWriter


def test_jobs_are_done_in_order_and_waited_for() -> None:
    writer, done = RecordWriter(60), list[int]()
    for number in range(20):
        last = writer.put(functools.partial(done.append, number))
    writer.wait(last)
    assert done == list(range(20))
    writer.close(lambda: done.append(99))
    assert done[-1] == 99


def test_a_job_sees_what_was_around_the_line_that_handed_it_over() -> None:
    around = contextvars.ContextVar("around", default="")
    writer, seen = RecordWriter(60), []
    around.set("here")
    writer.wait(writer.put(lambda: seen.append(around.get())))
    writer.close(lambda: None)
    assert seen == ["here"]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of Python 3.12 and later: that is what this is about
def test_a_fork_waits_for_the_job_in_hand() -> None:
    """The child inherits no lock that is held in the middle of a job."""
    writer, lock, begun, told = RecordWriter(60), threading.Lock(), threading.Event(), list[str]()
    forking = threading.Event()
    os.register_at_fork(before=forking.set)  # before what the writer does then

    def work() -> None:
        with lock:
            begun.set()
            forking.wait(180)
            told.append("done")

    writer.put(work)
    assert begun.wait(180)
    child = os.fork()
    if child == 0:
        os._exit(0 if told == ["done"] and lock.acquire(blocking=False) else 1)
    assert os.waitpid(child, 0)[1] == 0
    writer.close(lambda: told.append("closed"))
    assert told == ["done", "closed"], "it goes on after the fork"


def test_a_job_that_hung_holds_up_one_fork_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakelog.instruments.writer_thread.FORK_WAIT_S", 0.01)
    writer, free, begun = RecordWriter(60), threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        free.wait(180)

    hung = writer.put(hang)
    assert begun.wait(180)
    assert not writer.pause()
    monkeypatch.setattr("wakelog.instruments.writer_thread.FORK_WAIT_S", 3600.0)
    assert not writer.pause(), "it is not waited for again"
    free.set()
    writer.wait(hung)
    writer.wait(writer.put(lambda: None))
    assert writer.pause()
    writer.resume()
    writer.close(lambda: None)


def test_nobody_waits_for_a_store_that_hangs() -> None:
    writer, free, done = RecordWriter(0.01), threading.Event(), list[int]()

    def hang() -> None:
        free.wait(180)

    writer.wait(writer.put(hang))
    writer._wait_s = 3600  # behind now: nobody waits for the next ones at all
    writer.wait(writer.put(lambda: done.append(1)))
    assert done == []
    free.set()
    writer.close(lambda: None)
    assert done == [1]


def test_it_is_waited_for_in_event_loops_of_both_kinds() -> None:
    writer, done = RecordWriter(60), []

    async def work() -> None:
        await writer.wait_async(writer.put(lambda: done.append(1)))
        assert len(done) % 2 == 1
        await writer.wait_async(writer.put(lambda: done.append(2)))

    asyncio.run(work())
    trio.run(work)
    writer.close(lambda: None)
    assert done == [1, 2, 1, 2]


def test_who_is_cancelled_while_waiting_does_not_stop_the_writer() -> None:
    writer, free, done = RecordWriter(60), threading.Event(), list[int]()

    def slow() -> None:
        free.wait(180)
        done.append(1)

    async def work() -> None:
        task = asyncio.create_task(writer.wait_async(writer.put(slow)))
        await asyncio.sleep(0)
        task.cancel()
        assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)

    asyncio.run(work())
    free.set()
    writer.close(lambda: done.append(2))
    assert done == [1, 2]
