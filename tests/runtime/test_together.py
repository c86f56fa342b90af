"""Several processes on one session: no effect happens twice, with a lease or without."""

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.crash import processes
from tests.runtime.lives import Desk, Killed, Life, born, effect, found, seem_dead, stopped
from tests.runtime.test_crash import EFFECTS, check_windows
from wakelog import ConflictError
from wakelog.session import Session

MODULE = "tests.runtime.children"


def _together(tmp_path: Path, variant: str, *, lease: bool, count: int = 3) -> tuple[dict[str, Any], list[list[str]]]:
    where = {"module": MODULE, "variant": variant, "store": str(tmp_path / "store"), "world": str(tmp_path / "world")}
    calls = [("run_at_once", {**where, "lease": lease, "lives": 3}) for _ in range(count)]
    said = processes.run_all(calls)
    lines = processes.run("come_through", **where)
    check_windows(lines)
    (told,) = [line for line in lines if line.startswith("told ")]
    return json.loads(told.removeprefix("told ")), said


@pytest.mark.parametrize("variant", ["sync", pytest.param("async", marks=pytest.mark.slow)])
def test_processes_that_run_the_same_script_at_once_do_everything_once(tmp_path: Path, variant: str) -> None:
    """A turn is one process's at a time, so the script asks inside it whether the work was done meanwhile."""
    told, _ = _together(tmp_path, variant, lease=False)
    assert told["effects"] == EFFECTS[variant]
    assert told["turn"][1] == "completed"
    assert told["pending"] == []
    assert told["verified"]


def test_with_a_lease_one_process_works_and_the_others_are_told(tmp_path: Path) -> None:
    told, said = _together(tmp_path, "sync", lease=True)
    assert told["effects"] == EFFECTS["sync"]
    ended = [lines[-1] for lines in said]
    assert ended.count("ended 0") == 1
    assert all("refused leased" in lines for lines in said if lines[-1] != "ended 0")


@pytest.mark.parametrize("is_async", [False, True])
def test_the_same_script_started_twice_is_refused_and_after_a_kill_goes_on_at_once(
    tmp_path: Path, is_async: bool
) -> None:
    call: dict[str, Any] = {"module": MODULE, "store": str(tmp_path / "store"), "is_async": is_async}
    with processes.child("send_slowly", stdin=subprocess.PIPE, **call) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "ready\n"
        (refused,) = processes.run("send_slowly", **call)
        assert refused.startswith("refused leased ")
        assert f"process {first.pid} on " in refused
        first.kill()
        processes.finish(first, killed=True)
    said = processes.run_all([("send_slowly", call)])
    assert said == [["attempt 2 go"]]
    with wakelog.open(tmp_path / "store") as store:
        ended = [e.body.get("why") for e in store.resume("agent").events(kind="turn.ended")]
    assert ended == ["the process ended inside it", None]


def test_a_script_started_twice_leaves_the_first_alone(tmp_path: Path) -> None:
    call: dict[str, Any] = {"module": MODULE, "store": str(tmp_path / "store"), "is_async": False}
    with processes.child("send_slowly", stdin=subprocess.PIPE, **call) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "ready\n"
        processes.run("send_slowly", **call)
        out, _ = first.communicate("word\n", timeout=processes.PATIENCE_S)
    assert out == "attempt 1 word\n"


# The same within one process, where the moments can be chosen


def _working(desk: Desk, session: Session[Any], life: Life) -> Any:
    return session.tool(effect(desk.world, life, "act"))


def test_a_process_whose_turn_was_taken_over_begins_no_further_call(desk: Desk) -> None:
    first, life = desk.process()
    act = _working(desk, first, life)
    with pytest.raises(ConflictError) as caught, first.turn("go") as turn:
        assert act(1) == "act(1) no 1"
        seem_dead(first)
        second, other = desk.process()
        again = _working(desk, second, other)
        with second.turn("go") as taken:
            assert (taken.number, taken.attempt) == (1, 2)
            assert again(1) == "act(1) no 1"
            with pytest.raises(ConflictError) as refused:
                act(2)
            assert refused.value.kind == "turn-taken-over"
            for late in (
                lambda: first.fact("a", 1),
                lambda: first.message("assistant", "x"),
                lambda: first.decide("x"),
            ):
                with pytest.raises(ConflictError):
                    late()
            assert again(2) == "act(2) no 1"
            taken.data["said"].append("by the second")
        turn.data["said"].append("by the first")
    assert caught.value.kind == "turn-taken-over"
    assert desk.operator.data == {"said": ["by the second"]}
    assert [n for _, n, _ in desk.world.done] == [1, 2]
    assert desk.operator.state().turn.status == "completed"


