"""The session store of the Claude Agent SDK: its own conformance suite, and what that suite does not ask."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk.testing import run_session_store_conformance

import wakelog
from tests.adapters.store_urls import store_url as store_url
from tests.importers.corpus import FOLDER
from wakelog.adapters.claude_agent import WakelogSessionStore
from wakelog.errors import InvalidInputError
from wakelog.store import Store

KEY = {"project_key": "-home-me-work", "session_id": "5c0375b4-0d6b-4b7c-8b0b-1f2e3d4c5b6a"}
BASE = {"sessionId": KEY["session_id"], "cwd": "/w", "version": "2.1.0", "gitBranch": "main", "isSidechain": False}


def line(kind: str, uuid: str, parent: str | None, **more: Any) -> dict[str, Any]:
    at = f"2026-11-16T10:00:{len(uuid):02}.000Z"
    return {**BASE, "type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": at, **more}


def user(uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    return line("user", uuid, parent, message={"role": "user", "content": content}, **more)


def model(uuid: str, parent: str, id: str, stop: str | None, *content: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5}
    said = {"id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": list(content)}
    return line("assistant", uuid, parent, message={**said, "stop_reason": stop, "usage": usage})


TURN = [
    user("u1", None, "Change the greeting"),
    model("a1", "u1", "msg_1", None, {"type": "text", "text": "I edit it."}),
    model(
        "a2",
        "a1",
        "msg_1",
        "tool_use",
        {"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": {"file_path": "/w/a.py", "n": 1.5}},
    ),
    user(
        "u2",
        "a2",
        [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "edited"}],
        toolUseResult={
            "filePath": "/w/a.py",
            "oldString": "hi",
            "newString": "hello",
            "originalFile": "print('hi')\n",
            "structuredPatch": [],
        },
    ),
    model("a3", "u2", "msg_2", "end_turn", {"type": "text", "text": "Done."}),
    {"type": "summary", "summary": "Greeting", "leafUuid": "a3"},
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened


def test_it_passes_the_conformance_suite_of_the_sdk_on_every_store(store_url: str) -> None:
    made: list[WakelogSessionStore] = []
    numbers = itertools.count()

    def new() -> WakelogSessionStore:
        url = store_url
        if url.startswith("postgresql:"):
            url = f"{url}-{next(numbers)}"
        elif url.startswith("http:"):
            url = f"{url}/ns/c{next(numbers)}"
        else:
            url = f"{url}-{next(numbers)}"
        made.append(WakelogSessionStore(url))
        return made[-1]

    try:
        asyncio.run(run_session_store_conformance(new))
    finally:
        for each in made:
            each.close()
    assert len(made) == 15


def test_entries_come_back_whole_and_a_known_uuid_is_stored_once(store: Store) -> None:
    async def run() -> None:
        sessions, other = WakelogSessionStore(store), WakelogSessionStore(store)
        for size in range(1, len(TURN)):
            await (sessions if size % 2 else other).append(KEY, TURN[:size])
        await other.append(KEY, [*TURN[:-1], TURN[0], *TURN])
        assert await sessions.load(KEY) == await WakelogSessionStore(store).load(KEY) == TURN
        await sessions.append(KEY, TURN[-1:])
        assert await sessions.load(KEY) == [*TURN, TURN[-1]], "an entry without a uuid is added each time"

    asyncio.run(run())


@pytest.mark.parametrize("size", [1, 2, 6])
def test_entries_become_turns_calls_files_and_costs_however_they_come(store: Store, size: int) -> None:
    async def run() -> None:
        sessions = WakelogSessionStore(store)
        for start in range(0, len(TURN), size):
            await sessions.append(KEY, TURN[start : start + size])
        session = sessions.session(KEY)
        entries = list(session.log.entries())
        assert [e.body.get("outcome", "completed") for e in entries if e.kind == "turn.ended"] == ["completed"]
        assert [e.body["path"] for e in entries if e.kind == "file.changed"] == ["a.py"]
        assert [f.path for f in session.files.modified().files] == ["a.py"]
        assert store.cost(session.id).total.tokens_in == 20
        assert [m.text for m in session.messages() if m.role == "user"] == ["Change the greeting"]
        assert session.log.part("labels")["title"] == "Greeting"
        assert session.log.part("pending_actions") == {}
        assert session.verify().ok
        assert await sessions.load(KEY) == TURN

    asyncio.run(run())


def test_nothing_is_stored_twice(store: Store) -> None:
    secret = "the only place of these words"
    sessions = WakelogSessionStore(store)
    asyncio.run(sessions.append(KEY, [user("u1", None, secret)]))
    bodies = [e.record.body for e in sessions.session(KEY).log.entries()]
    assert sum(body.count(secret.encode()) for body in bodies) == 2, "the input, and the summary that the SDK folds"


def test_after_a_rewind_the_sdk_resumes_from_there(store: Store) -> None:
    async def run() -> None:
        sessions = WakelogSessionStore(store)
        second = [user("u3", "a3", "More"), model("a4", "u3", "msg_3", "end_turn", {"type": "text", "text": "Ok."})]
        await sessions.append(KEY, TURN[:5])
        await sessions.append(KEY, second)
        session = sessions.session(KEY)
        session.rewind("@1")
        assert await sessions.load(KEY) == TURN[:5]
        forked = session.fork("@1", name="try")
        assert forked.head.turn == 1
        session.undo()
        assert await sessions.load(KEY) == [*TURN[:5], *second]

    asyncio.run(run())


def test_a_prompt_that_goes_back_in_the_program_is_a_rewind_and_all_entries_stay(store: Store) -> None:
    async def run() -> None:
        sessions = WakelogSessionStore(store)
        again = user("u9", "u1", "No, keep it")
        await sessions.append(KEY, TURN[:5])
        await sessions.append(KEY, [again])
        assert await sessions.load(KEY) == [*TURN[:5], again]
        texts = [m.text for m in sessions.session(KEY).messages() if m.role == "user"]
        assert texts == ["Change the greeting", "No, keep it"]
        assert "history.rewound" in [e.kind for e in sessions.session(KEY).log.entries()]

    asyncio.run(run())


@pytest.mark.parametrize("id", ["e86", "@5", "a/b c", "ü", "~x", "x" * 300])
def test_any_key_is_a_session_of_its_own(store: Store, id: str) -> None:
    async def run() -> None:
        sessions = WakelogSessionStore(store)
        key = {"project_key": id, "session_id": id}
        sub = {**key, "subpath": f"subagents/agent-{id}"}
        await sessions.append(key, TURN[:1])
        await sessions.append(sub, TURN[1:2])
        assert await sessions.load(key) == TURN[:1]
        assert [s["session_id"] for s in await sessions.list_sessions(id)] == [id]
        assert await sessions.list_subkeys(key) == [sub["subpath"]]
        await sessions.delete(key)
        assert await sessions.load(sub) is None
        await sessions.append(key, TURN[:2])
        assert await sessions.load(key) == TURN[:2], "a session that was deleted can be begun again"

    asyncio.run(run())


def test_odd_values_come_back_too(store: Store) -> None:
    entry = {"type": "x", "n": 2**70, "half": "\ud83d", "$in": [1], "$erased": 3, "f": 1.0, "deep": _deep(100)}
    entry |= {"message": {"content": {"$payload": "no"}}}
    said = user("u1", None, "half \ud83d and " + "9" * 30, big=2**60)

    async def run() -> None:
        sessions = WakelogSessionStore(store)
        await sessions.append(KEY, [entry, said])
        assert await WakelogSessionStore(store).load(KEY) == [entry, said]

    asyncio.run(run())


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


CHILD = """
import asyncio, sys
from wakelog.adapters.claude_agent import WakelogSessionStore
key = {"project_key": "p", "session_id": "s"}
async def main():
    sessions = WakelogSessionStore(sys.argv[1])
    for n in range(8):
        await sessions.append(key, [{"type": "x", "uuid": f"{sys.argv[2]}{n}"}, {"type": "x", "uuid": f"same{n}"}])
