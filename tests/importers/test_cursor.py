"""Sessions of Cursor, in a database made here as that program fills it."""

import contextlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.importers.growth import seen_once, seen_sessions
from wakelog.errors import InvalidInputError
from wakelog.importers.discovery import find_transcripts
from wakelog.importers.formats import detect_format
from wakelog.importers.transcript_import import import_transcript

ID = "33333333-3333-4333-8333-333333333333"
START = 1_767_600_000_000


def call(name: str, status: str, given: dict[str, Any], result: Any = None) -> dict[str, Any]:
    told = {} if result is None else {"result": json.dumps(result)}
    return {
        "tool": 5,
        "name": name,
        "toolCallId": f"call_{name}",
        "status": status,
        "rawArgs": json.dumps(given),
        **told,
    }


BUBBLES: dict[str, dict[str, Any]] = {
    "b1": {"type": 1, "text": "Make the limit a setting"},
    "b2": {"type": 2, "text": "", "thinking": {"text": "Where is it?", "signature": ""}},
    "b3": {"type": 2, "text": "", "toolFormerData": call("read_file", "completed", {"target_file": "limit.py"}, {})},
    "b4": {
        "type": 2,
        "text": "I change it.",
        "toolFormerData": call("edit_file_v2", "completed", {"relativeWorkspacePath": "limit.py"}, {"diff": {}}),
        "tokenCount": {"inputTokens": 100, "outputTokens": 10},
    },
    "b5": {"type": 2, "text": "", "toolFormerData": call("run_terminal_cmd", "cancelled", {"command": "make"})},
    "b6": {"type": 2, "text": "Done.", "tokenCount": {"inputTokens": 200, "outputTokens": 20}},
    "b7": {"type": 1, "text": "Thanks"},
    "b8": {"type": 2, "text": "Welcome."},
}


def written(path: Path, bubbles: dict[str, dict[str, Any]] | None = None, **more: Any) -> Path:
    """The store with one session that has these bubbles."""
    bubbles = BUBBLES if bubbles is None else bubbles
    composer = {
        "_v": 3,
        "composerId": ID,
        "name": "Limit",
        "createdAt": START,
        "lastUpdatedAt": START + len(bubbles) * 1000,
        "modelConfig": {"modelName": "claude-4.5-sonnet", "maxMode": False},
        "workspaceIdentifier": {"id": "1", "uri": {"fsPath": "/srv/shop"}},
        "fullConversationHeadersOnly": [{"bubbleId": name, "type": b["type"]} for name, b in bubbles.items()],
        "blobEncryptionKey": "c2VjcmV0LWtleS1vZi10aGUtYmxvYnM",
        **more,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        db.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        db.execute("INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'not to be read')")
        db.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (f"composerData:{ID}", json.dumps(composer)))
        for number, (name, bubble) in enumerate(bubbles.items()):
            at = f"2026-01-05T08:00:{number:02}.000Z"
            value = json.dumps({"_v": 3, "bubbleId": name, "createdAt": at, **bubble})
            db.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (f"bubbleId:{ID}:{name}", value))
        db.execute("INSERT INTO cursorDiskKV VALUES (?, NULL)", (f"bubbleId:{ID}:gone",))
        db.commit()
    return path


def test_prompts_answers_calls_and_files_are_there_in_the_order_of_the_session(tmp_path: Path) -> None:
    path = written(tmp_path / "state.vscdb")
    assert detect_format(path).NAME == "cursor"
    seen = seen_once(path)
    assert seen.prompts() == ["Make the limit a setting", "Thanks"]
    assert seen.said() == ["I change it.", "Done.", "Welcome."]
    assert [(c.tool, c.outcome) for c in seen.calls.values()] == [
        ("read_file", "succeeded"),
        ("edit_file_v2", "succeeded"),
        ("run_terminal_cmd", "cancelled"),
    ]
    assert [(path, change) for path, change, _, _ in seen.files] == [("limit.py", "modified")]
    assert (seen.cost["tokens_in"], seen.cost["tokens_out"]) == (300, 30)


def test_project_model_and_times_are_there_and_keys_are_not(tmp_path: Path) -> None:
    store = wakelog.open("memory:", redact=None)
    report = import_transcript(store, written(tmp_path / "state.vscdb"))
    session = store.resume(report.sessions[0].name)
    assert session.name == "cursor-33333333"
    labels = session.log.part("labels")
    assert (labels["project"], labels["model"], labels["title"]) == ("/srv/shop", "claude-4.5-sonnet", "Limit")
    everything = b"".join(e.record.body for e in session.log.entries()).decode()
    everything += str([session.log.value(e, v) for e in session.log.entries() for v in e.body.values()])
    assert "c2VjcmV0" not in everything
    assert "not to be read" not in everything
    (first, *_) = [e for e in session.log.entries() if e.kind == "turn.started"]
    assert first.happened_at == 1_767_600_000_000_000


def test_an_older_session_holds_its_bubbles_inside(tmp_path: Path) -> None:
    inside = [{"bubbleId": name, **bubble} for name, bubble in BUBBLES.items()]
    path = written(tmp_path / "state.vscdb", {}, conversation=inside)
    assert seen_once(path).prompts() == ["Make the limit a setting", "Thanks"]


def test_a_session_that_grows_is_seen_as_if_it_was_imported_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wakelog.importers import transcript_import

    monkeypatch.setattr(transcript_import, "COLD_US", 1 << 62)
    monkeypatch.setattr(transcript_import, "QUIET_US", 1 << 62)
    monkeypatch.setenv("WAKELOG_IMPORT_IDLE", "forever")
    store, path = wakelog.open("memory:"), tmp_path / "state.vscdb"
    running = {**BUBBLES["b4"], "toolFormerData": {**BUBBLES["b4"]["toolFormerData"], "status": "running"}}
    (running["toolFormerData"]).pop("result")
    names = list(BUBBLES)
    for count in range(1, len(names) + 1):
        bubbles = {name: BUBBLES[name] for name in names[:count]}
        if count == 4:
            seen_sessions(store, written(path, bubbles | {"b4": {**running, "text": "I ch"}}, status="generating"))
            seen_sessions(store, written(path, bubbles | {"b4": running}))
        (grown,) = seen_sessions(store, written(path, bubbles))
    assert grown.comparable() == seen_once(written(path)).comparable()


def test_the_store_is_found_and_sessions_without_a_word_are_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / ".config" / "Cursor" / "User" / "globalStorage" / "state.vscdb", {})
    assert [(each.format, each.path) for each in find_transcripts(tmp_path)] == [("cursor", path)]
    assert import_transcript(wakelog.open("memory:"), path).sessions == ()


def test_a_bubble_that_cannot_be_read_is_told_and_the_others_are_there(tmp_path: Path) -> None:
    path = written(tmp_path / "state.vscdb")
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE cursorDiskKV SET value = '{half' WHERE key = ?", (f"bubbleId:{ID}:b6",))
        db.commit()
    store = wakelog.open("memory:")
    report = import_transcript(store, path)
    assert report.broken_count == 1
    assert len(store.resume(report.sessions[0].name).messages()) >= 4


def test_a_damaged_store_is_told_and_nothing_else_fails(tmp_path: Path) -> None:
    path = written(tmp_path / "state.vscdb")
    whole = path.read_bytes()
    for at in range(4096, len(whole), 1024):
        path.write_bytes(whole[:at] + b"\xff" * 512 + whole[at + 512 :])
        with contextlib.suppress(InvalidInputError):
            import_transcript(wakelog.open("memory:"), path, format="cursor")
