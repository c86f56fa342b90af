"""Findings are stored in the index as positions, by rules version, and are deleted with their session."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from tests.insight.conftest import Scribe
from tests.insight.test_session_insight import CHOICE, _fix
from wakelog.index.finding_rows import load_findings
from wakelog.insight import rules
from wakelog.insight.blocks import RULES_VERSION
from wakelog.log.removal import erase
from wakelog.model import events as ev
from wakelog.session.insights import CachedFindings
from wakelog.store import Store
from wakelog.testing.builders import START_US


@pytest.fixture(params=["sqlite", ON_POSTGRES])
def kept_store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    ticks = count(START_US, 1_000_000)
    url = postgres_url(request, tmp_path) if request.param == "postgres" else str(tmp_path / "log.db")
    with wakelog.open(url, clock=lambda: next(ticks)) as opened:
        session = opened.session("s")
        _fix(Scribe(session))
        opened.index.catch_up()
        yield opened


def _rows(store: Store) -> Any:
    return load_findings(store.index, store.resume("s").id, 1, 1, RULES_VERSION)


def test_what_was_derived_is_kept_and_gives_the_same_answer(kept_store: Store) -> None:
    session = kept_store.resume("s")
    assert _rows(kept_store) is None
    first = session.insight(all=True)
    rows = _rows(kept_store)
    assert rows
    assert session.insight(all=True) == first
    assert CachedFindings(kept_store.index, session.id).load(1, 1) is not None


def test_rows_hold_places_and_no_words(kept_store: Store) -> None:
    kept_store.resume("s").insight()
    told = str(_rows(kept_store))
    assert "stream" not in told
    assert "upload" not in told
    assert "Edit" not in told


def test_a_kept_turn_is_not_derived_again(kept_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    session = kept_store.resume("s")
    session.insight()

    def derive(*_: Any) -> Any:
        raise AssertionError("derived again")

    monkeypatch.setattr(rules, "derive", derive)
    assert session.insight().of("decision")[0].quote == CHOICE


def test_other_rules_derive_again(kept_store: Store) -> None:
    session = kept_store.resume("s")
    session.insight()
    assert load_findings(kept_store.index, session.id, 1, 1, RULES_VERSION + 1) is None


def test_erasing_leaves_nothing_to_quote(kept_store: Store) -> None:
    session = kept_store.resume("s")
    [item] = session.insight().of("decision")
    kept_store.erase(session, [item.seq])
    assert not session.insight(all=True).of("decision")
    kept_store.index.catch_up()
    assert not session.insight(all=True).of("decision")


def test_a_cached_answer_outlives_its_erased_question(kept_store: Store) -> None:
    session = kept_store.session("asked")
    session.append(ev.TurnStarted(input="make it fast"))
    asked = session.append(ev.ActionRequested(action="1", tool="ask_user", input={"question": "Which cache?"})).seq
    session.append(ev.ActionStarted(action="1"), ev.ActionSucceeded(action="1", output="Redis"), ev.TurnEnded())
    kept_store.index.catch_up()
    assert [item.asked for item in session.insight().of("answer")] == ["Which cache?"]
    erase(session.log, [asked])  # as another process does, whose removal the index has not seen yet
    assert [(item.quote, item.asked) for item in session.insight().of("answer")] == [("Redis", "")]


def test_rows_go_with_their_session(kept_store: Store) -> None:
    session = kept_store.resume("s")
    session.insight()
    id_ = session.id
    session.life.end()
    kept_store.delete(session)
    kept_store.index.catch_up()
    with kept_store.index.reading() as db:
        left: Any = db.execute("select count(*) from wl_finding f").fetchone()
    assert left[0] == 0
    assert load_findings(kept_store.index, id_, 1, 1, RULES_VERSION) is None


def test_a_session_the_index_has_not_seen_is_answered_all_the_same(tmp_path: Path) -> None:
    with wakelog.open(str(tmp_path / "log.db")) as store:
        session = store.session("s")
        _fix(Scribe(session))
        assert session.insight().of("decision")
        assert _rows(store) is None
