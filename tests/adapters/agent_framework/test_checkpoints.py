"""The checkpoint storage, held against the framework's own, and with real workflows."""

from __future__ import annotations

import asyncio
import base64
import collections
import dataclasses
import enum
import subprocess
import sys
import threading
import types
import uuid
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agent_framework import (
    Executor,
    InMemoryCheckpointStorage,
    Message,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowContext,
    WorkflowEvent,
    handler,
    response_handler,
)
from pydantic import BaseModel, PrivateAttr

import wakelog
from tests.engines.on_postgres import postgres_url
from wakelog.adapters.agent_framework import WakelogCheckpointStorage
from wakelog.http.server import serving
from wakelog.http.state import Settings
from wakelog.store import Store


class Colour(enum.Enum):
    RED = "r"


@dataclass
class Order:
    item: str
    count: int = 1
    tags: tuple[str, ...] = ()
    hidden: list[int] = field(default_factory=list, init=False)


class Form(BaseModel):
    name: str
    when: datetime


@dataclass
class Question:
    prompt: str


class Odd:
    def __reduce__(self) -> Any:
        return Odd, ()


class Plain:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)


class Slotted:
    __slots__ = ("x",)
    x: int

    def __eq__(self, other: object) -> bool:
        return type(other) is Slotted and other.x == self.x


class Words(list[str]):
    pass


class Pair(NamedTuple):
    left: int
    right: Any


class Loose(BaseModel):
    anything: Any
    raw: bytes = b""
    _seen: int = PrivateAttr(default=0)


@pytest.fixture(params=["framework", "sqlite", "postgres", "http"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if request.param == "framework":
        yield InMemoryCheckpointStorage()
        return
    if request.param == "http":
        with serving(Settings(url=str(tmp_path / "served"), rate=0)) as running:
            monkeypatch.setenv("WAKELOG_KEY", running.key)
            with wakelog.open(running.url) as store:
                yield WakelogCheckpointStorage(store)
        return
    url = postgres_url(request, tmp_path) if request.param == "postgres" else str(tmp_path / "store")
    with wakelog.open(url) as store:
        yield WakelogCheckpointStorage(store)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened


def checkpoint(id: str, *, of: str = "flow", at: int = 0, **more: Any) -> WorkflowCheckpoint:
    stamp = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=at)
    return WorkflowCheckpoint(of, "sig", checkpoint_id=id, timestamp=stamp.isoformat(), **more)


def test_a_checkpoint_comes_back_as_it_was(storage) -> None:
    async def test() -> None:
        state = {
            "plain": [1, 2.5, None, True, {"a": "b"}],
            "order": Order("tea", 2, ("x", "y")),
            "form": Form(name="n", when=datetime(2026, 1, 2, tzinfo=UTC)),
            "colour": Colour.RED,
            "odd keys": {1: "a", "1": "b", (1, 2): "c"},
            "times": [datetime(2026, 1, 2, 3, 4, 5, 6), date(2026, 1, 2), timedelta(days=1, microseconds=5)],
            "bytes": b"\x00\xff",
            "set": {3, 1, 2},
            "big": 2**80,
            "decimal": Decimal("1.10"),
            "uuid": uuid.UUID(int=7),
            "slices": [slice(1, None), slice(None, 2**60, 3)],
            "zones": [UTC, timezone(timedelta(hours=2)), timezone(timedelta(hours=1), "CET")],
            "deque": collections.deque([1, 2]),
            "counter": collections.Counter("aab"),
            "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
            "type": Order,
            "marked": {"$is": "tuple", "$payload": 1},
            "nested": {"deep": [({"x": Order("z")},)]},
        }
        await storage.save(checkpoint("c1", state=state, metadata={"m": 1}, iteration_count=3))
        found = await storage.load("c1")
        assert found.state == state
        assert found == checkpoint("c1", state=state, metadata={"m": 1}, iteration_count=3)
        found.state["plain"].append("mine")
        assert (await storage.load("c1")).state == state

    asyncio.run(test())


def test_objects_come_back_with_all_that_they_hold(storage) -> None:
    async def test() -> None:
        noted, slotted, loose = Order("tea"), Slotted(), Loose(anything={Decimal("1.1")}, raw=b"\xff")
        noted.extra = [1]  # type: ignore[attr-defined]
        slotted.x = 5
        loose._seen = 7
        state = {
            "plain": Plain({1, 2}),
            "noted": noted,
            "slotted": slotted,
            "words": Words(["a"]),
            "pair": Pair(1, Order("x")),
            "loose": loose,
            "inside": Loose(anything=Order("y")),
            "default": collections.defaultdict(list, {"a": [1]}),
            "path": Path("/a/b"),
            "range": range(3),
            "last": collections.deque([1, 2], maxlen=2),
            "zone": datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("UTC")),
        }
        await storage.save(checkpoint("c1", state=state))
        found = (await storage.load("c1")).state
        assert found == state
        assert {name: type(value) for name, value in found.items()} == {n: type(v) for n, v in state.items()}
        assert found["noted"].extra == [1]
        assert (found["loose"]._seen, found["loose"].model_fields_set) == (7, {"anything", "raw"})
        assert found["inside"].model_fields_set == {"anything"}
        assert (found["default"]["new"], found["last"].maxlen) == ([], 2)
        assert found["zone"].tzinfo == zoneinfo.ZoneInfo("UTC")

    asyncio.run(test())


