"""Where wakelog should be, and whether a run found it there."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from benchmarks import looking
from benchmarks.kinds import BASE, OURS, PURE
from benchmarks.results import Results

_LOAD_MAX = 1.0
_SYNC_US = 200
_SYNC_MAX_US = 500
_FULLY, _FULLY_BARE = "wakelog, full recording", "bare sqlite3, 8 commits"
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


def _median(what: str, size: int = 0, scale: float = 1.0, name: str = OURS) -> Found:
    def measure(results: Results) -> float | None:
        sample = results.sample(name, what, size)
        return None if sample is None else sample.median * scale

    return measure


def _best_peer(size: int, name: str = OURS) -> Found:
    """Our rate over that of the fastest peer, all by their ratios to the base."""

    def measure(results: Results) -> float | None:
        peers = [about.name for about in results.about if about.group == "peer"]
        rates = [found.median for peer in peers if (found := results.sample(peer, "one.ratio", size)) is not None]
        ours = results.sample(name, "one.ratio", size)
        return ours.median / max(rates) if ours is not None and rates else None

    return measure


def _full_recording(results: Results) -> float | None:
    """Inside each round: the bare loop with as many commits may have been slower in another."""
    ours, bare = (results.find(name, "one.turns_per_s", 1_000) for name in (_FULLY, _FULLY_BARE))
    if ours is None or bare is None:
        return None
    both = sorted(ours.rounds[n] / bare.rounds[n] for n in ours.rounds.keys() & bare.rounds.keys())
    return both[len(both) // 2] if both else None


def _together(sessions: int) -> Found:
    def measure(results: Results) -> float | None:
        sample = results.over_base(OURS, "together.turns_per_s", sessions)
        return None if sample is None else sample.median

    return measure


def _looked(what: str, where: str = "10,000 turns", scale: float = 1.0) -> Found:
    def measure(results: Results) -> float | None:
        for row in results.looking:
            if (row.what, row.where) == (what, where):
                return row.cost.median * scale
        return None

    return measure


_MANY = "20,000 sessions"
TARGETS = (
    Target("append, 1,000 turns", 0.60, True, f"× {BASE}", _median("one.ratio", 1_000)),
    Target("append, 10,000 turns", 0.60, True, f"× {BASE}", _median("one.ratio", 10_000)),
    Target("append, 1,000 turns", 1.6, True, "× the best peer", _best_peer(1_000)),
    Target("append, 10,000 turns", 1.6, True, "× the best peer", _best_peer(10_000)),
    Target("the same in pure Python, 1,000 turns", 0.36, True, f"× {BASE}", _median("one.ratio", 1_000, name=PURE)),
    Target("the same in pure Python, 10,000 turns", 0.36, True, f"× {BASE}", _median("one.ratio", 10_000, name=PURE)),
    Target("the same in pure Python, 1,000 turns", 1, True, "× the best peer", _best_peer(1_000, PURE)),
    Target("8 sessions at once", 2, True, "× the bare 8", _together(8)),
    Target("64 sessions at once", 4, True, "× the bare 64", _together(64)),
    Target("full recording, 1,000 turns", 0.75, True, "× bare, 8 commits", _full_recording),
    Target("on disk, 1,000 turns", 6.5, False, "KB a turn", _median("one.bytes", 1_000, 1e-3)),
    Target("on disk, 10,000 turns", 6.5, False, "KB a turn", _median("one.bytes", 10_000, 1e-3)),
    Target("open and load, 1,000 turns", 4, False, "ms", _median("read.load_ms", 1_000)),
    Target("open and load, 10,000 turns", 20, False, "ms", _median("read.load_ms", 10_000)),
    Target("state at the middle, 1,000 turns", 2, False, "ms", _median("read.middle_ms", 1_000)),
    Target("state at the middle, 10,000 turns", 10, False, "ms", _median("read.middle_ms", 10_000)),
    Target("diff of the last two turns, 10,000 turns", 10, False, "ms", _looked(looking.DIFF)),
    Target("why, 10,000 turns", 100, False, "ms", _looked(looking.WHY)),
    Target("100 messages, 10,000 turns", 300, False, "ms", _looked(looking.PAGE)),
    Target("context, cold, 10,000 turns", 300, False, "ms", _looked(looking.CONTEXT)),
    Target("brief, 10,000 turns", 50, False, "ms", _looked(looking.BRIEF)),
    Target("index catch-up, 10,000 turns", 1.5, False, "s", _looked(looking.CATCH_UP, scale=1e-3)),
    Target("size of the index, 10,000 turns", 0.92, False, "× the log", _looked(looking.INDEX_SIZE)),
    Target("files of the last 5 turns, 10,000 turns", 1, False, "ms", _looked(looking.FILES)),
    Target("status, cold", 6, False, "× python -c pass", _looked(looking.STATUS)),
    Target("completion, cold", 5, False, "× python -c pass", _looked(looking.COMPLETION)),
    Target("ls, 20,000 sessions, first", 1, False, "s", _looked(f"{looking.LS}, {looking.FIRST}", _MANY, 1e-3)),
    Target("ls, 20,000 sessions, again", 0.2, False, "s", _looked(f"{looking.LS}, {looking.AGAIN}", _MANY, 1e-3)),
    Target("ps, 20,000 sessions, first", 1, False, "s", _looked(f"{looking.PS}, {looking.FIRST}", _MANY, 1e-3)),
    Target("ps, 20,000 sessions, again", 0.2, False, "s", _looked(f"{looking.PS}, {looking.AGAIN}", _MANY, 1e-3)),
    Target("import wakelog", 60, False, "ms", _median("start.ms")),
)
"""Appends over HTTP, to PostgreSQL and to NATS have targets too: `benchmarks.serving`, `benchmarks.shared` and
`benchmarks.cluster` tell of those."""
