"""Pages of messages: together they are all messages, and the cost of a page depends only on its content."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wakelog
from tests.events_read import note_events_read
from tests.seeds import examples
from wakelog.errors import InvalidInputError
from wakelog.session import Session
from wakelog.timeline.message_page import PAGE
from wakelog.timeline.messages import Message, ModelMessage, UserMessage

STEPS = ["say", "input", "model", "both", "many", "outside", "rewind", "compact", "model outside"]


def lived(steps: list[tuple[str, int]]) -> Session[Any]:
    session: Session[Any] = wakelog.open("memory:").session("s")
    for step, n in steps:
        last = session.head.seq
        if step == "outside":
            session.append(*(UserMessage(f"outside {k}") for k in range(n)))
        elif step == "model outside":
            session.model(lambda _: "OK", [])
        elif step == "rewind":
            session.rewind(f"e{1 + n * 7 % last}")
        elif step == "compact":
            with contextlib.suppress(wakelog.errors.WakelogError):
                session.context.compact(max(1, last - 9), last, "in short")
        else:
            with session.turn(f"do {n}" if step == "input" else None):
                if step in ("say", "both"):
                    session.append(ModelMessage("OK"))
                if step in ("model", "both"):
                    session.model(lambda _: "OK", [])
                if step == "both":
                    session.append(ModelMessage("OK"), ModelMessage("done"))
                if step == "many":
                    session.append(*(ModelMessage(f"many {k}") for k in range(n * 3)))
    return session


def pages(session: Session[Any], limit: int, **how: Any) -> list[Message]:
    found = page = session.messages(limit=limit, **how)
    while page:
        assert len(page) <= limit
        page = session.messages(limit=limit, before=page[0].seq, **how)
        found = [*page, *found]
    return found


@settings(max_examples=examples(20))
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 12)), max_size=10), st.integers(1, 9), st.booleans())
def test_all_pages_together_are_all_messages(steps: list[tuple[str, int]], limit: int, compacted: bool) -> None:
    session = lived(steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wakelog.timeline.message_page.PAGE", 8)
        _compare_pages(session, limit, compacted)


def _compare_pages(session: Session[Any], limit: int, compacted: bool) -> None:
    for at in (None, session.head.seq // 2 + 1):
        every = session.messages(at, compacted=compacted)
        assert pages(session, limit, at=at, compacted=compacted) == every
        assert session.messages(at, compacted=compacted, limit=len(every) + 1) == every
        for middle in every[:: max(1, len(every) // 3)]:
            before = every[: every.index(middle)]
            assert session.messages(at, compacted=compacted, before=middle.seq) == before
            assert session.messages(at, compacted=compacted, before=middle.seq, limit=3) == before[-3:]


def test_a_page_reads_what_is_in_it_and_nothing_older(monkeypatch: pytest.MonkeyPatch) -> None:
    session = lived([("both", 1)] * 400)
    read = note_events_read(monkeypatch)
    page = session.messages(limit=20)
    assert len(page) == 20
    assert min(read) > session.head.seq - 2 * PAGE
    read.clear()
    session.messages(limit=20, before=page[0].seq)
    assert page[0].seq - 2 * PAGE < min(read)
    assert max(read) < page[0].seq + 20  # to the end of the turn that the page begins in


def test_a_page_without_messages_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="it must be 1 or more"):
        lived([("say", 1)]).messages(limit=0)
