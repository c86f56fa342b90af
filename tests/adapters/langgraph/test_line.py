"""A checkpoint that a task has written on already is stored in the sync of the next: when all calls of a run have
returned, everything is there, and who comes second is told so."""

import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")

from langgraph.checkpoint.base import empty_checkpoint

from tests.adapters.langgraph.counting_graph import counting, turn_of
from wakelog.adapters.langgraph import WakelogSaver, thread_log
from wakelog.errors import ConflictError, WakelogError

THREAD = turn_of("")[1]
HUNG_S = 60


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes wait for the next checkpoint however long it takes."""
    monkeypatch.setattr(thread_log, "_WAIT_ALONE_S", HUNG_S)


def place(id: str) -> Any:
    return {"configurable": {**THREAD["configurable"], "checkpoint_ns": "", "checkpoint_id": id}}


def put(saver: WakelogSaver, id: str, parent: str, source: str = "loop") -> None:
    checkpoint: Any = {**empty_checkpoint(), "id": id, "channel_values": {"x": id}, "channel_versions": {"x": 1}}
    metadata: Any = {"source": source, "step": 0}
    saver.put(place(parent), checkpoint, metadata, {"x": 1})


class Writer(threading.Thread):
    """A task that writes on a checkpoint, in the background as in a run."""

    def __init__(self, saver: WakelogSaver, id: str) -> None:
        super().__init__(daemon=True)
        self.error: WakelogError | None = None
        self._work: Callable[[], None] = lambda: saver.put_writes(place(id), [("x", f"after {id}")], "task")
        self.start()
        found = saver._thread("t", create=True)
        assert found is not None
        assert found._waiting.has_awaited(id, within_s=HUNG_S)

    def run(self) -> None:
        try:
            self._work()
        except WakelogError as exc:
            self.error = exc

    def done(self) -> None:
        self.join(HUNG_S)
        assert not self.is_alive()


def ids(saver: WakelogSaver) -> list[str]:
    return [each.checkpoint["id"] for each in saver.list(THREAD)]


@pytest.mark.usefixtures("patient")
def test_a_checkpoint_with_writes_is_stored_with_the_next_one(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        writer = Writer(saver, "a")
        put(saver, "a", "", "input")
        assert ids(other) == []
        assert writer.is_alive()
        put(saver, "b", "a")
        writer.done()
        assert ids(other) == ["b", "a"]
        assert ids(saver) == ["b", "a"]
        first = other.get_tuple(place("a"))
        assert first is not None
        assert first.pending_writes == [("task", "x", "after a")]
        assert saver.session("t").verify().ok


@pytest.mark.usefixtures("patient")
def test_no_more_than_a_few_checkpoints_wait_for_the_next(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        names = ["", *"abcdef"]
        writers = [Writer(saver, id) for id in names[1:]]
        for parent, id in itertools.pairwise(names):
            put(saver, id, parent)
        assert ids(other) == ["d", "c", "b", "a"]
        put(saver, "g", "f")
        for writer in writers:
            writer.done()
        assert ids(other) == [*"gfedcba"]


def test_writes_that_no_checkpoint_follows_store_the_one_they_were_made_on(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        saver.store.session("t", agent="langgraph", labels={"agent": "langgraph", "thread": "t"})
        work = threading.Thread(target=lambda: saver.put_writes(place("a"), [("x", 1)], "task"))
        work.start()
        put(saver, "a", "", "input")
        work.join(HUNG_S)
        found = other.get_tuple(THREAD)
        assert found is not None
        assert found.checkpoint["id"] == "a"
        assert found.pending_writes == [("task", "x", 1)]


def test_a_checkpoint_does_not_wait_for_writes_that_have_waited_long_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_log, "_WAIT_ALONE_S", 0.0)
    monkeypatch.setattr(thread_log, "_WAIT_FOR_BASE_S", (HUNG_S,))
    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        found = saver._thread("t", create=True)
        assert found is not None
        work = threading.Thread(target=lambda: saver.put_writes(place("a"), [("x", 1)], "task"))
        work.start()
        until = time.monotonic() + HUNG_S
        while not found._waiting._waiting or found._waiting.has_awaited("a"):
            assert time.monotonic() < until
            time.sleep(0)
        put(saver, "a", "", "input")
        assert ids(other) == ["a"]
        work.join(HUNG_S / 2)
        assert not work.is_alive()


@pytest.mark.usefixtures("patient")
def test_who_reads_in_the_same_process_sees_what_was_put(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver:
        writer = Writer(saver, "a")
        put(saver, "a", "", "input")
        found = saver.get_tuple(THREAD)
        assert found is not None
        assert found.checkpoint["id"] == "a"
        writer.done()


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("is_read_between", [False, True])
def test_a_checkpoint_that_waits_is_refused_when_another_run_came_first(tmp_path: Path, is_read_between: bool) -> None:
    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        put(saver, "a", "")
        assert saver.get_tuple(THREAD) is not None
        writer = Writer(saver, "b")
        put(saver, "b", "a", "input")
        assert other.get_tuple(THREAD) is not None
        put(other, "bb", "a", "input")
        if is_read_between:
            assert ids(saver) == ["bb", "a"]
        with pytest.raises(ConflictError) as refused:
            put(saver, "c", "b")
        assert refused.value.kind == "thread-moved-on"
        writer.done()
        assert isinstance(writer.error, ConflictError)
        assert ids(saver) == ids(other) == ["bb", "a"]
        assert saver.session("t").verify().ok


@pytest.mark.usefixtures("patient")
def test_a_checkpoint_that_waits_is_worked_out_anew_when_somebody_else_wrote(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        put(saver, "a", "")
        writer = Writer(saver, "b")
        put(saver, "b", "a", "input")
        other.session("t").label({"seen": "yes"})
        put(saver, "c", "b")
        writer.done()
        assert writer.error is None
        assert ids(other) == ["c", "b", "a"]
        assert other.session("t").state().labels["seen"] == "yes"
        assert saver.session("t").verify().ok


@pytest.mark.usefixtures("patient")
def test_a_bad_value_does_not_take_the_checkpoint_before_it_along(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        writer = Writer(saver, "a")
        put(saver, "a", "", "input")
        bad: Any = {**empty_checkpoint(), "id": "b", "channel_values": {"x": lambda: 1}, "channel_versions": {"x": 2}}
        with pytest.raises(WakelogError, match="cannot be stored"):
            saver.put(place("a"), bad, {"source": "loop", "step": 0}, {"x": 2})
        put(saver, "c", "a")
        writer.done()
        assert ids(other) == ["c", "a"]


def test_a_checkpoint_without_an_id_does_not_spoil_the_start_of_its_thread(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver:
        without_id: Any = {"channel_values": {}}
        with pytest.raises(WakelogError, match="has no id"):
            saver.put(place(""), without_id, {"source": "input", "step": 0}, {})
        put(saver, "a", "", "input")
        assert ids(saver) == ["a"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_what_a_run_stored_is_there_when_it_ends(tmp_path: Path, durability: str) -> None:
    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        for n in range(5):
            given, config = turn_of(str(n))
            counting(saver).invoke(given, config, durability=durability)
            assert counting(other).get_state(THREAD).values["done"] == [str(m) for m in range(n + 1)]
        found = [each.metadata["source"] for each in other.list(THREAD)]
        assert found.count("input") == (0 if durability == "exit" else 5)


@pytest.mark.parametrize("source", ["loop", "fork"])
def test_writes_stored_before_their_checkpoint_stay_until_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """On a slow disk a run is some steps ahead of what is stored. A fork rewinds the session to an earlier state."""
    monkeypatch.setattr(thread_log, "_WAIT_ALONE_S", 0.0)
    monkeypatch.setattr(thread_log, "_WAIT_FOR_BASE_S", (0.0,))
    asked: tuple[str, str, Any] = ("t1", "__interrupt__", [])
    answered = ("t2", "x", "2")
    with WakelogSaver(tmp_path) as saver:
        put(saver, "a", "")
        for task, channel, value in (asked, answered):
            saver.put_writes(place("c"), [(channel, value)], task)
        put(saver, "b", "a")
        put(saver, "c", "a" if source == "fork" else "b", source)
        with WakelogSaver(tmp_path) as other:
            for found in (other.get_tuple(THREAD), other.get_tuple(place("c"))):
                assert found is not None
                assert found.pending_writes == [asked, answered]
        saver.put_writes(place("c"), [("x", "1")], "t1")
        put(saver, "d", "c")
        kept = saver.get_tuple(place("c"))
        assert kept is not None
        assert kept.pending_writes == [asked, ("t1", "x", "1"), answered]
        assert list(saver.session("t").log.state()["data"]["$langgraph"]["writes"]) == []
