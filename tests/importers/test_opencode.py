"""Sessions of OpenCode: as files, in both databases, and exported."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.importers.corpus import records_of
from tests.importers.growth import seen_once, seen_sessions
from tests.importers.opencode_samples import (
    INFO,
    SESSION,
    Stored,
    T,
    messages,
    part,
    tool,
    whole_messages,
    write_database,
    write_folder,
    write_new_database,
)
from tests.importers.seen import Seen
from wakelog.errors import WakelogError
from wakelog.importers import transcript_import
from wakelog.importers.discovery import find_transcripts
from wakelog.importers.formats import detect_format
from wakelog.importers.transcript_import import import_transcript


def export(path: Path) -> Path:
    path.write_text(json.dumps({"info": INFO, "messages": [{"info": m, "parts": p} for m, p in messages()]}))
    return path


def forms(tmp_path: Path) -> list[Path]:
    """One session, stored in every way."""
    return [
        write_folder(tmp_path / "storage"),
        write_database(tmp_path / "opencode.db"),
        write_new_database(tmp_path / "opencode-next.db"),
        export(tmp_path / "export.json"),
    ]


def folder(tmp_path: Path, stored: list[Stored]) -> Seen:
    return seen_once(write_folder(tmp_path / "storage", stored))


def test_a_session_is_seen_alike_however_it_is_stored(tmp_path: Path) -> None:
    seen = []
    for path in forms(tmp_path):
        assert detect_format(path).NAME == "opencode"
        seen.append(seen_once(path))
    first = seen[0]
    assert first.prompts() == ["Write a.txt"]
    assert first.named("context") == ["<file>notes</file>"]
    assert first.said() == ["I write it.", "Done."]
    assert {id: (c.tool, c.outcome) for id, c in first.calls.items()} == {
        "c1": ("write", "succeeded"),
        "c2": ("bash", "failed"),
    }
    assert first.files == [("a.txt", "created", 2, 0)]
    assert first.cost == {"tokens_in": 310, "tokens_out": 32, "usd_micros": 300}
    assert first.turns == ["completed"]
    for other in seen[1:]:
        # The folder that a path begins from is not told since 2.0.
        files = [(Path(path).name, *more) for path, *more in other.files]
        assert other.comparable() | {"files": files} == first.comparable()


def test_a_session_that_moved_to_another_store_is_not_imported_again(tmp_path: Path) -> None:
    store = wakelog.open("memory:")
    files, database, new, exported = forms(tmp_path)
    once = seen_once(files)
    for path in (files, database, exported):
        (found,) = seen_sessions(store, path)
        assert found.comparable() == once.comparable()
    (found,) = seen_sessions(store, new)
    assert (found.prompts(), found.said(), found.calls, found.cost) == (
        once.prompts(),
        once.said(),
        once.calls,
        once.cost,
    )


@pytest.mark.parametrize("form", range(4))
def test_calls_that_were_asked_for_together_stand_in_one_answer_of_the_model(form: int, tmp_path: Path) -> None:
    store = wakelog.open("memory:")
    session = store.resume(import_transcript(store, forms(tmp_path)[form]).sessions[0].name)
    recorded = [e for e in session.log.entries() if e.kind == "action.recorded"]
    assert [e.body["tool"] for e in recorded] == ["model", "write", "bash", "model"]
    assert [e.body["cost"]["tokens_in"] for e in recorded if e.body["tool"] == "model"] == [105, 205]
    assert {e.body.get("group") for e in recorded if e.body["tool"] != "model"} == {recorded[0].body["action"]}


def test_words_that_are_still_being_written_wait_and_are_kept(tmp_path: Path) -> None:
    user, (message, _), _ = messages()
    begun = {k: v for k, v in message.items() if k != "finish"} | {"time": {"created": T}}
    path = write_folder(tmp_path / "storage", [user, (begun, [part("prt_5", "text", text="I wri", time={"start": T})])])
    store = wakelog.open("memory:")
    session = store.resume(import_transcript(store, path).sessions[0].name)
    assert Seen(session).said() == []
    assert "I wri" in str(records_of(session))


def versions() -> Iterator[list[Stored]]:
    """The session while it is written: words come whole or not, calls wait, run and are over."""
    before: list[Stored] = []
    for message, parts in messages():
        begun = {k: v for k, v in message.items() if k != "finish"}
        begun["time"] = {"created": message["time"]["created"]}
        written: list[dict[str, Any]] = []
        for each in parts:
            if each["type"] == "tool":
                given = each["state"]["input"]
                for state in ({"status": "pending", "input": {}}, {"status": "running", "input": given}):
                    yield [*before, (begun, [*written, each | {"state": state}])]
            elif each["type"] in ("text", "reasoning") and "time" in each:
                time = {"start": each["time"]["start"]}
                yield [*before, (begun, [*written, each | {"text": each["text"][:3], "time": time}])]
            written.append(each)
            yield [*before, (begun, list(written))]
        before.append((message, parts))
        yield list(before)


@pytest.mark.parametrize("write", [write_folder, write_database])
def test_a_session_that_grows_is_seen_as_if_it_was_imported_whole(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_import, "COLD_US", 1 << 62)
    monkeypatch.setenv("WAKELOG_IMPORT_IDLE", "forever")
    store = wakelog.open("memory:")
    place = tmp_path / ("storage" if write is write_folder else "opencode.db")
    for stored in versions():
        (grown,) = seen_sessions(store, write(place, stored))
    assert grown.comparable() == seen_once(write(place)).comparable()
    assert import_transcript(store, write(place)).new_records == 0


def test_a_session_of_the_new_database_that_grows_is_seen_as_if_it_was_imported_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_import, "COLD_US", 1 << 62)
    monkeypatch.setenv("WAKELOG_IMPORT_IDLE", "forever")
    store = wakelog.open("memory:")
    rows: list[dict[str, Any]] = []
    for row in whole_messages():
        if row["type"] == "assistant":
            begun = {k: v for k, v in row.items() if k not in ("tokens", "cost")} | {"time": {"created": T}}
            for count in range(len(row["content"]) + 1):
                write_new_database(tmp_path / "opencode.db", [*rows, begun | {"content": row["content"][:count]}])
                seen_sessions(store, tmp_path / "opencode.db")
        rows.append(row)
        (grown,) = seen_sessions(store, write_new_database(tmp_path / "opencode.db", rows))
    assert grown.comparable() == seen_once(write_new_database(tmp_path / "opencode.db")).comparable()


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ({"status": "error", "error": "The user rejected permission to use this specific tool call."}, "denied"),
        ({"status": "error", "error": "Tool execution aborted"}, "interrupted"),
        ({"status": "error", "error": "File not found: x"}, "failed"),
        ({"status": "completed", "output": "x\n<bash_metadata>\nexceeded timeout\n</bash_metadata>"}, "timed_out"),
        ({"status": "completed", "output": "fine", "metadata": {"exit": 0}}, "succeeded"),
    ],
)
def test_the_outcome_of_a_call_is_as_its_state_says(tmp_path: Path, state: dict[str, Any], outcome: str) -> None:
    call = part("prt_6", "tool", callID="c", tool="bash", state={"input": {"command": "x"}, **state})
    user, (message, _), _ = messages()
    assert folder(tmp_path, [user, (message, [call])]).calls["c"].outcome == outcome


def test_an_answer_that_was_stopped_ends_its_turn(tmp_path: Path) -> None:
    user, (message, parts), _ = messages()
    stopped = message | {"error": {"name": "MessageAbortedError", "data": {"message": "aborted"}}}
    assert folder(tmp_path, [user, (stopped, parts[:3])]).turns == ["interrupted"]


def test_an_error_of_the_model_is_kept_in_its_words(tmp_path: Path) -> None:
    user, (message, _), _ = messages()
    failed = message | {"error": {"name": "APIError", "data": {"message": "overloaded"}}}
    assert folder(tmp_path, [user, (failed, [])]).named("error") == ["overloaded"]


def test_the_answer_that_sums_up_stands_for_what_was_said_before(tmp_path: Path) -> None:
    asked = {"id": "msg_4", "role": "user", "time": {"created": T + 8000}}
    summary = messages()[2][0] | {"id": "msg_5", "summary": True}
    words = part("prt_d", "text", text="A file was written.", time={"start": 1, "end": 2})
    stored = [*messages(), (asked, [part("prt_c", "compaction", auto=True)]), (summary, [words])]
    seen = folder(tmp_path, stored)
    assert seen.named("summary") == ["A file was written."]
    assert seen.prompts() == ["Write a.txt"]


def test_a_sub_agent_is_a_session_that_its_parent_spawned(tmp_path: Path) -> None:
    user, (message, _), last = messages()
    call = tool("prt_6", "c", "task", {"description": "Look", "prompt": "Look around"}, "Found", sessionId="ses_0002")
    storage = tmp_path / "storage"
    store = wakelog.open("memory:")
    parent = write_folder(storage, [user, (message, [call]), last])
    child = write_folder(storage, [], INFO | {"id": "ses_0002", "parentID": SESSION})
    spawner = store.resume(import_transcript(store, parent).sessions[0].name)
    session = store.resume(import_transcript(store, child).sessions[0].name)
    assert [e.body["session"] for e in spawner.log.entries() if e.kind == "subagent.spawned"] == [session.id]
    assert next(iter(session.log.entries())).body["spawner"].startswith(spawner.id)


def test_a_part_that_cannot_be_read_is_kept_and_named(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "storage")
    (tmp_path / "storage" / "part" / "msg_2" / "prt_5.json").write_text('{"type": "text", "te')
    report = import_transcript(wakelog.open("memory:"), path)
    assert report.broken_count == 1
    assert "prt_5.json" in report.broken[0]


def test_a_database_is_read_while_the_program_writes_it_and_is_left_as_it_was(tmp_path: Path) -> None:
    path = write_database(tmp_path / "opencode.db", messages()[:1])
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("UPDATE session SET title = 'Changed'")
        db.commit()
        store = wakelog.open("memory:")
        before = path.read_bytes()
        report = import_transcript(store, path)
        assert path.read_bytes() == before
    assert store.resume(report.sessions[0].name).log.part("labels")["title"] == "Changed"


def test_changes_that_the_program_left_in_its_log_are_read_from_a_copy(tmp_path: Path) -> None:
    path = write_database(tmp_path / "opencode.db", messages()[:1])
    left = tmp_path / "left"
    left.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("UPDATE session SET title = 'Changed'")
        db.commit()
        for name in ("opencode.db", "opencode.db-wal"):
            shutil.copyfile(tmp_path / name, left / name)
    store = wakelog.open("memory:")
    report = import_transcript(store, left / "opencode.db")
    assert store.resume(report.sessions[0].name).log.part("labels")["title"] == "Changed"
    assert sorted(p.name for p in left.iterdir()) == ["opencode.db", "opencode.db-wal"]


def test_another_database_is_not_taken_for_one_of_opencode(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE session (id TEXT)")
    with pytest.raises(WakelogError) as unknown:
        detect_format(path)
    assert unknown.value.kind == "unknown-format"
    with pytest.raises(WakelogError) as refused:
        import_transcript(wakelog.open("memory:"), path, format="opencode")
    assert refused.value.kind == "bad-transcript"


def test_sessions_in_files_are_found_unless_a_database_has_them(tmp_path: Path) -> None:
    data = tmp_path / ".local" / "share" / "opencode"
    write_folder(data / "storage")
    write_folder(data / "storage", [], INFO | {"id": "ses_0002"})
    assert sorted(f.path.name for f in find_transcripts(tmp_path)) == ["ses_0001.json", "ses_0002.json"]
    write_database(data / "opencode.db")
    assert sorted(f.path.name for f in find_transcripts(tmp_path)) == ["opencode.db", "ses_0002.json"]


def test_an_edit_of_a_file_that_the_agent_wrote_has_its_contents(tmp_path: Path) -> None:
    """Newer versions describe an edit by a patch, without the contents."""
    stored = messages()
    [reply, parts] = stored[1]
    patch = "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n-one\n+uno\n two\n"
    path = "/srv/app/a.txt"
    given = {"filePath": path, "oldString": "one", "newString": "uno"}
    diff = {"file": path, "patch": patch, "additions": 1, "deletions": 1}
    wrote = tool("prt_6", "c1", "write", {"filePath": path, "content": "one\ntwo\n"}, "", exists=False)
    edited = tool("prt_6b", "c1b", "edit", given, "Edit applied", diff=patch, filediff=diff)
    other = tool("prt_6c", "c1c", "edit", given | {"filePath": "/srv/app/b.txt"}, "Edit applied", diff=patch)
    stored[1] = reply, [*parts[:3], wrote, edited, other, *parts[4:]]
    store = wakelog.open("memory:")
    report = import_transcript(store, write_database(tmp_path / "opencode.db", stored))
    log = store.resume(report.sessions[0].name).log
    changed = [entry.body for entry in log.entries() if entry.kind == "file.changed"]
    assert [(c["path"], c.get("change", "modified"), c.get("before"), c.get("after")) for c in changed] == [
        ("a.txt", "created", None, "one\ntwo\n"),
        ("a.txt", "modified", "one\ntwo\n", "uno\ntwo\n"),
        ("b.txt", "modified", None, None),
    ]
    assert [(c["added"], c["removed"]) for c in changed[1:]] == [(1, 1), (1, 1)]
