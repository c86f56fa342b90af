"""A session as it was at a point, continued in memory."""

from typing import Any

import pytest

import wakelog
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.replay.scratch import scratch_log
from wakelog.session import Session


def test_every_point_of_a_session_can_be_gone_on_from(session: Session[Any]) -> None:
    with session.turn(user="one") as turn:
        turn.data["text"] = "x" * 5000
        session.fact("big", "y" * 20_000)
    session.rewind(session.head.seq - 1)
    session.append(
        ev.FactRecorded(key="a", value=1), ev.FactRecorded(key="b", value=2), ev.FactRecorded(key="c", value=3)
    )
    head, seen = session.head, [e.hash for e in session.log.entries()]
    for at in range(1, head.seq + 1):
        log = scratch_log(session.log, at)
        assert log.head().seq == at
        assert log.state() == session.log.state(at)
        assert [e.hash for e in log.entries()] == seen[:at]
        log.append(ev.FactRecorded(key="new", value="z" * 20_000))
        new = log.entry(at + 1)
        assert log.value(new, new.body["value"]) == "z" * 20_000
        assert log.state()["facts"]["new"]["seq"] == at + 1
        assert verify(log).ok
        assert log.state(at) == session.log.state(at)
    assert session.head == head


def test_forks_and_payloads_of_the_parent_are_read(session: Session[Any], store: wakelog.Store) -> None:
    session.fact("big", "y" * 20_000)
    child = session.fork(name="child")
    child.fact("mine", 1)
    for at in (1, session.head.seq, child.head.seq):
        log = scratch_log(child.log, at)
        assert log.state() == child.log.state(at)
        log.append(ev.FactRecorded(key="new", value=1))
        assert verify(log).ok


def test_the_future_is_not_known(session: Session[Any]) -> None:
    at = session.head.seq
    session.append(ev.FactRecorded(key="a", value=1), commit_id="once")
    log = scratch_log(session.log, at)
    assert log.engine.known(session.id, "once") is None
    log.append(ev.FactRecorded(key="a", value=2), commit_id="once")
    assert log.append(ev.FactRecorded(key="a", value=2), commit_id="once").seq == at + 1


def test_only_the_session_itself_is_written(session: Session[Any], store: wakelog.Store) -> None:
    other = store.session("other")
    engine = scratch_log(session.log, 1).engine
    for write in (
        lambda: wakelog.Log(engine, other.id).append(ev.GoalSet(goal="x")),
        lambda: engine.claim("name", session.id),
        lambda: wakelog.Store(engine).delete(Session(wakelog.Log(engine, other.id))),
        lambda: wakelog.Store(engine).session("fresh"),
    ):
        with pytest.raises(wakelog.UnsupportedError):
            write()
    assert other.head.seq == 1
    assert store.engine.find("fresh") is None