asyncio.run(main())
"""


def test_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    place, root = str(tmp_path / "store"), Path(__file__).parents[3]
    env = {**os.environ, "PYTHONPATH": str(root)}
    children = [subprocess.Popen([sys.executable, "-c", CHILD, place, who], cwd=root, env=env) for who in "abc"]
    assert [child.wait(timeout=180) for child in children] == [0, 0, 0]
    sessions = WakelogSessionStore(place)
    loaded = asyncio.run(sessions.load({"project_key": "p", "session_id": "s"}))
    sessions.close()
    assert loaded is not None
    assert sorted(e["uuid"] for e in loaded) == sorted([f"{w}{n}" for w in ("a", "b", "c", "same") for n in range(8)])


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the corpus of transcripts is not here")
def test_real_transcripts_come_back_as_they_were(store: Store) -> None:
    for number, path in enumerate(sorted((FOLDER / "claude-code").rglob("*.jsonl"))):
        values = [json.loads(raw) for raw in path.read_text("utf-8").splitlines()[:400] if raw.strip()]
        entries = [value for value in values if isinstance(value, dict)]
        wanted: list[Any] = []
        seen: set[str] = set()
        for entry in entries:
            if entry.get("uuid") not in seen:
                wanted.append(entry)
            seen |= {entry["uuid"]} if "uuid" in entry else set()

        async def run(entries: list[Any] = entries, wanted: list[Any] = wanted, number: int = number) -> None:
            sessions = WakelogSessionStore(store)
            key = {"project_key": "corpus", "session_id": f"s{number}"}
            for start in range(0, len(entries), 50):
                await sessions.append(key, entries[start : start + 50])
            assert await WakelogSessionStore(store).load(key) == wanted

        asyncio.run(run())


def test_what_is_no_entry_or_no_json_is_refused_with_its_place(store: Store) -> None:
    sessions = WakelogSessionStore(store)
    for entries, said in (
        ([{"type": "x"}, "text"], r"entries\[1\] is a str"),
        ([{"type": "x", "deep": [{"f": print}]}], r"entries\[0\]\.deep\[0\]\.f cannot be stored"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            asyncio.run(sessions.append(KEY, entries))
    assert asyncio.run(sessions.load(KEY)) is None


def test_a_session_that_is_not_a_transcript_is_not_written_to(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        sessions = WakelogSessionStore(store)
        asyncio.run(sessions.append(KEY, TURN))
        name = sessions.session(KEY).name
        store.delete(store.resume(name))
        made = store.session(str(name), data={"mine": 1})
        with pytest.raises(InvalidInputError, match="not a session of claude-agent") as refused:
            asyncio.run(WakelogSessionStore(store).append(KEY, TURN))
        assert refused.value.kind == "foreign-session"
        assert made.head.seq == 1
