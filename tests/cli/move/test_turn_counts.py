"""A turn comes to the same in a list and in a query."""

from typing import Any

from tests.cli.conftest import Cli
from wakelog.store import Store

SUMS = {"tools": "tool_calls", "model_calls": "model_calls", "events": "events"}
"""What `log` calls it, and what the index does. Both count all attempts."""


def test_log_and_index_count_the_same(move: Cli, store: Store) -> None:
    compared = 0
    for head in store.sessions():
        told = move("log", head.session, "-n", "0", "--json")
        if told.code or head.fork is not None:
            continue  # damaged; or it shares turns with its parent, which an index has in the parent's rows
        rows: dict[int, list[Any]] = {}
        for row in store.index.turns(head.session, rewound=True, newest_first=False, limit=1000):
            rows.setdefault(row.turn, []).append(row)
        for turn in told.data["turns"] or []:
            attempts = rows[turn["turn"]]
            compared += 1
            for name, column in SUMS.items():
                assert turn[name] == sum(getattr(row, column) for row in attempts), (head.name, turn["turn"], name)
            newest = attempts[-1]
            assert turn["outcome"] == newest.outcome
            assert sum(file["added"] for file in turn["files"]) == newest.added
            assert sum(file["removed"] for file in turn["files"]) == newest.removed
    assert compared > 10


def test_pruned_calls_count_in_both(move: Cli, store: Store) -> None:
    from wakelog.log.removal import prune

    session = store.resume("fix-bug")
    with session.turn(user="go on"):
        pass
    last = next(e.seq for e in session.events(turn=2, kind="turn.ended"))
    before = {turn["turn"]: turn for turn in move("log", "fix-bug", "-n", "0", "--json").data["turns"]}
    prune(session.log, last)
    turns = {turn["turn"]: turn for turn in move("log", "fix-bug", "-n", "0", "--json").data["turns"]}
    assert turns[2]["events"] > 2
    for turn in (1, 2):
        assert turns[turn]["tools"] == before[turn]["tools"]
        assert turns[turn]["model_calls"] == before[turn]["model_calls"]
        assert turns[turn]["cost"] == before[turn]["cost"]
        assert turns[turn]["tools"] == sum(r.tool_calls for r in store.index.turns(session.id) if r.turn == turn)
    assert turns[2]["tools"] > 0


def test_a_fork_tells_the_pruned_calls_of_its_parent(move: Cli, store: Store) -> None:
    from wakelog.log.removal import prune

    session = store.resume("fix-bug")
    last = next(e.seq for e in session.events(turn=2, kind="turn.ended"))
    session.fork("@4", name="before-the-prune")
    with session.turn(user="go on"):
        pass
    prune(session.log, last)
    session.fork(name="after-the-prune")
    turns = {turn["turn"]: turn for turn in move("log", "fix-bug", "-n", "0", "--json").data["turns"]}
    for name in ("before-the-prune", "after-the-prune"):
        told = {turn["turn"]: turn for turn in move("log", name, "-n", "0", "--json").data["turns"]}
        for turn in (1, 2, 3):
            for sum_ in ("tools", "model_calls", "cost"):
                assert told[turn][sum_] == turns[turn][sum_], (name, turn, sum_)
    assert turns[2]["tools"] > 0
