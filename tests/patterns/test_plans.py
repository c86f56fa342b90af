"""Chains that become plans: what is refused, what becomes a parameter, and how runs are counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from wakelog.engines.memory import MemoryEngine
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.store import Store

ORDERS = ("order-4711", "order-4712", "order-4713", "order-4714")


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(MemoryEngine()) as opened:
        yield opened


def record(store: Store, name: str, asked: Any, calls: list[tuple[str, Any, Any]], **more: Any) -> None:
    """A session that made these calls: tool, input, output."""
    session = store.session(name, folder="")
    with session.turn(asked):
        for number, (tool, given, output) in enumerate(calls):
            event = ev.ActionRecorded(
                action=f"{name}-{number}",
                tool=tool,
                input=given,
                output=output,
                effect=more.get("effect", "external"),
                outcome=more.get("outcome", "succeeded"),
            )
            session.append(EventDraft(event, trust=more.get("trust", "trusted")))


def refund(store: Store, order: str, **more: Any) -> None:
    ticket = f"ticket-9{order[-3:]}"
    calls = [
        ("find_order", {"order": order, "shop": "main"}, {"ticket": ticket}),
        ("refund", {"ticket": ticket, "note": f"refund of {order}"}, "done"),
        ("notify", {"ticket": ticket, "template": "refunded"}, "sent"),
    ]
    record(store, f"s-{order}", {"order": order}, calls, **more)


def chain_of(store: Store) -> str:
    return store.patterns.find(kinds=("chain",)).patterns[0].id


def test_what_varies_becomes_a_parameter_and_what_is_the_same_stays(store: Store) -> None:
    for order in ORDERS:
        refund(store, order)
    made = store.plans.promote(chain_of(store), "refund")
    assert [p.name for p in made.plan.parameters] == ["order"]
    find, pay, tell = made.plan.steps
    assert find.input == {"order": {"$use": "order"}, "shop": "main"}
    assert pay.input["ticket"] == {"$use": "step:1/ticket"}
    assert pay.input["note"] == {"$text": ["refund of ", {"$use": "order"}]}
    assert tell.input == {"ticket": {"$use": "step:1/ticket"}, "template": "refunded"}
    assert len(made.plan.sources) == 4
    text = made.plan.to_json()
    assert not any(order in text for order in ORDERS)
    for source in made.plan.sources:
        session, _, seq = source.rpartition("@")
        assert store.resume(session).log.entry(int(seq)).body["tool"] == "find_order"


def test_a_plan_is_endorsed_before_it_runs_and_its_runs_are_counted(store: Store) -> None:
    for order in ORDERS:
        refund(store, order)
    store.plans.promote(chain_of(store), "refund")
    seen: list[tuple[str, str]] = []

    def find_order(order: str, shop: str) -> dict[str, str]:
        if order == "order-9":
            raise LookupError("no such order")
        return {"ticket": f"t-{order}"}

    def refund_(ticket: str, note: str) -> str:
        seen.append((ticket, note))
        return "done"

    def notify(ticket: str, template: str) -> str:
        return template

    tools = {"find_order": find_order, "refund": refund_, "notify": notify}
    new = store.session("new", folder="")
    with pytest.raises(NotAllowedError, match="endorsed"):
        store.plans.run("refund", new, {"order": "order-5000"}, tools=tools)
    assert store.plans.all(endorsed=True) == ()
    store.plans.endorse("refund", by="ann")
    assert store.plans.run("refund", new, {"order": "order-5000"}, tools=tools).ok
    assert seen == [("t-order-5000", "refund of order-5000")]
    assert not store.plans.run("refund", new, {"order": "order-9"}, tools=tools).ok
    [found] = store.plans.all(endorsed=True)
    assert (found.runs, found.succeeded, found.failed, found.by) == (2, 1, 1, "ann")
    assert 0 < found.at_least < 0.5
    with pytest.raises(InvalidInputError, match="order"):
        store.plans.run("refund", new, tools=tools)
    store.plans.remove("refund")
    with pytest.raises(NotFoundError, match="there is none yet"):
        store.plans.get("refund")


def test_a_run_over_a_list_becomes_a_step_over_a_list(store: Store) -> None:
    for n, count in enumerate((2, 3, 1, 4)):
        files = [f"report-{n}-{k}.csv" for k in range(count)]
        calls: list[tuple[str, Any, Any]] = [("list_files", {"folder": f"folder-{n}00"}, {"files": files})]
        calls += [("upload", {"path": each, "to": "archive"}, "ok") for each in files]
        calls += [("announce", {"channel": "ops"}, "ok")]
        record(store, f"s{n}", {"folder": f"folder-{n}00"}, calls)
    made = store.plans.promote(chain_of(store), "archive")
    assert [(step.tool, step.over) for step in made.plan.steps] == [
        ("list_files", None),
        ("upload", {"$use": "step:1/files"}),
        ("announce", None),
    ]
    assert made.plan.steps[1].input == {"path": {"$use": "item"}, "to": "archive"}
    store.plans.endorse("archive")
    sent: list[str] = []
    tools: dict[str, Any] = {
        "list_files": lambda folder: {"files": [f"{folder}/{n}" for n in range(6)]},
        "upload": lambda path, to: sent.append(path),
        "announce": lambda channel: "ok",
    }
    progress = store.plans.run("archive", store.session("new", folder=""), {"folder": "f"}, tools=tools)
    assert progress.ok, progress
    assert sent == [f"f/{n}" for n in range(6)]


def test_two_sessions_are_too_few_and_forks_are_one(store: Store) -> None:
    for order in ORDERS[:2]:
        refund(store, order)
    store.resume("s-order-4711").fork(name="again")
    pattern = store.patterns.find(kinds=("chain",), least=2).patterns
    assert not pattern or pattern[0].roots == 2
    for order in ORDERS[2:]:
        refund(store, order, outcome="failed")
    with pytest.raises(NotAllowedError, match="2 independent sessions") as refusal:
        store.plans.promote(chain_of(store), "refund")
    assert refusal.value.kind == "not-promotable"


def test_untrusted_instances_do_not_count(store: Store) -> None:
    for number, order in enumerate(ORDERS):
        refund(store, order, trust="untrusted" if number > 1 else "trusted")
    with pytest.raises(NotAllowedError, match="2 more depend on untrusted content"):
        store.plans.promote(chain_of(store), "refund")


def test_a_value_from_nowhere_is_refused_by_name(store: Store) -> None:
    for number in range(4):
        calls = [("open_door", {"code": f"secret-{number}77"}, "ok"), ("enter", {"room": "a"}, "ok"), ("leave", {}, "")]
        record(store, f"s{number}", "go in", calls)
    with pytest.raises(NotAllowedError, match="different values of 'code'"):
        store.plans.promote(chain_of(store), "enter")


def test_different_effects_are_refused(store: Store) -> None:
    for number, order in enumerate(ORDERS):
        refund(store, order, effect="external" if number else "read")
    with pytest.raises(NotAllowedError, match="different effects"):
        store.plans.promote(chain_of(store), "refund")


def test_a_name_is_used_once_and_only_chains_are_promoted(store: Store) -> None:
    for order in ORDERS:
        refund(store, order)
    store.plans.promote(chain_of(store), "refund")
    with pytest.raises(NotAllowedError, match="already"):
        store.plans.promote(chain_of(store), "refund")
    with pytest.raises(NotFoundError, match="no pattern"):
        store.plans.promote("c00000000", "other")


def test_sources_that_are_gone_are_told(store: Store) -> None:
    for order in ORDERS:
        refund(store, order)
    store.plans.promote(chain_of(store), "refund")
    store.delete(store.resume("s-order-4711"))
    assert store.plans.get("refund").sources_left == 3
