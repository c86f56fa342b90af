"""Random sessions: every verb that changes what an index should answer, drawn from a seed."""

from __future__ import annotations

import contextlib
import random
from typing import Any

from wakelog.engine import Engine
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log import Log
from wakelog.log.removal import delete, erase, prune
from wakelog.model import events as ev
from wakelog.model.ids import SessionId, fork_id, root_id
from wakelog.model.records import EventDraft
from wakelog.testing.builders import START_US

WORDS = ("deploy", "cors", "login", "Ärger", "run_sql", "naïve", "retry", "日本語", "a'b", "token\0x", "x y", "«q»")
TOOLS = ("shell", "edit~file", "http/get", "model")
PATHS = ("src/a.py", "src/b.py", "docs/ü.md")
REFUSED = (NotAllowedError, InvalidInputError, NotFoundError)


class Player:
    """Some sessions of one engine, and the dice."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine = engine
        self.dice = random.Random(seed)
        self.logs: list[Log] = []
        self._now = START_US
        self._ids = 0

    def clock(self) -> int:
        self._now += self.dice.choice((0, 1, 1000, 3_000_000))
        return self._now

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        dice = self.dice
        if not self.logs or dice.random() < 0.03:
            self.open()
        log = dice.choice(self.logs)
        verb = dice.choices(
            (self.append, self.turn, self.action, self.rewind, self.undo, self.retry, self.fork, self.life),
            (8, 8, 8, 1.5, 0.7, 1, 0.7, 0.4),
        )[0]
        with contextlib.suppress(*REFUSED):
            verb(log)

    def open(self) -> Log:
        dice = self.dice
        opened = ev.SessionOpened(
            name=dice.choice(("", f"n{len(self.logs)}")),
            goal=dice.choice((None, self.text())),
            labels=dice.choice(({}, {"team": "a"}, {"team": "b", "x": self.text()})),
            agent=dice.choice(("", "coder")),
            spawner=dice.choice(("", "s_x@1")),
        )
        session = root_id(START_US, dice.randbytes(10))
        log = Log.create(self.engine, session, opened, clock=self.clock)
        self.logs.append(log)
        return log

    def text(self, most: int = 6) -> str:
        return " ".join(self.dice.choice(WORDS) for _ in range(self.dice.randint(1, most)))

    def value(self) -> object:
        return self.dice.choice(
            (
                None,
                True,
                7,
                0.5,
                self.text(),
                self.text(120),
                {"cmd": self.text(), "n": [1, {"deep": self.text()}]},
                [{"type": "text", "text": self.text()}, {"type": "image", "url": "u"}],
                {"long": self.text(200)},
            )
        )

    def cost(self) -> ev.Cost:
        dice = self.dice
        if dice.random() < 0.5:
            return ev.Cost()
        return ev.Cost(dice.randint(0, 9), dice.randint(0, 9), dice.randint(0, 50), dice.randint(0, 9))

    def append(self, log: Log) -> None:
        dice = self.dice
        made: list[ev.Event] = [
            ev.MessageAdded(role=dice.choice(("user", "assistant")), content=self.value()),
            ev.FactRecorded(key=dice.choice(("k", "a/b", "~")), value=self.value()),
            ev.FactRetracted(key=dice.choice(("k", "a/b"))),
            ev.DecisionMade(
                choice=self.text(), because=dice.choice(("", self.text())), alternatives=("x", self.text())
            ),
            ev.FileChanged(
                path=dice.choice(PATHS),
                change=dice.choice(("created", "modified", "deleted")),
                added=dice.randint(0, 9),
                removed=dice.randint(0, 9),
                after=self.text(100),
            ),
            ev.GoalSet(goal=dice.choice((None, self.text()))),
            ev.LabelsSet(labels={"team": dice.choice((None, "c", "a"))}),
            ev.FlagRaised(flag=dice.choice(("f", "g")), message=self.text()),
            ev.FlagCleared(flag="f"),
            ev.DeadEndNoted(tried=self.text(), learned=self.text()),
            ev.NoteAdded(text=self.text(), occurred_at=dice.choice((0, START_US - 5_000_000))),
            ev.BudgetSpent(cost=self.cost()),
            ev.Foreign(foreign_kind="x.own", data={"said": self.text(), "at": 3}),
            ev.ResourceTouched(resource="https://a.example"),
            ev.CheckpointNamed(name="cp", at=1),
            ev.InputRequested(request=f"q{dice.randint(0, 2)}", prompt=self.text()),
        ]
        chosen = dice.sample(made, dice.randint(1, 3))
        log.append(
            *(EventDraft(e, trust=dice.choice(("trusted", "untrusted", "unverified")), source="web") for e in chosen)
        )

    def turn(self, log: Log) -> None:
        dice = self.dice
        if log.state()["turn"]["status"] == "open":
            failed = dice.random() < 0.3
            error = ev.Failure("io", self.text()) if failed else None
            log.append(ev.TurnEnded(outcome="failed" if failed else "completed", error=error, why=self.text()))
        else:
            log.append(ev.TurnStarted(input=dice.choice((None, self.text(), self.text(150)))))

    def action(self, log: Log) -> None:
        dice = self.dice
        pending = [k for k, v in log.state()["pending_actions"].items() if v["tool"] != "input"]
        tool = dice.choice(TOOLS)
        effect: ev.Effect = "model" if tool == "model" else "read"
        if not pending or dice.random() < 0.3:
            self._ids += 1
            name = f"call/{self._ids}"
            params = {"model": dice.choice(("m1", "m2"))} if effect == "model" else {}
            if dice.random() < 0.4:
                outcome: Any = dice.choice(("succeeded", "failed", "timed_out"))
                error = ev.Failure("refused", self.text()) if outcome == "failed" and dice.random() < 0.5 else None
                log.append(
                    ev.ActionRecorded(
                        action=name, tool=tool, effect=effect, outcome=outcome, error=error,
                        input=self.value(), output=self.value(), cost=self.cost(), params=params,
                    )
                )  # fmt: skip
                return
            log.append(ev.ActionRequested(action=name, tool=tool, effect=effect, input=self.value(), params=params))
            return
        name = dice.choice(pending)
        retry = dice.random() < 0.3
        log.append(
            dice.choice(
                (
                    ev.ActionStarted(action=name),
                    ev.ActionSucceeded(action=name, output=self.value(), cost=self.cost()),
                    ev.ActionFailed(action=name, error=ev.Failure("io", self.text()), retry=retry, cost=self.cost()),
                    ev.ActionTimedOut(action=name, retry=retry),
                    ev.ActionUncertain(action=name),
                    ev.ActionReconciled(action=name, outcome="failed"),
                    ev.ActionAbandoned(action=name),
                    ev.ActionEvidence(action=name, output=self.value()),
                )
            )
        )

    def rewind(self, log: Log) -> None:
        log.rewind(self.dice.randint(1, log.head().seq))

    def undo(self, log: Log) -> None:
        rewinds = [e.seq for e in log.entries() if e.kind == "history.rewound"]
        if rewinds:
            log.rewind(self.dice.choice(rewinds) - 1, mode="undo")

    def retry(self, log: Log) -> None:
        turn = log.state()["turn"]
        if turn["number"] and turn["status"] != "open":
            starts = [e.seq for e in log.entries() if e.kind == "turn.started" and e.header.turn == turn["number"]]
            log.rewind(max(starts[0] - 1, 1), mode="retry")
            log.append(ev.TurnStarted(retry=True, input=self.text()))

    def fork(self, log: Log) -> None:
        if len(self.logs) < 8:
            at, name = self.dice.randint(1, log.head().seq), self.dice.choice(("", "forked"))
            self.logs.append(log.fork(at, name=name, session=fork_id(log.id, self.dice.randbytes(5))))

    def life(self, log: Log) -> None:
        events = (ev.SessionPaused(), ev.SessionResumed(), ev.SessionClosed(outcome="failed"), ev.SessionReopened())
        log.append(self.dice.choice(events))

    # Surgery

    def erase(self, log: Log) -> None:
        own = [e.seq for e in log.entries(after=log.segments[-1].first - 1) if e.kind != "payload.erased"]
        with contextlib.suppress(*REFUSED):
            erase(log, self.dice.sample(own, min(3, len(own))))

    def prune(self, log: Log) -> None:
        with contextlib.suppress(*REFUSED):
            prune(log, self.dice.randint(log.segments[-1].first, log.head().seq))

    def delete(self, log: Log) -> SessionId:
        delete(log)
        self.logs.remove(log)
        return log.id
