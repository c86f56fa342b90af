"""The persistence of flows and the checkpoint provider, held against CrewAI's own, and with real flows."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from crewai.flow.async_feedback.types import PendingFeedbackContext
from crewai.flow.flow import Flow, listen, start
from crewai.flow.persistence import persist
from crewai.flow.persistence.sqlite import SQLiteFlowPersistence
from crewai.state.checkpoint_config import CheckpointConfig
from crewai.state.provider.sqlite_provider import SqliteProvider
from pydantic import BaseModel, ConfigDict, HttpUrl

import wakelog
from tests.engines.on_postgres import postgres_url
from wakelog.adapters.crewai import WakelogCheckpointProvider, WakelogFlowPersistence
from wakelog.errors import InvalidInputError
from wakelog.http.server import serving
from wakelog.http.state import Settings
from wakelog.store import Store


class Inner(BaseModel):
    when: datetime
    tags: set[str] = set()


class State(BaseModel):
    id: str = "f1"
    n: int = 0
    inner: Inner | None = None
    rows: list[dict[str, Any]] = []


@pytest.fixture(params=["crewai", "sqlite", "postgres", "http"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store | None]:
    """A store of ours, or None for CrewAI's own."""
    if request.param == "crewai":
        yield None
    elif request.param == "http":
        with serving(Settings(url=str(tmp_path / "served"), rate=0)) as running:
            monkeypatch.setenv("WAKELOG_KEY", running.key)
            with wakelog.open(running.url) as opened:
                yield opened
    else:
        url = postgres_url(request, tmp_path) if request.param == "postgres" else str(tmp_path / "store")
        with wakelog.open(url) as opened:
            yield opened


@pytest.fixture
def persistence(place: Store | None, tmp_path: Path) -> Any:
    return SQLiteFlowPersistence(str(tmp_path / "flows.db")) if place is None else WakelogFlowPersistence(place)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened


def test_the_newest_state_is_read_back(persistence) -> None:
    assert persistence.load_state("f1") is None
    persistence.save_state("f1", "first", {"id": "f1", "n": 1, "gone": [1]})
    state = {"id": "f1", "n": 2.5, "deep": {"list": [1, None, {"x": "é"}]}, "big": 2**70}
    persistence.save_state("f1", "second", state)
    persistence.save_state("e86", "first", {"id": "e86"})
    assert persistence.load_state("f1") == state
    assert persistence.load_state("e86") == {"id": "e86"}


def test_a_model_is_stored_as_json(persistence) -> None:
    state = State(n=3, inner=Inner(when=datetime(2026, 1, 2, tzinfo=UTC), tags={"x"}), rows=[{"a": 1}])
    persistence.save_state("f1", "first", state)
    assert State.model_validate(persistence.load_state("f1")) == state
    with pytest.raises(ValueError):
        persistence.save_state("f1", "first", ["no state"])


def context() -> PendingFeedbackContext:
    return PendingFeedbackContext(
        flow_id="f1",
        flow_class="app.Review",
        method_name="review",
        method_output={"title": "Draft"},
        message="Is it good?",
        emit=["yes", "no"],
        metadata={"k": [1]},
    )


def test_feedback_that_a_flow_waits_for_is_kept_until_it_came(persistence) -> None:
    assert persistence.load_pending_feedback("f1") is None
    waits = context()
    persistence.save_pending_feedback("f1", waits, {"id": "f1", "n": 1})
    found = persistence.load_pending_feedback("f1")
    assert found is not None
    assert found[0] == {"id": "f1", "n": 1}
    assert found[1].to_dict() == waits.to_dict()
    assert persistence.load_state("f1") == {"id": "f1", "n": 1}
    persistence.save_pending_feedback("f1", waits, {"id": "f1", "n": 2})
    assert persistence.load_pending_feedback("f1")[0] == {"id": "f1", "n": 2}
    persistence.clear_pending_feedback("f1")
    persistence.clear_pending_feedback("f1")
    persistence.clear_pending_feedback("never")
    assert persistence.load_pending_feedback("f1") is None


def test_a_question_is_shown_as_pending(store) -> None:
    persistence = WakelogFlowPersistence(store)
    persistence.save_pending_feedback("f1", context(), {"id": "f1"})
    (pending,) = store.resume("crewai/f1").state().pending_actions.values()
    assert (pending.tool, pending.prompt) == ("input", "Is it good?")


class Timed(BaseModel):
    id: str = "f1"
    every: timedelta = timedelta(minutes=5)
    link: HttpUrl = HttpUrl("https://example.org/x")
    raw: bytes = b"text"


def test_a_state_comes_back_in_the_form_that_its_model_reads(persistence) -> None:
    persistence.save_state("f1", "first", Timed())
    assert Timed.model_validate(persistence.load_state("f1")) == Timed()


