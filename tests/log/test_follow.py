"""Following a session: each event once, in order, from whoever writes."""

import threading

import pytest

from tests.log.conftest import NewLog
from wakelog.engine import Engine
from wakelog.log import Log
from wakelog.testing.builders import fact
from wakelog.testing.contract.base import in_parallel

LONG_S = 30.0


def test_following_gives_what_is_there_and_ends_when_nothing_comes(new_log: NewLog) -> None:
    log = new_log(fact("a"), fact("b"))
    assert [e.seq for e in log.follow(timeout_s=0.01)] == [1, 2, 3]
    assert [e.seq for e in log.follow(after=2, timeout_s=0.01)] == [3]
    assert [e.seq for e in log.follow(after=3, timeout_s=0.01)] == []


def test_followers_see_every_event_once_and_in_order(engine: Engine, log: Log) -> None:
    """Three writers, three followers, begun at once; the last events wake who is still waiting."""
    total = 3 * 20 + 1
    seen: dict[int, list[int]] = {}

    def write(mine: Log) -> None:
        for i in range(10):
            mine.append(fact(str(i)), fact("again"))

    def follow(number: int) -> None:
        mine = Log(engine, log.id)
        seen[number] = []
        for entry in mine.follow(timeout_s=LONG_S):
            seen[number].append(entry.seq)
            if entry.seq == total:
                return

    works = [lambda: write(log), lambda: write(log), lambda: write(Log(engine, log.id))]
    in_parallel(lambda work: work(), [*works, *(lambda n=n: follow(n) for n in range(3))])
    assert [seen[n] for n in range(3)] == [list(range(1, total + 1))] * 3


def test_a_waiting_follower_is_woken(engine: Engine, log: Log) -> None:
    caught_up, seen = threading.Event(), []

    def follow() -> None:
        for entry in Log(engine, log.id).follow(timeout_s=LONG_S):
            seen.append(entry.seq)
            caught_up.set()
            if len(seen) == 3:
                return

    follower = threading.Thread(target=follow)
    follower.start()
    assert caught_up.wait(LONG_S)
    log.append(fact("a"))
    log.append(fact("b"))
    follower.join(LONG_S)
    assert seen == [1, 2, 3]


def test_following_a_fork_begins_with_the_shared_past(new_log: NewLog) -> None:
    log = new_log(fact("a"), fact("b"))
    fork = log.fork(2)
    fork.append(fact("c"))
    log.append(fact("not for the fork"))
    assert [(e.seq, e.kind) for e in fork.follow(after=1, timeout_s=0.01)] == [
        (2, "fact.recorded"),
        (3, "session.forked"),
        (4, "fact.recorded"),
    ]


def test_a_timeout_of_nothing_ends_at_once(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = iter(range(3))
    real = log.engine.wait

    def wait(*args: object, **kwargs: object) -> bool:
        next(waits)  # runs out instead of going on for ever
        return real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(log.engine, "wait", wait)
    assert [e.seq for e in log.follow(timeout_s=0)] == [1]
