"""Following a whole store: each event of every session once, from the start of the call."""

from typing import Any

import pytest

import wakelog
from wakelog.log.reader import Entry
from wakelog.session import Session
from wakelog.store import Store


@pytest.fixture
def store() -> Store:
    return wakelog.open("memory:")


def _told(found: list[tuple[Session[Any], Entry]]) -> list[tuple[str, int]]:
    return [(session.name, entry.seq) for session, entry in found]


def test_follow_begins_when_it_is_called(store: Store) -> None:
    one = store.session("one")
    one.fact("before", 1)
    news = store.follow(timeout_s=0)
    one.fact("after", 1)
    store.session("two")
    assert _told(list(news)) == [("one", 3), ("two", 1)]


def test_follow_goes_on_from_what_is_known(store: Store) -> None:
    one, two = store.session("one"), store.session("two")
    known = {one.id: one.head.seq}
    one.fact("between", 1)
    news = store.follow(after=known, timeout_s=0)
    one.fact("after", 1)
    assert sorted(_told(list(news))) == [("one", 2), ("one", 3), ("two", 1)]
    assert two.head.seq == 1


def test_follow_tells_of_a_fork_only_what_is_its_own(store: Store) -> None:
    one = store.session("one")
    one.fact("shared", 1)
    news = store.follow(timeout_s=0)
    fork = one.fork(name="fork")
    fork.fact("own", 1)
    assert _told(list(news)) == [("fork", 3), ("fork", 4)]


def test_follow_passes_over_a_session_that_was_deleted_meanwhile(store: Store) -> None:
    one, two = store.session("one"), store.session("two")
    news = store.follow(timeout_s=0)
    one.fact("k", 1)
    two.fact("k", 1)
    store.delete(one)
    assert ("two", 2) in _told(list(news))
