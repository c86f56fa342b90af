"""Keys of `data` that start with `$` belong to an adapter: no report about the agent's work shows them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import wakelog
from wakelog.cli.app import app
from wakelog.model import events as ev
from wakelog.session import Session


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session[Any]]:
    with wakelog.open(tmp_path / "store") as store:
        made = store.session("kept")
        for id in ("one", "two"):
            made.append(
                ev.TurnStarted(input=id),
                ev.StatePatched(patch=[{"op": "add", "path": "/data/$kept", "value": {"id": f"hidden-{id}"}}]),
                ev.StatePatched(
                    patch=[
                        {"op": "add", "path": "/data/$kept/next", "value": f"hidden-{id}"},
                        {"op": "add", "path": "/data/plan", "value": f"plan {id}"},
                    ],
                    why="a step",
                ),
                ev.TurnEnded(),
            )
        yield made


def test_a_diff_leaves_it_out(session: Session[Any]) -> None:
    assert [c.pointer for c in session.diff("@2").changes if c.pointer.startswith("/data")] == ["/data/plan"]


def test_a_comparison_has_no_step_for_it(session: Session[Any]) -> None:
    steps = [step for course in session.history.attempts(2) for step in course.steps if step.kind == "data"]
    assert [step.input for step in steps] == [[{"op": "add", "path": "/data/plan", "value": "plan two"}]]


def test_why_asks_about_the_rest(session: Session[Any]) -> None:
    assert session.why("@2").target.seqs == (8,)


def test_a_search_does_not_find_it(session: Session[Any]) -> None:
    assert session.store is not None
    assert not session.store.index.search("hidden").rows
    assert len(session.store.index.search("plan").rows) == 2


def test_show_tells_of_the_step_and_not_of_it(session: Session[Any], tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["--store", str(tmp_path / "store"), "show", "kept", "@2"]).output
    assert "$kept" not in shown
    assert "add /data/plan  (a step)" in shown


def test_the_state_has_it(session: Session[Any]) -> None:
    assert session.log.state()["data"]["$kept"] == {"id": "hidden-two", "next": "hidden-two"}
