"""mini-swe-agent: one shell, asked for in code blocks and answered by messages of the user."""

from pathlib import Path
from typing import Any

import pytest

from tests.importers.corpus import expected
from tests.importers.read_back import ReadBack, bring_in, memory, said, written
from wakelog.errors import InvalidInputError

ISSUE = "Consider the following PR description:\nLamps do not light\nAt all."
TASK = f"<pr_description>\n{ISSUE}\n</pr_description>\nBe brief."


def answer(text: str, number: int = 1, cost: float = 0.01, **message: Any) -> dict[str, Any]:
    response = {
        "id": f"gen-{number}",
        "model": "acme/lamp-1",
        "created": 1763510995 + number,
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "cost": cost},
    }
    return {"role": "assistant", "content": text, "extra": {"response": response}}


def result(code: int, text: str) -> dict[str, Any]:
    return {"role": "user", "content": f"<returncode>{code}</returncode>\n<output>\n{text}</output>"}


def trajectory(*messages: dict[str, Any], status: str = "Submitted") -> dict[str, Any]:
    first = [{"role": "system", "content": "You have a shell."}, {"role": "user", "content": TASK}]
    return {
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": "acme__lamp-7",
        "info": {"exit_status": status, "submission": "", "model_stats": {"instance_cost": 0.02, "api_calls": 2}},
        "messages": [*first, *messages],
    }


def imported(tmp_path: Path, content: Any, name: str = "acme__lamp-7.traj.json") -> ReadBack:
    report, (found,) = bring_in(memory(), written(tmp_path / name, content))
    assert report.format == "mini-swe-agent"
    return found


def info_of(found: ReadBack) -> dict[str, Any]:
    (info,) = (record for id, record in found.records.items() if id.startswith("info-"))
    return dict(info)


def test_the_task_begins_the_turn_and_the_instructions_around_it_do_not(tmp_path: Path) -> None:
    found = imported(tmp_path, trajectory(answer("THOUGHT: look\n```bash\nls\n```"), result(0, "lamp.py\n")))
    (turn,) = found.of("turn.started")
    assert turn["input"] == "Lamps do not light\nAt all."
    words = [m for m in found.of("message.added") if m.get("name") == "context"]
    assert words[0]["content"].endswith("</pr_description>\nBe brief.")
    assert found.session.log.part("goal") == "Lamps do not light"


def test_a_code_block_is_a_call_and_the_next_message_its_answer(tmp_path: Path) -> None:
    found = imported(tmp_path, trajectory(answer("look\n```bash\nls -a\n```"), result(0, "lamp.py\n")))
    (call,) = found.calls
    assert (call["tool"], call["effect"], call["input"], call["output"]) == (
        "bash",
        "read",
        {"command": "ls -a"},
        "lamp.py\n",
    )


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        (result(1, "no such file\n"), "failed"),
        (
            {"role": "user", "content": "The last command <command>make</command> timed out and has been killed."},
            "timed_out",
        ),
    ],
)
def test_how_a_command_ended_is_told_by_the_words_of_its_result(
    tmp_path: Path, message: dict[str, Any], outcome: str
) -> None:
    found = imported(tmp_path, trajectory(answer("go\n```bash\nmake\n```"), message, answer("done"), status=""))
    assert found.calls[0]["outcome"] == outcome
    assert found.outcome == ""


def test_an_answer_with_two_code_blocks_asks_for_nothing(tmp_path: Path) -> None:
    two = answer("```bash\nls\n```\nand\n```bash\npwd\n```")
    complaint = {"role": "user", "content": "Please always provide EXACTLY ONE action in triple backticks, found 2."}
    found = imported(tmp_path, trajectory(two, complaint, answer("ok\n```bash\nls\n```", 2), result(0, "")))
    assert [c["input"] for c in found.calls] == [{"command": "ls"}]
    assert found.of("message.added")[-1]["name"] == "meta"


def test_usage_cost_and_time_are_those_of_the_api(tmp_path: Path) -> None:
    found = imported(tmp_path, trajectory(answer("a\n```bash\nls\n```", reasoning="hm"), result(0, ""), answer("b", 2)))
    assert [reply["cost"]["usd_micros"] for reply in found.replies] == [10_000, 10_000]
    assert found.replies[0]["output"]["content"][0] == {"type": "thinking", "thinking": "hm"}
    assert found.session.log.part("budget")["spent"]["usd_micros"] == 20_000
    assert found.of("turn.started")[0]["occurred_at"] == 1763510996_000000


def test_files_written_by_commands_are_known_as_far_as_the_words_tell(tmp_path: Path) -> None:
    write = "cat <<'EOF' > lamp.py\nprint(1)\nEOF"
    steps = [
        *(answer(f"```bash\n{write}\n```"), result(0, "")),
        *(answer("```bash\nsed -i 's/1/2; rm x/' lamp.py\n```", 2), result(0, "")),
        *(answer("```bash\nrm lamp.py && echo gone\n```", 3), result(0, "gone\n")),
        *(answer("```bash\ncat > other.py <<EOF\nx\nEOF\n```", 4), result(1, "disk full\n")),
    ]
    changes = imported(tmp_path, trajectory(*steps)).of("file.changed")
    assert [(c["path"], c["change"], c.get("after")) for c in changes] == [
        ("lamp.py", "modified", "print(1)\n"),
        ("lamp.py", "modified", None),
        ("lamp.py", "deleted", None),
    ]


