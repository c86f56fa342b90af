"""What `codex exec --json` prints."""

from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.importers.growth import check_growth, prefixes, seen_once, seen_sessions
from tests.importers.samples import codex, codex_exec, write_lines
from wakelog.importers.formats import detect_format
from wakelog.importers.transcript_import import import_transcript


def test_a_run_is_a_turn_with_its_calls_answer_and_usage(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "out.jsonl", codex_exec())
    assert detect_format(path).NAME == "codex-exec-json"
    seen = seen_once(path)
    assert seen.turns == ["completed"]
    assert seen.said() == ["One file."]
    assert {id: (c.tool, c.outcome, c.output) for id, c in seen.calls.items()} == {
        "item_1": ("exec_command", "succeeded", "a.txt\n"),
        "item_2": ("apply_patch", "succeeded", None),
    }
    assert seen.files == [("/srv/b.txt", "created", 0, 0)]
    assert (seen.cost["tokens_in"], seen.cost["tokens_out"]) == (100, 7)


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ({"exit_code": 1, "status": "failed"}, "failed"),
        ({"status": "declined"}, "denied"),
        ({"exit_code": 0, "status": "completed"}, "succeeded"),
    ],
)
def test_the_outcome_of_a_command_is_as_it_says(tmp_path: Path, more: dict[str, Any], outcome: str) -> None:
    item = {"id": "i", "type": "command_execution", "command": "x", "aggregated_output": "", **more}
    lines = [*codex_exec()[:2], {"type": "item.completed", "item": item}]
    assert seen_once(write_lines(tmp_path / "out.jsonl", lines)).calls["i"].outcome == outcome


def test_a_turn_that_failed_says_why(tmp_path: Path) -> None:
    lines = [*codex_exec()[:2], {"type": "turn.failed", "error": {"message": "no credit"}}]
    store = wakelog.open("memory:")
    session = store.resume(import_transcript(store, write_lines(tmp_path / "out.jsonl", lines)).sessions[0].name)
    (ended,) = [e.body for e in session.log.entries() if e.kind == "turn.ended"]
    assert (ended["outcome"], ended["error"]["message"]) == ("failed", "no credit")


def test_the_output_of_several_runs_is_several_sessions(tmp_path: Path) -> None:
    other = [{"type": "thread.started", "thread_id": "other"}, *codex_exec()[1:]]
    store = wakelog.open("memory:")
    seen = seen_sessions(store, write_lines(tmp_path / "out.jsonl", [*codex_exec(), *other]))
    assert [len(s.calls) for s in seen] == [2, 2]


def test_a_run_that_is_resumed_is_another_turn_of_the_same_session(tmp_path: Path) -> None:
    seen = seen_once(write_lines(tmp_path / "out.jsonl", [*codex_exec(), *codex_exec()]))
    assert seen.turns == ["completed", "completed"]
    assert len(seen.calls) == 4
    assert seen.cost["tokens_out"] == 14


def test_a_run_and_the_rollout_of_its_thread_are_two_sessions(tmp_path: Path) -> None:
    store = wakelog.open("memory:")
    import_transcript(store, write_lines(tmp_path / "out.jsonl", codex_exec()))
    (rollout,) = seen_sessions(store, write_lines(tmp_path / "rollout.jsonl", codex()))
    assert rollout.prompts() == ["Make a.txt", "Now delete everything"]


def test_output_that_grows_is_seen_as_if_it_was_imported_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_growth(prefixes([*codex_exec(), *codex_exec()]), tmp_path / "out.jsonl", "codex-exec-json", monkeypatch)
