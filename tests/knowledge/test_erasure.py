"""Erased content is gone from everything that was learned from it; what other sessions recorded stays."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.knowledge.past import Calendar, Step, edit, sh, worked
from wakelog.engines.sqlite import SqliteEngine
from wakelog.model import events as ev
from wakelog.store import Store

CANARY = "sk8canarykaleidoscope"
SAME = f"ValueError: {CANARY} is no key"


def answers(store: Store) -> bytes:
    """Everything that can be asked about the past, as bytes."""
    known = store.known
    asked = [
        known.about("src/a.py"),
        known.about("region"),
        known.about(f"https://x.example/{CANARY}"),
        known.facts(),
        known.facts(conflicts=True),
        known.recall(files=["src/a.py"], error=SAME, goal=f"region {CANARY}"),
        known.like(f"region {CANARY}"),
        known.path("src/a.py", "region"),
    ]
    plain = [msgspec.to_builtins(each) for each in asked]
    for each in plain:
        each.pop("subject", None)
        each.pop("text", None)
        each.pop("signature", None)
    return msgspec.json.encode(plain)


def test_an_erased_canary_leaves_no_byte_and_other_sources_stay(tmp_path: Path) -> None:
    store = Store(SqliteEngine(tmp_path / "log.db"), clock=Calendar())
    steps = [
        sh(f"python run.py {CANARY}", SAME),
        Step("WebFetch", {"url": f"https://x.example/{CANARY}"}, effect="read"),
        edit("src/a.py", f"{CANARY} not found"),
    ]
    events: list[ev.Event] = [
        ev.FactRecorded(key="region", value=CANARY),
        ev.DeadEndNoted(tried=f"{CANARY} in src/a.py"),
        ev.DecisionMade(choice=f"use {CANARY} in src/a.py"),
        ev.MessageAdded(role="user", content=f"my key {CANARY}"),
        ev.ResourceTouched(resource=f"https://x.example/{CANARY}"),
    ]
    session = worked(store, "one", steps, events=events)
    session.fork(name="fork")
    worked(store, "two", [edit("src/a.py", "String not found")], events=[ev.FactRecorded(key="region", value="eu")])
    before = answers(store)
    assert CANARY.encode() in before
    store.erase(session, range(3, session.head.seq))
    after = answers(store)
    assert CANARY.encode() not in after.lower()
    files = [path for path in tmp_path.glob("index.db*") if CANARY.encode() in path.read_bytes().lower()]
    assert files == []
    left = {line.name for line in store.known.about("src/a.py").lines}
    assert "two" in left
    assert [line.text for line in store.known.facts("region").lines] == ["region = eu"]
    store.close()


def test_a_deleted_session_teaches_nothing(tmp_path: Path) -> None:
    store = Store(SqliteEngine(tmp_path / "log.db"), clock=Calendar())
    session = worked(store, "one", [edit("src/a.py")], events=[ev.FactRecorded(key="region", value="eu")])
    assert store.known.about("src/a.py").lines
    store.delete(session)
    assert store.known.about("src/a.py").lines == ()
    assert store.known.facts().lines == ()
    store.close()


def test_every_line_resolves_to_its_events(tmp_path: Path) -> None:
    store = Store(SqliteEngine(tmp_path / "log.db"), clock=Calendar())
    for name in ("one", "two"):
        dead = ev.DeadEndNoted(tried="a lock in src/a.py")
        worked(store, name, [edit("src/a.py", "no match"), edit("src/a.py")], goal="fix a lock", events=[dead])
    found = [*store.known.about("src/a.py", limit=50).lines, *store.known.recall(files=["src/a.py"], goal="lock").lines]
    assert len(found) > 4
    for line in found:
        assert line.sources
        for source in line.sources:
            session, _, seq = source.rpartition("@")
            assert store.resume(session).log.entry(int(seq)).seq == int(seq)
    store.close()
