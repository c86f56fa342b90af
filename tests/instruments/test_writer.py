"""The thread that writes: in order, waited for, and never in the way."""

import asyncio
import contextvars
import functools
import threading

import trio

from wakelog.instruments.writer import RecordWriter


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
