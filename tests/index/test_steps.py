"""Steps and touches: projected bit by bit, made anew, or read from the logs the slow way, they are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.index.conftest import made_for
from tests.index.play import Player
from tests.seeds import SEED, some
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotFoundError
from wakelog.index import Index
from wakelog.index.step_rows import _digest
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.call_subject import project_path, subject_of
from wakelog.model.error_signature import error_signature

_STEPS = (
    "select s.id, x.seq, x.asked, x.label, x.target, x.act, x.outcome, x.input, x.signature"
    " from wl_step x join wl_session s on s.no = x.session"
)
_TOUCHES = (
    "select s.id, t.kind, t.name, t.how, t.times, t.first, t.last, t.trust"
    " from wl_touch t join wl_session s on s.no = t.session"
)
_DEAD_ENDS = "select s.id, d.seq, d.tried, d.learned from wl_dead_end d join wl_session s on s.no = d.session"
_PROJECTS = "select s.id, s.project from wl_session s"
COMMANDS = (
    "cd /r && pytest tests/a.py -q",
    "git add . && git commit -m x",
    "cat src/a.py | head",
    "ls",
    "sed -i s/a/b/ b.py",
)


class Worker(Player):
    """Plays sessions whose calls have command lines, files and addresses."""

    def value(self) -> object:
        given = self.dice.choice((0, 1, 2, 3, 4))
        if given == 0:
            return {"command": self.dice.choice(COMMANDS)}
        if given == 1:
            return {"file_path": self.dice.choice(("/r/src/a.py", "src/b.py", "/etc/x"))}
        if given == 2:
            return {"url": f"https://{self.dice.choice('ab')}.example/x"}
        return super().value()


def rows(index: Index, statement: str) -> list[tuple[Any, ...]]:
    with index.reading() as db:
        return sorted(map(tuple, db.execute(statement).fetchall()))


def everything(index: Index) -> list[list[tuple[Any, ...]]]:
    index.catch_up()
    return [rows(index, statement) for statement in (_STEPS, _TOUCHES, _DEAD_ENDS, _PROJECTS)]


def oracle_steps(log: Log) -> list[tuple[Any, ...]]:
    """The steps of one session, from its events one after the other."""
    out: list[tuple[Any, ...]] = []
    asked: dict[str, tuple[Any, ...]] = {}
    for entry in log.entries(after=log.segments[-1].first - 1):
        if not entry.record.body:
            continue
        body, kind = entry.body, entry.kind
        action = body.get("action", "")
        pending = log.state(entry.seq - 1)["pending_actions"].get(action, {}) if entry.seq > 1 and action else {}
        tool, effect = body.get("tool") or pending.get("tool", ""), pending.get("effect", "external")
        if kind in ("action.requested", "action.recorded"):
            effect = body.get("effect", "external")
            given = body.get("input")
            subject = subject_of(tool, effect, _value(log, entry, given))
            is_path = subject.target in (*subject.read, *subject.written)
            target = project_path(subject.target, log.state(entry.seq)["labels"]) if is_path else subject.target
            asked[action] = (entry.seq, subject.label, target, subject.act, _digest(given))
        outcome = _outcome(kind, body)
        if kind in ("action.denied", "action.abandoned"):
            asked.pop(action, None)
        if not outcome or effect == "model":
            continue
        what = asked.get(action) or (entry.header.cause or entry.seq, tool, "", "run", "")
        if not body.get("retry"):
            asked.pop(action, None)
        signature = ""
        if outcome in ("failed", "timed_out") and entry.is_intact:
            error = body.get("error") or {}
            default = "timed_out" if outcome == "timed_out" else ""
            signature = error_signature(error.get("type") or default, error.get("message", ""))
        if what[1]:
            out.append((str(log.id), entry.seq, what[0], *what[1:4], outcome, what[4], signature))
    return out


def _outcome(kind: str, body: dict[str, Any]) -> str:
    if kind == "action.recorded":
        return str(body.get("outcome", "succeeded"))
    if kind == "action.reconciled":
        return str(body.get("outcome", ""))
    return {"action.succeeded": "succeeded", "action.failed": "failed", "action.timed_out": "timed_out"}.get(kind, "")


def _value(log: Log, entry: Entry, given: Any) -> Any:
    try:
        return log.value(entry, given) if isinstance(given, dict) and "$payload" in given else given
    except NotFoundError:
        return None


@pytest.mark.seeded
@pytest.mark.parametrize("seed", some(range(SEED, SEED + 8), quick=1))
def test_projected_bit_by_bit_it_is_what_a_new_index_and_the_logs_say(
    engine: Engine, tmp_path: Path, seed: int
) -> None:
    player = Worker(engine, seed)
    with made_for(engine, tmp_path) as index:
        for _ in range(6):
            player.play(25)
            index.catch_up()
        log = player.dice.choice(player.logs)
        player.erase(log)
        index.catch_up()
        player.prune(player.dice.choice(player.logs))
        player.play(20)
        found = everything(index)
        with Index(engine, None) as fresh:
            assert found == everything(fresh)
    assert found[0]
    for log in player.logs:
        assert [row for row in found[0] if row[0] == log.id] == sorted(oracle_steps(log))


@pytest.mark.seeded
def test_every_database_says_the_same(engine: Engine, tmp_path: Path) -> None:
    other = MemoryEngine()
    for each in (engine, other):
        Worker(each, SEED).play(120)
    with made_for(engine, tmp_path) as index, Index(other, None) as plain:
        assert everything(index) == everything(plain)
