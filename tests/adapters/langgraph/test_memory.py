"""LangGraph's long-term store over the facts of a session."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")
import langgraph.store.base
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp

import wakelog
from tests.adapters.store_urls import store_url as store_url
from wakelog.adapters.langgraph import WakelogSaver, WakelogStore


def test_items_are_facts_that_other_processes_see_on_every_store(store_url: str) -> None:
    with WakelogStore(store_url) as one, WakelogStore(store_url) as other:
        one.put(("users", "u/1"), "food", {"likes": "pizza", "n": 1})
        one.put(("users", "u2"), "food", {"likes": "soup", "n": 2})
        found = other.get(("users", "u/1"), "food")
        assert found is not None
        assert (found.value, found.namespace) == ({"likes": "pizza", "n": 1}, ("users", "u/1"))
        assert [i.value["likes"] for i in other.search(("users",), filter={"n": {"$gt": 1}})] == ["soup"]
        assert other.list_namespaces(prefix=("users",)) == [("users", "u/1"), ("users", "u2")]
        other.put(("users", "u/1"), "food", {"likes": "rice"})
        changed = one.get(("users", "u/1"), "food")
        assert changed is not None
        assert changed.value == {"likes": "rice"}
        assert changed.created_at == found.created_at
        assert changed.updated_at > found.updated_at
        one.delete(("users", "u2"), "food")
        assert other.get(("users", "u2"), "food") is None
        assert list(one.session.state().facts) == ["/users/u~11/food"]


def test_a_batch_answers_before_it_changes(tmp_path: Path) -> None:
    with WakelogStore(tmp_path) as store:
        ops: list[Any] = [PutOp(("a",), "k", {"n": 1}), GetOp(("a",), "k")]
        assert store.batch(ops) == [None, None]
        assert asyncio.run(store.abatch([ops[1]]))[0].value == {"n": 1}


def test_an_item_that_was_given_out_is_the_callers(tmp_path: Path) -> None:
    with WakelogStore(tmp_path) as store:
        store.put(("a",), "k", {"list": [1]})
        store.get(("a",), "k").value["list"].append(2)
        store.search(("a",))[0].value["list"].append(3)
        assert store.get(("a",), "k").value == {"list": [1]}


def test_a_rewind_brings_items_back(tmp_path: Path) -> None:
    with WakelogStore(tmp_path) as store:
        store.put(("a",), "k", {"n": 1})
        before = store.session.head.seq
        store.put(("a",), "k", {"n": 2})
        store.session.rewind(before)
        assert store.get(("a",), "k").value == {"n": 1}


class Clock:
    """Minutes that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def pass_minutes(self, minutes: float) -> None:
        self.now += int(minutes * 60_000_000)


def test_an_item_lives_as_long_as_its_ttl_and_a_sweep_retracts_it(tmp_path: Path) -> None:
    clock = Clock()
    with wakelog.open(tmp_path, clock=clock) as store:
        memory = WakelogStore(store, ttl={"refresh_on_read": False, "omit_expired": True})
        memory.put(("a",), "short", {"n": 1}, ttl=5)
        memory.put(("a",), "long", {"n": 2}, ttl=60)
        memory.put(("a",), "always", {"n": 3})
        clock.pass_minutes(6)
        assert memory.get(("a",), "short") is None
        assert [item.key for item in memory.search(("a",))] == ["long", "always"]
        assert memory.sweep_ttl() == 1
        assert sorted(memory.session.state().facts) == ["/a/always", "/a/long"]
        memory.put(("a",), "long", {"n": 4})  # without a ttl now
        clock.pass_minutes(600)
        assert memory.sweep_ttl() == 0


def test_an_ended_item_is_there_until_a_sweep_unless_it_is_to_be_omitted(tmp_path: Path) -> None:
    clock = Clock()
    with wakelog.open(tmp_path, clock=clock) as store:
        memory = WakelogStore(store, ttl={"default_ttl": 5, "refresh_on_read": False, "sweep_interval_minutes": 10})
        memory.put(("a",), "k", {"n": 1})
        clock.pass_minutes(6)
        assert memory.get(("a",), "k") is not None
        clock.pass_minutes(6)  # the interval is over: the next use of the store sweeps it
        assert memory.get(("a",), "k") is None


