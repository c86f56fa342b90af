"""Generated runs for statistics: sessions with steps and outcomes, drawn from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from wakelog.model.ids import SessionId
from wakelog.patterns.traces import TracedSession, TracedStep

NOISE = tuple(f"step{n}" for n in range(12))


def run(
    number: int, labels: Sequence[str], *, task: str = "", good: bool | None = None, root: str = ""
) -> TracedSession:
    """A session of one turn with these steps."""
    name = f"s{number}"
    steps = tuple(
        TracedStep(
            seq=2 * at + 2,
            asked=2 * at + 1,
            turn=1,
            attempt=1,
            label=label,
            target="",
            act="run",
            outcome="succeeded",
            input="",
            signature="",
            duration_us=0,
            at=number * 1000 + at,
            distrust=0,
        )
        for at, label in enumerate(labels)
    )
    return TracedSession(
        no=number,
        id=SessionId(name),
        name=name,
        root=root or name,
        project="",
        agent="",
        status="closed",
        outcome="" if good is None else "completed" if good else "failed",
        goal=None,
        labels={"task": task} if task else {},
        first_at=number,
        last_at=number,
        tokens=0,
        usd_micros=0,
        model="",
        steps=steps,
    )


def noise(dice: random.Random, most: int = 12) -> list[str]:
    return [dice.choice(NOISE) for _ in range(dice.randint(4, most))]


def confounded(
    dice: random.Random, *, tasks: int, runs: int, helps: Sequence[str], idle: Sequence[Sequence[str]], strength: float
) -> list[TracedSession]:
    """Tasks differ in how hard they are, and in which chains they call for. One chain raises the odds of success; the
    idle ones go with easy tasks, and do nothing."""
    out: list[TracedSession] = []
    for task in range(tasks):
        ease = dice.gauss(0, 1.5)
        for _ in range(runs):
            labels = noise(dice)
            has = dice.random() < 0.5
            if has:
                labels += helps
            for chain in idle:
                if dice.random() < 1 / (1 + math.exp(-ease)):
                    labels += [*chain, dice.choice(NOISE)]
            chance = 1 / (1 + math.exp(-(ease + strength * (has - 0.5))))
            out.append(run(len(out), labels, task=f"t{task}", good=dice.random() < chance))
    return out
