"""A session that another framework or a person made is not written to by an adapter."""

from collections.abc import Iterator

import pytest

import wakelog
from wakelog import UserMessage
from wakelog.adapters.held_logs import HeldLogs
from wakelog.adapters.ownership import refuse_foreign
from wakelog.errors import InvalidInputError
from wakelog.model import events as ev
from wakelog.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with wakelog.open("memory:") as opened:
        yield opened


def opened(name: str) -> ev.SessionOpened:
    return ev.SessionOpened(name=name, labels={"framework": "mine"})


def test_a_session_of_another_framework_is_refused_to_writers_and_readers(store: Store) -> None:
    HeldLogs(store, "theirs").create("chat", ev.SessionOpened(name="chat", labels={"framework": "theirs"}))
    mine = HeldLogs(store, "mine")
    before = store.resume("chat").head
    for use in (
        lambda: mine.open("chat", {}),
        lambda: mine.find("chat"),
        lambda: mine.delete("chat"),
    ):
        with pytest.raises(InvalidInputError, match="session 'chat' was made by theirs, and is not a session of mine"):
            use()
    assert store.resume("chat").head == before


def test_a_session_made_by_hand_is_refused_and_unchanged(store: Store) -> None:
    session = store.session("chat")
    session.append(UserMessage("mine"))
    before = session.head
    with pytest.raises(InvalidInputError, match="session 'chat' has a history of its own") as refused:
        HeldLogs(store, "mine").open("chat", {})
    assert refused.value.kind == "foreign-session"
    assert session.head == before


def test_a_session_in_which_nothing_happened_is_taken_by_the_first(store: Store) -> None:
    session = store.session("chat", labels={"team": "a"})
    assert HeldLogs(store, "mine").find("chat") is not None
    assert session.head.seq == 1  # a reader leaves it as it is
    held = HeldLogs(store, "mine").open("chat", {})
    held.log.append(UserMessage("mine"))
    assert session.log.part("labels") == {"team": "a", "framework": "mine"}
    assert HeldLogs(store, "mine").find("chat") is not None
    with pytest.raises(InvalidInputError, match="was made by mine"):
        HeldLogs(store, "theirs").find("chat")


def test_a_list_passes_over_what_is_not_its_own(store: Store) -> None:
    store.session("theirs", labels={"framework": "theirs"})
    logs = HeldLogs(store, "mine")
    assert logs.find("theirs", is_listed=True) is None
    logs.create("mine", opened("mine"))
    assert logs.find("mine", is_listed=True) is not None


def test_a_fork_belongs_to_the_framework_of_its_parent(store: Store) -> None:
    held = HeldLogs(store, "mine").create("chat", opened("chat"))
    held.log.append(UserMessage("mine"))
    refuse_foreign(store.resume("chat").fork(name="other").log, "mine")
