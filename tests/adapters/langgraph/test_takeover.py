"""Databases that LangGraph's own checkpointers wrote, taken over by `wakelog import`: graphs go on where they were."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite")
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

import wakelog
from tests.adapters.command_line import command
from tests.adapters.langgraph.graphs import THREAD, agent, asking, history, plain
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from wakelog.adapters.langgraph import WakelogSaver
from wakelog.adapters.langgraph.takeover import take_over

ASKING: Any = {"configurable": {"thread_id": "@5"}}


@contextmanager
def their_saver(place: str) -> Iterator[Any]:
    if "://" in place:
        postgres = pytest.importorskip("langgraph.checkpoint.postgres")
        with postgres.PostgresSaver.from_conn_string(place) as saver:
            saver.setup()
            yield saver
    else:
        with SqliteSaver.from_conn_string(place) as saver:
            yield saver


@pytest.fixture(params=["sqlite", ON_POSTGRES])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What a program leaves: one thread of two turns and a look back, and one that waits for an answer."""
    place = str(tmp_path / "checkpoints.sqlite")
    if request.param == "postgres":
        place = postgres_url(request, tmp_path).partition("?")[0]  # the namespace is wakelog's own
    with their_saver(place) as saver:
        graph = agent(saver)
        graph.invoke({"messages": [("user", "apples")]}, THREAD)
        first = graph.get_state(THREAD).config
        graph.invoke({"messages": [("user", "bad")]}, THREAD)
        graph.invoke({"messages": [("user", "pears")]}, first)
        asking(saver).invoke({"x": ["in"], "about": {}}, ASKING)
    return place


def test_graphs_go_on_after_the_import(database: str, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    said = command("import", database, "--store", store)
    assert "3 new turns" in said or "4 new turns" in said
    assert "everything was there already" in command("import", database, "--store", store)
    with WakelogSaver(store) as saver, their_saver(database) as theirs:
        assert history(agent(saver)) == history(agent(theirs))
        for each in (saver, theirs):
            agent(each).invoke({"messages": [("user", "plums")]}, THREAD)
            assert asking(each).get_state(ASKING).next == ("ask",)
            asking(each).invoke(Command(resume="yes"), ASKING)
        assert history(agent(saver)) == history(agent(theirs))
        assert plain(asking(saver).get_state(ASKING).values) == plain(asking(theirs).get_state(ASKING).values)
        session = saver.session("t")
        assert [message.text for message in session.messages() if message.role == "user"] == [
            "apples",
            "pears",
            "plums",
        ]
        assert session.verify().ok
        started = next(iter(session.events(kind="turn.started")))
        assert 0 < started.happened_at < session.log.entry(1).header.at
    told = command("import", database, "--store", store)
    assert "gone on here since" in told


def test_the_database_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(file)) as theirs:
        agent(theirs).invoke({"messages": [("user", "apples")]}, THREAD)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with wakelog.open("memory:") as store:
        assert [session.name for session in take_over(store, str(file)).sessions] == ["t"]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_copy_that_was_cut_short_goes_on(tmp_path: Path) -> None:
    file = str(tmp_path / "checkpoints.sqlite")
    with SqliteSaver.from_conn_string(file) as theirs:
        agent(theirs).invoke({"messages": [("user", "apples")]}, THREAD)
        all_of_it = list(theirs.list(THREAD))[::-1]
        with WakelogSaver(tmp_path / "store") as saver:
            for each in all_of_it[:2]:
                saver.put_copy("t", each)
            assert saver.copy_from(theirs) == len(all_of_it) - 2
            assert history(agent(saver)) == history(agent(theirs))


def test_a_thread_that_was_deleted_stays_so_unless_it_is_asked_for(tmp_path: Path) -> None:
    file = str(tmp_path / "checkpoints.sqlite")
    with SqliteSaver.from_conn_string(file) as theirs:
        agent(theirs).invoke({"messages": [("user", "apples")]}, THREAD)
    with wakelog.open(tmp_path / "store") as store:
        take_over(store, file)
        WakelogSaver(store).delete_thread("t")
        report = take_over(store, file)
        assert (report.sessions, report.deleted) == ((), ("t",))
        assert len(take_over(store, file, again=True).sessions) == 1


def test_a_database_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "checkpoints.sqlite"
    db = sqlite3.connect(file)
    db.execute("CREATE TABLE checkpoints (thread_id text)")
    db.execute("CREATE TABLE writes (thread_id text)")
    db.commit()
    db.close()
    said = command("import", str(file), "--store", str(tmp_path / "store"), code=7)
    assert "checkpoints.sqlite" in said
