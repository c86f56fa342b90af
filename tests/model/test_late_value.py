"""A value is computed once it is used, and no lock is held meanwhile."""

import threading
from typing import Any

from wakelog.model.late_value import LateValue


class _Sum:
    def __init__(self) -> None:
        self.times = 0
        self.is_slow = threading.Event()
        self.may_end = threading.Event()

    @LateValue
    def value(self) -> int:
        self.times += 1
        if threading.current_thread().name == "slow":
            self.is_slow.set()
            assert self.may_end.wait(30)
        return 42


def test_a_value_is_computed_at_its_first_use_and_kept() -> None:
    one = _Sum()
    assert one.times == 0
    assert (one.value, one.value, one.times) == (42, 42, 1)


def test_nobody_waits_for_another_thread_that_computes_it() -> None:
    """Nor would a process that was forked meanwhile, where that thread does not exist."""
    one, read = _Sum(), list[Any]()
    slow = threading.Thread(target=lambda: one.value, name="slow")
    other = threading.Thread(target=lambda: read.append(one.value))
    slow.start()
    assert one.is_slow.wait(30)
    other.start()
    other.join(30)
    one.may_end.set()
    slow.join()
    assert read == [42]


def test_two_threads_that_compute_it_at_once_get_one_object() -> None:
    class Slow:
        both = threading.Barrier(2)

        @LateValue
        def value(self) -> object:
            self.both.wait(30)
            return object()

    one, read = Slow(), list[Any]()
    threads = [threading.Thread(target=lambda: read.append(one.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(read) == 2
    assert read[0] is read[1] is one.value
