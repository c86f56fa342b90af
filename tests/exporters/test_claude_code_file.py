"""A transcript for Claude Code: what was imported comes back, and what was not is written so that it can be read."""

import json
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.exporters.transcripts import SESSION, till, written
from tests.importers.corpus import corpus_files, imported
from wakelog import ModelMessage, UserMessage
from wakelog.exporters.claude_code_file import claude_code_file, session_id
from wakelog.importers.transcript_import import import_transcript
from wakelog.session import Session


def told(session: Session[Any]) -> list[Any]:
    """The messages, calls and files of a session, in order."""
    found: list[Any] = []
    for entry in session.log.entries():
        body, kind = entry.body, entry.kind
        if kind in ("turn.started", "message.added"):
            said = session.log.value(entry, body.get("input", body.get("content")))
            found.append((kind, body.get("role"), body.get("name"), said))
        elif kind.startswith("action."):
            values = [session.log.value(entry, body.get(name)) for name in ("input", "output")]
            found.append((kind, body["action"], body.get("tool"), body.get("outcome"), *values))
        elif kind == "file.changed":
            names = ("path", "change", "added", "removed", "before_hash", "after_hash", "action")
            found.append((kind, *(body.get(name) for name in names)))
    return found


def exported(session: Session[Any], folder: Path) -> tuple[list[dict[str, Any]], Session[Any]]:
    """The lines of the file, and what they give when they are imported into another store."""
    path = folder / f"{session_id(session)}.jsonl"
    lines = list(claude_code_file(session))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    store = wakelog.open("memory:")
    return lines, store.resume(import_transcript(store, path).sessions[0].name)


LATER = 4_000_000_000_000_000
"""When these sessions were left long ago, so that they are closed."""


def import_one(lines: list[dict[str, Any]], folder: Path) -> Session[Any]:
    store = wakelog.open("memory:", clock=lambda: LATER)
    return store.resume(import_transcript(store, written(lines, folder)).sessions[0].name)


def test_a_second_import_of_the_file_gives_the_same_messages_calls_and_files(tmp_path: Path) -> None:
    session = import_one(till(), tmp_path)
    _, again = exported(session, tmp_path)
    assert told(again) == told(session)
    assert any(row[0] == "file.changed" for row in told(again))


def test_the_records_come_back_as_they_were(tmp_path: Path) -> None:
    lines, _ = exported(import_one(till(), tmp_path), tmp_path)
    for was, now in zip(till(), lines, strict=True):
        assert {k: v for k, v in now.items() if k not in ("sessionId", "timestamp", "toolUseResult")} == {
            k: v for k, v in was.items() if k not in ("sessionId", "timestamp", "toolUseResult")
        }
    edit = next(line for line in lines if "oldString" in (line.get("toolUseResult") or {}))
    was = next(line for line in till() if line["uuid"] == edit["uuid"])
    assert edit["toolUseResult"] == was["toolUseResult"]


def test_the_session_gets_an_id_of_its_own_which_stays_the_same(tmp_path: Path) -> None:
    session = import_one(till(), tmp_path)
    lines, _ = exported(session, tmp_path)
    (id,) = {line["sessionId"] for line in lines}
    assert id == session_id(session) != SESSION


def test_a_session_of_another_agent_becomes_a_chain_that_can_be_read(tmp_path: Path) -> None:
    now = [1_772_359_200_000_000]  # 2026-03-01 10:00
    store = wakelog.open("memory:", clock=lambda: now[0])
    session = store.session("own")

    @session.tool
    def multiply(a: int, b: int) -> int:
        now[0] += 60_000_000
        return a * b

    with session.turn("What is 6 x 7?"):
        multiply(6, 7)
        session.append(ModelMessage("42"))
    now[0] += 60_000_000
    session.append(UserMessage("and 6 x 8?"))
    lines, again = exported(session, tmp_path)
    minutes = [line["timestamp"][:16].removeprefix("2026-03-01T10:") for line in lines]
    assert minutes == ["00", "00", "01", "01", "02"]  # a question, a call, its answer, the model's, a question
    assert [line["parentUuid"] for line in lines] == [None, *(line["uuid"] for line in lines[:-1])]
    assert {"cwd", "version", "sessionId", "message"} <= lines[0].keys()
    said = [row[3] for row in told(again) if row[0] == "turn.started"]
    assert said == ["What is 6 x 7?", "and 6 x 8?"]
    (call,) = [row for row in told(again) if row[2] == "multiply"]
    assert call[4:] == ({"a": 6, "b": 7}, "42")


def test_what_was_rewound_since_the_import_is_not_in_the_file(tmp_path: Path) -> None:
    session = import_one(till(), tmp_path)
    session.life.reopen()
    session.rewind("@1")
    lines = list(claude_code_file(session))
    assert "the tax" not in json.dumps(lines)
    assert "totals are rounded" in json.dumps(lines)


@pytest.mark.parametrize("name", corpus_files("claude-code", "entire-checkpoints"))
def test_real_transcripts_come_back(name: str, tmp_path: Path) -> None:
    store, report = imported(name)
    main = store.resume(report.sessions[0].name)
    _, again = exported(main, tmp_path)
    assert told(again) == told(main)
