"""One small session of OpenCode in every way that it was ever stored."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

SESSION = "ses_0001"
INFO: dict[str, Any] = {
    "id": SESSION,
    "directory": "/srv/app",
    "title": "Write a file",
    "version": "1.1.0",
    "time": {"created": 1_767_600_000_000, "updated": 1_767_600_009_000},
}
Stored = tuple[dict[str, Any], list[dict[str, Any]]]
T = 1_767_600_000_000


def part(id: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "type": kind, **fields}


def finish(id: str, count: int) -> dict[str, Any]:
    tokens = {"input": count, "output": count // 10, "reasoning": 1, "cache": {"read": 5, "write": 0}}
    return part(id, "step-finish", reason="stop", cost=count / 1_000_000, tokens=tokens)


def tool(id: str, call: str, name: str, given: Any, output: str, **metadata: Any) -> dict[str, Any]:
    state = {
        "status": "completed",
        "input": given,
        "output": output,
        "title": name,
        "metadata": metadata,
        "time": {"start": T + 3000, "end": T + 3500},
    }
    return part(id, "tool", callID=call, tool=name, state=state)


def messages() -> list[Stored]:
    """The messages with their parts, as they were until 1.x."""
    said = {
        "role": "assistant",
        "modelID": "claude-sonnet-4-5",
        "providerID": "anthropic",
        "path": {"cwd": "/srv/app"},
    }
    diff = {"file": "/srv/app/a.txt", "before": "", "after": "one\ntwo\n", "additions": 2, "deletions": 0}
    return [
        (
            {"id": "msg_1", "role": "user", "time": {"created": T + 1000}},
            [
                part("prt_1", "text", text="Write a.txt"),
                part("prt_2", "text", text="<file>notes</file>", synthetic=True),
            ],
        ),
        (
            {"id": "msg_2", **said, "time": {"created": T + 2000, "completed": T + 5000}, "finish": "tool-calls"},
            [
                part("prt_3", "step-start"),
                part("prt_4", "reasoning", text="One file.", time={"start": T + 2000, "end": T + 2100}),
                part("prt_5", "text", text="I write it.", time={"start": T + 2100, "end": T + 2200}),
                tool(
                    "prt_6", "c1", "write", {"filePath": "/srv/app/a.txt", "content": "one\ntwo\n"}, "", filediff=diff
                ),
                tool("prt_7", "c2", "bash", {"command": "false"}, "no", exit=1),
                finish("prt_8", 100),
            ],
        ),
        (
            {"id": "msg_3", **said, "time": {"created": T + 6000, "completed": T + 7000}, "finish": "stop"},
            [
                part("prt_9", "step-start"),
                part("prt_a", "text", text="Done.", time={"start": T + 6000, "end": T + 6500}),
                finish("prt_b", 200),
            ],
        ),
    ]


def whole_messages() -> list[dict[str, Any]]:
    """The same since 2.0: a message holds its parts."""
    found: list[dict[str, Any]] = []
    for info, parts in messages():
        if info["role"] == "user":
            found.append({"id": info["id"], "type": "user", "text": parts[0]["text"], "time": info["time"]})
            found.append({"id": "msg_1s", "type": "synthetic", "text": parts[1]["text"], "time": info["time"]})
            continue
        content = []
        for each in parts:
            if each["type"] == "tool":
                state = {k: v for k, v in each["state"].items() if k not in ("output", "time", "title")}
                state["content"] = [{"type": "text", "text": each["state"]["output"]}]
                time = {"created": T + 3000, "ran": T + 3000, "completed": T + 3500}
                content.append(
                    {"type": "tool", "id": each["callID"], "name": each["tool"], "state": state, "time": time}
                )
            elif each["type"] in ("text", "reasoning"):
                content.append({"type": each["type"], "text": each["text"]})
        last = parts[-1]
        more = {"cost": last["cost"], "tokens": last["tokens"], "finish": info["finish"], "agent": "build"}
        model = {"id": info["modelID"], "providerID": "anthropic"}
        found.append(
            {"id": info["id"], "type": "assistant", "model": model, "content": content, "time": info["time"], **more}
        )
    return [*found, {"id": "msg_9", "type": "idle", "outcome": "succeeded", "time": {"created": T + 7000}}]


def write_folder(storage: Path, stored: list[Stored] | None = None, info: dict[str, Any] | None = None) -> Path:
    """The files of a session below `storage`; the path of the session's own."""
    about = info or INFO
    own = storage / "session" / "project" / f"{about['id']}.json"
    files = {own: about}
    for message, parts in messages() if stored is None else stored:
        files[storage / "message" / about["id"] / f"{message['id']}.json"] = message
        for each in parts:
            files[storage / "part" / message["id"] / f"{each['id']}.json"] = each
    for path, value in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2))
    return own


def write_database(path: Path, stored: list[Stored] | None = None) -> Path:
    """`opencode.db` as it was from 1.2 on."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            """
            CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT,
                version TEXT, time_created INTEGER, time_updated INTEGER);
            CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
                time_updated INTEGER, data TEXT);
            CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,
                time_created INTEGER, time_updated INTEGER, data TEXT);
            """
        )
        row = (SESSION, None, INFO["directory"], INFO["title"], INFO["version"], T, T + 9000)
        db.execute("INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        for number, (message, parts) in enumerate(messages() if stored is None else stored):
            data = json.dumps({k: v for k, v in message.items() if k != "id"})
            values = (message["id"], SESSION, T + number, T + number, data)
            db.execute("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)", values)
            for each in parts:
                data = json.dumps({k: v for k, v in each.items() if k != "id"})
                in_part = (each["id"], message["id"], SESSION, T, T + len(data), data)
                db.execute("INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?)", in_part)
        db.commit()
    return path


def write_new_database(path: Path, rows: list[dict[str, Any]] | None = None) -> Path:
    """`opencode.db` since 2.0."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            """
            CREATE TABLE IF NOT EXISTS session_v2 (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT,
                version TEXT, time_created INTEGER, time_updated INTEGER);
            CREATE TABLE IF NOT EXISTS session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT, seq INTEGER,
                time_created INTEGER, time_updated INTEGER, data TEXT);
            """
        )
        row = (SESSION, None, INFO["directory"], INFO["title"], "2.0.0", T, T + 9000)
        db.execute("INSERT OR REPLACE INTO session_v2 VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        for seq, message in enumerate(whole_messages() if rows is None else rows):
            data = json.dumps({k: v for k, v in message.items() if k not in ("id", "type")})
            values = (message["id"], SESSION, message["type"], seq, T + seq, T + seq + len(data), data)
            db.execute("INSERT OR REPLACE INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        db.commit()
    return path