def test_messages_of_the_framework_come_back(storage) -> None:
    async def test() -> None:
        said = Message("assistant", ["hello"], author_name="a", message_id="m1")
        await storage.save(checkpoint("c1", state={"said": [said]}))
        (found,) = (await storage.load("c1")).state["said"]
        assert found.to_dict() == said.to_dict()

    asyncio.run(test())


def test_a_request_that_waits_comes_back(storage) -> None:
    async def test() -> None:
        event: Any = WorkflowEvent.request_info(
            request_id="r1", source_executor_id="e", request_data=Question("ok?"), response_type=str
        )
        await storage.save(checkpoint("c1", pending_request_info_events={"r1": event}))
        found = (await storage.load("c1")).pending_request_info_events["r1"]
        assert (found.request_id, found.data, found.response_type) == ("r1", Question("ok?"), str)

    asyncio.run(test())


def test_what_is_not_there_says_so(storage) -> None:
    async def test() -> None:
        with pytest.raises(WorkflowCheckpointException):
            await storage.load("none")
        assert await storage.delete("none") is False
        assert await storage.get_latest(workflow_name="flow") is None
        assert await storage.list_checkpoints(workflow_name="flow") == []
        assert await storage.list_checkpoint_ids(workflow_name="flow") == []

    asyncio.run(test())


def test_checkpoints_are_listed_by_workflow_and_the_latest_is_the_newest_by_time(storage) -> None:
    async def test() -> None:
        await storage.save(checkpoint("c1", at=5, state={"n": 1}))
        await storage.save(checkpoint("c2", at=9, state={"n": 2, "new": [1]}))
        await storage.save(checkpoint("c3", at=7, state={"n": 3}))
        await storage.save(checkpoint("d1", of="other @5", at=99))
        assert await storage.list_checkpoint_ids(workflow_name="flow") == ["c1", "c2", "c3"]
        listed = await storage.list_checkpoints(workflow_name="flow")
        assert [(c.checkpoint_id, c.state) for c in listed] == [
            ("c1", {"n": 1}),
            ("c2", {"n": 2, "new": [1]}),
            ("c3", {"n": 3}),
        ]
        assert (await storage.get_latest(workflow_name="flow")).checkpoint_id == "c2"
        assert (await storage.load("d1")).workflow_name == "other @5"
        assert await storage.delete("c2") is True
        assert await storage.delete("c2") is False
        assert (await storage.get_latest(workflow_name="flow")).checkpoint_id == "c3"
        with pytest.raises(WorkflowCheckpointException):
            await storage.load("c2")
        assert await storage.list_checkpoint_ids(workflow_name="flow") == ["c1", "c3"]

    asyncio.run(test())


def test_a_checkpoint_that_is_saved_again_replaces_itself(storage) -> None:
    async def test() -> None:
        await storage.save(checkpoint("c1", state={"n": 1}))
        await storage.save(checkpoint("c1", state={"n": 2}))
        assert (await storage.load("c1")).state == {"n": 2}
        assert await storage.list_checkpoint_ids(workflow_name="flow") == ["c1"]

    asyncio.run(test())


def test_a_checkpoint_that_is_saved_under_another_workflow_is_in_the_first_no_more(storage) -> None:
    async def ids(workflow: str) -> list[str]:
        found = {each.checkpoint_id: each for each in await storage.list_checkpoints(workflow_name=workflow)}
        assert set(await storage.list_checkpoint_ids(workflow_name=workflow)) == set(found)
        latest = await storage.get_latest(workflow_name=workflow)
        assert latest == max(found.values(), key=lambda each: each.timestamp, default=None)
        return sorted(found)

    async def test() -> None:
        await storage.save(checkpoint("c1", at=1, state={"n": 1}))
        await storage.save(checkpoint("c2", at=2))
        await storage.save(checkpoint("c1", of="other", at=3, state={"n": 2}))
        assert (await ids("flow"), await ids("other")) == (["c2"], ["c1"])
        loaded = await storage.load("c1")
        assert (loaded.workflow_name, loaded.state) == ("other", {"n": 2})
        await storage.save(checkpoint("c1", at=4, state={"n": 3}))
        assert (await ids("flow"), await ids("other")) == (["c1", "c2"], [])
        assert (await storage.load("c1")).state == {"n": 3}
        assert await storage.delete("c1") is True
        assert await storage.delete("c1") is False
        assert (await ids("flow"), await ids("other")) == (["c2"], [])

    asyncio.run(test())


