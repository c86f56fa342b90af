"""Finds instances of a chain, from which a plan can be made, and the runs of such plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.index.connection import Connection, as_key
from wakelog.index.questions import IndexQuestion
from wakelog.index.statements import IndexMoment
from wakelog.model.ids import Seq, SessionId
from wakelog.patterns.chains import matches
from wakelog.patterns.findings import AskPattern
from wakelog.patterns.traces import traced_sessions

INSTANCES_MAX = 20
UNTRUSTED = 2
RUNS_MAX = 1000

_TURN = "select t.outcome from wl_turn t where t.session = ? and t.turn = ? and t.attempt = ?"
_RUNS = """
select s.id, e.seq, coalesce(t.outcome, ''), e.occurred from wl_touch x
join wl_session s on s.no = x.session and s.hidden = 0
cross join wl_event e on e.session = x.session and e.seq between x.first and x.last
    and e.kind = 'resource.touched' and e.key = :name
left join wl_turn t on t.session = e.session and t.turn = e.turn and t.attempt = e.attempt
where x.key = :key and x.kind = 'resource' order by e.occurred desc, s.id, e.seq limit :limit
"""


class ChainInstance(msgspec.Struct, frozen=True):
    """One complete run of a chain: its turn, and its first and last event."""

    session: SessionId
    root: str
    turn: int
    attempt: int
    first: Seq
    last: Seq
    at: int
    has_succeeded: bool
    """Whether all its calls succeeded, its turn completed, and its session is not known to have failed."""
    is_untrusted: bool


class PlanRuns(msgspec.Struct, frozen=True):
    """How often a plan was run and completed, and its newest run."""

    plan: str
    runs: int
    succeeded: int
    failed: int
    last: str = ""
    """The newest run as `session@seq`."""
    at: int = 0


class AskInstances(IndexQuestion, frozen=True):
    """Complete runs of a chain, one per fork tree, the best first. A plan can be made from these."""

    id: str
    project: str | None = None

    def __call__(self, reading: IndexMoment) -> tuple[ChainInstance, ...]:
        pattern = AskPattern(self.id, self.project)(reading)
        if pattern.kind != "chain":
            raise InvalidInputError(
                f"{self.id} is a {pattern.kind.replace('_', ' ')}; only a chain can become a plan",
                kind="bad-kind",
                hint="wakelog patterns list --kind chain",
            )
        return _chain_instances(reading.db, pattern.steps, self.project)


class AskPlanRuns(IndexQuestion, frozen=True):
    """How often promoted plans were run, and with which outcomes."""

    plans: tuple[str, ...]

    def __call__(self, reading: IndexMoment) -> tuple[PlanRuns, ...]:
        return tuple(_plan_runs(reading.db, plan) for plan in self.plans)


def _chain_instances(db: Connection, steps: Sequence[str], project: str | None) -> tuple[ChainInstance, ...]:
    """The best instance of each fork tree: a successful one, a trusted one, then the newest."""
    best: dict[str, ChainInstance] = {}
    for session in traced_sessions(db, project):
        good = session.success is not False
        for turn in session.turns():
            for run in matches(turn, steps):
                outcome: Any = db.execute(_TURN, (session.no, turn[0].turn, turn[0].attempt)).fetchone()
                worked = all(step.outcome == "succeeded" for step in run)
                instance = ChainInstance(
                    session.id,
                    session.root,
                    turn[0].turn,
                    turn[0].attempt,
                    min(step.asked for step in run),
                    max(step.seq for step in run),
                    run[-1].at,
                    good and worked and outcome is not None and outcome[0] == "completed",
                    max(step.distrust for step in run) >= UNTRUSTED,
                )
                known = best.get(session.root)
                if known is None or _rank(instance) > _rank(known):
                    best[session.root] = instance
    return tuple(
        sorted(best.values(), key=lambda instance: (*_rank(instance), instance.session), reverse=True)[:INSTANCES_MAX]
    )


def _rank(instance: ChainInstance) -> tuple[bool, bool, int]:
    return instance.has_succeeded, not instance.is_untrusted, instance.at


def _plan_runs(db: Connection, plan: str) -> PlanRuns:
    name = f"plan:{plan}"
    rows = db.execute(_RUNS, {"name": name, "key": as_key(name), "limit": RUNS_MAX}).fetchall()
    outcomes = [row[2] for row in rows]
    good = outcomes.count("completed")
    bad = sum(outcome in ("failed", "interrupted", "cancelled") for outcome in outcomes)
    newest = f"{rows[0][0]}@{rows[0][1]}" if rows else ""
    return PlanRuns(plan, len(rows), good, bad, newest, rows[0][3] if rows else 0)
