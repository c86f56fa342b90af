"""Rows come first and words when somebody searches: nothing is found less, and nothing removed is found again."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakelog.engine import Engine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import UnsupportedError
from wakelog.index import Index, word_backlog
from wakelog.index import index as indexing
from wakelog.index.facets import facets_of
from wakelog.log import Log
from wakelog.log.removal import erase, prune
from wakelog.model import events as ev
from wakelog.model.events import KINDS
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit
from wakelog.testing.builders import new_session
from wakelog.testing.strategies import values


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SqliteEngine]:
    made = SqliteEngine(tmp_path / "log.db")
    yield made
    made.close()


@pytest.fixture
def index(engine: Engine, tmp_path: Path) -> Iterator[Index]:
    with Index(engine, tmp_path / "index.db") as made:
        yield made


def said(engine: Engine, *texts: str) -> Log:
    log = Log.create(engine, new_session(), ev.SessionOpened())
    for text in texts:
        log.append(ev.NoteAdded(text=text))
    return log


def words(index: Index) -> int:
    """How many events have words, without making any."""
    with index.reading() as db:
        return int(db.execute("select count(*) from wl_words").get)


def found(index: Index, text: str, **options: Any) -> list[int]:
    return sorted(hit.seq for hit in index.search(text, limit=100, **options))


def test_a_list_makes_no_words_and_a_search_makes_them(engine: Engine, index: Index) -> None:
    log = said(engine, "walrus", "seal")
    assert len(index.events(log.id)) == 3
    assert words(index) == 0
    assert found(index, "walrus") == [2]
    log.append(ev.NoteAdded(text="another walrus"))
    assert index.sessions()[0].head == 4
    assert words(index) == 2
    assert found(index, "walrus") == [2, 4]


def test_a_search_in_one_session_makes_the_words_of_its_tree_only(engine: Engine, index: Index) -> None:
    log, other = said(engine, "walrus"), said(engine, "walrus")
    fork = log.fork()
    fork.append(ev.NoteAdded(text="a walrus more"))
    assert found(index, "walrus", session=fork.id) == [2, 4]
    assert words(index) == 2, "the other session's are not needed"
    assert {hit.session for hit in index.search("walrus")} == {log.id, fork.id, other.id}


def test_words_come_in_steps_that_say_how_far_they_are(
    engine: Engine, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(engine, *(f"walrus {n}" for n in range(20)))
    said(engine, *(f"walrus {n}" for n in range(20)))
    monkeypatch.setattr(word_backlog, "BATCH_CHARS", 30)
    told: list[tuple[int, int]] = []
    index.catch_up_words(progress=lambda *now: told.append(now))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert len(told) > 5
    assert {total for _, total in told} == {42}
    assert told[-1][0] == 42
    assert len(found(index, "walrus")) == 40


def test_an_index_left_half_way_goes_on_there(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said(engine, *(f"walrus {n}" for n in range(20)))
    with monkeypatch.context() as patched, Index(engine, tmp_path / "index.db") as index:
        patched.setattr(word_backlog, "BATCH_CHARS", 30)

        def stop(done: int, total: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            index.catch_up_words(progress=stop)
        assert 0 < words(index) < 20
    with Index(engine, tmp_path / "index.db") as index, Index(engine, tmp_path / "index.db") as other:
        assert found(index, "walrus") == found(other, "walrus") == list(range(2, 22))


def test_what_was_removed_before_anybody_searched_gets_no_words(engine: Engine, index: Index) -> None:
    log = said(engine, "walrus", "walrus and seal", "seal")
    log.append(ev.DecisionMade(choice="keep the walrus"))
    log.append(ev.NoteAdded(text="walrus"))
    index.catch_up()
    erase(log, [2])
    assert found(index, "walrus") == [3, 5, 6]
    prune(log, 6)
    assert found(index, "walrus") == [5], "a decision outlives the prune"
    index.rebuild()
    assert found(index, "walrus") == [5]


def test_words_that_cannot_be_read_now_come_with_a_later_search(engine: Engine, index: Index) -> None:
    log, other = said(engine, "walrus"), said(engine, "walrus")
    index.catch_up()

    class Locked:
        """An engine that lacks the key of one session."""

        def read(self, session: SessionId, **options: Any) -> Iterator[Commit]:
            if session == log.id:
                raise UnsupportedError("locked", kind="key-not-at-hand")
            return engine.read(session, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

    locked: Any = Locked()
    index.engine = locked
    assert {hit.session for hit in index.search("walrus")} == {other.id}
    index.engine = engine
    assert {hit.session for hit in index.search("walrus")} == {log.id, other.id}


_FIELDS = [
    *("output", "output_summary", "error", "input", "outcome", "goal", "name", "choice", "path", "why", "tool"),
    *("subject", "text", "content", "id", "$erased", "delta"),
]


@given(
    st.sampled_from([*sorted(KINDS), "future.kind"]),
    st.dictionaries(st.sampled_from(_FIELDS), values | st.text(max_size=500), max_size=6),
    st.integers(0, 40),
)
def test_a_summary_is_the_same_with_and_without_the_text(kind: str, body: dict[str, Any], cut: int) -> None:
    if type(body.get("output")) is str and cut:
        body["output_summary"] = body["output"][:cut]
    fetch = functools.partial(dict.get, {})
    whole, part = facets_of(kind, body, fetch), facets_of(kind, body, fetch, has_text=False)
    assert part.text == ""
    part.text = whole.text
    assert part == whole


def segments(index: Index) -> int:
    """Of how many parts the words consist: FTS5 numbers them in the upper bits of a row's id."""
    with index.reading() as db:
        rows: Any = db.execute("select count(distinct id >> 37) from wl_words_data where id >> 37 > 0").get
        return int(rows)


def test_after_a_long_backlog_the_words_are_one_segment(
    engine: Engine, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_backlog, "BATCH_CHARS", 1)
    said(engine, *(f"walrus number {n}" for n in range(5)))
    index.catch_up_words()
    assert segments(index) > 1
    monkeypatch.setattr(indexing, "LONG_BACKLOG", 10)
    said(engine, *(f"seal number {n}" for n in range(20)))
    index.catch_up_words()
    assert segments(index) == 1
    assert len(found(index, "walrus")) == 5
    assert len(found(index, "seal number")) == 20
    with index.reading() as db:
        assert db.execute("pragma freelist_count").get == 0


def test_words_that_cannot_be_merged_for_want_of_space_stay_as_they_are(engine: Engine, index: Index) -> None:
    for part in range(6):
        said(engine, *(" ".join(f"w{part}x{n}x{m}" for m in range(100)) for n in range(50)))
        index.catch_up_words()
    database: Any = index._database
    db, path = database._write_connection(), database.path
    db.pragma("max_page_count", db.pragma("page_count"))
    before = segments(index)
    assert before > 1
    database.merge_words()
    assert database.path == path
    assert segments(index) == before
    assert len(found(index, "w3x7x9")) == 1
