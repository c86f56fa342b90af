"""Several writers on one thread: what was answered is there, and a run that came second is told so."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")

from langgraph.checkpoint.base import empty_checkpoint

from tests.adapters.langgraph.counting_graph import counting, turn_of
from wakelog.adapters.langgraph import WakelogSaver
from wakelog.errors import ConflictError

ROOT = Path(__file__).parents[3]
THREAD = turn_of("")[1]


def start(place: Path, name: str, turns: int, durability: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.adapters.langgraph.counting_run", str(place), name, str(turns), durability]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def answered(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    with process.stdout:
        return [line.strip() for line in process.stdout if line.strip() != "ready"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_four_processes_lose_no_turn_of_one_thread(tmp_path: Path, durability: str) -> None:
    WakelogSaver(tmp_path).close()
    processes = [start(tmp_path, f"p{n}", 4, durability) for n in range(4)]
    told = [turn for process in processes for turn in answered(process)]
    assert [process.wait() for process in processes] == [0] * 4
    with WakelogSaver(tmp_path) as saver:
        values = counting(saver).get_state(THREAD).values
        assert sorted(values["done"]) == sorted(told)
        assert len(told) == 16
        assert values["steps"] >= 2 * len(told)  # of runs that were refused, the first steps may be there
        assert saver.session("t").verify().ok


def test_threads_of_one_process_lose_no_turn(tmp_path: Path) -> None:
    told: list[str] = []
    refused: list[str] = []
    with WakelogSaver(tmp_path) as saver:
        graph, together = counting(saver), threading.Barrier(4)

        def work(name: str) -> None:
            for n in range(5):
                together.wait()
                try:
                    graph.invoke(*turn_of(f"{name}-{n}"))
                    told.append(f"{name}-{n}")
                except ConflictError as exc:
                    refused.append(exc.kind)

        threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        values = graph.get_state(THREAD).values
    assert sorted(values["done"]) == sorted(told)
    assert len(told) >= 5
    assert set(refused) <= {"thread-moved-on"}
    assert len(told) + len(refused) == 20


def test_a_run_that_began_where_another_went_on_stores_nothing(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as one, WakelogSaver(tmp_path) as other:
        counting(one).invoke(*turn_of("a"))
        stale = other.get_tuple(THREAD)
        assert stale is not None
        counting(one).invoke(*turn_of("b"))
        before = one.session("t").head.seq
        with pytest.raises(ConflictError) as refused:
            other.put(stale.config, {**stale.checkpoint, "id": "ffff"}, {"source": "loop", "step": 9}, {})
        assert refused.value.kind == "thread-moved-on"
        # Nor what follows: LangGraph 1.0 stores the next checkpoint of a run although the one before was refused.
        after = {"configurable": {**THREAD["configurable"], "checkpoint_ns": "", "checkpoint_id": "ffff"}}
        with pytest.raises(ConflictError, match="another run came first"):
            other.put(after, {**stale.checkpoint, "id": "ffffff"}, {"source": "loop", "step": 10}, {})
        with pytest.raises(ConflictError, match="another run came first"):
            other.put_writes(after, [("done", ["c"])], "task")
        assert one.session("t").head.seq == before


def test_a_fork_from_a_named_checkpoint_is_no_conflict(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as one, WakelogSaver(tmp_path) as other:
        first = counting(one)
        first.invoke(*turn_of("a"))
        config = first.get_state(THREAD).config
        first.invoke(*turn_of("b"))
        second = counting(other)
        assert second.get_state(THREAD).values["done"] == ["a", "b"]
        second.invoke({"given": "c"}, config)
        assert first.get_state(THREAD).values["done"] == ["a", "c"]


def test_a_copy_of_an_earlier_checkpoint_is_no_conflict(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver:
        graph = counting(saver)
        for name in ("a", "b", "c"):
            graph.invoke(*turn_of(name))
        started = [each for each in graph.get_state_history(THREAD) if each.metadata["source"] == "input"]
        copied = graph.update_state(started[0].config, None, as_node="__copy__")
        assert graph.get_state(copied).values["done"] == ["a", "b"]
        assert graph.get_state(THREAD).config == copied


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_what_was_answered_survives_a_kill_and_the_thread_goes_on(tmp_path: Path, durability: str) -> None:
    process = start(tmp_path, "k", 1000, durability)
    assert process.stdout is not None
    told: list[str] = []
    with process.stdout:
        for line in process.stdout:
            if line.startswith("k-"):
                told.append(line.strip())
            if len(told) == 3:
                os.kill(process.pid, signal.SIGKILL)
                break
        told += [line.strip() for line in process.stdout if line.endswith("\n")]
    process.wait()
    with WakelogSaver(tmp_path) as saver:
        graph = counting(saver)
        state = graph.get_state(THREAD)
        assert state.values["done"][: len(told)] == told
        if state.next:
            graph.invoke(None, THREAD, durability=durability)
        after = graph.invoke(*turn_of("after"), durability=durability)
        assert after["done"][-1] == "after"
        assert after["steps"] == 2 * len(after["done"])
        session = saver.session("t")
        assert session.verify().ok
        assert session.state().turn.status == "completed"


def test_who_calls_the_saver_without_a_graph_may_branch_from_any_checkpoint(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        counting(saver).invoke(*turn_of("a"))
        first = saver.get_tuple(THREAD)
        assert first is not None
        for id in ("fffa", "fffb", "fffc"):
            saver.put(first.config, {**first.checkpoint, "id": id}, {"source": "loop", "step": 9}, {})
        stored = {each.checkpoint["id"]: each.parent_config for each in other.list(THREAD)}
        assert [stored[id] for id in ("fffa", "fffb", "fffc")] == [first.config] * 3


def test_a_replay_continues_a_subgraph_from_where_it_was(tmp_path: Path) -> None:
    """LangGraph looks for that checkpoint in the list, so it is named although newer ones exist: the next step of the
    subgraph may have been stored before the checkpoint that the replay went back to."""
    place = {"thread_id": "t", "checkpoint_ns": "sub", "__pregel_runtime": None}
    run: dict[str, Any] = {"configurable": place, "recursion_limit": 25}
    with WakelogSaver(tmp_path) as saver:

        def put(id: str, parent: str) -> None:
            checkpoint: Any = {**empty_checkpoint(), "id": id}
            config: Any = {**run, "configurable": {**place, "checkpoint_id": parent}}
            saver.put(config, checkpoint, {"source": "loop", "step": 1}, {})

        put("a", "")
        assert saver.get_tuple(run) is not None
        put("b", "a")
        with pytest.raises(ConflictError):
            put("c", "a")
        assert saver.get_tuple(run) is not None
        put("d", "b")
        [found] = saver.list(run, before={"configurable": {"checkpoint_id": "d"}}, limit=1)
        assert found.checkpoint["id"] == "b"
        put("e", "b")
        newest = saver.get_tuple(run)
        assert newest is not None
        assert newest.checkpoint["id"] == "e"
