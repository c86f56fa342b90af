"""tau-bench: each run of the array is a session, with its reward and what was expected."""

from pathlib import Path
from typing import Any

import pytest

from tests.importers.corpus import expected
from tests.importers.read_back import bring_in, memory, written
from wakelog.errors import InvalidInputError


def call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def run(task: int = 3, trial: int = 0, reward: float = 1.0, **more: Any) -> dict[str, Any]:
    return {
        "task_id": task,
        "trial": trial,
        "reward": reward,
        "info": {"task": {"actions": [{"name": "cancel_order", "kwargs": {"id": "o1"}}], "instruction": "secret"}},
        "traj": [
            {"role": "system", "content": "You sell lamps."},
            {"role": "user", "content": "Cancel my order."},
            {"role": "assistant", "content": "Which one?"},
            {"role": "user", "content": "o1"},
            {"role": "assistant", "content": None, "tool_calls": [call("c1", "get_order", '{"id": "o1"}')]},
            {"role": "tool", "tool_call_id": "c1", "name": "get_order", "content": '{"status": "open"}'},
            {"role": "assistant", "content": "Doing it.", "tool_calls": [call("c2", "cancel_order", '{"id": "o1"}')]},
            {"role": "tool", "tool_call_id": "c2", "name": "cancel_order", "content": "Error: too late"},
            {"role": "assistant", "content": "It is too late."},
            {"role": "user", "content": "Thank you. ###STOP###"},
        ],
        **more,
    }


def test_each_run_is_a_session_named_after_its_task_and_trial(tmp_path: Path) -> None:
    report, _ = bring_in(memory(), written(tmp_path / "runs.json", [run(3, 0), run(3, 1), run(4, 0)]))
    assert report.format == "tau-bench"
    assert [s.name for s in report.sessions] == ["tau-3-0", "tau-3-1", "tau-4-0"]


def test_a_run_of_the_same_task_in_another_file_is_another_session(tmp_path: Path) -> None:
    store = memory()
    bring_in(store, written(tmp_path / "a.json", [run()]))
    report, (found,) = bring_in(store, written(tmp_path / "b.json", [run(reward=0.0)]))
    assert report.sessions[0].name.startswith("tau-3-0-")
    assert found.labels["reward"] == "0"


def test_the_same_file_is_taken_in_once(tmp_path: Path) -> None:
    store = memory()
    path = written(tmp_path / "runs.json", [run()])
    assert bring_in(store, path)[0].new_records == 11
    path.touch()
    assert bring_in(store, path)[0].new_records == 0


def test_the_customer_begins_turns_and_the_goodbye_does_not(tmp_path: Path) -> None:
    _, (found,) = bring_in(memory(), written(tmp_path / "runs.json", [run()]))
    assert [turn["input"] for turn in found.of("turn.started")] == ["Cancel my order.", "o1"]
    assert found.of("message.added")[-1]["name"] == "stop"


def test_calls_have_what_they_were_given_and_what_came_of_them(tmp_path: Path) -> None:
    _, (found,) = bring_in(memory(), written(tmp_path / "runs.json", [run()]))
    assert [(c["tool"], c["effect"], c["input"], c["outcome"]) for c in found.calls] == [
        ("get_order", "read", {"id": "o1"}, "succeeded"),
        ("cancel_order", "external", {"id": "o1"}, "failed"),
    ]


@pytest.mark.parametrize(("reward", "outcome"), [(1.0, "completed"), (0.0, "failed")])
def test_the_reward_is_a_label_and_the_end(tmp_path: Path, reward: float, outcome: str) -> None:
    _, (found,) = bring_in(memory(), written(tmp_path / "runs.json", [run(reward=reward)]))
    assert found.labels["reward"] == f"{reward:g}"
    assert found.outcome == outcome
    assert {turn["outcome"] for turn in found.of("turn.ended")} == {"completed"}


def test_what_was_expected_is_kept_where_the_agent_did_not_see_it(tmp_path: Path) -> None:
    _, (found,) = bring_in(memory(), written(tmp_path / "runs.json", [run()]))
    assert found.records["run"]["info"]["task"]["actions"] == [{"name": "cancel_order", "kwargs": {"id": "o1"}}]
    told = [body for kind, body in found.events if kind != "records.imported"]
    assert "secret" not in str(told)


def test_a_message_that_is_none_is_kept_and_named(tmp_path: Path) -> None:
    broken = run() | {"traj": ["hello", {"role": "user", "content": "hi"}]}
    report, (found,) = bring_in(memory(), written(tmp_path / "runs.json", [broken]))
    assert report.broken == ("message 0 is not an object",)
    assert found.records["m0"] == "hello"


def test_a_file_that_is_no_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as refused:
        bring_in(memory(), written(tmp_path / "runs.json", {"task_id": 1}), "tau-bench")
    assert refused.value.kind == "bad-transcript"


def test_real_runs_have_the_counts_of_an_independent_reader() -> None:
    for path, counts in expected("tau-bench"):
        report, found = bring_in(memory(), path)
        assert report.format == "tau-bench"
        assert report.broken_count == 0
        messages = [id for one in found for id in one.records if id.startswith("m")]
        answered = [c for one in found for c in one.calls if c["outcome"] != "interrupted"]
        assert {
            "sims": len(found),
            "messages": len(messages),
            "tool_calls": sum(len(one.calls) for one in found),
            "tool_msgs": len(answered),
            "reward": sum(float(one.labels["reward"]) for one in found),
        } == counts
