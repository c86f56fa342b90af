"""What sessions teach, at size: catching up, questions, recall and mining.

    .venv/bin/python -m benchmarks.learn [SESSIONS] [CALLS]

Catching up is measured on sessions that are written to a log, with the rows of steps and touches and without them.
Questions and mining are measured on an index whose rows are put in directly, because writing ten million events first
would take hours: session, turn, step and touch rows, as the projector makes them. Times are of the processor, so that
other work on the machine does not count.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wakelog.codec.canonical import hash_value
from wakelog.engines.sqlite import SqliteEngine
from wakelog.index import Index, event_rows
from wakelog.index.database import Database
from wakelog.index.questions import AskRollup
from wakelog.index.rows import Batch, SessionRow, TurnRow
from wakelog.knowledge.facts import AskFacts
from wakelog.knowledge.likeness import AskLike
from wakelog.knowledge.recall import AskRecall
from wakelog.knowledge.things import AskKnown
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import SessionId, root_id
from wakelog.model.totals import NO_PHASE, count_call, phase_of
from wakelog.patterns.findings import AskPatterns
from wakelog.testing.builders import START_US

LABELS = [f"tool{n}" for n in range(40)]
ERRORS = [f"ValueError: kind {chr(97 + n)}" for n in range(24)]
WORDS = ["export", "invoice", "login", "deploy", "cache", "report", "search", "upload", "billing", "session", "invite"]
TURN = 25
"""Calls a turn."""


def fill(database: Database, sessions: int, calls: int) -> None:
    """Puts rows into an index, as if these sessions had been projected."""
    dice = random.Random(1)
    for start in range(0, sessions, 200):
        with database.writing() as db:
            batch = Batch(db)
            for number in range(start + 1, min(start + 200, sessions) + 1):
                _session(batch, dice, number, calls)
            batch.flush()


def _session(batch: Batch, dice: random.Random, no: int, calls: int) -> None:
    id_ = SessionId(f"s_{no:026d}")
    at = START_US + no * 60_000_000
    goal = f"{dice.choice(WORDS)} the {dice.choice(WORDS)} of {dice.choice(WORDS)} {no % 997}"
    row = SessionRow(no, id_, f"s{no}", id_, None, None, goal=goal, outcome=dice.choice(("completed", "failed")))
    row.project, row.first_at, row.last_at, row.status = f"/code/p{no % 20}", at, at + 1000, "closed"
    batch.save(row)
    batch.added["wl_lineage"].append((no, 1, 1 << 62, no))
    batch.show(no, [(1, 1 << 62)])
    for turn in range(1, calls // TURN + 1):
        batch.turns[no, turn, 1] = TurnRow(
            no, turn, 1, first=turn * 100, last=turn * 100 + 99, started_at=at, input=goal
        )
    phase = NO_PHASE
    for call in range(calls):
        seq, turn = call * 4 + 4, call // TURN + 1
        fails = dice.random() < 0.06
        sign = dice.choice(ERRORS) if fails else ""
        path = f"src/f{dice.randint(0, 3) if call % 10 else 0}{no % 300 if call % 3 else ''}.py"
        target, act = (path, "write") if call % 3 == 0 else ("", "run")
        what = (
            dice.choice(LABELS),
            target,
            act,
            "failed" if fails else "succeeded",
            f"{dice.randint(0, 99):016x}",
            sign,
        )
        took = dice.randint(1000, 90_000)
        batch.added["wl_step"].append((no, seq, seq - 1, turn, 1, *what, took, at + call, 0))
        phase = count_call(batch.calls(no), phase, (turn, 1, phase_of(act)), fails, took)
        batch.touch(no, "file", path, "wrote" if target else "read", seq=seq, at=at + call, trust=0)
        if fails:
            batch.touch(no, "error", sign, "met", seq=seq, at=at + call, trust=0)


def timed(name: str, work: Callable[[], Any], rounds: int = 20) -> None:
    took = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        took.append(time.process_time() - begin)
    took.sort()
    print(f"{name:<28} p50 {took[len(took) // 2] * 1e3:8.1f} ms   p95 {took[int(len(took) * 0.95)] * 1e3:8.1f} ms")


def ask(index: Index, sessions: int, calls: int) -> None:
    """Questions and mining over rows that are there."""
    print(f"{sessions:,} sessions of {calls} calls")
    index.ask(AskFacts())
    timed("known about a hot file", lambda: index.ask(AskKnown("src/f0.py", project="/code/p1")))
    timed("the same, all projects", lambda: index.ask(AskKnown("src/f0.py")))
    timed("known about a usual file", lambda: index.ask(AskKnown("src/f37.py", project="/code/p7")))
    timed("facts", lambda: index.ask(AskFacts(project="/code/p1")))
    timed("recall at an error", lambda: index.ask(AskRecall(error=ERRORS[3], project="/code/p1")))
    timed(
        "recall at the start",
        lambda: index.ask(AskRecall(files=("src/f0.py",), goal="export the invoice", project="/code/p1")),
    )
    timed("like, all projects", lambda: index.ask(AskLike("export the billing report 12")))
    for level in ("project", "day", "phase"):
        timed(f"roll-up of all by {level}", lambda level=level: index.ask(AskRollup(level)), rounds=5)  # type: ignore[misc]
    timed("roll-up of a project", lambda: index.ask(AskRollup("session", project="/code/p1")), rounds=5)
    timed("patterns of a project", lambda: index.ask(AskPatterns(project="/code/p1")), rounds=3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    found = index.ask(AskPatterns())
    took = time.process_time() - begin
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{'mining everything':<28} {took:.1f} s, {len(found.patterns)} patterns,"
        f" peak {before // 1024} → {after // 1024} MB"
    )


def catch_up(folder: Path, sessions: int, calls: int) -> None:
    """What the rows add to catching up, on a log of events."""
    dice = random.Random(2)
    engine = SqliteEngine(folder / "log.db")
    for number in range(sessions):
        log = Log.create(
            engine, root_id(START_US + number, dice.randbytes(10)), ev.SessionOpened(labels={"repo": "/r"})
        )
        made: list[ev.Event] = [ev.TurnStarted(input="go")]
        for call in range(calls):
            given = (
                {"command": f"cd /r && pytest tests/t{call % 30}.py -q"}
                if call % 2
                else {"file_path": f"/r/f{call % 40}.py"}
            )
            tool = "Bash" if call % 2 else "Edit"
            made += [
                ev.MessageAdded(
                    role="assistant", content="I will now look at what the tests say about this change. " * 4
                ),
                ev.ActionRequested(action=f"a{call}", tool=tool, input=given, input_hash=hash_value(given)),
                ev.ActionStarted(action=f"a{call}"),
                ev.ActionSucceeded(action=f"a{call}", output="3 passed in 0.12 s\n" * 20),
            ]
        log.append(*made, ev.TurnEnded())
    events = sessions * calls * 4
    names = vars(event_rows)
    kinds = names["STEP_KINDS"]
    took: dict[str, list[float]] = {"with": [], "without": []}
    for turn in range(9):
        for name in took:
            names["STEP_KINDS"] = kinds if name == "with" else frozenset()
            with Index(engine, folder / f"{name}{turn}.db") as index:
                begin = time.process_time()
                index.catch_up()
                took[name].append(time.process_time() - begin)
    names["STEP_KINDS"] = kinds
    more, less = min(took["with"]), min(took["without"])
    print(f"catching up with {events:,} events: {more:.2f} s, {less:.2f} s without steps: {more / less - 1:+.1%}")
    engine.close()


def main() -> None:
    sessions, calls = (int(word) for word in (*sys.argv[1:], "10000", "250")[:2])
    with tempfile.TemporaryDirectory() as folder:
        catch_up(Path(folder), 20, 200)
        engine = SqliteEngine(Path(folder) / "empty.db")
        with Index(engine, Path(folder) / "index.db") as index:
            index.catch_up()
            begin = time.process_time()
            fill(index._database, sessions, calls)  # type: ignore[arg-type]
            size = sum(path.stat().st_size for path in Path(folder).glob("index.db*"))
            print(f"rows put in: {time.process_time() - begin:.0f} s, {size / 1e6:.0f} MB")
            ask(index, sessions, calls)
        engine.close()


if __name__ == "__main__":
    main()
