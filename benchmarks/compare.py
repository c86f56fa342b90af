"""This run beside a saved one: ratios over the base of the same run, so that another machine or a slow hour matters
less.

A difference counts when it is larger than the spread: the median of each run lies outside what the other run's rounds
found. That is a sign to look, not a proof.
"""

from __future__ import annotations

import msgspec

from benchmarks.kinds import BASE
from benchmarks.results import Results, Sample
from benchmarks.tables import spread, table

_MORE_IS_BETTER = ("one.ratio", "together.turns_per_s")
_COMPARED = ("one.ratio", "one.cpu_us", "one.bytes", "read.load_ms", "read.middle_ms", "read.fork_ms", "read.diff_ms",
             "together.turns_per_s", "start.ms")  # fmt: skip
_NEED_NO_BASE = ("one.ratio", "one.bytes", "start.ms")
"""Are ratios already, or do not depend on the machine's disk, or have no base."""


class Compared(msgspec.Struct, frozen=True):
    """One question to one contender, then and now."""

    contender: str
    what: str
    size: int
    then: Sample
    now: Sample

    @property
    def change(self) -> float:
        """How many times as good or as dear as then; above one is better."""
        if not (self.now.median and self.then.median):
            return 1.0
        gain = self.now.median / self.then.median
        return gain if self.what in _MORE_IS_BETTER else 1 / gain

    @property
    def verdict(self) -> str:
        is_outside = not (self.then.low <= self.now.median <= self.then.high) and not (
            self.now.low <= self.then.median <= self.now.high
        )
        if not is_outside or 0.98 < self.change < 1.02:
            return ""
        return "better" if self.change > 1 else "**worse**"


def compare(now: Results, then: Results) -> list[Compared]:
    """Everything both runs measured, in this run's order."""
    found = []
    for finding in now.findings:
        if finding.what not in _COMPARED or finding.contender == BASE:
            continue
        which = (finding.contender, finding.what, finding.size)
        new, old = _value(now, *which), _value(then, *which)
        if new is not None and old is not None:
            found.append(Compared(*which, old, new))
    return sorted(found, key=lambda each: (each.contender, _COMPARED.index(each.what), each.size))


def _value(results: Results, contender: str, what: str, size: int) -> Sample | None:
    if what in _NEED_NO_BASE:
        return results.sample(contender, what, size)
    return results.over_base(contender, what, size)


def render(compared: list[Compared], then: Results) -> str:
    rows = []
    for each in compared:
        unit = "" if each.what in _NEED_NO_BASE else f", × {BASE}"
        name = f"{each.contender}: {each.what}{f' at {each.size:,}' if each.size else ''}{unit}"
        rows.append([name, spread(each.then), spread(each.now), f"{each.change:.2f}", each.verdict])
    worse = sum(1 for each in compared if each.verdict == "**worse**")
    end = (
        f"{worse} of {len(compared)} are worse by more than the spread."
        if worse
        else "Nothing is worse by more than the spread."
    )
    head = ["compared", f"saved {then.date}", "now", "× better", ""]
    return f"### Beside the saved run\n\n{table(head, rows)}\n\n{end}"