def test_a_value_that_cannot_be_stored_is_refused_with_its_path(store) -> None:
    class Inside:
        pass

    @dataclass
    class Local:
        x: int = 1

    async def test() -> None:
        storage = WakelogCheckpointStorage(store)
        loop: list[Any] = []
        loop.append(loop)
        for value, path in (
            ({"a": [1, Odd()]}, r"state\.a\[1\]"),
            ({"a": {"b": print}}, r"state\.a\.b"),
            ({"a": Inside()}, r"state\.a"),
            ({"a": Local()}, r"state\.a"),
            ({"a": lambda: 1}, r"state\.a"),
            ({"a": Order("\ud800")}, r"state"),
            ({"a": loop}, r"state"),
        ):
            with pytest.raises(WorkflowCheckpointException, match=path):
                await storage.save(checkpoint("c1", state=value))
        assert await storage.list_checkpoint_ids(workflow_name="flow") == []

    asyncio.run(test())


def test_only_allowed_types_are_stored_where_they_are_named(store) -> None:
    async def test() -> None:
        narrow = WakelogCheckpointStorage(store, allowed_checkpoint_types=[])
        with pytest.raises(WorkflowCheckpointException, match="Order"):
            await narrow.save(checkpoint("c1", state={"o": Order("x")}))
        wide = WakelogCheckpointStorage(store, allowed_checkpoint_types=[f"{__name__}:Order"])
        await wide.save(checkpoint("c1", state={"o": Order("x")}))
        with pytest.raises(WorkflowCheckpointException, match="Order"):
            await narrow.load("c1")

    asyncio.run(test())


def test_types_of_the_openai_client_are_allowed_as_in_the_frameworks_storage(store, monkeypatch) -> None:
    module = types.ModuleType("openai.types.chat")
    usage = dataclasses.make_dataclass("Usage", ["tokens"])
    usage.__module__ = module.__name__
    module.Usage = usage  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)

    async def test() -> None:
        narrow = WakelogCheckpointStorage(store, allowed_checkpoint_types=[])
        await narrow.save(checkpoint("c1", state={"used": usage(5)}))
        assert (await narrow.load("c1")).state == {"used": usage(5)}

    asyncio.run(test())


def test_nothing_is_pickled_and_a_pickle_in_a_state_is_only_data(store, tmp_path) -> None:
    async def test() -> None:
        storage = WakelogCheckpointStorage(store)
        pickled = {"__pickled__": base64.b64encode(b"cos\nsystem\n(S'true'\ntR.").decode(), "__type__": "builtins:int"}
        await storage.save(checkpoint("c1", state={"p": pickled, "o": Order("tea")}))
        assert (await storage.load("c1")).state == {"p": pickled, "o": Order("tea")}

    asyncio.run(test())
    data = store.resume("agent-framework-workflow/flow").state().data
    assert data["state"]["o"] == {
        "$is": "fields",
        "class": f"{__name__}:Order",
        "of": {"item": "tea", "count": 1, "tags": {"$is": "tuple", "of": []}, "hidden": []},
    }


def test_a_class_whose_module_is_not_loaded_is_not_imported(store) -> None:
    async def test() -> None:
        storage = WakelogCheckpointStorage(store)
        await storage.save(checkpoint("c1", state={"o": Order("tea")}))
        session = store.resume("agent-framework-workflow/flow")
        session.patch([{"op": "replace", "path": "/data/state/o/class", "value": "antigravity:Fly"}])
        session.log.append(*[e.event for e in session.log.entries() if e.kind == "items.kept"])
        with pytest.raises(WorkflowCheckpointException, match="antigravity:Fly"):
            await storage.load("c1")
        assert "antigravity" not in sys.modules

    asyncio.run(test())


