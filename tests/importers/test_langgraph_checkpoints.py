"""Threads in the SQLite database of LangGraph's checkpointer, made here by hand: LangGraph is not needed."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.msgpack import Ext

import wakelog
from wakelog.importers.formats import detect_format
from wakelog.importers.frameworks.langgraph.values import from_msgpack, to_msgpack
from wakelog.importers.transcript_import import import_transcript

pack = msgspec.msgpack.encode


def message(kind: str, text: str, id: str, **more: Any) -> Ext:
    name = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}[kind]
    fields = {"content": text, "type": kind, "id": id, **more}
    return Ext(5, pack([f"langchain_core.messages.{kind}", name, fields, "model_validate_json"]))


HUMAN = message("human", "apples", "h1")
ASKS = message(
    "ai",
    "let me look",
    "a1",
    tool_calls=[{"name": "look", "args": {"q": "apples"}, "id": "c1"}],
    usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    response_metadata={"model_name": "gpt-4o"},
)
FOUND = message("tool", "found", "t1", tool_call_id="c1", status="success")
SAYS = message("ai", "it is found", "a2")


def database(path: Path, checkpoints: list[tuple[str, str, str, dict[str, Any]]]) -> Path:
    """(id, parent, source, channels) of each checkpoint of thread `t`."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,"
            " metadata)"
        )
        db.execute(
            "CREATE TABLE writes"
            " (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)"
        )
        for step, (id, parent, source, values) in enumerate(checkpoints):
            ts = f"2026-01-01T00:00:{step:02}+00:00"
            body = {"v": 4, "id": id, "ts": ts, "channel_values": values, "channel_versions": {}, "versions_seen": {}}
            row = ("t", "", id, parent or None, "msgpack", pack(body), json.dumps({"source": source, "step": step}))
            db.execute("INSERT INTO checkpoints VALUES (?,?,?,?,?,?,?)", row)
        db.execute("INSERT INTO writes VALUES ('t','','1','task','',0,'messages','msgpack',?)", (pack([HUMAN]),))
        db.commit()
    return path


RUN: list[tuple[str, str, str, dict[str, Any]]] = [
    ("1", "", "input", {"__start__": {"messages": [HUMAN]}}),
    ("2", "1", "loop", {"messages": [HUMAN], "branch:to:model": None}),
    ("3", "2", "loop", {"messages": [HUMAN, ASKS], "branch:to:tools": None}),
    ("4", "3", "loop", {"messages": [HUMAN, ASKS, FOUND], "branch:to:model": None}),
    ("5", "4", "loop", {"messages": [HUMAN, ASKS, FOUND, SAYS], "count": 2.0}),
]


def imported(tmp_path: Path, path: Path) -> Any:
    store = wakelog.open(tmp_path / "store")
    import_transcript(store, path)
    return store


def test_a_thread_becomes_a_session_with_turns_and_calls(tmp_path: Path) -> None:
    path = database(tmp_path / "graph.db", RUN)
    assert detect_format(path).NAME == "langgraph"
    with imported(tmp_path, path) as store:
        session = store.resume("langgraph-t")
        state = session.state()
        assert (state.turn.number, state.turn.status) == (1, "completed")
        assert state.tools_used["look"].calls == 1
        assert state.budget.spent["tokens"] == 15
        assert next(m.text for m in session.messages()) == "apples"
        data = session.log.state()["data"]
        assert [m["type"] for m in data["messages"]] == ["human", "ai", "tool", "ai"]
        assert data["count"] == {"$float": "2.0"}
        before = session.head.seq
        import_transcript(store, path)
        assert session.head.seq == before


def test_a_checkpoint_with_an_older_parent_is_a_rewind(tmp_path: Path) -> None:
    other = message("human", "pears", "h2")
    fork = [("6", "2", "update", {"messages": [HUMAN, other]})]
    with imported(tmp_path, database(tmp_path / "graph.db", RUN + fork)) as store:
        session = store.resume("langgraph-t")
        assert [entry.kind for entry in session.events(kind="history.rewound")] == ["history.rewound"]
        assert [m["content"] for m in session.log.state()["data"]["messages"]] == ["apples", "pears"]


def test_a_checkpoint_that_needs_its_serializer_is_kept_and_told(tmp_path: Path) -> None:
    path = database(tmp_path / "graph.db", RUN[:1])
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO checkpoints VALUES ('t','','9','1','msgpack+aes',x'00','{}')")
        db.commit()
    with wakelog.open(tmp_path / "store") as store:
        report = import_transcript(store, path)
        assert "cannot be read without its serializer" in report.broken[0]


@pytest.mark.parametrize(
    "value",
    [
        *(None, 1, 2**60, 1.0, 1.5, "x", b"\x00", [1, [2]], {"a": 1}, {1: 2}, {"$int": 1}),
        *(HUMAN, Ext(1, b"\xc1"), Ext(2, pack(["m", "C", {"a": 1}]))),
    ],
    ids=lambda value: f"ext {value.code}" if isinstance(value, Ext) else repr(value),
)
def test_messagepack_goes_to_json_and_back(value: Any) -> None:
    data = pack({"v": value})
    assert to_msgpack(from_msgpack(data)) == data