def test_reading_an_item_lets_it_live_longer(tmp_path: Path) -> None:
    clock = Clock()
    with wakelog.open(tmp_path, clock=clock) as store:
        memory = WakelogStore(store, ttl={"omit_expired": True})
        memory.put(("a",), "k", {"n": 1}, ttl=10)
        for _ in range(3):
            clock.pass_minutes(6)
            assert memory.search(("a",))[0].value == {"n": 1}
        clock.pass_minutes(6)
        assert memory.get(("a",), "k", refresh_ttl=False) is not None
        clock.pass_minutes(6)
        other = WakelogStore(store, ttl={"omit_expired": True})
        assert other.get(("a",), "k") is None


def test_reading_an_item_of_a_short_life_lets_it_live_longer_too(tmp_path: Path) -> None:
    clock = Clock()
    with wakelog.open(tmp_path, clock=clock) as store:
        memory = WakelogStore(store, ttl={"default_ttl": 1 / 60})
        memory.put(("a",), "k", {"n": 1})
        for _ in range(3):
            clock.pass_minutes(0.6 / 60)
            assert memory.sweep_ttl() == 0
            assert memory.get(("a",), "k") is not None
        before = memory.session.head.seq
        assert memory.get(("a",), "k") is not None
        assert memory.session.head.seq == before  # nothing to add yet


def test_a_program_that_awaits_its_store_need_not_change(tmp_path: Path) -> None:
    async def program() -> None:
        async with WakelogStore(tmp_path, ttl={"default_ttl": 1}) as memory:
            await memory.setup()
            sweeper = await memory.start_ttl_sweeper()
            await memory.aput(("a",), "k", {"n": 1})
            assert await memory.sweep_ttl() == 0
            assert not sweeper.done()
            assert await memory.stop_ttl_sweeper()
            assert sweeper.done()

    asyncio.run(program())


def test_a_namespace_may_be_a_list_and_a_bad_one_is_refused_in_every_operation(tmp_path: Path) -> None:
    given: Any = ["a", "b"]
    with WakelogStore(tmp_path) as memory:
        memory.put(given, "k", {"n": 1})
        assert memory.search(given[:1])[0].namespace == ("a", "b")
        assert memory.get(given, "k") is not None
        memory.delete(given, "k")
        assert memory.search(()) == []
        if not hasattr(langgraph.store.base, "validate_op_namespace"):
            return  # LangGraph 1.0 checks what is stored, and in `put` only
        for op in (GetOp(("a.b",), "k"), SearchOp(("a", "")), PutOp(("a.b",), "k", {})):
            with pytest.raises(InvalidNamespaceError):
                memory.batch([op])


def embedded(texts: list[str]) -> list[list[float]]:
    return [[float(text.count("a")), float(text.count("b"))] for text in texts]


async def embedded_later(texts: list[str]) -> list[list[float]]:
    return embedded(texts)


@pytest.mark.parametrize("embed", [embedded, embedded_later])
def test_search_by_meaning_follows_what_each_item_indexes(tmp_path: Path, embed: Any) -> None:
    index: Any = {"dims": 2, "embed": embed, "fields": ["text"]}
    with WakelogStore(tmp_path, index=index) as one:
        one.put(("d",), "mostly-a", {"text": "aaab", "other": "b"})
        one.put(("d",), "mostly-b", {"text": "bbba", "other": "a"})
        one.put(("d",), "by-other", {"text": "bbbb", "other": "aaaa"}, index=["other"])
        one.put(("d",), "unseen", {"text": "aaaa"}, index=False)
        assert [item.key for item in one.search(("d",), query="aaa", limit=2)] == ["by-other", "mostly-a"]
    with WakelogStore(tmp_path, index=index) as again:  # the vectors are made anew, by the same rules
        found = asyncio.run(again.asearch(("d",), query="aaa"))
        assert [item.key for item in found] == ["by-other", "mostly-a", "mostly-b", "unseen"]
        assert found[-1].score is None


@pytest.mark.parametrize("index", [None, {"dims": 1, "embed": lambda texts: [[1.0] for _ in texts]}])
def test_a_value_that_is_refused_leaves_the_store_usable(tmp_path: Path, index: Any) -> None:
    with WakelogStore(tmp_path, index=index) as store:
        store.put(("a",), "good", {"n": 1})
        before = store.session.head.seq
        with pytest.raises(ValueError):
            store.put(("a",), "bad", "a text")
        if index:
            with pytest.raises(TypeError):
                store.put(("a",), "bad", {"no text": {1, 2}})
        assert store.session.head.seq == before
        assert store.get(("a",), "good").value == {"n": 1}
        assert [item.key for item in store.search(("a",), query="n")] == ["good"]


