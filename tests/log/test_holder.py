"""Who has an open turn, and how another process knows whether it lives."""

import contextvars
import gc
import os
import subprocess
import sys
import threading
from typing import Any

import msgspec
import pytest

from wakelog import ConflictError, events
from wakelog.engines.memory import MemoryEngine
from wakelog.log import holder as holders
from wakelog.log.holder import TTL_S, TurnHold, TurnHolder, living_turn, parse_holder
from wakelog.model.records import Heartbeat
from wakelog.session import Session
from wakelog.session.turn import start_turn
from wakelog.store import Store


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += int(seconds * 1e6)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(holders, "now_us", time)
    return time


@pytest.fixture
def engine() -> MemoryEngine:
    return MemoryEngine()


def agent(engine: MemoryEngine, time: Time) -> Session[Any]:
    return Store(engine, clock=time).session("agent")


def held(session: Session[Any], **other: Any) -> TurnHolder:
    """Leaves a turn open that another process has."""
    hold = TurnHold(session.log)
    hold.release()
    holder = msgspec.structs.replace(hold.holder, token="other", **other)
    session.append(events.TurnStarted(input="go", holder=str(holder)))
    return holder


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_a_holder_is_read_as_it_was_written(engine: MemoryEngine, time: Time) -> None:
    holder = TurnHold(agent(engine, time).log).holder
    assert parse_holder(str(holder)) == holder
    strange = msgspec.structs.replace(holder, host="a#b@c.example")
    assert parse_holder(str(strange)) == strange
    for text in ("", "worker 7", "1@host#a.b", "x@host#m.b.1.t"):
        assert parse_holder(text) is None


def test_the_holder_is_in_the_state_while_the_turn_is_open_and_not_after(engine: MemoryEngine, time: Time) -> None:
    session = agent(engine, time)
    with session.turn("go"):
        assert f"{os.getpid()}@" in session.state().turn.holder
        assert session.log.living_holder() == f"process {os.getpid()} on {holders._host()}"
    assert session.log.state()["turn"] == {"number": 1, "attempt": 1, "status": "completed"}
    assert session.log.living_holder() == ""


def test_a_process_that_ended_has_lost_its_turn_at_once(engine: MemoryEngine, time: Time) -> None:
    session = agent(engine, time)
    held(session, pid=dead_pid())
    with session.turn("go") as turn:
        assert turn.attempt == 2
    (cut,) = [e for e in session.events(kind="turn.ended") if e.body.get("outcome") == "interrupted"]
    assert cut.body["why"] == "the process ended inside it"


def test_a_pid_that_was_used_again_is_another_process(engine: MemoryEngine, time: Time) -> None:
    session = agent(engine, time)
    held(session, pid=os.getppid(), born="1")
    assert living_turn(session.log) is None


def test_a_process_that_nobody_waited_for_is_dead(engine: MemoryEngine, time: Time) -> None:
    session = agent(engine, time)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        held(session, pid=child.pid, born=holders._born(child.pid))
        assert living_turn(session.log) is not None
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is dead, and still has its pid
        assert living_turn(session.log) is None
    finally:
        child.communicate()


def test_a_second_process_is_refused_with_the_pid_and_the_host_of_the_first(engine: MemoryEngine, time: Time) -> None:
    session = agent(engine, time)
    held(session, host="web-7", machine="elsewhere", pid=4711)
    for refused in (
        lambda: session.turn("go").__enter__(),
        lambda: start_turn(session, "go"),
        lambda: session.calls.recover(),
        lambda: session.life.take_lease("me"),
    ):
        with pytest.raises(ConflictError, match="process 4711 on web-7") as caught:
            refused()
        assert caught.value.kind == "leased"
        assert "force" in caught.value.hint
    assert session.state().turn.status == "open"