def test_a_submitted_run_is_over(tmp_path: Path) -> None:
    end = [
        answer("```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"),
        {"role": "user", "content": "diff --git"},
    ]
    found = imported(tmp_path, trajectory(*end))
    assert found.calls[0]["output"] == "diff --git"
    assert found.outcome == "submitted"


def test_a_run_that_hit_a_limit_failed(tmp_path: Path) -> None:
    found = imported(tmp_path, trajectory(answer("hm"), status="LimitsExceeded"))
    assert found.outcome == "LimitsExceeded"
    assert found.of("turn.ended")[0]["outcome"] == "failed"


def test_a_bare_list_of_messages_is_a_run(tmp_path: Path) -> None:
    messages = trajectory(answer("```bash\nls\n```"), result(0, "lamp.py\n"))["messages"]
    found = imported(tmp_path, messages, "run.json")
    assert len(found.records) == len(messages)
    assert len(found.calls) == 1
    assert found.outcome == ""


def test_calls_and_results_of_newer_versions_are_paired_by_their_ids(tmp_path: Path) -> None:
    calls = [
        {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
        {"id": "c2", "function": {"name": "bash", "arguments": '{"command": "false"}'}},
    ]
    found = imported(
        tmp_path,
        trajectory(
            answer("both") | {"tool_calls": calls},
            {"role": "tool", "tool_call_id": "c2", "content": "", "extra": {"returncode": 1}},
            {"role": "tool", "tool_call_id": "c1", "content": "lamp.py", "extra": {"returncode": 0}},
            {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted"}},
            status="",
        ),
    )
    assert [(c["input"]["command"], c["outcome"]) for c in found.calls] == [
        ("false", "failed"),
        ("ls", "succeeded"),
    ]
    assert found.outcome == "submitted"


def test_every_record_is_kept_with_what_the_events_do_not_hold(tmp_path: Path) -> None:
    found = imported(tmp_path, trajectory(answer("a") | {"odd": [1]}, {"role": "robot", "content": "?"}, answer("b")))
    assert found.records["m2"]["odd"] == [1]
    assert found.records["m3"] == {"role": "robot", "content": "?"}
    assert info_of(found)["info"]["model_stats"]["api_calls"] == 2
    assert [said(reply) for reply in found.replies] == ["a", "b"]


def test_a_document_without_messages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as refused:
        bring_in(memory(), written(tmp_path / "x.traj.json", {"messages": 3}), "mini-swe-agent")
    assert refused.value.kind == "bad-transcript"


def test_real_runs_have_the_counts_of_an_independent_reader() -> None:
    store = memory()
    for path, counts in expected("mini-swe-agent"):
        report, (found,) = bring_in(store, path)
        assert report.format == "mini-swe-agent"
        roles = [record["role"] for id, record in found.records.items() if id.startswith("m")]
        info = info_of(found)
        assert {
            "messages": len(roles),
            "roles": {role: roles.count(role) for role in ("system", "user", "assistant")},
            "exit_status": info["info"]["exit_status"],
            "format": info["trajectory_format"],
        } == counts
        assert len(found.replies) == roles.count("assistant")
        assert found.outcome == "submitted"
        told = info["info"]["model_stats"]["instance_cost"]
        assert found.session.log.part("budget")["spent"]["usd_micros"] == pytest.approx(told * 1e6, abs=100)


@pytest.mark.parametrize(
    "template", ["Please solve this: {{task}}\n\nYou have {{ os }}.", "Please solve this: {{ task }}"]
)
def test_the_task_is_found_by_the_template_that_it_was_put_into(tmp_path: Path, template: str) -> None:
    content = trajectory(answer("THOUGHT: look\n```bash\nls\n```"), result(0, "lamp.py\n"))
    content["info"]["config"] = {"agent": {"instance_template": template}}
    shown = template.replace("{{ os }}", "Linux")
    for mark in ("{{task}}", "{{ task }}"):
        shown = shown.replace(mark, "Lamps do not light\n\nAt all.")
    content["messages"][1]["content"] = shown
    found = imported(tmp_path, content)
    (turn,) = found.of("turn.started")
    assert turn["input"] == "Lamps do not light\n\nAt all."
    assert found.session.log.part("goal") == "Lamps do not light"


def test_a_template_that_does_not_fit_leaves_the_message_as_it_is(tmp_path: Path) -> None:
    content = trajectory(answer("THOUGHT: look\n```bash\nls\n```"), result(0, "lamp.py\n"))
    content["info"]["config"] = {"agent": {"instance_template": "Another: {{task}} and {{ more }}"}}
    content["messages"][1]["content"] = "Lamps do not light"
    (turn,) = imported(tmp_path, content).of("turn.started")
    assert turn["input"] == "Lamps do not light"