class Upper(Executor):  # type: ignore[misc]  # Any where it is not installed
    @handler
    async def work(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("seen", [*(ctx.get_state("seen") or []), text])
        await ctx.send_message(text.upper())


class Ask(Executor):  # type: ignore[misc]  # Any where it is not installed
    @handler
    async def work(self, text: str, ctx: WorkflowContext[Any, str]) -> None:
        await ctx.request_info(Question(f"really {text}?"), str)

    @response_handler
    async def answered(self, question: Question, answer: str, ctx: WorkflowContext[Any, str]) -> None:
        await ctx.yield_output(f"{question.prompt} {answer}")


def workflow(storage: Any) -> Any:
    upper, ask = Upper(id="upper"), Ask(id="ask")
    builder = WorkflowBuilder(start_executor=upper, checkpoint_storage=storage, name="flow")
    return builder.add_edge(upper, ask).build()


def test_a_workflow_is_resumed_from_our_storage_by_another_one(store) -> None:
    async def first() -> str:
        storage = WakelogCheckpointStorage(store)
        result = await workflow(storage).run("tea")
        (request,) = result.get_request_info_events()
        assert list(store.resume("agent-framework-workflow/flow").state().pending_actions) == [request.request_id]
        return request.request_id

    async def second(request: str) -> None:
        storage = WakelogCheckpointStorage(store)
        latest = await storage.get_latest(workflow_name="flow")
        assert latest is not None
        resumed = workflow(storage)
        result = await resumed.run(checkpoint_id=latest.checkpoint_id)
        assert [e.request_id for e in result.get_request_info_events()] == [request]
        result = await resumed.run(responses={request: "yes"})
        assert result.get_outputs() == ["really TEA? yes"]

    asyncio.run(second(asyncio.run(first())))
    session = store.resume("agent-framework-workflow/flow")
    state = session.state()
    assert state.pending_actions == {}
    assert state.data["state"]["seen"] == ["tea"]
    assert (state.turn.status, session.messages()[0].role, session.messages()[0].text) == ("completed", "user", "tea")
    changed = {change.pointer for change in session.diff("@1").changes}
    assert any(pointer.startswith("/data") for pointer in changed)
    assert session.verify().ok


def test_a_large_state_is_stored_once(store) -> None:
    async def test() -> None:
        storage = WakelogCheckpointStorage(store)
        for n in range(30):
            rows = [{"row": i, "text": "x" * 100} for i in range(n + 1)]
            await storage.save(checkpoint(f"c{n}", at=n, state={"rows": rows}, previous_checkpoint_id=str(n)))
        assert len((await storage.load("c10")).state["rows"]) == 11

    asyncio.run(test())
    sizes = [len(e.record.body) for e in store.resume("agent-framework-workflow/flow").log.entries()]
    assert max(sizes[1:]) < 1000


def test_a_save_that_is_cancelled_ends_before_a_later_one_begins(store, monkeypatch) -> None:
    storage, begun, go_on = WakelogCheckpointStorage(store), threading.Event(), threading.Event()

    monkeypatch.setattr(storage, "_save", lambda checkpoint: begun.set() or go_on.wait(30))  # type: ignore[func-returns-value, redundant-expr]

    async def run() -> None:
        task = asyncio.create_task(storage.save(WorkflowCheckpoint(workflow_name="w", graph_signature_hash="h")))
        assert await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_a_rewind_makes_an_earlier_checkpoint_the_latest(store) -> None:
    async def test() -> None:
        storage = WakelogCheckpointStorage(store)
        await storage.save(checkpoint("c1", at=1, state={"n": 1}))
        session = store.resume("agent-framework-workflow/flow")
        before = session.head.seq
        await storage.save(checkpoint("c2", at=2, state={"n": 2}))
        session.rewind(before)
        latest = await storage.get_latest(workflow_name="flow")
        assert latest is not None
        assert (latest.checkpoint_id, latest.state) == ("c1", {"n": 1})
        assert (await storage.load("c2")).state == {"n": 2}

    asyncio.run(test())


WRITER = """
import asyncio, sys
from agent_framework import WorkflowCheckpoint
from wakelog.adapters.agent_framework import WakelogCheckpointStorage

async def main():
    url, me = sys.argv[1:]
    storage = WakelogCheckpointStorage(url)
    for n in range(10):
        await storage.save(WorkflowCheckpoint("flow", "sig", checkpoint_id=f"{me}{n}", state={"by": me, "n": n}))
    await storage.close()

asyncio.run(main())
"""


def test_four_processes_lose_nothing(store, tmp_path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "store")]
    writers = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in "abcd"]
    for writer in writers:
        _, errors = writer.communicate(timeout=300)
        assert writer.returncode == 0, errors.decode()
    listed = asyncio.run(WakelogCheckpointStorage(store).list_checkpoints(workflow_name="flow"))
    assert sorted(c.checkpoint_id for c in listed) == sorted(f"{name}{n}" for name in "abcd" for n in range(10))
    assert all(c.state == {"by": c.checkpoint_id[0], "n": int(c.checkpoint_id[1:])} for c in listed)