def test_items_without_a_text_are_found_by_a_process_that_embeds(tmp_path: Path) -> None:
    with WakelogStore(tmp_path) as plain:
        plain.put(("a",), "set", {"no text": {1, 2}})
        plain.put(("a",), "text", {"text": "hello"})
    with WakelogStore(tmp_path, index={"dims": 1, "embed": lambda texts: [[1.0] for _ in texts]}) as store:
        assert store.get(("a",), "set").value == {"no text": {1, 2}}
        assert [(item.key, item.score) for item in store.search(("a",), query="hello")] == [
            ("text", 1.0),
            ("set", None),
        ]


def test_a_namespace_without_items_is_not_listed(tmp_path: Path) -> None:
    with WakelogStore(tmp_path) as store, WakelogStore(tmp_path) as other:
        store.put(("gone",), "k", {"a": 1})
        store.put(("kept",), "k", {"a": 1})
        store.delete(("gone",), "k")
        assert store.get(("never",), "k") is None
        assert store.list_namespaces() == other.list_namespaces() == [("kept",)]


def test_items_with_the_same_text_are_found_by_the_next_process(tmp_path: Path) -> None:
    index: Any = {"dims": 2, "embed": embedded, "fields": ["text", "title"]}
    with WakelogStore(tmp_path, index=index) as store:
        for key in ("one", "two"):
            store.put(("d",), key, {"text": "aaaa"})
        store.put(("d",), "three", {"text": "bbbb", "title": "bbbb"})
    with WakelogStore(tmp_path, index=index) as again:
        found = again.search(("d",), query="aaaa")
        assert [item.key for item in found[:2]] == ["one", "two"]
        assert found[0].score == found[1].score
        assert again.search(("d",), query="bbbb")[0].key == "three"
        again.batch([PutOp(("e",), key, {"text": "aabb"}) for key in ("four", "five")])
        assert len(again.search(("e",), query="aabb")) == 2


def test_nothing_is_stored_while_the_embedding_model_fails(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def embed(texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        if len(asked) == 1:
            raise ConnectionError("the model is away")
        return [[1.0] for _ in texts]

    with WakelogStore(tmp_path, index={"dims": 1, "embed": embed}) as store:
        with pytest.raises(ConnectionError):
            store.put(("a",), "k", {"text": "hello"})
        assert store.get(("a",), "k") is None
        store.put(("a",), "k", {"text": "hello"})
        assert store.get(("a",), "k").value == {"text": "hello"}
        assert len(asked) == 2  # the text is embedded once for the check and for the search


def test_the_sweeper_of_langgraphs_own_stores_can_be_started_and_stopped(tmp_path: Path) -> None:
    clock = Clock()
    with wakelog.open(tmp_path, clock=clock) as store:
        memory = WakelogStore(store, ttl={"default_ttl": 1, "refresh_on_read": False})
        running = memory.start_ttl_sweeper(sweep_interval_minutes=10)
        assert memory.start_ttl_sweeper() is running
        memory.put(("a",), "k", {"n": 1})
        clock.pass_minutes(6)
        assert memory.get(("a",), "k") is not None
        clock.pass_minutes(6)
        assert memory.get(("a",), "k") is None
        memory.put(("a",), "k", {"n": 1})
        assert memory.stop_ttl_sweeper()
        assert running.done()
        clock.pass_minutes(60)
        assert memory.get(("a",), "k") is not None


def test_a_saver_and_a_store_need_no_setup_but_take_the_call(tmp_path: Path) -> None:
    async def awaited(made: Any) -> None:
        assert await made.setup() is None

    for kind in (WakelogSaver, WakelogStore):
        with kind(tmp_path) as made:
            made.setup()
            asyncio.run(awaited(made))


def test_a_store_that_holds_a_refused_item_works(tmp_path: Path) -> None:
    with WakelogStore(tmp_path) as store:
        store.put(("a",), "good", {"n": 1})
        store.session.fact("/a/bad", {"value": "a text", "created": 1, "updated": 1})
        assert store.get(("a",), "bad") is None
    with WakelogStore(tmp_path) as again:
        assert [item.key for item in again.search(("a",))] == ["good"]
        again.put(("a",), "bad", {"n": 2})
        assert again.get(("a",), "bad").value == {"n": 2}
