"""Transcripts that have no conversation yet, as Claude Code's at its first screen, when hooks are taken in already."""

import json
from pathlib import Path

import pytest

import wakelog
from tests.hooks.conversation import CLAUDE, claude, spooled, write_transcript
from wakelog.hooks import spool_files
from wakelog.hooks.intake import PATIENCE_US, take_in
from wakelog.importers.transcript_import import import_transcript
from wakelog.session import Session

NAME = "claude-0a1b2c3d"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A transcript with the lines that come before the first prompt."""
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    made = tmp_path / f"{CLAUDE}.jsonl"
    kinds = ({"type": "mode", "mode": "normal"}, {"type": "permission-mode", "permissionMode": "default"})
    made.write_text("".join(json.dumps({**kind, "sessionId": CLAUDE}) + "\n" for kind in kinds))
    return made


def check_whole(session: Session) -> None:
    entries = list(session.log.entries())
    assert "capture" not in session.log.part("labels")
    assert [e.kind for e in entries].count("turn.started") == 1
    assert [e.body["tool"] for e in entries if e.kind == "action.recorded"] == ["model", "Bash"]
    assert session.verify().ok


@pytest.mark.parametrize("is_idle", [False, True])
def test_it_is_imported_when_the_conversation_comes(path: Path, is_idle: bool) -> None:
    url, said = str(path.parent / "store"), claude(transcript=str(path))
    spooled(said[:1])
    assert take_in(wakelog.open, into=url).waiting == 1
    if is_idle:
        [record] = spool_files.read_records(next((path.parent / "data" / "spool").iterdir()).read_bytes())[0]
        assert take_in(wakelog.open, into=url, now_us=record.at_us + PATIENCE_US).waiting == 0
        with wakelog.open(url) as store:
            assert store.resume(NAME).log.part("labels")["capture"] == "hooks"
    spooled(said[2:3])  # the hook of a prompt runs before the prompt is written
    assert take_in(wakelog.open, into=url).waiting > 0
    write_transcript(path)
    spooled(said[3:5])
    report = take_in(wakelog.open, into=url)
    assert (report.waiting, report.troubles) == (0, [])
    with wakelog.open(url) as store:
        check_whole(store.resume(NAME))


def test_what_hooks_alone_recorded_and_closed_is_replaced_though_calls_are_open(path: Path) -> None:
    url, said = str(path.parent / "store"), claude(transcript=None)
    spooled([said[0], said[2], said[3], said[-1]])
    assert take_in(wakelog.open, into=url).troubles == []
    write_transcript(path)
    with wakelog.open(url) as store:
        session = store.resume(NAME)
        assert (session.status, list(session.log.part("pending_actions"))) == ("closed", ["t1"])
        import_transcript(store, path)
        check = [e.kind for first, last in session.log.view() for e in session.log.entries(after=first - 1, upto=last)]
        assert check.count("turn.started") == 1
        assert session.verify().ok
