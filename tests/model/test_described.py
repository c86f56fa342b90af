"""msgspec inspects a struct in one thread at a time."""

import os
import subprocess
import sys
import threading
from typing import Any

import msgspec
import pytest

from wakelog.model import described as module
from wakelog.model.described import described


def test_a_type_is_described_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made, others = msgspec.msgpack.Decoder, list[bool]()

    def make(kind: Any) -> Any:
        other = threading.Thread(target=lambda: others.append(module._lock.acquire(blocking=False)))
        other.start()
        other.join()
        return made(kind)

    monkeypatch.setattr(msgspec.msgpack, "Decoder", make)
    assert described(tuple[int, ...]) == tuple[int, ...]
    assert others == [False]


FORK_MEANWHILE = """
import os, threading, msgspec
from wakelog.model.described import described

begun, go_on = threading.Event(), threading.Event()

def slowly() -> type:
    begun.set()
    go_on.wait()
    return int

class Inner(msgspec.Struct):
    number: "slowly()"

class Outer(msgspec.Struct):
    inner: Inner

threading.Thread(target=described, args=(Outer,)).start()
begun.wait()
threading.Timer(0.1, go_on.set).start()
child = os.fork()
if not child:
    os._exit(msgspec.json.decode(b'{"inner":{"number":3}}', type=Outer).inner.number)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_for_a_description_that_is_being_made() -> None:
    """A child that inherited half of it ended with a segmentation fault at its first append."""
    done = subprocess.run([sys.executable, "-c", FORK_MEANWHILE], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


FIRST_STATES = """
import sys, threading, wakelog

with wakelog.open(sys.argv[1]) as store:
    session = store.session("first")
    with session.turn("go"):
        session.decide("a", because="b")
        session.fact("k", "v")
    sys.setswitchinterval(1e-6)
    barrier, states = threading.Barrier(8), []

    def first() -> None:
        barrier.wait()
        states.append(session.state())

    threads = [threading.Thread(target=first) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [dict(state.facts).keys() for state in states] == [{"k"}] * 8, states
"""


@pytest.mark.slow
@pytest.mark.parametrize("_run", range(20))
def test_threads_may_ask_for_their_first_state_at_once(_run: int, tmp_path: Any) -> None:
    """Without the lock about a third of such processes ended with a segmentation fault."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_STATES, str(tmp_path / "a.db")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
