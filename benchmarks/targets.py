"""Where wakelog should be, and whether a run found it there."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from benchmarks.kinds import OURS
from benchmarks.looking import BRIEF, WHY
from benchmarks.results import Results

_LOAD_MAX = 1.0
_SYNC_US = 200
_SYNC_MAX_US = 500
Found = Callable[[Results], float | None]


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
    measure: Found

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
    if results.is_cut:
        found.append(f"The run was stopped after {results.rounds} whole rounds.")
    return found


def _median(what: str, size: int = 0, scale: float = 1.0) -> Found:
    def measure(results: Results) -> float | None:
        sample = results.sample(OURS, what, size)
        return None if sample is None else sample.median * scale

    return measure


def _eight(results: Results) -> float | None:
    sample = results.over_base(OURS, "together.turns_per_s", 8)
    return None if sample is None else sample.median


def _looked(what: str) -> Found:
    def measure(results: Results) -> float | None:
        for row in results.looking:
            if (row.what, row.where) == (what, "10,000 turns"):
                return row.cost.median
        return None

    return measure


TARGETS = (
    Target("append, 1,000 turns", 0.75, True, "× bare", _median("one.ratio", 1_000)),
    Target("append, 10,000 turns", 0.75, True, "× bare", _median("one.ratio", 10_000)),
    Target("eight sessions at once", 4, True, "× the bare eight", _eight),
    Target("on disk, 1,000 turns", 7, False, "KB a turn", _median("one.bytes", 1_000, 1e-3)),
    Target("on disk, 10,000 turns", 7, False, "KB a turn", _median("one.bytes", 10_000, 1e-3)),
    Target("open and load, 1,000 turns", 5, False, "ms", _median("read.load_ms", 1_000)),
    Target("open and load, 10,000 turns", 30, False, "ms", _median("read.load_ms", 10_000)),
    Target("state at the middle, 1,000 turns", 2, False, "ms", _median("read.middle_ms", 1_000)),
    Target("state at the middle, 10,000 turns", 20, False, "ms", _median("read.middle_ms", 10_000)),
    Target("why, 10,000 turns", 8, False, "× reading the log", _looked(WHY)),
    Target("brief, 10,000 turns", 50, False, "ms", _looked(BRIEF)),
    Target("import wakelog", 60, False, "ms", _median("start.ms")),
)
