"""What sessions teach is the same whatever database the index is in, and however it was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.index.conftest import made_for
from tests.index.test_steps import Worker
from tests.seeds import SEED, some
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.index import Index
from wakelog.index.questions import AskRollup
from wakelog.index.rollups import LEVELS
from wakelog.knowledge.connections import AskConnections
from wakelog.knowledge.facts import AskFacts
from wakelog.knowledge.likeness import AskLike
from wakelog.knowledge.recall import AskRecall
from wakelog.knowledge.things import AskKnown
from wakelog.model import events as ev
from wakelog.patterns.cohorts import AskCohorts, Cohort
from wakelog.patterns.findings import AskPatterns
from wakelog.patterns.follows_map import AskMap

QUESTIONS = (
    AskKnown("src/a.py"),
    AskKnown("/r/src/a.py"),
    AskKnown("k"),
    AskKnown("https://a.example/x", kind="url"),
    AskKnown("src/b.py", aspect="failed"),
    AskKnown("src/b.py", aspect="decisions", project=""),
    AskFacts(),
    AskFacts("k", as_of=1 << 60, known_at=1 << 60),
    AskFacts(None, conflicts=True),
    AskConnections("src/a.py", "k"),
    AskRecall(files=("src/a.py", "src/b.py"), error="io: deploy cors", goal="deploy the login token", now=1 << 51),
    AskLike("retry the deploy", now=1 << 51),
    AskPatterns(least=2, limit=50),
    AskMap(),
    AskCohorts(Cohort({"team": "a"}), Cohort({"team": "b"})),
    *(AskRollup(by) for by in LEVELS),
)


def answers(index: Index) -> list[Any]:
    return [{**msgspec.to_builtins(index.ask(question)), "as_of": None} for question in QUESTIONS]


@pytest.mark.seeded
@pytest.mark.parametrize("seed", some(range(SEED, SEED + 6), quick=1))
def test_after_any_removal_every_answer_is_that_of_a_new_index(engine: Engine, tmp_path: Path, seed: int) -> None:
    player = Worker(engine, seed)
    with made_for(engine, tmp_path) as index:
        for surgery in (player.erase, player.prune, player.delete, player.prune):
            player.play(30)
            index.catch_up()
            if len(player.logs) > 1:
                surgery(player.dice.choice(player.logs))
        player.play(20)
        found = answers(index)
        with Index(engine, None) as fresh:
            wanted = answers(fresh)
    for question, one, two in zip(QUESTIONS, found, wanted, strict=True):
        assert one == two, question


@pytest.mark.seeded
def test_every_question_is_answered_alike_by_every_database(engine: Engine, tmp_path: Path) -> None:
    other = MemoryEngine()
    for each in (engine, other):
        player = Worker(each, SEED + 1)
        player.play(160)
        first = player.open()
        first.append(ev.DeadEndNoted(tried="a lock in src/a.py"), ev.DecisionMade(choice="keep src/b.py"))
        player.logs[-1].append(ev.KnowledgeRecalled(sources=(f"{first.id}@1",)))
    with made_for(engine, tmp_path) as index, Index(other, None) as plain:
        found, wanted = answers(index), answers(plain)
    for question, one, two in zip(QUESTIONS, found, wanted, strict=True):
        assert one == two, question
    told = [bool(each.get("lines") or each.get("steps") or each.get("patterns")) for each in found]
    assert sum(told) >= 8
