"""SWE-agent: a history and a trajectory that tell one run, and an editor that names no file."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.importers.corpus import expected
from tests.importers.read_back import ReadBack, bring_in, memory, said, written
from wakelog.errors import InvalidInputError

REFUSED = "Your proposed edit has introduced new syntax error(s). Please read this error message carefully."
TASK = "We're solving an issue.\nISSUE:\nLamps do not light\nAt all.\n\nINSTRUCTIONS:\nBe brief."


def window(path: str, *lines: str, total: int = 0) -> str:
    shown = "".join(f"{n}:{line}\n" for n, line in enumerate(lines, 1))
    return f"[File: {path} ({total or len(lines)} lines total)]\n{shown}"


def step(action: str, observation: str, open_file: str = "/repo/lamp.py", **more: Any) -> dict[str, Any]:
    state = json.dumps({"open_file": open_file, "working_dir": "/repo"}) + "\n"
    thought = f"Now {action.split()[0]}."
    response = f"{thought}\n```\n{action}\n```"
    return {
        "action": action,
        "observation": observation,
        "response": response,
        "thought": thought,
        "state": state,
        **more,
    }


def run(*steps: dict[str, Any], status: str = "submitted", **more: Any) -> dict[str, Any]:
    history: list[dict[str, Any]] = [
        {"role": "system", "content": "You have an editor.", "agent": "main"},
        {"role": "user", "content": TASK, "agent": "main"},
    ]
    for each in steps:
        history.append(
            {"role": "assistant", "content": each["response"], "thought": each["thought"], "action": each["action"]}
        )
        history.append({"role": "user", "content": f"{each['observation']}\n(Open file: n/a)\nbash-$"})
    info = {"exit_status": status, "model_stats": {"instance_cost": 0.5, "tokens_sent": 900, "tokens_received": 30}}
    return {"environment": "main", "trajectory": list(steps), "history": history, "info": info, **more}


def imported(tmp_path: Path, content: Any) -> ReadBack:
    report, (found,) = bring_in(memory(), written(tmp_path / "acme__lamp-7.traj", content))
    assert report.format == "swe-agent"
    return found


def test_an_action_its_answer_and_its_time_come_from_both_tellings(tmp_path: Path) -> None:
    found = imported(tmp_path, run(step("ls -F\n", "lamp.py\n", execution_time=0.25)))
    (call,) = found.calls
    assert (call["tool"], call["effect"], call["input"]) == ("bash", "read", {"command": "ls -F"})
    assert call["output"] == "lamp.py\n"
    assert call["cost"]["duration_us"] == 250_000
    assert [said(reply) for reply in found.replies] == ["Now ls.\n```\nls -F\n\n```"]


def test_the_issue_begins_the_turn_and_the_instructions_around_it_do_not(tmp_path: Path) -> None:
    found = imported(tmp_path, run(step("ls", "")))
    assert found.of("turn.started")[0]["input"] == "Lamps do not light\nAt all."
    assert found.session.log.part("goal") == "Lamps do not light"
    assert "INSTRUCTIONS:\nBe brief." in found.of("message.added")[-1]["content"]


def test_an_edit_is_of_the_file_that_is_open_and_has_its_content_where_all_is_shown(tmp_path: Path) -> None:
    found = imported(
        tmp_path,
        run(
            step("create lamp.py", window("/repo/lamp.py", ""), "n/a"),
            step("edit 1:1\nprint(1)\nprint(2)\nend_of_edit", window("/repo/lamp.py", "print(1)", "print(2)")),
            step("edit 700:700\nx = 1\nend_of_edit", "File updated.", "/repo/large.py"),
        ),
    )
    changes = found.of("file.changed")
    assert [(c["path"], c["change"], c.get("after")) for c in changes] == [
        ("lamp.py", "created", ""),
        ("lamp.py", "modified", "print(1)\nprint(2)"),
        ("large.py", "modified", None),
    ]
    assert (changes[2]["added"], changes[2]["removed"]) == (1, 1)
    assert changes[2]["missing"] == {"before": "not in the transcript", "after": "not in the transcript"}


def test_an_edit_that_the_linter_refused_failed_and_changed_nothing(tmp_path: Path) -> None:
    found = imported(tmp_path, run(step("edit 1:1\n  x\nend_of_edit", f"{REFUSED}\n{window('/repo/lamp.py', '  x')}")))
    assert found.calls[0]["outcome"] == "failed"
    assert found.calls[0]["error"]["message"].startswith("Your proposed edit")
    assert found.of("file.changed") == []


@pytest.mark.parametrize(
    ("observation", "outcome"),
    [
        ("Traceback (most recent call last):\n  boom", "failed"),
        ("Interactive operation 'vim' is not supported by this environment", "denied"),
        ("The command 'make' was cancelled because it took more than 30 seconds.", "timed_out"),
    ],
)
def test_how_a_command_ended_is_told_by_its_observation(tmp_path: Path, observation: str, outcome: str) -> None:
    assert imported(tmp_path, run(step("make all", observation))).calls[0]["outcome"] == outcome


def test_calls_of_the_newer_editor_name_their_file(tmp_path: Path) -> None:
    given = {"command": "create", "path": "/repo/new.py", "file_text": "a = 1\n"}
    content = run(step("str_replace_editor create /repo/new.py", "File created successfully"))
    content["history"][2]["tool_calls"] = [
        {"id": "c1", "function": {"name": "str_replace_editor", "arguments": json.dumps(given)}}
    ]
    found = imported(tmp_path, content)
    assert found.calls[0]["input"] == given
    (change,) = found.of("file.changed")
    assert (change["path"], change["change"], change["after"]) == ("new.py", "created", "a = 1\n")


def test_a_step_that_is_not_in_the_history_tells_its_answer_too(tmp_path: Path) -> None:
    content = run(step("ls", "lamp.py"), step("submit", "diff --git"))
    content["history"] = content["history"][:4]
    found = imported(tmp_path, content)
    assert [c["tool"] for c in found.calls] == ["bash", "submit"]
    assert [said(reply) for reply in found.replies][1] == "Now submit.\n```\nsubmit\n```"


def test_steps_of_answers_that_were_taken_out_of_the_history_do_not_shift_the_others(tmp_path: Path) -> None:
    content = run(step("ls", "lamp.py"), step("cat lamp.py", "lost"), step("pwd", "/repo"))
    del content["history"][4:6]
    assert [c["output"] for c in imported(tmp_path, content).calls] == ["lamp.py", "lost", "/repo"]


def test_a_demonstration_with_a_history_only_is_a_run(tmp_path: Path) -> None:
    content = {"history": run(step("ls", "lamp.py"))["history"]}
    for item in content["history"]:
        item["is_demo"] = True
    found = imported(tmp_path, content)
    assert found.calls[0]["output"].startswith("lamp.py")
    assert len(found.records) == 5
    assert found.outcome == ""


def test_a_demonstration_that_the_model_was_shown_is_no_part_of_the_run(tmp_path: Path) -> None:
    content = run(step("ls", "lamp.py"))
    content["history"].insert(1, {"role": "user", "content": "Here is how it is done: ls", "is_demo": True})
    found = imported(tmp_path, content)
    assert len(found.calls) == 1
    assert "demonstration" in [m.get("name") for m in found.of("message.added")]


def test_what_the_model_was_shown_at_a_step_is_kept_without_repeating_it(tmp_path: Path) -> None:
    content = run(step("ls", "lamp.py"))
    content["trajectory"][0]["messages"] = [*content["history"][:2], {"role": "user", "content": "elided"}]
    found = imported(tmp_path, content)
    assert found.records["t0"]["messages"] == [0, 1, {"role": "user", "content": "elided"}]


def test_what_the_run_used_is_counted_once_and_its_status_ends_it(tmp_path: Path) -> None:
    found = imported(tmp_path, run(step("submit", "diff"), status="submitted (exit_cost)"))
    assert found.session.log.part("budget")["spent"] == {"tokens": 930, "usd_micros": 500_000, "duration_us": 0}
    assert found.outcome == "submitted (exit_cost)"


def test_two_runs_of_one_task_are_two_sessions(tmp_path: Path) -> None:
    store = memory()
    names = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        report, _ = bring_in(store, written(tmp_path / folder / "acme__lamp-7.traj", run(step("ls", ""))))
        names.append(report.sessions[0].name)
    assert names[0] == "swe-acme__lamp-7"
    assert names[1].startswith("swe-acme__lamp-7-")


def test_a_trajectory_that_grows_gives_only_what_is_new(tmp_path: Path) -> None:
    store = memory()
    path = tmp_path / "acme__lamp-7.traj"
    bring_in(store, written(path, run(step("ls", "lamp.py"), status="")))
    report, (found,) = bring_in(store, written(path, run(step("ls", "lamp.py"), step("pwd", "/repo"))))
    assert [c["output"] for c in found.calls] == ["lamp.py", "/repo"]
    assert report.new_records == 4
    assert len(found.of("turn.started")) == 1
    assert found.session.log.part("budget")["spent"]["usd_micros"] == 500_000
    assert found.outcome == "submitted"


def test_a_document_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as refused:
        bring_in(memory(), written(tmp_path / "x.traj", {"history": "none"}), "swe-agent")
    assert refused.value.kind == "bad-transcript"


def test_real_runs_have_the_counts_of_an_independent_reader() -> None:
    store = memory()
    for path, counts in expected("swe-agent"):
        report, (found,) = bring_in(store, path)
        assert report.format == "swe-agent"
        ids = list(found.records)
        assert {
            "steps": sum(id.startswith("t") for id in ids),
            "history": sum(id.startswith("h") for id in ids),
            "exit_status": found.outcome,
        } == counts
        assert len(found.calls) == counts["steps"]
        assert {c["outcome"] for c in found.calls} <= {"succeeded", "failed", "timed_out", "denied"}
