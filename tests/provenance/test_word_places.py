"""Why, with the words of an index: the same answer as without, and of a long log only the events that it names."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import wakelog
from tests.events_read import note_events_read
from tests.provenance.test_near_graph import TEXTS, _number, _played, _rare, _turns
from tests.seeds import examples
from wakelog.engines.memory import MemoryEngine
from wakelog.index import Index
from wakelog.index.word_places import WordPlaces, find_word_places, words_inside
from wakelog.log import Log
from wakelog.log.removal import erase
from wakelog.model import events as ev
from wakelog.provenance import text_matches
from wakelog.provenance.why import Why, why
from wakelog.store.index_place import index_path
from wakelog.testing.builders import START_US, new_session

SAID = "the address is https://x.example/page of them"


@pytest.fixture
def log() -> Log:
    return Log.create(MemoryEngine(), new_session(), ev.SessionOpened(), clock=lambda: START_US, redact=None)


@pytest.fixture
def index(log: Log) -> Iterator[Index]:
    with Index(log.engine, None) as made:
        yield made


def places_of(log: Log, index: Index) -> WordPlaces:
    index.catch_up_words()
    places = find_word_places(index, log.id)
    assert places is not None
    return places


def matched(found: Why) -> list[int]:
    return [step.seq for step in found.steps if step.edge == "match"]


def decide(log: Log, choice: str = SAID) -> int:
    log.append(ev.TurnStarted(), ev.DecisionMade(choice=choice), ev.TurnEnded())
    return log.head().seq - 1


@settings(max_examples=examples(40))
@given(_turns, _rare, _number)
def test_the_answer_is_the_same_with_words_and_without(turns: list[Any], rare: str, place: int) -> None:
    log = _played(turns, rare, place)
    with Index(log.engine, None) as index:
        places = places_of(log, index)
        # What was written since has no words yet.
        log.append(ev.TurnStarted(input=TEXTS[0]), ev.DecisionMade(choice=TEXTS[1], because=TEXTS[2]), ev.TurnEnded())
        for seq in range(1, log.head().seq + 1):
            assert why(log, seq, places=places) == why(log, seq)


@pytest.mark.parametrize(
    "content",
    [
        SAID,
        f"{'x ' * 9000}\n{SAID}",
        [{"type": "text", "text": "look:"}, {"type": "odd", "held": [SAID]}],
        {"pages": [{"body": SAID, "size": 3}]},
        f"naïve é́ {SAID}",
        f"\ue000\u0301{SAID}".encode(),
        f"{'long ' * 500}{SAID}",
    ],
)
def test_every_form_of_content_is_found(log: Log, index: Index, content: Any) -> None:
    log.append(ev.TurnStarted(), ev.ActionRecorded(action="a", tool="look", output=content), ev.TurnEnded())
    source = log.head().seq - 1
    decision = decide(log)
    found = why(log, decision, places=places_of(log, index))
    assert found == why(log, decision)
    assert matched(found) == [source]


@pytest.mark.parametrize("text", ["deadbeefdeadbeef00", "привет всем вам сегодня", "x.example"])
def test_a_text_without_words_inside_is_searched_for(log: Log, index: Index, text: str) -> None:
    log.append(ev.TurnStarted(), ev.MessageAdded(role="user", content=f"take {text} now"), ev.TurnEnded())
    decision = decide(log, text)
    assert not words_inside(text)
    assert why(log, decision, places=places_of(log, index)) == why(log, decision)


def test_words_inside_are_those_between_separators() -> None:
    assert words_inside("src/pkg_6/module_129.py") == '"pkg 6 module 129"'
    assert words_inside("run für den test now") == '"den test"'


def test_of_a_long_log_only_named_events_are_read(log: Log, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(300):
        log.append(ev.TurnStarted(), ev.MessageAdded(role="user", content=f"go on with page {n}"), ev.TurnEnded())
    decision = decide(log, "go on with page 7 of nobody")
    places, expected = places_of(log, index), why(log, decision)
    monkeypatch.setattr(text_matches, "_contents_of_likely_commits", None)  # nothing is searched
    opened = note_events_read(monkeypatch)
    assert why(log, decision, places=places) == expected
    assert min(set(opened) - {1}) > decision - 200


def test_with_very_many_named_events_the_rest_is_searched(
    log: Log, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_matches, "TRIES", 5)
    for n in range(20):
        call = ev.ActionRecorded(action=f"a{n}", tool="look", input=SAID, output=f"nothing {n}")
        log.append(ev.TurnStarted(), call, ev.TurnEnded())
    log.append(ev.TurnStarted(), ev.MessageAdded(role="user", content=SAID), ev.TurnEnded())
    source, decision = log.head().seq - 1, decide(log)
    found = why(log, decision, places=places_of(log, index))
    assert found == why(log, decision)
    assert source in matched(found)


def test_words_that_went_meanwhile_are_not_relied_on(log: Log, index: Index) -> None:
    log.append(ev.TurnStarted(), ev.MessageAdded(role="user", content=SAID), ev.TurnEnded())
    log.append(ev.TurnStarted(), ev.MessageAdded(role="user", content="to be erased"), ev.TurnEnded())
    erased, decision = log.head().seq - 1, decide(log)
    places = places_of(log, index)
    erase(log, [erased])
    index.catch_up()  # reads the session again, without words
    assert matched(why(log, decision, places=places)) == [3]


def test_marks_are_known_to_the_index(log: Log, index: Index) -> None:
    decide(log)
    assert not places_of(log, index).is_marked
    log.append(ev.TrustEndorsed(targets=(3,)))
    assert places_of(log, index).is_marked


def test_an_index_without_words_names_nothing(log: Log, index: Index) -> None:
    decide(log)
    index.catch_up()
    assert find_word_places(index, log.id) is None
    assert find_word_places(index, new_session()) is None


def test_an_index_that_cannot_be_used_is_done_without(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        with store.session("s").turn(SAID) as turn:
            seq = turn.session.decide(SAID)
        store.index.search("address")
    path = index_path(store.engine)
    assert path is not None
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("create table somebodys (own integer)")
    with wakelog.open(tmp_path / "store") as store:
        assert matched(store.resume("s").why(seq)) == matched(why(store.resume("s").log, seq))
