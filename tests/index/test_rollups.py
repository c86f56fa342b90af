"""Roll-ups: the same numbers from the log, from the index, before and after a prune, and from any database."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.index.conftest import made_for
from tests.index.test_steps import Worker
from tests.seeds import SEED, some
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import InvalidInputError
from wakelog.index import Index
from wakelog.index.questions import AskRollup
from wakelog.index.rollups import LEVELS, Rollup
from wakelog.log import Log
from wakelog.log.removal import prune
from wakelog.model import events as ev
from wakelog.store import Store
from wakelog.testing.builders import START_US

HOUR = 3_600_000_000


def asked(index: Index, **given: Any) -> Rollup:
    return index.ask(AskRollup(**given))


def numbers(index: Index, *, phases: bool = True) -> dict[str, Any]:
    out = {}
    for by in LEVELS:
        plain = msgspec.to_builtins(asked(index, by=by))
        rows = [*sorted(plain["rows"], key=lambda row: row["key"]), plain["total"]]
        out[by] = [{k: v for k, v in row.items() if phases or k not in ("phases", "events")} for row in rows]
    return out


def worked(store: Store, name: str, at: int = START_US, **labels: str) -> Any:
    session = store.session(name, labels=labels, folder="")
    cost = ev.Cost(duration_us=3_000_000)
    session.append(ev.TurnStarted(input="fix it", occurred_at=at))
    made: list[ev.Event] = [
        ev.ActionRecorded(
            action=f"m-{name}", tool="model", effect="model", cost=ev.Cost(100, 20, 500, 900), occurred_at=at
        ),
        ev.ActionRecorded(action=f"a-{name}", tool="Read", effect="read", input={"file_path": "a.py"}, cost=cost),
        ev.ActionRecorded(action=f"b-{name}", tool="Read", effect="read", input={"file_path": "b.py"}, cost=cost),
        ev.ActionRecorded(action=f"c-{name}", tool="Edit", input={"file_path": "a.py"}, cost=cost),
        ev.FileChanged(path="a.py", added=7, removed=2),
        ev.ActionRecorded(
            action="d", tool="Bash", input={"command": "pytest -q"}, outcome="failed", error=ev.Failure("exit", "1")
        ),
        ev.MessageAdded(role="user", content="go on"),
        ev.ActionRecorded(action=f"e-{name}", tool="Bash", input={"command": "pytest -q"}, cost=cost),
        ev.TurnEnded(),
    ]
    session.append(*(msgspec.structs.replace(event, occurred_at=at) for event in made))
    return session


def test_calls_add_up_to_phases_turns_sessions_projects_and_days() -> None:
    with Store(MemoryEngine()) as store:
        worked(store, "one", repo="/code/a")
        worked(store, "two", at=START_US + 30 * HOUR, repo="/code/a")
        worked(store, "three", repo="/code/b")
        phases = {row.key: (row.phases, row.calls, row.errors) for row in store.rollup("phase").rows}
        assert phases == {"explore": (3, 6, 0), "change": (3, 3, 0), "check": (6, 6, 3), "model": (0, 0, 0)}
        by_project = {row.key: (row.sessions, row.turns, row.calls, row.added) for row in store.rollup("project").rows}
        assert by_project == {"/code/a": (2, 2, 10, 14), "/code/b": (1, 1, 5, 7)}
        days = store.rollup("day").rows
        assert [row.sessions for row in days if row.turns] == [2, 1]
        total = store.rollup("turn").total
        assert (total.turns, total.calls, total.errors, total.model_calls) == (3, 15, 3, 3)
        assert (total.tokens_in, total.tokens_out, total.usd_micros) == (300, 60, 1500)
        assert (total.took[22], total.took[0]) == (12, 3)  # three seconds are between 2^21 and 2^22 microseconds
        for by in LEVELS:
            assert store.rollup(by).total.calls == 15
        assert store.rollup("session", sessions="one").total.calls == 5
        assert store.rollup("session", project="/code/b").total.usd_micros == 500


def test_what_is_drawn_is_what_was_counted_and_labels_are_escaped() -> None:
    with Store(MemoryEngine()) as store:
        worked(store, "one", repo="<script>")
        found = store.rollup("project")
        assert "<script>" not in found.svg()
        assert "&lt;script&gt;" in found.svg()
        assert ">5</text>" in found.svg()
        assert "4.19 s" in found.svg("took")
        assert "<svg" in found._repr_html_()
        with pytest.raises(InvalidInputError, match="one of calls"):
            found.svg("beauty")
        with pytest.raises(InvalidInputError, match="rolled up"):
            store.rollup("mood")


def test_pruning_changes_no_number() -> None:
    with Store(MemoryEngine()) as store:
        for name in ("one", "two"):
            worked(store, name, repo="/code/a")
        log = store.resume("one").log
        wanted = numbers(store.index)
        prune(log, log.head().seq)
        after = numbers(store.index)
        assert after["phase"] == wanted["phase"]
        for by in LEVELS:
            # The prune itself is an event.
            told = [{**row, "events": 0} for row in after[by]]
            assert told == [{**row, "events": 0} for row in wanted[by]], by
        pruned = next(e for e in log.entries() if e.kind == "range.pruned")
        assert all(type(n) is int for row in pruned.body["turn_totals"] + pruned.body["call_totals"] for n in row)


def test_a_second_prune_keeps_what_the_first_one_kept() -> None:
    with Store(MemoryEngine()) as store:
        session = worked(store, "one")
        wanted = asked(store.index, by="session").total
        for upto in (5, 8, session.head.seq):
            prune(session.log, upto)
        with session.turn("more"):
            session.append(ev.ActionRecorded(action="z", tool="Read", effect="read", input={"file_path": "c"}))
        after = asked(store.index, by="session").total
        assert (after.calls, after.errors, after.usd_micros) == (wanted.calls + 1, wanted.errors, wanted.usd_micros)
        assert (after.turns, after.added, after.duration_us) == (2, wanted.added, wanted.duration_us)


def by_hand(logs: list[Log]) -> Counter[str]:
    """Calls that ended, from the events one after the other."""
    out: Counter[str] = Counter()
    for log in logs:
        for entry in log.entries(after=log.segments[-1].first - 1):
            body, kind = entry.body, entry.kind
            if not entry.record.body:
                continue
            outcome = {
                "action.recorded": body.get("outcome", "succeeded"),
                "action.reconciled": body.get("outcome", ""),
            }.get(kind, kind.removeprefix("action."))
            if not kind.startswith("action.") or outcome not in ("succeeded", "failed", "timed_out"):
                continue
            known = log.state(entry.seq - 1)["pending_actions"].get(body["action"], {})
            effect = body.get("effect", "external") if "tool" in body else known.get("effect", "")
            tool = body.get("tool") or known.get("tool", "")
            if effect == "model":
                out["model_calls"] += 1
            elif tool:
                out["calls"] += 1
                out["errors"] += outcome != "succeeded"
    return out


@pytest.mark.seeded
@pytest.mark.parametrize("seed", some(range(SEED, SEED + 6), quick=1))
def test_projected_bit_by_bit_they_are_what_a_new_index_and_the_logs_say(
    engine: Engine, tmp_path: Path, seed: int
) -> None:
    player = Worker(engine, seed)
    with made_for(engine, tmp_path) as index:
        for _ in range(4):
            player.play(25)
            index.catch_up()
        player.erase(player.dice.choice(player.logs))
        index.catch_up()
        found = asked(index, by="session").total
        assert {"calls": found.calls, "errors": found.errors, "model_calls": found.model_calls} == {
            **dict.fromkeys(("calls", "errors", "model_calls"), 0),
            **by_hand(player.logs),
        }
        before = numbers(index, phases=False)
        for log in player.logs:
            player.prune(log)
        after = numbers(index, phases=False)
        for by in ("session", "project", "phase"):
            # A call that a prune cuts in two has lost what it was about: it counts, as one that runs something.
            wanted, told = before[by][-1], after[by][-1]
            assert {k: told[k] for k in ("calls", "errors", "model_calls", "usd_micros", "added", "took")} == {
                k: wanted[k] for k in ("calls", "errors", "model_calls", "usd_micros", "added", "took")
            }, by
        player.play(15)
        with Index(engine, None) as fresh:
            assert numbers(index) == numbers(fresh)


@pytest.mark.seeded
def test_every_database_says_the_same(engine: Engine, tmp_path: Path) -> None:
    other = MemoryEngine()
    for each in (engine, other):
        player = Worker(each, SEED)
        player.play(90)
        player.prune(player.logs[0])
    with made_for(engine, tmp_path) as index, Index(other, None) as plain:
        assert numbers(index) == numbers(plain)


def test_deleted_sessions_keep_their_numbers_and_are_told_from_five_on(tmp_path: Path) -> None:
    from wakelog.store import open as open_store

    with open_store(tmp_path / "store") as store:
        sessions = [worked(store, f"s{n}", repo="/secret/place") for n in range(7)]
        wanted = store.rollup("session").total
        store.delete(sessions[6])
        for number, session in enumerate(sessions[:5]):
            kept = store.rollup("project")
            assert (kept.deleted, kept.total.sessions) == (0, 6 - number)
            store.delete(session, keep_totals=True)
        found = store.rollup("day")
        assert (found.deleted, found.rows[-1].key) == (5, "(deleted)")
        assert (found.total.sessions, found.total.calls, found.total.took[22]) == (6, 30, 24)
        assert found.total.usd_micros == wanted.usd_micros * 6 // 7
        store.index.rebuild()
        assert msgspec.structs.replace(store.rollup("day"), as_of=found.as_of) == found
        tombstone = store.engine.read(sessions[0].id)
        assert b"secret" not in b"".join(record.body for commit in tombstone for record in commit.records)
        assert store.rollup("session", project="/secret/place").deleted == 0
