"""Plans: recorded calls run again on new inputs."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wakelog
from tests.seeds import examples
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.replay.plan import Plan, as_reference, fill, references
from wakelog.session import Session

sent: list[tuple[str, str]] = []
WORLD: dict[str, Any] = {"refund": "Refund RF-{order}88 booked for tonight\nthank you"}


@wakelog.tool(effect="read")
def lookup(order_id: str) -> dict[str, Any]:
    return {"order": {"id": order_id, "email": f"c{order_id}@example.org", "cents": 1999}, "state": "open"}


@wakelog.tool(effect="write")
def refund(order: int, cents: int) -> str:
    if order == 666:
        raise PermissionError("not this one")
    return str(WORLD["refund"]).format(order=order)


@wakelog.tool
def mail(to: str, body: str, state: str = "open") -> None:
    sent.append((to, body))


TOOLS: list[Callable[..., Any]] = [lookup, refund, mail]


def agent(session: Session[Any], text: str) -> None:
    with session.turn(user=text) as turn:
        number = text.split("order ")[1].split(",")[0]
        order = lookup(number)
        turn.model(lambda messages: {"text": "ok"}, messages=[text])
        said = refund(int(number), order["order"]["cents"])
        ticket = said.split()[1]
        mail(order["order"]["email"], f"Your refund {ticket}: https://example.org/orders/{number}/show")


@pytest.fixture
def plan(session: Session[Any]) -> Plan:
    sent.clear()
    agent(session, "please refund order 4711, thanks")
    return session.calls.workflow("@1")


def test_where_values_come_from_is_found_by_their_content(plan: Plan, session: Session[Any]) -> None:
    assert [(p.name, p.value, p.origin, p.known) for p in plan.parameters] == [
        ("order_id", "4711", "input of @1", "matched")
    ]
    assert [(s.number, s.tool, s.effect, s.turn) for s in plan.steps] == [
        (1, "lookup", "read", 1),
        (2, "refund", "write", 1),
        (3, "mail", "external", 1),
    ]
    uses = [[(r.use, r.recorded, r.known) for r in references(step.input)] for step in plan.steps]
    assert uses == [
        [("order_id", "4711", "matched")],
        [("order_id", 4711, "matched"), ("step:1/order/cents", 1999, "matched")],
        [
            ("step:1/order/email", "c4711@example.org", "matched"),
            ("step:2", "RF-471188", "matched"),
            ("order_id", "4711", "matched"),
        ],
    ]
    ticket = next(r for r in references(plan.steps[2].input) if r.use == "step:2")
    assert ticket.between == ("Refund ", " ")
    assert plan.steps[2].input["state"] == "open"  # too common a word to be a match
    assert [(out.tool, "model call" in out.why) for out in plan.left_out] == [("<lambda>", True)]
    assert session.log.entry(plan.steps[0].seq).body["tool"] == "lookup"


@pytest.mark.parametrize("inputs", [{"4711": "4712"}, {"order_id": "4712"}, {4711: 4712}])
def test_it_runs_on_new_inputs(plan: Plan, store: wakelog.Store, inputs: dict[Any, Any]) -> None:
    today = store.session("today")
    sent.clear()
    done = plan.run(today, inputs, tools=TOOLS)
    assert done.ok
    assert str(done) == "agent@1: 3 of 3 steps"
    assert sent == [("c4712@example.org", "Your refund RF-471288: https://example.org/orders/4712/show")]
    assert [m.text for m in today.messages()] == ["please refund order 4712, thanks"]
    requests = [e.body["input"] for e in today.events(kind="action.requested")]
    assert requests[:2] == [{"order_id": "4712"}, {"order": 4712, "cents": 1999}]
    assert today.state().turn.status == "completed"


def test_without_new_inputs_it_does_what_was_done(plan: Plan, store: wakelog.Store) -> None:
    before = list(sent)
    assert plan.run(store.session("today"), tools=TOOLS).ok
    assert sent == before * 2


def test_it_stops_at_the_first_call_that_does_not_succeed(plan: Plan, store: wakelog.Store) -> None:
    today = store.session("today")
    sent.clear()
    done = plan.run(today, {"4711": "666"}, tools=TOOLS)
    assert not done.ok
    assert [(d.number, d.status) for d in done.done] == [(1, "succeeded"), (2, "failed")]
    assert done.stopped == (
        "step 2 of 3, refund: it failed, where the recording succeeded (PermissionError: not this one)"
    )
    assert sent == []
    assert today.state().turn.status == "failed"


def test_it_stops_when_a_result_no_longer_has_what_is_needed(
    plan: Plan, store: wakelog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WORLD, "refund", "booked as {order}")
    sent.clear()
    done = plan.run(store.session("today"), {"4711": "4712"}, tools=TOOLS)
    assert "step 3 of 3, mail: the text at step:2 has nothing between 'Refund ' and ' '" in done.stopped
    assert sent == []


def test_a_plan_is_json_and_can_be_changed(plan: Plan, store: wakelog.Store) -> None:
    assert Plan.from_json(plan.to_json()) == plan
    text = plan.to_json().replace('"recorded": "c4711@example.org"', '"recorded": "x"')
    document = json.loads(text)
    document["parameters"].append({"name": "who", "value": "bob@example.org"})
    document["steps"][2]["input"]["to"] = {"$use": "who"}
    document["steps"][2]["input"]["state"] = {"$text": ["state ", {"$use": "step:1/state"}]}
    del document["steps"][1]
    document["steps"][1]["input"]["body"] = "done"
    changed = Plan.from_json(json.dumps(document))
    sent.clear()
    done = changed.run(store.session("today"), {"who": "eve@example.org"}, tools=TOOLS)
    assert done.ok
    assert sent == [("eve@example.org", "done")]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d["steps"][0]["input"].update(x={"$use": "nobody"}), "uses nobody"),
        (lambda d: d["steps"][0]["input"].update(x={"$use": "step:2"}), "uses step:2"),
        (lambda d: d["steps"][0]["input"].update(x={"$use": "order_id", "odd": 1}), "is not a reference"),
        (lambda d: d["parameters"].append(d["parameters"][0]), "the same name"),
        (lambda d: d["steps"][0].pop("tool"), "tool"),
        (lambda d: d.update(schema="wakelog.plan/2"), "schema"),
        (lambda d: d["steps"][0].update(turn=7), "turn 7"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(plan: Plan, change: Any, told: str) -> None:
    document = json.loads(plan.to_json())
    change(document)
    with pytest.raises(InvalidInputError, match=told) as caught:
        Plan.from_json(json.dumps(document))
    assert caught.value.kind == "bad-plan"


def test_what_is_missing_is_said_before_anything_runs(plan: Plan, store: wakelog.Store) -> None:
    today = store.session("today")
    sent.clear()
    with pytest.raises(InvalidInputError) as no_tool:
        plan.run(today, tools=[lookup])
    assert no_tool.value.kind == "unknown-tool"
    assert "mail, refund" in no_tool.value.message
    with pytest.raises(InvalidInputError) as no_parameter:
        plan.run(today, {"4712": "x"}, tools=TOOLS)
    assert no_parameter.value.kind == "unknown-parameter"
    assert "order_id ('4711')" in no_parameter.value.message
    assert today.head.seq == 1


def test_hidden_and_secret_values_must_be_given(session: Session[Any], store: wakelog.Store) -> None:
    seen: list[tuple[str, str, str]] = []

    def login(user: str, password: str, token: str) -> str:
        seen.append((user, password, token))
        return "in"

    tool = session.tool(effect="read", redact=("password",))(login)
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    with session.turn(user="log in"):
        tool("ada", "hunter2", f"Bearer {token}")
    plan = session.calls.workflow()
    assert [(p.name, p.value, p.known) for p in plan.parameters] == [
        ("password", None, "unknown"),
        ("token", None, "unknown"),
    ]
    assert token not in plan.to_json()
    with pytest.raises(InvalidInputError, match="password"):
        plan.run(session)
    assert plan.run(session, {"password": "new", "token": "t"}).ok
    assert seen[-1] == ("ada", "new", "t")


def test_structured_inputs_are_parameters_by_their_names(session: Session[Any], store: wakelog.Store) -> None:
    @wakelog.tool(effect="read")
    def ship(order: dict[str, Any], express: bool, parts: list[int]) -> str:
        return f"{order['n']} {parts}"

    given: dict[str, Any] = {"order": {"n": 3, "to": "Ada Lovelace"}, "express": True, "parts": [1, 2]}
    with session.turn(user=given):
        ship(given["order"], given["express"], given["parts"])
    plan = session.calls.workflow("@1")
    assert {p.name: p.value for p in plan.parameters} == given
    done = plan.run(store.session("today"), {"parts": [3], "express": False}, tools=[ship])
    assert done.results == {1: "3 [3]"}


def test_several_turns_make_several_turns(session: Session[Any], store: wakelog.Store) -> None:
    agent(session, "please refund order 4711, thanks")
    agent(session, "now order 4800, too")
    plan = session.calls.workflow("@1..@2")
    assert [p.value for p in plan.parameters] == ["4711", "4800"]
    today = store.session("today")
    assert plan.run(today, {"4711": "1001", "4800": "1002"}, tools=TOOLS).ok
    assert [m.text for m in today.messages()] == ["please refund order 1001, thanks", "now order 1002, too"]
    assert today.state().turn.number == 2


def test_calls_that_failed_are_left_out(session: Session[Any]) -> None:
    with session.turn(user="order 666"):
        with pytest.raises(PermissionError):
            refund(666, 100)
        lookup("4711")
    plan = session.calls.workflow("@1")
    assert [s.tool for s in plan.steps] == ["lookup"]
    assert [(out.tool, out.why) for out in plan.left_out] == [("refund", "it failed")]
    with session.turn(user="order 666"), pytest.raises(PermissionError):
        refund(666, 100)
    with pytest.raises(NotFoundError):
        session.calls.workflow("@2")


def test_approvals_hold_and_a_stopped_run_goes_on(plan: Plan, store: wakelog.Store) -> None:
    today = store.session("today")
    paid: list[int] = []

    @today.tool(name="refund", effect="write", approval=True)
    def _careful(order: int, cents: int) -> str:
        paid.append(order)
        return "Refund RF-1 booked"

    with pytest.raises(NotAllowedError) as caught:
        plan.run(today, {"4711": "4712"}, tools=[lookup, mail])
    assert caught.value.kind == "approval-needed"
    assert paid == []
    (action,) = today.state().pending_actions
    today.calls.approve(action, by="me")
    done = plan.run(today, {"4711": "4712"}, tools=[lookup, mail])
    assert done.ok
    assert paid == [4712]
    assert today.state().turn.attempt == 2


def test_coroutine_functions_are_awaited(session: Session[Any], store: wakelog.Store) -> None:
    @wakelog.tool(effect="read")
    async def fetch(url: str) -> str:
        return f"page {url}"

    async def record() -> None:
        async with session.turn(user="get https://example.org/a1"):
            await fetch("https://example.org/a1")

    asyncio.run(record())
    plan = session.calls.workflow("@1")
    with pytest.raises(InvalidInputError) as caught:
        plan.run(store.session("today"), tools=[fetch])
    assert caught.value.kind == "async-tool"
    done = asyncio.run(plan.arun(store.session("today"), {"url": "https://example.org/b2"}, tools=[fetch]))
    assert done.results == {1: "page https://example.org/b2"}


def test_arguments_that_do_not_fit_stop_it(plan: Plan, store: wakelog.Store) -> None:
    def other(nothing: int) -> None: ...

    tools: dict[str, Callable[..., Any]] = {"lookup": other, "refund": refund, "mail": mail}
    done = plan.run(store.session("today"), tools=tools)
    assert "step 1 of 3, lookup: its arguments do not fit" in done.stopped


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.text(max_size=12)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "$use", "$text", "$value"]), inner, max_size=3),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(80))
@given(
    text=st.text(min_size=1, max_size=30),
    calls=st.lists(st.dictionaries(st.sampled_from("pqr"), values, min_size=1), min_size=1, max_size=4),
)
def test_a_plan_run_on_the_recorded_inputs_makes_the_recorded_calls(text: str, calls: list[dict[str, Any]]) -> None:
    """Whatever was matched, even wrongly: filling in the recorded values gives the recorded input."""
    made: list[dict[str, Any]] = []

    @wakelog.tool(effect="read", name="echo")
    def echo(p: Any = 0, q: Any = 0, r: Any = 0) -> Any:
        made.append({"p": p, "q": q, "r": r})
        return {"given": [p, q], "text": f"got {r} here"}

    with wakelog.open("memory:", redact=None) as store:
        session = store.session("agent")
        with session.turn(user=text):
            for arguments in calls:
                echo(**arguments)
        first = list(made)
        made.clear()
        plan = Plan.from_json(session.calls.workflow("@1").to_json())
        assert plan.run(store.session("today"), tools=[echo]).ok
        assert made == first


def test_a_value_that_looks_like_a_reference_is_a_value() -> None:
    assert as_reference({"use": "x"}) is None
    assert fill({"$value": {"$use": "x"}}, {}, {}) == {"$use": "x"}


# Lists

moved: list[str] = []
FOLDER: dict[str, Any] = {"files": ["a.txt", "b.txt"]}


@wakelog.tool(effect="read")
def list_files() -> Any:
    return FOLDER["files"]


@wakelog.tool(effect="write")
def move(path: str) -> str:
    moved.append(path)
    return "ok"


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        (["a.txt", "b.txt"], ["c.txt", "d.txt", "e.txt", "f.txt", "g.txt"]),
        (["alpha.txt"], ["c.txt", "d.txt"]),
        ("alpha.txt\nbeta.txt\n", "c.txt\nd.txt\ne.txt\n"),
        ({"in": [{"path": "a.txt"}, {"path": "b.txt"}]}, {"in": [{"path": "c.txt"}]}),
    ],
)
def test_a_loop_over_a_list_of_another_length_is_refused_before_its_first_item(
    session: Session[Any], store: wakelog.Store, monkeypatch: pytest.MonkeyPatch, recorded: Any, now: Any
) -> None:
    monkeypatch.setitem(FOLDER, "files", recorded)
    with session.turn(user="tidy up"):
        found = list_files()
        names = (
            found.split() if isinstance(found, str) else [f["path"] for f in found["in"]] if "in" in found else found
        )
        for name in names:
            move(name)
    plan = Plan.from_json(session.calls.workflow("@1").to_json())
    moved.clear()
    assert plan.run(store.session("same"), tools=[list_files, move]).ok
    assert moved == names
    monkeypatch.setitem(FOLDER, "files", now)
    moved.clear()
    done = plan.run(store.session("today"), tools=[list_files, move])
    assert not done.ok
    assert f"where the recording had {len(names)} and a step for each" in done.stopped
    assert moved == []


def test_choosing_one_of_several_is_no_loop(
    session: Session[Any], store: wakelog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FOLDER, "files", ["alpha.txt", "beta.txt"])
    with session.turn(user="tidy up"):
        move(list_files()[0])
    plan = session.calls.workflow("@1")
    monkeypatch.setitem(FOLDER, "files", ["c.txt", "d.txt", "e.txt"])
    moved.clear()
    assert plan.run(store.session("today"), tools=[list_files, move]).ok
    assert moved == ["c.txt"]


def test_a_list_that_is_given_is_taken_item_by_item_and_only_at_its_length(
    session: Session[Any], store: wakelog.Store
) -> None:
    with session.turn(user={"files": ["a.txt", "b.txt"]}):
        for name in ("a.txt", "b.txt"):
            move(name)
    plan = Plan.from_json(session.calls.workflow("@1").to_json())
    assert [p.name for p in plan.parameters] == ["files_1", "files_2"]
    moved.clear()
    assert plan.run(store.session("today"), {"files": ["c.txt", "d.txt"]}, tools=[move]).ok
    assert moved == ["c.txt", "d.txt"]
    moved.clear()
    with pytest.raises(InvalidInputError) as caught:
        plan.run(store.session("later"), {"files": ["c.txt", "d.txt", "e.txt"]}, tools=[move])
    assert caught.value.kind == "list-length"
    assert moved == []
