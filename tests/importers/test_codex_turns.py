"""How turns of Codex end: what its rollout says, and what was only shown before."""

from pathlib import Path

import wakelog
from tests.importers.samples import event, meta, prompt, write_lines
from wakelog.importers.transcript_import import import_transcript

TURN = "019a0000-0001-7000-8000-000000000001"


def test_words_that_were_only_shown_before_a_stop_belong_to_the_turn_that_was_stopped(tmp_path: Path) -> None:
    shown = event("agent_message", message="I begin with")
    lines = [meta(), *prompt("Go", TURN), shown, event("turn_aborted", reason="interrupted")]
    path = write_lines(tmp_path / "rollout.jsonl", lines)
    with wakelog.open("memory:") as store:
        import_transcript(store, path)
        session = store.resume(next(iter(store.sessions())).session)
        kinds = [entry.kind for entry in session.log.entries()]
    assert kinds.index("action.recorded") < kinds.index("turn.ended")


def test_a_turn_that_ended_with_an_error_failed(tmp_path: Path) -> None:
    lines = [meta(), *prompt("Go", TURN), event("task_complete", turn_id=TURN, error={"message": "no quota"})]
    path = write_lines(tmp_path / "rollout.jsonl", lines)
    with wakelog.open("memory:") as store:
        session = store.resume(import_transcript(store, path).sessions[0].name)
        (ended,) = [entry.body for entry in session.log.entries() if entry.kind == "turn.ended"]
    assert (ended["outcome"], ended["error"]["message"]) == ("failed", "no quota")
