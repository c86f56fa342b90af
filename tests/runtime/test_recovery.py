"""After a crash: every open call is settled by its policy, and the same script continues where it stopped."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

import wakelog
from tests.runtime.lives import Desk, Killed, effect, seem_dead, stopped
from wakelog import CallFailedError, Found, events
from wakelog.timeline.points import attempts_of

GOAL = "go"


def dies_inside(desk: Desk, *, after: bool, **policy: Any) -> Callable[..., str]:
    """A script of one call, killed inside it the first time: before or after its effect."""
    runs = iter([True])

    def script(goal: str = GOAL, **turn: Any) -> str:
        session, life = desk.process()
        dies = next(runs, False)

        @session.tool(**policy)
        def act(n: int) -> str:
            call = wakelog.current_call()
            assert call is not None
            if dies and not after:
                life.is_dead = True
            life.breathe()
            answer = desk.world.do("act", n, call.key)
            if dies:
                life.is_dead = True
            life.breathe()
            return f"{answer}, try {call.attempt}"

        with session.turn(goal, **turn):
            return act(1)

    return script


# Each effect, each policy, each status, continued or not


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("policy", [{"effect": "read"}, {"effect": "external", "uncertain": "retry"}])
def test_a_cut_call_that_may_be_repeated_is_sent_again_under_the_same_key(
    desk: Desk, policy: dict[str, Any], after: bool
) -> None:
    script = dies_inside(desk, after=after, **policy)
    with pytest.raises(Killed):
        script()
    assert desk.statuses() == ["running"]
    assert script().endswith("try 2")
    assert len({key for _, _, key in desk.world.done}) == 1
    assert len(desk.world.done) == 1 + after
    assert desk.kinds() == [
        "action.requested",
        "action.started",
        "action.failed",
        "action.started",
        "action.succeeded",
    ]


@pytest.mark.parametrize("effect", ["write", "external"])
@pytest.mark.parametrize("after", [False, True])
def test_a_cut_effect_is_uncertain_and_stops_the_turn_until_somebody_says_what_happened(
    desk: Desk, effect: str, after: bool
) -> None:
    script = dies_inside(desk, after=after, effect=effect)
    with pytest.raises(Killed):
        script()
    for _ in range(3):
        with stopped("uncertain-call"):
            script()
        assert desk.statuses() == ["uncertain"]
        assert desk.operator.state().turn.status == "interrupted"
    assert len(desk.world.done) == after
    desk.world.reconcile(desk.operator)
    assert script().startswith("act(1) no 1")
    assert len(desk.world.done) == 1
    assert desk.operator.state().turn.status == "completed"


@pytest.mark.parametrize("after", [False, True])
def test_a_cut_effect_that_counts_as_failed_is_an_error_the_agent_sees(desk: Desk, after: bool) -> None:
    script = dies_inside(desk, after=after, uncertain="fail")
    with pytest.raises(Killed):
        script()
    with pytest.raises(CallFailedError) as caught:
        script()
    assert isinstance(caught.value.failure, events.Failure)
    assert caught.value.failure.type == "interrupted"
    assert len(desk.world.done) == after
    assert desk.operator.state().turn.status == "failed"


@pytest.mark.parametrize("after", [False, True])
def test_a_cut_pure_call_is_simply_made_again(desk: Desk, after: bool) -> None:
    script = dies_inside(desk, after=after, effect="pure")
    with pytest.raises(Killed):
        script()
    assert desk.statuses() == []
    script()
    assert desk.kinds() == ["action.recorded"]


@pytest.mark.parametrize(
    ("policy", "left", "kind"),
    [
        ({"effect": "read"}, [], "action.failed"),
        ({"effect": "external"}, ["uncertain"], "action.uncertain"),
        ({"effect": "write"}, ["uncertain"], "action.uncertain"),
        ({"uncertain": "retry"}, ["uncertain"], "action.uncertain"),
        ({"uncertain": "fail"}, [], "action.failed"),
        ({"uncertain": "probe", "probe": lambda key, n: None}, ["uncertain"], "action.uncertain"),
    ],
)
@pytest.mark.parametrize(("goal", "resume"), [("something else", "auto"), (GOAL, "never")])
def test_a_cut_call_whose_turn_is_not_continued_is_settled_and_the_new_turn_begins_anew(
    desk: Desk, policy: dict[str, Any], left: list[str], kind: str, goal: str, resume: Any
) -> None:
    script = dies_inside(desk, after=True, **policy)
    with pytest.raises(Killed):
        script()
    session, _ = desk.process()
    with session.turn(goal, resume=resume) as turn:
        assert turn.number == 2
    assert desk.statuses() == left
    assert desk.kinds()[-1] == kind
    assert [span.outcome for span in attempts_of(session.log, 1)] == ["interrupted"]
    assert len(desk.world.done) == 1


def test_the_same_effect_is_not_tried_again_in_another_turn_while_it_is_uncertain(desk: Desk) -> None:
    script = dies_inside(desk, after=True)
    with pytest.raises(Killed):
        script()
    with stopped("uncertain-call"):
        script("something else")
    with stopped("uncertain-call"):
        script("something else", retry=True)
    (action,) = desk.operator.state().pending_actions
    desk.operator.calls.abandon(action, why="the customer does not mind")
    assert script("something else").startswith("act(1) no 2")


def approved(desk: Desk) -> Callable[..., str]:
    def script(goal: str = GOAL) -> str:
        session, life = desk.process()
        act = session.tool(approval=True)(effect(desk.world, life, "act"))
        with session.turn(goal):
            return act(1)

    return script


def test_a_call_that_waits_keeps_waiting_whether_its_turn_is_continued_or_not(desk: Desk) -> None:
    script = approved(desk)
    with stopped("approval-needed"):
        script()
    with stopped("approval-needed"):
        script()
    session, _ = desk.process()
    with session.turn("something else"):
        pass
    assert desk.statuses() == ["waiting"]
    assert desk.kinds() == ["action.requested"]


def test_a_call_that_was_approved_and_never_started_runs_when_its_turn_is_continued(desk: Desk) -> None:
    script = approved(desk)
    with stopped("approval-needed"):
        script()
    (action,) = desk.operator.state().pending_actions
    desk.operator.calls.approve(action)
    assert desk.statuses() == ["requested"]
    assert script() == "act(1) no 1"


def test_a_call_that_was_approved_and_never_started_is_abandoned_when_its_turn_is_not_continued(desk: Desk) -> None:
    script = approved(desk)
    with stopped("approval-needed"):
        script()
    (action,) = desk.operator.state().pending_actions
    desk.operator.calls.approve(action)
    with stopped("approval-needed"):
        script("something else")
    assert desk.kinds()[-2:] == ["action.abandoned", "action.requested"]
    assert desk.world.done == []


def test_a_call_that_was_approved_and_cut_is_uncertain_like_any_other(desk: Desk) -> None:
    session, life = desk.process()
    act = session.tool(approval=True)(effect(desk.world, life, "act"))
    session._runtime.approver = lambda call, arguments: True
    life.last = life.moments + 9
    with pytest.raises(Killed), session.turn(GOAL):
        act(1)
    assert desk.statuses() == ["running"]
    with stopped("uncertain-call"):
        approved(desk)()


def test_a_call_that_was_denied_between_two_runs_is_denied_in_each_run_from_then_on(desk: Desk) -> None:
    def script(last: int = 0) -> str:
        session, life = desk.process()
        session.tool(approval=True)(effect(desk.world, life, "act"))
        with session.turn(GOAL):
            status = session.call("act", {"n": 1}).status
            if last:
                life.is_dead = True
            life.breathe()
            return status

    with stopped("approval-needed"):
        script()
    (action,) = desk.operator.state().pending_actions
    desk.operator.calls.deny(action, why="no")
    for _ in range(2):
        with pytest.raises(Killed):
            script(1)
    assert script() == "denied"


def test_a_tool_that_did_not_know_itself_stops_the_same_script_until_it_is_reconciled(desk: Desk) -> None:
    def script() -> str:
        session, _ = desk.process()

        @session.tool
        def act() -> str:
            raise wakelog.UncertainError("the line broke")

        with session.turn(GOAL):
            try:
                return act()
            except wakelog.UncertainError:
                raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt):
        script()
    with stopped("uncertain-call"):
        script()
    (action,) = desk.operator.state().pending_actions
    desk.operator.calls.reconcile(action, "succeeded", output="sent", by="ada")
    assert script() == "sent"


# What a person, a probe or a late worker says


@pytest.mark.parametrize("outcome", ["succeeded", "failed", "never_ran"])
def test_reconciling_between_two_runs_decides_what_the_second_does(desk: Desk, outcome: str) -> None:
    script = dies_inside(desk, after=outcome == "succeeded")
    with pytest.raises(Killed):
        script()
    (action,) = desk.operator.state().pending_actions
    desk.operator.calls.reconcile(action, outcome, output="as told", by="ada", why="looked")
    before = len(desk.world.done)
    if outcome == "succeeded":
        assert script() == "as told"
    elif outcome == "failed":
        with pytest.raises(CallFailedError, match="looked"):
            script()
    else:
        assert script() == "act(1) no 1, try 1"
    assert len(desk.world.done) == before + (outcome == "never_ran")


def test_a_call_given_up_after_it_began_is_an_error_and_is_not_run_again(desk: Desk) -> None:
    script = dies_inside(desk, after=False)
    with pytest.raises(Killed):
        script()
    (action,) = desk.operator.state().pending_actions
    desk.operator.calls.abandon(action, why="too late now")
    with pytest.raises(CallFailedError) as caught:
        script()
    assert caught.value.failure == events.Failure("abandoned", "too late now")
    assert desk.world.done == []


@pytest.mark.parametrize("answer", ["succeeded", "failed", "never_ran", None, "nonsense", "raises"])
def test_a_probe_is_asked_what_became_of_a_cut_call(desk: Desk, answer: str | None) -> None:
    asked: list[tuple[str, int]] = []

    def probe(key: str, n: int) -> Any:
        asked.append((key, n))
        if answer == "raises":
            raise ConnectionError("no line")
        if answer is None or answer == "nonsense":
            return answer
        return Found(answer, output="found", why="in their list")  # type: ignore[arg-type]

    script = dies_inside(desk, after=answer == "succeeded", uncertain="probe", probe=probe)
    with pytest.raises(Killed):
        script()
    before = list(desk.world.done)
    if answer == "succeeded":
        assert script() == "found"
        assert asked == [(desk.world.done[0][2], 1)]
    elif answer == "failed":
        with pytest.raises(CallFailedError, match="in their list"):
            script()
    elif answer == "never_ran":
        assert script() == "act(1) no 1, try 1"
    elif answer is None:
        with stopped("uncertain-call"):
            script()
    elif answer == "nonsense":
        with pytest.raises(wakelog.InvalidInputError, match="probe of act"):
            script()
    else:
        with pytest.raises(ConnectionError, match="no line"):
            script()
    assert len(asked) == 1
    assert len(desk.world.done) == len(before) + (answer == "never_ran")
    assert desk.statuses() == ([] if answer in ("succeeded", "failed", "never_ran") else ["uncertain"])


def test_what_a_late_worker_says_of_an_uncertain_call_settles_it(desk: Desk) -> None:
    """The process was not dead: a network was, or it slept. What it did is known as soon as it says so."""
    go_on, came = threading.Event(), threading.Event()
    slow, _ = desk.process()

    @slow.tool
    def act(n: int) -> str:
        came.set()
        go_on.wait(180)
        return "done after all"

    def work() -> None:
        with contextlib.suppress(wakelog.ConflictError), slow.turn(GOAL):
            act(1)

    thread = threading.Thread(target=work)
    thread.start()
    came.wait(180)
    seem_dead(slow)
    script = dies_inside(desk, after=False)
    with stopped("uncertain-call"):
        script()
    go_on.set()
    thread.join()
    assert desk.statuses() == []
    assert script() == "done after all"
    assert desk.world.done == []


def test_evidence_that_came_after_the_session_was_closed_decides_when_asked(desk: Desk) -> None:
    go_on, came = threading.Event(), threading.Event()
    slow, _ = desk.process()

    @slow.tool
    def act() -> str:
        came.set()
        go_on.wait(180)
        return "done after all"

    def work() -> None:
        with contextlib.suppress(wakelog.WakelogError), slow.turn(GOAL):
            act()

    thread = threading.Thread(target=work)
    thread.start()
    came.wait(180)
    operator = desk.operator
    operator.life.end()
    (action,) = operator.state().pending_actions
    with pytest.raises(wakelog.InvalidInputError, match="no worker has reported"):
        operator.calls.reconcile(action)
    go_on.set()
    thread.join()
    assert [e.body["outcome"] for e in operator.calls.evidence(action)] == ["succeeded"]
    entry = operator.log.entry(operator.calls.reconcile(action))
    assert (entry.body["outcome"], entry.body["output"], entry.body["by"]) == (
        "succeeded",
        "done after all",
        "evidence",
    )


def test_recover_settles_what_is_open_without_beginning_a_turn(desk: Desk) -> None:
    for policy in ({"effect": "read"}, {"effect": "external"}, {"uncertain": "fail"}):
        session, life = desk.process()
        act = session.tool(name=str(policy), **policy)(effect(desk.world, life, "act"))  # type: ignore[call-overload]
        life.last = life.moments + 3
        with pytest.raises(Killed):
            act(1)
    assert desk.statuses() == ["running"] * 3
    operator = desk.operator
    (action,) = operator.calls.recover()
    assert desk.statuses() == ["uncertain"]
    assert operator.calls.recover() == [action]


def test_a_script_is_continued_also_after_somebody_settled_by_recover(desk: Desk) -> None:
    script = dies_inside(desk, after=False, effect="read")
    with pytest.raises(Killed):
        script()
    desk.operator.calls.recover()
    assert desk.statuses() == []
    assert script() == "act(1) no 1, try 1"
    assert desk.operator.state().turn.attempt == 2
