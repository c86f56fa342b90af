"""`store.plans`: proven chains of calls as plans that run again on new inputs.

A plan is promoted from a chain (patterns) that at least three independent sessions completed. It is stored as an
artefact, with its sources, in the store's session `wakelog.plans`; promoting, endorsing and removing are events there.
Only a plan that a person has endorsed is offered to agents. A run records the plan in its turn, so the success rate
counts all runs so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from wakelog.errors import NotAllowedError, NotFoundError
from wakelog.log import Log
from wakelog.model.described import described
from wakelog.model.ids import Seq, SessionId
from wakelog.model.names import check_name
from wakelog.model.values import Value
from wakelog.patterns.instances import AskInstances, AskPlanRuns, ChainInstance, PlanRuns
from wakelog.patterns.statistics import wilson
from wakelog.replay.plan import Plan
from wakelog.replay.plan_alignment import RECORDINGS_MIN, align, cut_plan, not_promotable
from wakelog.replay.plan_run import PlanProgress, Tools

if TYPE_CHECKING:
    from wakelog.session import Session
    from wakelog.store import Store

SESSION = "wakelog.plans"
MEDIA = "application/vnd.wakelog.plan+json"


class PromotedPlan(msgspec.Struct, frozen=True):
    """A plan with its sources and its success rate."""

    plan: Plan
    seq: Seq
    """Its event in the session `wakelog.plans`."""
    pattern: str
    endorsed: bool
    by: str
    """Who endorsed it."""
    sources_left: int
    """How many of its sources still exist and are not erased or pruned."""
    runs: int
    succeeded: int
    failed: int
    at_least: float
    """The lower bound of its success rate (Wilson, 95 %); 0 before the first run."""
    last: str

    @property
    def name(self) -> str:
        return self.plan.name


class StorePlans:
    """Promotes chains to plans, lists, endorses, runs and removes them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def promote(self, pattern: str, name: str, *, project: str | None = None, why: str = "") -> PromotedPlan:
        """Makes a plan from a chain: constants stay, and what varies becomes a parameter. Raises NotAllowedError if a
        chain cannot become a plan. A plan must be endorsed before it is offered to agents."""
        check_name(name)
        if name in self._kept():
            raise NotAllowedError(
                f"there is a plan {name!r} already",
                kind="plan-exists",
                hint=f"choose another name, or wakelog plans rm {name}",
            )
        plan = align(name, *self._instances(self._store.index.ask(AskInstances(pattern, project))))
        content = {"pattern": pattern, **msgspec.to_builtins(plan)}
        self._session().artefact(f"plan:{name}", uri=f"plan:{plan.id}", media=MEDIA, content=content, why=why)
        return self.get(name)

    def all(self, *, endorsed: bool = False) -> tuple[PromotedPlan, ...]:
        """Lists the plans by name, each with its runs. With `endorsed`, only those that are offered to agents."""
        kept = self._kept()
        results = {name: _plan(content) for name, (_, content, _) in kept.items()}
        runs = self._store.index.ask(AskPlanRuns(tuple(plan.id for plan in results.values()))) if results else ()
        plans = [
            self._promoted(results[name], seq, content, by, run)
            for (name, (seq, content, by)), run in zip(kept.items(), runs, strict=True)
        ]
        return tuple(sorted((p for p in plans if p.endorsed or not endorsed), key=lambda p: p.name))

    def get(self, name: str) -> PromotedPlan:
        """Returns the plan of that name or id. Raises NotFoundError if there is none."""
        plans = self.all()
        for plan in plans:
            if name in (plan.name, plan.plan.id):
                return plan
        there = f"there are {', '.join(plan.name for plan in plans)}" if plans else "there is none yet"
        raise NotFoundError(
            f"there is no plan {name!r}: {there}", kind="plan-not-found", hint="wakelog plans lists them"
        )

    def endorse(self, name: str, *, by: str = "", why: str = "") -> PromotedPlan:
        """Records that a person has read and approved a plan."""
        self._session().trust.endorse(self.get(name).seq, by=by, why=why)
        return self.get(name)

    def remove(self, name: str, *, by: str = "", why: str = "") -> None:
        """Removes a plan from the list. Its events stay in the log."""
        self._session().trust.invalidate(self.get(name).seq, by=by, why=why)

    def run(
        self, name: str, session: Session[Any], inputs: Mapping[Any, Value] | None = None, *, tools: Tools = ()
    ) -> PlanProgress:
        """Runs an endorsed plan in a session, on new inputs and with real tools."""
        return self.endorsed(name).plan.run(session, inputs, tools=tools)

    def endorsed(self, name: str) -> PromotedPlan:
        """Returns the plan of that name or id. Raises NotAllowedError if it is not endorsed."""
        plan = self.get(name)
        if not plan.endorsed:
            raise NotAllowedError(
                f"the plan {name!r} is not endorsed",
                kind="plan-not-endorsed",
                hint=f"read it, then wakelog plans endorse {name}",
            )
        return plan

    # Sources of a plan

    def _instances(self, instances: tuple[ChainInstance, ...]) -> tuple[list[Plan], list[str]]:
        succeeded = [chain for chain in instances if chain.has_succeeded]
        chosen = [chain for chain in succeeded if not chain.is_untrusted]
        if len(chosen) < RECORDINGS_MIN:
            left_out = len(succeeded) - len(chosen)
            untrusted = f", and {left_out} more depend on untrusted content" if left_out else ""
            raise not_promotable(
                f"{len(chosen)} independent sessions completed it{untrusted}; {RECORDINGS_MIN} are needed",
                "wakelog patterns show lists where it was seen",
            )
        plans = [(self._recorded(chain), f"{chain.session}@{chain.first}") for chain in chosen]
        kept = [(plan, source) for plan, source in plans if plan is not None]
        return [plan for plan, _ in kept], [source for _, source in kept]

    def _recorded(self, instance: ChainInstance) -> Plan | None:
        """Reads the calls of one instance as a plan; None if its content is erased or out of view."""
        from wakelog.replay.plan_from_recording import read_plan

        log = Log(self._store.engine, instance.session, clock=self._store.clock)
        try:
            plan = read_plan(log, f"@{instance.turn}.{instance.attempt}" if instance.turn else None)
        except NotFoundError:
            return None
        return cut_plan(plan, instance.first, instance.last)

    # The session `wakelog.plans`

    def _session(self) -> Session[Any]:
        return self._store.session(SESSION, goal="Plans that were promoted from what sessions do", folder="")

    def _kept(self) -> dict[str, tuple[Seq, dict[str, Any], str | None]]:
        """Reads the plans by name: the event, its content, and who endorsed it, if it is endorsed."""
        if not self._store.is_open(SESSION):
            return {}
        log = Log(self._store.engine, self._store.find(SESSION), clock=self._store.clock)
        out: dict[str, tuple[Seq, dict[str, Any], str | None]] = {}
        for entry in log.entries():
            body = entry.body
            if entry.kind == "artefact.recorded" and body.get("media") == MEDIA and entry.is_intact:
                out[str(body["name"]).removeprefix("plan:")] = (entry.seq, log.value(entry, body["content"]), None)
            elif entry.kind in ("trust.endorsed", "step.invalidated"):
                for name, (seq, content, _) in list(out.items()):
                    if seq not in body.get("targets", ()):
                        continue
                    if entry.kind == "step.invalidated":
                        del out[name]
                    else:
                        out[name] = (seq, content, str(body.get("by", "")))
        return out

    def _promoted(self, plan: Plan, seq: Seq, content: dict[str, Any], by: str | None, run: PlanRuns) -> PromotedPlan:
        ended = run.succeeded + run.failed
        return PromotedPlan(
            plan=plan,
            seq=seq,
            pattern=str(content.get("pattern", "")),
            endorsed=by is not None,
            by=by or "",
            sources_left=sum(self._is_left(source) for source in plan.sources),
            runs=run.runs,
            succeeded=run.succeeded,
            failed=run.failed,
            at_least=round(wilson(run.succeeded, ended)[0], 3) if ended else 0.0,
            last=run.last,
        )

    def _is_left(self, source: str) -> bool:
        session, _, seq = source.rpartition("@")
        try:
            return Log(self._store.engine, SessionId(session)).entry(int(seq)).is_intact
        except NotFoundError:
            return False


def _plan(content: dict[str, Any]) -> Plan:
    fields = {key: value for key, value in content.items() if key != "pattern"}
    return msgspec.convert(fields, described(Plan))
