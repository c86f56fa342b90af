"""The task store of A2A, held against the SDK's own in memory."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from a2a.auth.user import User
from a2a.server.context import ServerCallContext
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import (
    Artifact,
    ListTasksRequest,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from google.protobuf.json_format import ParseDict
from google.protobuf.timestamp_pb2 import Timestamp

import wakelog
from tests.engines.on_postgres import postgres_url
from wakelog.adapters.a2a import WakelogTaskStore
from wakelog.http.server import serving
from wakelog.http.state import Settings


class Named(User):  # type: ignore[misc]  # Any where it is not installed
    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def user_name(self) -> str:
        return self._name


ANN, BOB = ServerCallContext(user=Named("ann@x")), ServerCallContext(user=Named("bob"))


@pytest.fixture(params=["a2a", "sqlite", "postgres", "http"])
def tasks(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if request.param == "a2a":
        yield InMemoryTaskStore()
    elif request.param == "http":
        with serving(Settings(url=str(tmp_path / "served"), rate=0)) as running:
            monkeypatch.setenv("WAKELOG_KEY", running.key)
            with wakelog.open(running.url) as opened:
                yield WakelogTaskStore(opened)
    else:
        url = postgres_url(request, tmp_path) if request.param == "postgres" else str(tmp_path / "store")
        with wakelog.open(url) as opened:
            yield WakelogTaskStore(opened)


def said(text: str, id: str, role: Any = Role.ROLE_USER) -> Message:
    return Message(message_id=id, role=role, parts=[Part(text=text)], context_id="c1", task_id="t1")


def task(id: str = "t1", at: int = 1, state: Any = TaskState.TASK_STATE_WORKING, **more: Any) -> Task:
    status = TaskStatus(state=state, timestamp=Timestamp(seconds=at))
    return Task(id=id, context_id=more.pop("context_id", "c1"), status=status, **more)


def test_a_task_comes_back_as_it_was(tasks) -> None:
    async def test() -> None:
        assert await tasks.get("t1", ANN) is None
        raw = Part(raw=b"\x00\xff", media_type="image/png")
        data = ParseDict({"data": {"n": [1, 2.5, None]}, "metadata": {"k": "v"}}, Part())
        message = Message(message_id="m2", role=Role.ROLE_AGENT, parts=[Part(text="hé"), raw, data])
        made = task(history=[said("hi", "m1"), message], artifacts=[Artifact(artifact_id="a", parts=[raw])])
        made.metadata.update({"deep": {"x": [True]}})
        await tasks.save(made, ANN)
        assert await tasks.get("t1", ANN) == made

    asyncio.run(test())


def test_a_task_that_is_saved_again_is_replaced(tasks) -> None:
    async def test() -> None:
        await tasks.save(task(history=[said("hi", "m1")]), ANN)
        longer = task(at=2, history=[said("hi", "m1"), said("hello", "m2", Role.ROLE_AGENT)])
        await tasks.save(longer, ANN)
        assert await tasks.get("t1", ANN) == longer
        other = task(at=3, state=TaskState.TASK_STATE_COMPLETED, history=[said("hi", "m1"), said("again", "m3")])
        await tasks.save(other, ANN)
        assert await tasks.get("t1", ANN) == other

    asyncio.run(test())


def test_a_task_with_a_long_id_is_listed(tasks) -> None:
    async def test() -> None:
        for owner in (ANN, BOB):
            await tasks.save(task("t" * 300), owner)
        found = await tasks.list(ListTasksRequest(), ANN)
        assert [each.id for each in found.tasks] == ["t" * 300]

    asyncio.run(test())


def test_tasks_belong_to_their_owner_and_can_be_deleted(tasks) -> None:
    async def test() -> None:
        await tasks.save(task("e86"), ANN)
        assert await tasks.get("e86", BOB) is None
        await tasks.delete("e86", BOB)
        assert await tasks.get("e86", ANN) == task("e86")
        await tasks.delete("e86", ANN)
        await tasks.delete("e86", ANN)
        assert await tasks.get("e86", ANN) is None

    asyncio.run(test())


def test_tasks_are_listed_newest_first_by_pages_and_filters(tasks) -> None:
    async def test() -> None:
        for number in range(5):
            await tasks.save(task(f"t{number}", at=number + 1, context_id="odd" if number % 2 else "even"), ANN)
        await tasks.save(task("theirs"), BOB)
        first = await tasks.list(ListTasksRequest(page_size=2), ANN)
        assert [each.id for each in first.tasks] == ["t4", "t3"]
        second = await tasks.list(ListTasksRequest(page_size=2, page_token=first.next_page_token), ANN)
        assert [each.id for each in second.tasks] == ["t2", "t1"]
        odd = await tasks.list(ListTasksRequest(context_id="odd"), ANN)
        assert [each.id for each in odd.tasks] == ["t3", "t1"]

    asyncio.run(test())


def test_a_history_is_turns_and_its_status_is_data(tmp_path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        tasks = WakelogTaskStore(store)
        history = [said("Book a table", "m1"), said("Done.", "m2", Role.ROLE_AGENT)]
        asyncio.run(tasks.save(task(history=history[:1]), ANN))
        asyncio.run(tasks.save(task(state=TaskState.TASK_STATE_COMPLETED, history=history), ANN))
        session = store.resume(tasks.name_of("ann@x", "t1"))
        assert [(m.role, m.text) for m in session.messages()] == [("user", "Book a table"), ("assistant", "Done.")]
        state = session.state()
        assert (state.turn.number, state.turn.status) == (1, "completed")
        assert state.data["status"]["state"] == "TASK_STATE_COMPLETED"
        assert state.labels["a2a.context"] == "c1"


WRITER = """
import asyncio, sys
from tests.adapters.a2a.test_task_store import ANN, said, task
from wakelog.adapters.a2a import WakelogTaskStore

