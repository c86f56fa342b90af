"""Transcripts that are not as they should be: any field may be missing or be anything, lines may be cut, lost or twice.

An import of such a file never fails with anything but an error of ours, and a second one adds nothing.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wakelog
from tests.importers import test_aider, test_cline, test_cursor
from tests.importers.newer_samples import cline_session, continue_dev, copilot, qwen
from tests.importers.opencode_samples import messages, whole_messages, write_database, write_folder, write_new_database
from tests.importers.samples import codex, codex_exec, gemini, gemini_log, pi
from wakelog.errors import InvalidInputError
from wakelog.importers.formats import get_format
from wakelog.importers.source.files import decode_json, read_sample
from wakelog.importers.transcript_import import import_transcript

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    1e300,
    10**20,
    "",
    "x",
    "half a pair: \ud83d",
    "2026-01-05T10:00:00Z",
    "*** Begin Patch\n*** Update File: \n@@\n",
    [],
    [1],
    [None],
    [{"type": "text", "text": None}],
    {},
    {"type": "text"},
    {"$payload": 1},
    {"a": {"b": [{}]}},
]
KEYS = ("type", "id", "role", "payload", "content", "message", "call_id", "output", "state", "tokens", "timestamp")
FORMATS = (
    *("codex-rollout", "codex-exec-json", "gemini-cli", "pi", "opencode", "cursor", "cline", "aider"),
    *("copilot-cli", "qwen-code", "continue", "cline-sessions"),
)
LINES = {"codex-rollout": codex, "codex-exec-json": codex_exec, "gemini-cli": gemini_log, "pi": pi}
LINES |= {"copilot-cli": copilot, "qwen-code": qwen}
DOCUMENTS = {"gemini-cli": gemini, "continue": continue_dev, "cline-sessions": cline_session}
few = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [p for key, each in inner for p in ((*path, key), *places(each, (*path, key)))]


def spoil(value: Any, data: st.DataObject) -> Any:
    """A value with something wrong in it."""
    spoilt = copy.deepcopy(value)
    for _ in range(data.draw(st.integers(1, 3))):
        found = places(spoilt)
        if not found:
            break
        *way, last = data.draw(st.sampled_from(found))
        where = spoilt
        for key in way:
            where = where[key]
        how = data.draw(st.sampled_from(("lose", "change", "change", "add")))
        if how == "lose":
            del where[last]
        elif how == "change":
            where[last] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
        elif isinstance(where, dict):
            where[data.draw(st.sampled_from(KEYS))] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
        else:
            where.insert(0, copy.deepcopy(data.draw(st.sampled_from(ODD))))
    return spoilt


def spoilt_lines(lines: list[Any], data: st.DataObject) -> bytes:
    raw = [json.dumps(line).encode() for line in lines]
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        match data.draw(st.sampled_from(("spoil", "spoil", "spoil", "cut", "repeat", "lose"))):
            case "spoil":
                raw[place] = json.dumps(spoil(lines[place % len(lines)], data)).encode()
            case "cut":
                raw[place] = raw[place][: data.draw(st.integers(0, len(raw[place])))]
            case "repeat":
                raw.insert(place, raw[data.draw(st.integers(0, len(raw) - 1))])
            case "lose" if len(raw) > 1:
                del raw[place]
    return b"\n".join(raw) + b"\n"


def check(path: Path, format: str) -> None:
    """Imports a file twice, the second time with another size, so that it is read again."""
    for name in FORMATS:
        get_format(name).recognises(read_sample(path))
    store = wakelog.open("memory:")
    try:
        first = import_transcript(store, path, format=format)
    except InvalidInputError as refused:
        if refused.kind != "bad-transcript":
            raise
        return
    heads = [store.resume(s.name).head for s in first.sessions]
    if not path.read_bytes().startswith(b"SQLite"):
        path.write_bytes(path.read_bytes() + b"\n")
    again = import_transcript(store, path, format=format)
    assert again.new_records == 0
    assert [store.resume(s.name).head for s in again.sessions] == heads


@pytest.mark.parametrize("format", LINES)
@few
@given(data=st.data())
def test_spoilt_lines_never_stop_an_import(format: str, tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "spoilt.jsonl"
    path.write_bytes(spoilt_lines(LINES[format](), data))
    check(path, format)


@pytest.mark.parametrize("format", DOCUMENTS)
@few
@given(data=st.data())
def test_a_spoilt_document_never_stops_an_import(format: str, tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "spoilt.json"
    path.write_text(json.dumps(spoil(DOCUMENTS[format](), data)))
    check(path, format)


@few
@given(data=st.data())
def test_a_spoilt_session_of_opencode_never_stops_an_import(tmp_path: Path, data: st.DataObject) -> None:
    stored, rows = messages(), whole_messages()
    place = data.draw(st.integers(0, len(stored) - 1))
    message, parts = stored[place]
    number = data.draw(st.integers(0, len(parts) - 1))
    parts[number] = spoil(parts[number], data) | {"id": parts[number]["id"]}
    stored[place] = spoil(message, data) | {"id": message["id"]}, parts
    place = data.draw(st.integers(0, len(rows) - 1))
    rows[place] = spoil(rows[place], data) | {"id": rows[place]["id"], "type": rows[place]["type"]}
    check(write_folder(tmp_path / "storage", stored), "opencode")
    check(write_database(tmp_path / "opencode.db", stored), "opencode")
    check(write_new_database(tmp_path / "opencode-next.db", rows), "opencode")


@few
@given(data=st.data())
def test_a_spoilt_task_of_cline_never_stops_an_import(tmp_path: Path, data: st.DataObject) -> None:
    conversation = data.draw(st.sampled_from((test_cline.NATIVE, test_cline.XML)))
    path = test_cline.written(tmp_path, conversation)
    path.with_name("ui_messages.json").write_text(json.dumps(spoil(test_cline.seen_by_person(conversation), data)))
    path.write_text(json.dumps(spoil(conversation, data)))
    check(path, "cline")


@few
@given(data=st.data())
def test_a_spoilt_session_of_cursor_never_stops_an_import(tmp_path: Path, data: st.DataObject) -> None:
    more = {
        key: data.draw(st.sampled_from(ODD))
        for key in data.draw(st.lists(st.sampled_from(("createdAt", "modelConfig", "status", "name", "conversation"))))
    }
    bubbles = {name: {"type": 2} | spoil(bubble, data) for name, bubble in test_cursor.BUBBLES.items()}
    check(test_cursor.written(tmp_path / "state.vscdb", bubbles, **more), "cursor")


@few
@given(data=st.data())
def test_a_spoilt_history_of_aider_never_stops_an_import(tmp_path: Path, data: st.DataObject) -> None:
    lines = (test_aider.FIRST + test_aider.SECOND).splitlines()
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(lines) - 1))
        odd = ("", "```", "####", ">", "> Tokens: k sent, .k received.", "# aider chat started at 2026-99-99 00:00:00")
        lines[place] = data.draw(st.sampled_from((*odd, lines[place][:5], lines[-1], "# aider chat started at x")))
    path = tmp_path / "history.md"
    path.write_text("\n".join(lines))
    check(path, "aider")


def test_what_the_log_cannot_hold_is_made_so_that_it_can() -> None:
    deep = "[" * 100 + "]" * 100
    assert decode_json('{"a": "x\\ud83d", "b": 12345678901234567890, "c": 1e300, "$payload": 1, "$set": 2}') == {
        "a": "x\ufffd",
        "b": "12345678901234567890",
        "c": "1e+300",
        "_$payload": 1,
        "$set": 2,
    }
    assert str(decode_json(deep)).count("[") == 100
    with pytest.raises(ValueError, match="truncated"):
        decode_json("{")
