"""Leases: who may write, decided by epoch; clocks only decide when taking over is polite."""

import pytest

from wakelog.engine import Engine
from wakelog.errors import ConflictError, NotAllowedError
from wakelog.log import Log
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.testing.builders import START_US, fact
from wakelog.testing.contract.base import in_parallel


class Clock:
    def __init__(self) -> None:
        self.now = START_US + 10**9

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(log: Log) -> Clock:
    clock = Clock()
    log.clock = clock
    return clock


def _other(log: Log) -> Log:
    return Log(log.engine, log.id, clock=log.clock)


def test_epochs_count_up(log: Log) -> None:
    assert [log.take_lease("me") for _ in range(3)] == [1, 2, 3]
    assert log.state()["lease"] == {"epoch": 3, "holder": "me"}
    assert log.head().epoch == 3


def test_a_living_holder_is_not_displaced_without_force(log: Log, clock: Clock) -> None:
    log.take_lease("me", ttl_s=10)
    with pytest.raises(ConflictError) as refused:
        _other(log).take_lease("you")
    assert refused.value.kind == "leased"
    assert "me" in str(refused.value)
    assert refused.value.hint
    assert _other(log).take_lease("you", force=True) == 2


def test_a_holder_that_was_not_heard_of_in_time_can_be_displaced(log: Log, clock: Clock) -> None:
    log.take_lease("me", ttl_s=10)
    clock.now += 9_000_000
    with pytest.raises(ConflictError):
        _other(log).take_lease("you")
    clock.now += 2_000_000
    assert _other(log).take_lease("you") == 2


def test_a_sign_of_life_keeps_the_lease(log: Log, clock: Clock) -> None:
    epoch = log.take_lease("me", ttl_s=10)
    clock.now += 9_000_000
    log.beat(epoch, "me")
    clock.now += 9_000_000
    with pytest.raises(ConflictError):
        _other(log).take_lease("you", ttl_s=10)


def test_a_sign_of_life_of_a_former_holder_does_not_displace_the_present_one(log: Log, clock: Clock) -> None:
    old = log.take_lease("me")
    log.take_lease("you", force=True)
    with pytest.raises(ConflictError) as refused:
        log.beat(old, "me")
    assert refused.value.kind == "fenced"
    assert log.living_holder() == "you"
    with pytest.raises(ConflictError):
        _other(log).take_lease("somebody")


def test_a_sign_of_life_for_a_lease_that_is_not_held_is_refused(log: Log, clock: Clock) -> None:
    epoch = log.take_lease("me")
    for holder in ("you", ""):
        with pytest.raises(ConflictError, match="is held by me"):
            log.beat(epoch, holder)
    log.release_lease(epoch)
    with pytest.raises(ConflictError, match="was given back"):
        log.beat(epoch, "me")
    assert log.living_holder() == ""


def test_a_released_lease_is_free_at_once(log: Log, clock: Clock) -> None:
    epoch = log.take_lease("me")
    log.release_lease(epoch)
    assert log.state()["lease"] == {"epoch": 1, "holder": ""}
    assert _other(log).take_lease("you") == 2


def test_only_the_present_holder_releases(log: Log, clock: Clock) -> None:
    old = log.take_lease("me")
    new = _other(log).take_lease("you", force=True)
    with pytest.raises(ConflictError) as refused:
        log.release_lease(old)
    assert refused.value.kind == "fenced"
    assert log.state()["lease"] == {"epoch": new, "holder": "you"}


def test_of_many_that_take_the_lease_at_once_all_get_epochs_of_their_own(engine: Engine, log: Log) -> None:
    epochs = in_parallel(lambda i: Log(engine, log.id).take_lease(f"w{i}", force=True), list(range(6)))
    assert sorted(epochs) == [1, 2, 3, 4, 5, 6]
    assert log.state()["lease"]["epoch"] == 6
    assert verify(log).ok


def test_after_a_takeover_only_the_newest_epoch_writes(engine: Engine, log: Log) -> None:
    logs = [Log(engine, log.id) for _ in range(3)]
    epochs = [each.take_lease(f"w{i}", force=True) for i, each in enumerate(logs)]
    answers: list[int | str] = []
    for each, epoch in zip(logs, epochs, strict=True):
        try:
            answers.append(each.append(fact("a"), guard=epoch).seq)
        except ConflictError as exc:
            answers.append(exc.kind)
    assert answers == ["fenced", "fenced", 5]


def test_a_lease_event_of_the_wrong_epoch_is_refused(log: Log) -> None:
    for epoch in (0, 2, -1):
        with pytest.raises(ConflictError):
            log.append(ev.LeaseTaken(epoch=epoch, holder="me"))
    assert log.head().seq == 1


def test_a_lease_event_is_checked_against_the_state_it_really_meets(engine: Engine, log: Log) -> None:
    other = Log(engine, log.id)
    other.state()
    log.take_lease("me")
    assert other.append(ev.LeaseTaken(epoch=2, holder="you")).epoch == 2


def test_a_lease_can_be_taken_while_paused_and_after_close(log: Log) -> None:
    log.append(ev.SessionPaused())
    assert log.take_lease("me") == 1
    with pytest.raises(NotAllowedError):
        log.append(fact("a"), guard=1)
    log.append(ev.SessionClosed(), guard=1)
    assert log.take_lease("me") == 2


def test_a_rewind_with_an_old_epoch_is_refused(log: Log) -> None:
    old = log.take_lease("me")
    _other(log).take_lease("you", force=True)
    with pytest.raises(ConflictError):
        log.rewind(1, guard=old)
