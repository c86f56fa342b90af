"""One row per call: every way a call can end, what it changed, what it cost, and what is left after erasing."""

from collections.abc import Iterator
from typing import Any

import pytest

import wakelog
from wakelog import events as ev
from wakelog.codec.canonical import hash_value
from wakelog.errors import NotFoundError
from wakelog.log.removal import prune
from wakelog.session import Session
from wakelog.store import Store
from wakelog.timeline.call_table import CallRow


@pytest.fixture
def store() -> Iterator[Store]:
    with wakelog.open("memory:") as store:
        yield store


@pytest.fixture
def session(store: Store) -> Session[Any]:
    return store.session("s", folder="")


def _rows(session: Session[Any]) -> dict[str, CallRow]:
    return {row.tool: row for row in session.calls.table()}


def test_a_call_is_one_row_with_its_input_outcome_and_time(session: Session[Any]) -> None:
    @session.tool(effect="read")
    def look(path: str) -> str:
        return "seen"

    with session.turn(user="go"):
        look("a.py")
    (row,) = session.calls.table()
    assert (row.tool, row.effect, row.outcome, row.tries, row.turn) == ("look", "read", "succeeded", 1, 1)
    assert row.about == "a.py"
    assert row.input_hash == session.log.entry(row.seq).body["input_hash"] == hash_value({"path": "a.py"})
    assert row.summary == "seen"
    assert session.log.entry(row.settled).kind == "action.succeeded"
    assert row.duration_us >= 0
    assert row.in_view


def test_every_way_to_end_is_told(session: Session[Any]) -> None:
    request = ev.ActionRequested
    session.append(request(action="w", tool="waits", approval=True))
    session.append(request(action="d", tool="denied", approval=True), ev.ActionDenied(action="d", by="Ada"))
    session.append(request(action="a", tool="given-up"), ev.ActionAbandoned(action="a"))
    session.append(request(action="u", tool="unsure"), ev.ActionStarted(action="u"), ev.ActionUncertain(action="u"))
    session.append(request(action="r", tool="running"), ev.ActionStarted(action="r"))
    session.append(ev.ActionRecorded(action="x", tool="late", outcome="failed", error=ev.Failure("boom", "it broke")))
    session.append(request(action="n", tool="never"), ev.ActionStarted(action="n"), ev.ActionUncertain(action="n"))
    session.calls.reconcile("n", "never_ran", by="Bo")
    rows = _rows(session)
    assert {tool: row.outcome for tool, row in rows.items()} == {
        "waits": "waiting",
        "denied": "denied",
        "given-up": "abandoned",
        "unsure": "uncertain",
        "running": "running",
        "late": "failed",
        "never": "never_ran",
    }
    assert rows["denied"].approved_by == "Ada"
    assert rows["late"].summary == "it broke"
    assert rows["running"].duration_us == 0


def test_tries_and_costs_add_up(session: Session[Any]) -> None:
    session.append(ev.ActionRequested(action="m", tool="gpt", effect="model"), ev.ActionStarted(action="m"))
    cost = ev.Cost(tokens_in=10, tokens_out=5, usd_micros=7, duration_us=100)
    session.append(ev.ActionFailed(action="m", error=ev.Failure("rate", "slow down"), retry=True, cost=cost))
    session.append(
        ev.ActionStarted(action="m", attempt=2), ev.ActionSucceeded(action="m", cost=cost, output_summary="ok")
    )
    (row,) = session.calls.table()
    assert (row.tries, row.tokens, row.usd_micros, row.duration_us) == (2, 30, 14, 200)
    assert (row.outcome, row.summary) == ("succeeded", "ok")


def test_what_a_call_changed_is_its_delta(session: Session[Any]) -> None:
    session.append(ev.ActionRequested(action="f", tool="edit", effect="write"))
    session.append(ev.ActionSucceeded(action="f"))
    session.append(ev.FileChanged(path="a.py", action="f"))
    (row,) = session.calls.table()
    assert "/files_modified/a.py" in [each.path for each in row.delta]
    assert not [each for each in row.delta if each.path.startswith(("/pending_actions", "/tools_used"))]


def test_a_turn_or_a_range_is_a_part_of_the_table(session: Session[Any]) -> None:
    @session.tool(effect="pure")
    def add(n: int) -> int:
        return n

    for number in range(3):
        with session.turn(user=str(number)):
            add(number)
    assert [row.turn for row in session.calls.table("@2")] == [2]
    assert [row.turn for row in session.calls.table("@2..@3")] == [2, 3]
    with pytest.raises(NotFoundError):
        session.calls.table("@9")
    session.rewind("@1")
    assert [row.in_view for row in session.calls.table()] == [True, False, False]


def test_what_was_erased_or_pruned_is_a_row_that_says_so(store: Store, session: Session[Any]) -> None:
    session.append(ev.ActionRecorded(action="a", tool="look", input={"path": "secret.txt"}))
    session.append(ev.ActionRecorded(action="b", tool="look", input={"path": "other.txt"}))
    first, second = session.calls.table()
    store.erase(session, [first.seq], why="private")
    rows = session.calls.table()
    assert (rows[0].gone, rows[0].about, rows[0].tool) == ("erased", "", "look")
    assert rows[1] == second
    prune(session.log, second.seq)
    assert [row.gone for row in session.calls.table()] == ["pruned", "pruned"]


def test_a_large_input_is_not_fetched(session: Session[Any]) -> None:
    session.append(ev.ActionRecorded(action="a", tool="look", input={"path": "x" * 200_000}))
    (row,) = session.calls.table()
    assert (row.about, row.input_hash) == ("", "")


def test_a_session_without_calls_has_an_empty_table(session: Session[Any]) -> None:
    assert session.calls.table() == []