def test_a_process_elsewhere_counts_as_alive_while_its_heartbeats_are_recent(engine: MemoryEngine, time: Time) -> None:
    session = agent(engine, time)
    holder = held(session, host="web-7", machine="elsewhere")
    time.passes(TTL_S - 1)
    engine.beat(session.id, Heartbeat(0, str(holder), time.now + int(TTL_S * 1e6)))
    time.passes(TTL_S - 1)
    with pytest.raises(ConflictError), session.turn("go"):
        pass
    time.passes(2)
    with session.turn("go") as turn:
        assert turn.attempt == 2
    (cut, _) = session.events(kind="turn.ended")
    assert "sent no heartbeat for" in cut.body["why"]
    assert "on web-7" in cut.body["why"]


def test_the_session_can_be_taken_over_by_force(engine: MemoryEngine, time: Time) -> None:
    session = agent(engine, time)
    held(session, host="web-7", machine="elsewhere")
    session.life.take_lease("me", force=True)
    with session.turn("go") as turn:
        assert turn.attempt == 2
    (cut, _) = session.events(kind="turn.ended")
    assert "taken over" in cut.body["why"]


def test_a_turn_is_beaten_for_when_it_is_open_for_long_and_no_longer_when_it_is_over(
    engine: MemoryEngine, time: Time
) -> None:
    session = agent(engine, time)
    with session.turn("go"):
        assert session._runtime.turn is not None
        hold = session._runtime.turn.hold
        assert hold is not None
        hold.beat()
        assert engine.last_beat(session.id) is None
        time.passes(TTL_S / 2)
        hold.beat()
        beat = engine.last_beat(session.id)
        assert beat == Heartbeat(0, hold.text, time.now + int(TTL_S * 1e6))
    time.passes(TTL_S)
    hold.beat()
    assert engine.last_beat(session.id) == beat


def test_a_beating_thread_looks_after_open_turns_and_keeps_nobody_alive(
    engine: MemoryEngine, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holders, "LOOK_S", 0.001)
    monkeypatch.setattr(holders, "_pulse", holders._Pulse())
    came = threading.Event()
    session = agent(engine, time)
    monkeypatch.setattr(engine, "beat", lambda *beat: came.set())
    with session.turn("go"):
        (thread,) = [t for t in threading.enumerate() if t.name == "wakelog beat" and t is holders._pulse._thread]
        assert thread.daemon
        time.passes(TTL_S / 2)
        assert came.wait(180)
    thread.join(180)
    assert not thread.is_alive()


def test_a_turn_that_its_process_dropped_is_nobodys(engine: MemoryEngine, time: Time) -> None:
    contextvars.copy_context().run(lambda: agent(engine, time).turn("go").__enter__())
    gc.collect()
    session = agent(engine, time)
    with session.turn("go") as turn:
        assert turn.attempt == 2


def test_a_turn_survives_a_fork_and_stays_the_parents(engine: MemoryEngine, time: Time) -> None:
    session = agent(engine, time)
    with session.turn("go"):
        pid = os.fork()
        if not pid:
            found = living_turn(session.log)
            is_right = found is not None and found.pid == os.getppid() and not found.is_here and not holders._held()
            os._exit(0 if is_right else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert session._runtime.turn is not None
        assert session._runtime.turn.hold in holders._held()
        session.fact("a", 1)
    assert session.state().turn.status == "completed"


def test_a_running_call_of_a_living_process_is_not_reconciled(engine: MemoryEngine, time: Time) -> None:
    session = agent(engine, time)
    held(session, host="web-7", machine="elsewhere")
    session.append(events.ActionRequested(action="a", tool="send", effect="external"), events.ActionStarted(action="a"))
    with pytest.raises(ConflictError, match="web-7"):
        session.calls.reconcile("a", "never_ran")
    time.passes(TTL_S + 1)
    session.calls.reconcile("a", "never_ran")
    (unknown,) = session.events(kind="action.uncertain")
    assert "sent no heartbeat for" in unknown.body["why"]


def test_who_may_write_is_told_by_the_lease_before_the_turn(engine: MemoryEngine, time: Time) -> None:
    session = agent(engine, time)
    epoch = session.life.take_lease("one", ttl_s=1)
    time.passes(2)
    other = agent(engine, time)
    with other.turn("go"):
        assert "process" in other.log.living_holder()
        engine.beat(session.id, Heartbeat(epoch, other.state().turn.holder, time.now + 10))
        assert other.log.lease_holder() == ""
