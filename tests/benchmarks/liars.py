"""Contenders that give wrong answers, each in its own way: what a benchmark must not show as fast."""

from typing import Any

from benchmarks.contenders import BareSqlite
from benchmarks.turns import State, Turn


class Forgetful(BareSqlite):
    """Acknowledges every third turn without storing it."""

    def append(self, turn: Turn) -> None:
        if turn["n"] % 3:
            super().append(turn)


class Presentist(BareSqlite):
    """Gives the present where it is asked about the past."""

    def load(self, at: int | None = None) -> State:
        return super().load()


class Refusing(BareSqlite):
    """Raises in every second turn when there is more than one session, and cannot be opened again."""

    def append(self, turn: Turn) -> None:
        if turn["n"] % 2 == 0:
            raise RuntimeError(f"busy with turn {turn['n'] // 100}")
        super().append(turn)

    def settings(self) -> dict[str, Any]:
        return {"synchronous": 1}
