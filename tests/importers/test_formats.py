"""A file's format is told, or it is told that there is none: whatever stands in it."""

import codecs
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wakelog
from tests.importers.samples import codex, gemini
from wakelog.errors import NotFoundError, UnsupportedError, WakelogError
from wakelog.importers.discovery import find_in_folder
from wakelog.importers.formats import FORMATS, all_formats, detect_format
from wakelog.importers.source.files import read_sample
from wakelog.importers.transcript_import import import_transcript

KEYS = (
    *("type", "uuid", "sessionId", "message", "role", "content", "payload", "timestamp", "kind", "source", "action"),
    *("trajectory", "history", "messages", "samples", "version", "eval", "traj", "task_id", "info", "id", "session"),
    *("resourceSpans", "thread_id", "item", "startTime", "projectHash", "leafUuid", "snapshot", "operation", "parts"),
)
ODD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["user", "session", "RUN_STARTED", "message", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), ODD, max_size=5) | ODD, min_size=1, max_size=3), st.booleans())
def test_odd_values_are_no_reason_to_fail(values: list[Any], as_lines: bool) -> None:
    formats = [*all_formats()]  # before the patch: a module that is first imported here would keep it
    with pytest.MonkeyPatch.context() as patch:
        text = "\n".join(map(json.dumps, values)) if as_lines else json.dumps(values)
        patch.setattr("wakelog.importers.source.files.open_source", lambda path: _Opened(text.encode()))
        found = read_sample(Path("x.jsonl"))
        for each in formats:
            assert each.recognises(found) in (True, False), each.NAME


class _Opened:
    """What `open` gives, without a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, size: int = -1) -> bytes:
        return self._data

    def __enter__(self) -> "_Opened":
        return self

    def __exit__(self, *_: object) -> None:
        return None


def test_a_file_of_no_format_is_refused_with_the_formats_that_there_are(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text('{"type": ["user"], "uuid": "x"}\n')
    with pytest.raises(UnsupportedError) as refused:
        detect_format(path)
    assert isinstance(refused.value, WakelogError)
    assert all(name in refused.value.hint for name in FORMATS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("README.md", 'A run has {"trajectory_format":"mini-swe-agent-1", "mini_version": 1}.'),
        ("labels.json", '{"folders": ["mini-swe-agent", "mini_version"]}'),
        ("test_stream.py", 'EVENTS = [{"type": "RUN_STARTED", "threadId": "t"}]'),
        ("events.md", 'An event: {"kind": "ActionEvent", "source": "agent"}'),
    ],
)
def test_a_file_that_only_quotes_a_format_is_not_of_it(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UnsupportedError):
        detect_format(path)


@pytest.mark.parametrize("kind", ["lines", "document"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_a_byte_order_mark_and_foreign_line_ends_change_nothing(kind: str, mark: bytes, tmp_path: Path) -> None:
    text = json.dumps(gemini(), indent=1) if kind == "document" else "\n".join(map(json.dumps, codex()))
    kinds = []
    for name, data in (("plain", text.encode()), ("odd", mark + text.replace("\n", "\r\n").encode())):
        path = tmp_path / f"{name}.json"
        path.write_bytes(data)
        with wakelog.open("memory:") as store:
            report = import_transcript(store, path)
            assert report.broken == ()
            kinds.append([e.kind for h in store.sessions() for e in store.resume(h.session).log.entries()])
    assert kinds[0] == kinds[1]
    assert "turn.started" in kinds[0]


def test_a_first_line_of_megabytes_hides_no_format(tmp_path: Path) -> None:
    first, *rest = codex()
    first["payload"]["instructions"] = "x" * (3 << 20)
    path = tmp_path / "long.jsonl"
    path.write_text("\n".join(map(json.dumps, [first, *rest])))
    assert detect_format(path).NAME == "codex-rollout"


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (b"", "is empty", "later"),
        (b"\n \n", "is empty", "later"),
        ('{"type": "user"}'.encode("utf-16"), "is UTF-16 text", "iconv -f UTF-16"),
        (b'{"schema": "wakelog.event/1", "seq": 1}\n', "cannot be imported", "wakelog export SESSION -o"),
    ],
)
def test_a_file_that_is_no_transcript_is_told_what_it_is(data: bytes, message: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_bytes(data)
    with pytest.raises(UnsupportedError, match=message) as refused:
        detect_format(path)
    assert refused.value.kind == "unknown-format"
    assert hint in refused.value.hint


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(NotFoundError, match="is not a regular file"):
        detect_format(tmp_path / "pipe.jsonl")


def test_a_folder_names_the_files_that_cannot_be_read_and_skips_those_of_no_format(tmp_path: Path) -> None:
    text = "\n".join(map(json.dumps, codex())).encode()
    (tmp_path / "good.jsonl.gz").write_bytes(gzip.compress(text))
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(text)[:-20])
    (tmp_path / "cut.bin").write_bytes(gzip.compress(text)[:-20])
    (tmp_path / "notes.json").write_text("{}")
    found = {each.path.name: each.format for each in find_in_folder(tmp_path)}
    assert found == {"good.jsonl.gz": "codex-rollout", "cut.jsonl.gz": ""}
