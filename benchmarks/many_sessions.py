"""Several sessions at once in one process, and four writers on one session: rates, errors, lost updates."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.kinds import Kind, Measure
from benchmarks.process import Failed, Process, Round
from benchmarks.results import Trouble

WRITERS = 4
SAME_TURNS = 40


def measure_together(kinds: list[Kind], sessions: int, turns: int, cap_s: float, now: Round) -> None:
    """`sessions` sessions at once, each appending `turns` turns or until the time is up; one round."""
    _each("together", kinds, sessions, now, {"sessions": sessions, "turns": turns, "cap_s": cap_s})


def measure_same(kinds: list[Kind], now: Round) -> None:
    """Writers on one session, each with a handle of its own; one round."""
    _each("same", kinds, WRITERS, now, {"writers": WRITERS, "turns": SAME_TURNS})


def _each(measure: Measure, kinds: list[Kind], size: int, now: Round, request: dict[str, Any]) -> None:
    takes_part = [kind for kind in kinds if kind.does(measure)]
    for kind in random.Random(f"{now.number}-{measure}-{size}").sample(takes_part, len(takes_part)):
        now.tell(kind.name)
        with now.places.place(kind) as place, Process(kind) as process:
            try:
                answer = process.ask(measure, place=place, **request)
            except Failed as exc:
                now.results.complain(Trouble(kind.name, measure, size, "failed", str(exc)))
                continue
        for text in answer.pop("said"):
            now.results.complain(Trouble(kind.name, measure, size, "raised", text))
        if answer.get("wrong"):
            text = "the state of a session is not the reference's"
            now.results.complain(Trouble(kind.name, measure, size, "wrong", text))
            answer = {"wrong": answer["wrong"], "errors": answer["errors"]}
        for what, value in answer.items():
            now.note(kind.name, f"{measure}.{what}", size, value)