class Opaque(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    id: str = "f1"
    parts: list[Any] = [1, len]


def test_a_value_that_is_not_json_is_stored_as_its_text_with_a_warning_that_names_it(tmp_path, store) -> None:
    """As in CrewAI's own persistence, which does not say so."""
    theirs, persistence = SQLiteFlowPersistence(str(tmp_path / "flows.db")), WakelogFlowPersistence(store)
    for state, path in (
        (Opaque(), r"state\.parts\[1\]"),
        ({"a": {"b": [len]}}, r"state\.a\.b\[0\]"),
        ({"a": b"x"}, ""),
    ):
        with pytest.warns(UserWarning, match=rf"{path}.* its text is stored"):
            persistence.save_state("f1", "first", state)
        theirs.save_state("f1", "first", state)
        assert persistence.load_state("f1") == theirs.load_state("f1")


def test_a_key_that_is_not_json_is_refused(store) -> None:
    persistence = WakelogFlowPersistence(store)
    with pytest.raises(InvalidInputError, match=r"state\.a cannot be stored"):
        persistence.save_state("f1", "first", {"a": {(1, 2): 3}})
    assert persistence.load_state("f1") is None


def test_each_method_of_a_flow_is_a_turn_that_says_what_it_changed(store) -> None:
    persistence = WakelogFlowPersistence(store)

    @persist(persistence)
    class Report(Flow[State]):  # type: ignore[misc]  # Any where it is not installed
        @start()
        def first(self) -> str:
            self.state.n = 1
            return "one"

        @listen(first)
        def second(self, given: str) -> str:
            self.state.rows.append({"given": given})
            return "two"

    flow = Report()
    assert flow.kickoff() == "two"
    session = store.resume(persistence.name_of(flow.state.id))
    state = session.state()
    assert (state.data["n"], state.data["rows"]) == (1, [{"given": "one"}])
    assert [session.log.entry(e.seq).body["input"] for e in session.log.entries() if e.kind == "turn.started"] == [
        "first",
        "second",
    ]
    assert any(c.pointer.startswith("/data/rows") for c in session.diff("@2").changes)
    assert not any(c.pointer == "/data/n" for c in session.diff("@2").changes)
    why = session.why("/data/rows")
    assert why.asked is not None
    assert (why.asked.by, {origin.source for origin in why.origins}) == ("program", {"crewai", "tool:second"})
    again = Report()
    assert again.kickoff(inputs={"id": flow.state.id}) == "two"
    assert len(again.state.rows) == 2


def test_a_rewind_gives_the_flow_an_earlier_state(store) -> None:
    persistence = WakelogFlowPersistence(store)
    persistence.save_state("f1", "first", {"n": 1})
    persistence.save_state("f1", "second", {"n": 2, "more": True})
    store.resume("crewai/f1").rewind("@1")
    assert persistence.load_state("f1") == {"n": 1}


@pytest.mark.parametrize("id", ["e86", "@5", "a/b", "x" * 300])
def test_any_id_has_a_session_of_its_own(store, id) -> None:
    persistence = WakelogFlowPersistence(store)
    persistence.save_state(id, "first", {"of": id})
    assert persistence.load_state(id) == {"of": id}
    assert persistence.id_of(persistence.name_of(id)) in (id, None)


def test_checkpoints_are_kept_by_branch_and_pruned(place, tmp_path) -> None:
    if place is None and sqlite3.sqlite_version_info < (3, 45):
        pytest.skip("CrewAI's own provider needs SQLite 3.45")
    provider: Any = SqliteProvider() if place is None else WakelogCheckpointProvider(place)
    location = str(tmp_path / "c.db")
    first = provider.checkpoint(json.dumps({"n": 1, "rows": [1]}), location)
    second = provider.checkpoint(json.dumps({"n": 2, "rows": [1, 2]}), location, parent_id=provider.extract_id(first))
    other = asyncio.run(provider.acheckpoint(json.dumps({"n": 9}), location, branch="try"))
    assert json.loads(provider.from_checkpoint(first)) == {"n": 1, "rows": [1]}
    assert json.loads(asyncio.run(provider.afrom_checkpoint(second))) == {"n": 2, "rows": [1, 2]}
    assert provider.prune(location, 1) == 1
    with pytest.raises(ValueError):
        provider.from_checkpoint(first)
    assert json.loads(provider.from_checkpoint(second))["n"] == 2
    assert json.loads(provider.from_checkpoint(other)) == {"n": 9}
    assert len({provider.extract_id(each) for each in (first, second, other)}) == 3


def test_crewai_takes_the_provider_and_restores_from_a_file_of_it(store, tmp_path) -> None:
    provider = WakelogCheckpointProvider(store)
    config = CheckpointConfig(location="flows", provider=provider, on_events=["method_execution_finished"])
    assert config.provider is provider

    class Report(Flow[State]):  # type: ignore[misc]  # Any where it is not installed
        @start()
        def first(self) -> str:
            self.state.n = 7
            return "one"

    Report(checkpoint=config).kickoff()
    session = store.resume("crewai-checkpoint/flows")
    ids = [e.body["ids"][0] for e in session.log.entries() if e.kind == "items.kept"]
    path = provider.to_file(f"flows#{ids[-1]}", tmp_path / "restored.json")
    restored = Report.from_checkpoint(CheckpointConfig(restore_from=path))
    assert restored.state.n == 7


WRITER = """
import sys
from wakelog.adapters.crewai import WakelogFlowPersistence
url, me = sys.argv[1:]
persistence = WakelogFlowPersistence(url)
for n in range(5):
    persistence.save_state("f1", f"{me}{n}", {"by": me, "n": n})
"""


def test_four_processes_lose_nothing(store, tmp_path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "store")]
    writers = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in "abcd"]
    for writer in writers:
        _, errors = writer.communicate(timeout=300)
        assert writer.returncode == 0, errors.decode()
    session = store.resume("crewai/f1")
    methods = [e.body["input"] for e in session.log.entries() if e.kind == "turn.started"]
    assert sorted(methods) == sorted(f"{name}{n}" for name in "abcd" for n in range(5))


def test_a_session_that_is_not_a_flow_is_not_written_to(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        flows = WakelogFlowPersistence(store)
        made = store.session(flows.name_of("f1"), data={"mine": 1})
        with pytest.raises(InvalidInputError, match="not a session of crewai") as refused:
            flows.save_state("f1", "begin", {"n": 1})
        assert refused.value.kind == "foreign-session"
        assert made.head.seq == 1
