"""Extractors: off unless called, with exact quotes, named in the log, and trusted no more than their source."""

from typing import Any

import pytest

import wakelog
from wakelog.errors import InvalidInputError
from wakelog.insight.blocks import SpokenText, TurnBlocks
from wakelog.session import Session
from wakelog.session.extraction import Extracted, extract

SAID = "We cache the answer. It is cheaper. Retrying did not help."


@pytest.fixture
def session() -> Session[Any]:
    session = wakelog.open("memory:").session("work")
    with session.turn("make it fast"):
        session.message("assistant", SAID)
    return session


def by_words(turn: TurnBlocks) -> list[Extracted]:
    """What a model may answer: the right, and something that nobody said."""
    (said,) = [b for b in turn.blocks if isinstance(b, SpokenText) and b.who == "agent"]
    return [
        Extracted("decision", said.seq, "We cache the answer.", "It is cheaper."),
        Extracted("dead_end", said.seq, "Retrying did not help."),
        Extracted("decision", said.seq, "We delete the database."),
        Extracted("decision", said.seq, "We cache the answer.", "Because I said so."),
        Extracted("decision", said.seq + 1000, "We cache the answer."),
        Extracted("decision", said.seq, " "),
    ]


def test_finds_are_recorded_with_the_extractor_as_actor_and_nothing_made_up_is(session: Session[Any]) -> None:
    found = extract(session, by_words)
    assert len(found.refused) == 4
    decision, dead_end = (session.log.entry(seq) for seq in found.recorded)
    assert (decision.kind, dead_end.kind) == ("decision.made", "dead_end.noted")
    assert decision.header.actor == "extractor:by_words"
    assert (decision.body["choice"], decision.body["because"]) == ("We cache the answer.", "It is cheaper.")
    assert dead_end.body["tried"] == "Retrying did not help."


def test_what_is_recorded_is_trusted_no_more_than_its_source(session: Session[Any]) -> None:
    (seq, *_) = extract(session, by_words).recorded
    assert session.log.entry(seq).header.trust == "unverified"
    with session.turn("and now"):
        session.message("assistant", SAID, trust="untrusted", source="web")
    (seq, *_) = extract(session, by_words).recorded
    header = session.log.entry(seq).header
    assert (header.trust, header.source) == ("untrusted", "web")


def test_the_same_find_is_recorded_once(session: Session[Any]) -> None:
    assert len(extract(session, by_words, name="mine").recorded) == 2
    head = session.head
    assert extract(session, by_words, name="mine").recorded == ()
    assert session.head == head


def test_nothing_is_extracted_unless_somebody_calls_it(session: Session[Any]) -> None:
    session.insight()
    assert not [e for e in session.log.entries() if e.header.actor.startswith("extractor")]


@pytest.mark.parametrize("end", ["closed", "archived"])
def test_a_session_that_is_over_stays_over_wherever_the_process_dies(session: Session[Any], end: str) -> None:
    session.life.end("failed")
    if end == "archived":
        session.life.archive()
    found = extract(session, by_words, "@1").recorded
    assert len(found) == 2
    assert session.status == end
    for seq in found:
        commit = session.history.commit(seq)
        assert (commit.kinds[0], commit.status) == ("session.reopened", end)
    assert [e.body["outcome"] for e in session.log.entries() if e.kind == "session.closed"] == ["failed"] * 3


def test_an_open_turn_is_not_read(session: Session[Any]) -> None:
    with session.turn("go on"):
        session.message("assistant", SAID)
        assert extract(session, by_words).refused == ("@2 is still open",)


def test_an_extractor_that_gives_something_else_is_told(session: Session[Any]) -> None:
    with pytest.raises(InvalidInputError, match="Extracted"):
        extract(session, lambda turn: ["We cache the answer."])  # type: ignore[list-item]