async def main():
    tasks, me = WakelogTaskStore(sys.argv[1]), sys.argv[2]
    for n in range(5):
        await tasks.save(task(f"{me}{n}", at=n + 1, history=[said("hi", f"{me}{n}")]), ANN)

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("state", "answer", "outcome"),
    [
        ("TASK_STATE_COMPLETED", True, "completed"),
        ("TASK_STATE_COMPLETED", False, "completed"),
        ("TASK_STATE_FAILED", True, "failed"),
        ("TASK_STATE_CANCELED", False, "interrupted"),
        ("TASK_STATE_INPUT_REQUIRED", False, "open"),
    ],
)
def test_the_turn_ends_with_its_task_and_has_its_last_status(
    tmp_path: Path, state: str, answer: bool, outcome: str
) -> None:
    with wakelog.open(tmp_path) as store:
        tasks = WakelogTaskStore(store)
        history = [said("book a room", "m1")]
        asyncio.run(tasks.save(task(history=history), ANN))
        history += [said("I tried", "m2", Role.ROLE_AGENT)] if answer else []
        asyncio.run(tasks.save(task(state=TaskState.Value(state), history=history), ANN))
        session = store.resume(tasks.name_of("ann@x", "t1"))
        assert session.state().turn.status == outcome
        assert session.state().turn.number == 1
        if outcome != "open":
            changed = {change.pointer: change.after for change in session.diff("@1").changes}
            assert state in str(changed["/data/status"])


def test_a_save_is_one_commit_so_that_writers_never_mix_their_tasks(tmp_path: Path) -> None:
    async def test() -> None:
        with wakelog.open(tmp_path) as mine, wakelog.open(tmp_path) as theirs:
            ours, others = WakelogTaskStore(mine), WakelogTaskStore(theirs)
            log, before = None, 1
            for place, at in ((ours, 1), (others, 2), (ours, 3), (others, 3), (ours, 4)):
                await place.save(task(at=at, history=[said(f"{at}.{n}", f"m{n}") for n in range(at)]), ANN)
                log = log or mine.resume(ours.name_of("ann@x", "t1")).log
                assert len({entry.commit_id for entry in log.entries(after=before)}) <= 1
                before = log.head().seq
                for reader in (ours, others):
                    found = await reader.get("t1", ANN)
                    assert found is not None
                    assert (found.status.timestamp.seconds, len(found.history)) == (at, at)

    asyncio.run(test())


def test_four_processes_lose_nothing(tmp_path: Path) -> None:
    """All tasks are in one context, which is one session."""
    place, root = str(tmp_path / "store"), Path(__file__).parents[3]
    wakelog.open(place).close()
    command, env = [sys.executable, "-c", WRITER, place], {**os.environ, "PYTHONPATH": str(root)}
    writers = [subprocess.Popen([*command, name], cwd=root, env=env) for name in "abcd"]
    assert [writer.wait(timeout=300) for writer in writers] == [0] * 4

    async def test() -> None:
        with wakelog.open(place) as opened:
            tasks = WakelogTaskStore(opened)
            for id in (f"{name}{n}" for name in "abcd" for n in range(5)):
                found = await tasks.get(id, ANN)
                assert found is not None
                assert [message.message_id for message in found.history] == [id]

    asyncio.run(test())
