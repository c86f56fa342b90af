"""What the index answers is what the logs say, whatever was done to them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.index import brute
from tests.index.asking import ask, contents
from tests.index.brute import History
from tests.index.play import Player
from tests.seeds import some
from wakelog.engine import Engine
from wakelog.engines.postgres import PostgresEngine
from wakelog.index import Index
from wakelog.log import Log

TURN = (
    "turn, attempt, first, last, outcome, events, tool_calls, tool_errors, model_calls, files, added, removed, tokens,"
    " usd_micros, trust, in_view"
)
EVENT = (
    "seq, turn, attempt, kind, at_us, occurred_us, actor, tool, action, cause, trust, source, commit_id, tokens,"
    " usd_micros, gone, in_view"
)


def compare(index: Index, log: Log) -> None:
    """Holds what the index knows of a session against its log."""
    history = History(log)
    compare_session(index, history)
    compare_own(index, history)
    for last_turns in (None, 1, 3):
        compare_history(index, history, last_turns)
    seen = [(e.seq, e.in_view) for e in index.events(log.id, rewound=True, limit=10_000)]
    assert seen == [(e.seq, history.sees(e.seq)) for e in history.entries]
    for rewound in (False, True):
        wanted = [turn for turn in turns_through_forks(history) if rewound or turn["in_view"]]
        rolled = index.turns(log.id, rewound=rewound, newest_first=False, limit=1000)
        assert [{name: getattr(turn, name) for name in TURN.split(", ")} for turn in rolled] == wanted


def compare_session(index: Index, history: History) -> None:
    wanted = history.session()
    has_error = wanted.pop("has_error")
    [row] = ask(index, f"select {', '.join(wanted)}, last_error from sessions where id = ?", history.log.id)
    found = dict(zip(wanted, row, strict=False))
    found["labels"] = msgspec.json.decode(found["labels"])
    assert found == wanted
    assert bool(row[-1]) == has_error


def compare_own(index: Index, history: History) -> None:
    """The views, which have a session's own events only."""
    own = history.own

    def rows(columns: str, view: str, order: str = "seq") -> list[Any]:
        return ask(index, f"select {columns} from {view} where session = ? order by {order}", history.log.id)

    assert rows(EVENT, "events") == history.events()
    assert rows(TURN, "turns", "turn, attempt") == [tuple(turn.values()) for turn in history.turns(own)]
    assert rows("seq, path, change, added, removed", "files") == brute.files(own)
    facts = [
        (*row[:2], msgspec.json.decode(row[2] or "null"), row[3]) for row in rows("seq, key, value, retracted", "facts")
    ]
    assert facts == brute.facts(own)
    assert rows("seq, tool, type, message", "errors") == history.errors(own)
    assert rows("seq, role, text", "messages") == history.messages(own)
    assert {row[0]: list(row[1:]) for row in rows("tool, calls, errors, last", "tools", "tool")} == history.tools(own)


def compare_history(index: Index, history: History, last_turns: int | None) -> None:
    """The typed answers, which are about everything in view."""
    session = history.log.id
    entries = history.since_turns(last_turns) if last_turns else history.in_view
    assert [e.seq for e in index.events(session, last_turns=last_turns, limit=10_000)] == [e.seq for e in entries]
    decisions = index.decisions(session, last_turns=last_turns, limit=1000)
    assert [(d.seq, d.turn, d.choice, d.because, d.alternatives) for d in decisions] == brute.decisions(entries)[::-1]
    errors = index.errors(session, last_turns=last_turns, limit=1000)
    assert [(e.seq, e.tool, e.type, e.message) for e in errors] == history.errors(entries)[::-1]
    tools = index.tools(session, last_turns=last_turns)
    assert {t.tool: [t.calls, t.errors, t.last] for t in tools} == history.tools(entries)
    files = index.files_modified(session, last_turns=last_turns)
    assert {f.path: (f.changes, f.added, f.removed, f.last, f.change) for f in files} == by_path(brute.files(entries))


def turns_through_forks(history: History) -> list[dict[str, Any]]:
    """A turn that was open where the session was forked is over for the fork."""
    ends = {segment.last for segment in history.log.segments if segment.last is not None}
    turns = history.turns(history.entries)
    return [{**t, "outcome": "interrupted"} if t["outcome"] == "open" and t["last"] in ends else t for t in turns]


def by_path(files: list[tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    out: dict[str, tuple[Any, ...]] = {}
    for seq, path, change, added, removed in files:
        count, a, r, *_ = out.get(path, (0, 0, 0))
        out[path] = (count + 1, a + added, r + removed, seq, change)
    return out


@pytest.mark.parametrize("seed", some(range(4), 2))
def test_every_answer_is_what_the_logs_say(engine: Engine, index: Index, seed: int) -> None:
    player = Player(engine, seed)
    for steps in (10, 60, 60):
        player.play(steps)
        for log in player.logs:
            compare(index, log)
    before = contents(index)
    index.rebuild()
    assert contents(index) == before


@pytest.mark.parametrize("seed", some(range(100, 104), 2))
def test_answers_hold_after_erasing_and_deleting(engine: Engine, index: Index, seed: int) -> None:
    player = Player(engine, seed)
    player.play(60)
    index.catch_up()
    for _ in range(2):
        player.play(20)
        player.erase(player.dice.choice(player.logs))
        if len(player.logs) > 2:
            gone = player.delete(player.dice.choice(player.logs))
            assert ask(index, "select count(*) from events where session = ?", gone) == [(0,)]
        for log in player.logs:
            compare(index, log)
    before = contents(index)
    index.rebuild()
    assert contents(index) == before


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 220))
def test_many_more_histories(engine: Engine, index: Index, seed: int) -> None:
    if isinstance(engine, PostgresEngine) and seed > 201:
        pytest.skip("over a server two take as long as all others together")
    player = Player(engine, seed)
    for _ in range(6):
        player.play(40)
        if player.dice.random() < 0.3:
            player.erase(player.dice.choice(player.logs))
        if player.dice.random() < 0.2 and len(player.logs) > 2:
            player.delete(player.dice.choice(player.logs))
        for log in player.logs:
            compare(index, log)
    before = contents(index)
    index.rebuild()
    assert contents(index) == before