def test_an_error_in_a_process_whose_turn_was_taken_over_does_not_end_the_turn(desk: Desk) -> None:
    first, _ = desk.process()
    second, _ = desk.process()
    with pytest.raises(ZeroDivisionError) as caught, first.turn("go"):
        seem_dead(first)
        second.turn("go").__enter__()
        raise ZeroDivisionError
    assert "taken over" not in str(caught.value)
    assert any("could not be recorded" in note for note in caught.value.__notes__)
    assert desk.operator.state().turn.status == "open"


def test_a_turn_is_not_opened_while_another_process_holds_the_lease(desk: Desk) -> None:
    first, second = desk.process()[0], desk.process()[0]
    epoch = first.life.take_lease("one")
    for is_open in (True, False):
        with first.turn("go") if is_open else first.turn("more"):
            with pytest.raises(ConflictError) as caught, second.turn("go"):
                pass
            assert (caught.value.kind, "one" in caught.value.message) == ("leased", True)
        with pytest.raises(ConflictError), second.turn("between"):
            pass
    first.life.release_lease(epoch)
    with second.turn("go"):
        pass


def test_who_holds_the_lease_continues_its_own_cut_turn(desk: Desk) -> None:
    first, life = desk.process()
    first.life.take_lease("one")
    act = _working(desk, first, life)
    with pytest.raises(Killed), first.turn("go"):
        act(1)
        life.is_dead = True
        life.breathe()
    again, life = desk.process()
    again.life.take_lease("one")
    act = _working(desk, again, life)
    with again.turn("go") as turn:
        assert turn.attempt == 2
        assert act(1) == "act(1) no 1"
    assert len(desk.world.done) == 1


def test_what_a_fenced_worker_says_late_is_evidence_and_it_can_do_nothing_more(desk: Desk) -> None:
    came, go_on = threading.Event(), threading.Event()
    slow = found(born(desk.engine, Life()))
    slow.life.take_lease("slow")
    errors: list[Exception] = []

    @slow.tool
    def act(n: int) -> str:
        came.set()
        go_on.wait(180)
        return "done after all"

    def work() -> None:
        try:
            with slow.turn("go"):
                act(1)
                act(2)
        except ConflictError as exc:
            errors.append(exc)

    thread = threading.Thread(target=work)
    thread.start()
    came.wait(180)
    rescuer = found(born(desk.engine, Life()))
    epoch = rescuer.life.take_lease("rescuer", force=True)
    assert rescuer._runtime.guard == epoch
    rescued = rescuer.tool(name="act")(lambda n: "again")
    with stopped("uncertain-call"), rescuer.turn("go"):
        rescued(1)
    (action,) = rescuer.state().pending_actions
    go_on.set()
    thread.join()
    assert [e.kind for e in errors if isinstance(e, ConflictError)] in (["fenced"], ["turn-taken-over"])
    (evidence,) = rescuer.calls.evidence(action)
    assert (evidence.body["outcome"], evidence.body["output"], evidence.body["epoch"]) == (
        "succeeded",
        "done after all",
        epoch - 1,
    )
    rescuer.calls.reconcile(action)
    with rescuer.turn("go"):
        assert rescued(1) == "done after all"


def test_two_that_open_at_once_do_not_rewind_each_other(desk: Desk) -> None:
    """Both see a cut turn. The slower finds that the quicker has it, and is told so."""
    session, life = desk.process()
    act = _working(desk, session, life)
    with pytest.raises(KeyboardInterrupt), session.turn("go"):
        act(1)
        raise KeyboardInterrupt
    gate = threading.Barrier(4)
    outcomes: list[str] = []

    def work() -> None:
        each, own = desk.process()
        tool = _working(desk, each, own)
        gate.wait(180)
        try:
            with each.turn("go") as turn:
                if not turn.data["said"]:
                    turn.data["said"] = [tool(1), tool(2)]
            outcomes.append("completed")
        except wakelog.WakelogError as exc:
            outcomes.append(exc.kind)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "completed" in outcomes
    assert set(outcomes) <= {"completed", "leased"}
    assert max(desk.world.count().values()) == 1
    assert desk.operator.verify().ok
