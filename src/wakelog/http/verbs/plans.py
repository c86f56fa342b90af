"""Plans made from proven chains: promote, list, endorse, remove. A program that has the tools runs them."""

from __future__ import annotations

import msgspec

from wakelog.engines.remote.wire import Acknowledged, Question
from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import NotEmpty, Query
from wakelog.store.plans import PromotedPlan


class PlansQuery(Query, frozen=True):
    endorsed: bool = False
    """Only plans that are offered to agents."""


class PromoteBody(Question, frozen=True):
    """A chain, and the plan's name."""

    pattern: NotEmpty
    name: NotEmpty
    project: str | None = None
    why: str = ""


class PlanList(msgspec.Struct, frozen=True):
    """The plans, by name."""

    plans: tuple[PromotedPlan, ...]


class EndorsePlan(Question, frozen=True):
    by: str = ""
    why: str = ""


class RemovePlanQuery(Query, frozen=True):
    why: str = ""


@route("GET", "/plans")
def plans(call: VerbRequest, query: PlansQuery) -> PlanList:
    """Lists the plans, each with its sources and how its runs ended."""
    return PlanList(call.space.store.plans.all(endorsed=query.endorsed))


@route("GET", "/plans/{name}")
def plan(call: VerbRequest) -> PromotedPlan:
    """Shows one plan."""
    return call.space.store.plans.get(call.path["name"])


@route("POST", "/plans", scope="write")
def promote(call: VerbRequest, body: PromoteBody) -> PromotedPlan:
    """Makes a plan from a chain that three independent sessions completed, or says why it cannot."""
    return call.space.store.plans.promote(**call.kwargs(body))


@route("POST", "/plans/{name}/endorse", scope="write")
def endorse_plan(call: VerbRequest, body: EndorsePlan) -> PromotedPlan:
    """Records that a person endorses a plan. It is offered to agents from now on."""
    return call.space.store.plans.endorse(call.path["name"], **call.kwargs(body))


@route("DELETE", "/plans/{name}", scope="write")
def remove_plan(call: VerbRequest, query: RemovePlanQuery) -> Acknowledged:
    """Removes a plan from the list."""
    call.space.store.plans.remove(call.path["name"], by=call.key.name, why=query.why)
    return Acknowledged()
