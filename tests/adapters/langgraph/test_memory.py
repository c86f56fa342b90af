"""LangGraph's long-term store over the facts of a session."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")
from langgraph.store.base import GetOp, PutOp

from wakelog.adapters.langgraph import WakelogStore


def test_items_are_facts_that_other_processes_see(tmp_path: Path) -> None:
    with WakelogStore(tmp_path) as one, WakelogStore(tmp_path) as other:
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
