"""Where wakelog should be, and whether a run found it there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from benchmarks.contenders import OURS
from benchmarks.looking import BRIEF, WHY
from benchmarks.results import Results
from benchmarks.startup import IMPORT

_LOAD_MAX = 1.0
_SYNC_US = 200
_SYNC_MAX_US = 500


class Verdict(msgspec.Struct, frozen=True):
    name: str
    wanted: str
    found: str
    verdict: str


class Target(msgspec.Struct, frozen=True):
    """A number a run has, or has not when it was a short one, and the bound it should keep."""

    name: str
    bound: float
    is_floor: bool
    unit: str
    measure: Callable[[Results], float | None]

    def judge(self, results: Results) -> Verdict:
        wanted = f"{'≥' if self.is_floor else '≤'} {self.bound:g} {self.unit}"
        found = self.measure(results)
        if found is None:
            return Verdict(self.name, wanted, "–", "not measured")
        met = found >= self.bound if self.is_floor else found <= self.bound
        return Verdict(self.name, wanted, f"{found:.3g} {self.unit}", "met" if met else "**not met**")


def judge(results: Results) -> list[Verdict]:
    return [target.judge(results) for target in TARGETS]


def caveats(results: Results) -> list[str]:
    """What about the run makes its numbers worth less, so that a busy machine cannot pass for a slow or a fast one."""
    found = []
    if results.load > _LOAD_MAX:
        found.append(
            f"Other work was running (load {results.load:.1f} at the start): times are too long, and who computes more"
            " loses more."
        )
    if results.sync_us.median > _SYNC_MAX_US:
        found.append(
            f"A sync took {results.sync_us.median:,.0f} µs, where a quiet local disk takes about {_SYNC_US}: ratios of"
            " one session appending are nearer to one than they would be there. Compare processor time."
        )
    return found


def _appending(field: str, turns: int, scale: float = 1.0) -> Callable[[Results], float | None]:
    return lambda results: _first(results.appending, field, scale, contender=OURS, turns=turns)


def _reading(field: str, turns: int) -> Callable[[Results], float | None]:
    return lambda results: _first(results.reading, field, 1.0, contender=OURS, turns=turns)


def _eight(results: Results) -> float | None:
    return _first(results.together, "ratio", 1.0, contender=OURS, sessions=8)


def _why(results: Results) -> float | None:
    return _first(results.looking, "cost", 1.0, what=WHY, where="10,000 turns")


def _brief(results: Results) -> float | None:
    return _first(results.looking, "cost", 1.0, what=BRIEF, where="10,000 turns")


def _import(results: Results) -> float | None:
    return _first(results.startup, "ms", 1.0, code=IMPORT)


def _first(rows: Sequence[msgspec.Struct], field: str, scale: float, **wanted: object) -> float | None:
    for row in rows:
        if all(getattr(row, name) == value for name, value in wanted.items()):
            median: float = getattr(row, field).median
            return median * scale
    return None


TARGETS = (
    Target("append, 1,000 turns", 0.75, True, "× bare", _appending("ratio", 1_000)),
    Target("append, 10,000 turns", 0.75, True, "× bare", _appending("ratio", 10_000)),
    Target("eight sessions at once", 4, True, "× the bare eight", _eight),
    Target("on disk, 1,000 turns", 7, False, "KB a turn", _appending("bytes_per_turn", 1_000, 1e-3)),
    Target("on disk, 10,000 turns", 7, False, "KB a turn", _appending("bytes_per_turn", 10_000, 1e-3)),
    Target("open and load, 1,000 turns", 5, False, "ms", _reading("load_ms", 1_000)),
    Target("open and load, 10,000 turns", 30, False, "ms", _reading("load_ms", 10_000)),
    Target("state at the middle, 1,000 turns", 2, False, "ms", _reading("middle_ms", 1_000)),
    Target("state at the middle, 10,000 turns", 20, False, "ms", _reading("middle_ms", 10_000)),
    Target("why, 10,000 turns", 8, False, "× reading the log", _why),
    Target("brief, 10,000 turns", 50, False, "ms", _brief),
    Target("import wakelog", 60, False, "ms", _import),
)
