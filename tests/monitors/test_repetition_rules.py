"""Rules about repetition: what is a loop or a repeated failure, and what only looks like one."""

from __future__ import annotations

from tests.monitors.play import Play
from wakelog.model import events as ev
from wakelog.monitors.repetition_rules import Loop, RepeatedFailure, RetryDivergence
from wakelog.monitors.session_view import identity

SAME = identity("same")[:8]


# Repeated failure


def test_the_third_failure_of_one_call_is_flagged_once() -> None:
    play = Play()
    seqs = [play.call(error="no") for _ in range(5)]
    [found] = play.found(RepeatedFailure)
    assert (found.flag, found.severity, found.pause) == (f"repeated-failure:search:{SAME}", "error", True)
    assert found.targets == tuple(seqs[:3])
    assert "3 times" in found.message


def test_failures_with_other_inputs_are_not_the_same_failure() -> None:
    play = Play()
    for number in range(6):
        play.call(given=number % 3, error="no")
    assert play.flags(RepeatedFailure) == []


def test_a_success_in_between_begins_the_count_anew() -> None:
    play = Play()
    for error in ("no", "no", "", "no", "no"):
        play.call(error=error)
    assert play.flags(RepeatedFailure) == []


def test_a_call_that_works_at_last_clears_its_flag() -> None:
    play = Play()
    for error in ("no", "no", "no", "", "no", "no", "no"):
        play.call(error=error)
    flag = f"repeated-failure:search:{SAME}"
    assert play.flags(RepeatedFailure) == [flag, f"-{flag}", flag]


def test_the_attempts_of_one_action_count_and_so_do_timeouts_and_recorded_calls() -> None:
    play = Play()
    action = play.request("search", "same")
    play.add(ev.ActionFailed(action=action, error=ev.Failure("io"), retry=True))
    play.add(ev.ActionTimedOut(action=action))
    play.add(ev.ActionRecorded(action="late", tool="search", effect="read", outcome="failed", input="same"))
    assert play.flags(RepeatedFailure) == [f"repeated-failure:search:{SAME}"]


def test_a_result_that_is_used_again_is_not_another_failure() -> None:
    play = Play()
    first = play.call(error="no")
    play.call(error="no")
    for number in range(3):
        again = ev.ActionRecorded(action=f"r{number}", tool="search", outcome="failed", input="same", reused=first)
        play.add(again)
    assert play.flags(RepeatedFailure) == []


def test_after_a_resume_it_takes_as_many_failures_again() -> None:
    play = Play()
    for _ in range(3):
        play.call(error="no")
    play.add(ev.SessionPaused())
    play.add(ev.SessionResumed())
    play.call(error="no")
    play.call(error="no")
    assert len(play.flags(RepeatedFailure)) == 1
    play.call(error="no")
    assert len(play.flags(RepeatedFailure)) == 2


# Loops


def test_five_equal_calls_with_equal_answers_are_a_loop() -> None:
    play = Play()
    for _ in range(4):
        play.call()
    assert play.flags(Loop) == []
    play.call()
    play.call()
    [found] = play.found(Loop)
    assert (found.flag, found.pause) == (f"loop:search:{SAME}", True)
    assert "5 times" in found.message


def test_what_the_model_says_in_between_does_not_hide_a_loop() -> None:
    play = Play()
    for number in range(5):
        play.call("model", None, f"thought {number}", effect="model")
        play.add(ev.MessageAdded(role="assistant", content=f"thought {number}"))
        play.call()
    assert play.flags(Loop) == [f"loop:search:{SAME}"]


def test_polling_that_sees_something_new_each_time_gets_twice_as_long() -> None:
    play = Play()
    for number in range(9):
        play.call("job_status", "job-1", f"{number} of 20 done")
    assert play.flags(Loop) == []
    play.call("job_status", "job-1", "9 of 20 done")
    assert len(play.flags(Loop)) == 1


def test_a_person_who_asks_each_time_is_no_loop() -> None:
    play = Play()
    for _ in range(8):
        play.turn("what is the weather now?")
        play.call("weather", "Paris", "rain")
        play.end()
    assert play.flags(Loop) == []


def test_attempts_of_one_turn_are_no_loop() -> None:
    play = Play()
    for number in range(6):
        play.turn("fix it", retry=number > 0)
        play.call()
        play.end("failed")
    assert play.flags(Loop) == []


def test_two_or_three_calls_in_turn_are_a_loop() -> None:
    for tools in (("read", "edit"), ("read", "edit", "test"), ("read", "read", "edit")):
        play = Play()
        for number in range(5):
            for place, tool in enumerate(tools):
                play.call(tool, f"same {tool}", f"{number}.{place}")
        [found] = play.found(Loop)
        assert f"the same {len(tools)} calls in turn" in found.message, tools


def test_a_cycle_whose_calls_change_is_no_loop() -> None:
    play = Play()
    for number in range(8):
        play.call("edit", f"line {number}")
        play.call("test", "all", f"{number} failed")
    assert play.flags(Loop) == []


def test_a_call_that_keeps_failing_is_not_called_a_loop() -> None:
    play = Play()
    for _ in range(12):
        play.call(error="no")
    assert play.flags(Loop) == []


def test_leaving_the_loop_clears_the_flag() -> None:
    play = Play()
    for _ in range(6):
        play.call()
    play.call("read", "something else")
    for _ in range(5):
        play.call()
    flag = f"loop:search:{SAME}"
    assert play.flags(Loop) == [flag, f"-{flag}", flag]


def test_a_loop_that_goes_on_after_a_resume_is_flagged_again() -> None:
    play = Play()
    for _ in range(5):
        play.call()
    play.add(ev.SessionPaused())
    play.add(ev.SessionResumed())
    for _ in range(4):
        play.call()
    assert len(play.flags(Loop)) == 1
    play.call()
    assert len(play.flags(Loop)) == 2


# Retries


def attempts(*steps: list[tuple[str, str, str]], given: tuple[str, ...] = ()) -> list[str]:
    """The flags of a turn that is tried several times; a step is tool, input and answer."""
    play = Play()
    for number, calls in enumerate(steps):
        play.turn(given[number] if given else "do it", retry=number > 0)
        play.call("model", None, f"thought {number}", effect="model")
        for tool, asked, answer in calls:
            play.call(tool, asked, answer)
        play.end("failed")
    return [f"{f.flag} {f.severity}" for f in play.found(RetryDivergence)]


def test_another_answer_to_the_same_call_is_a_divergence() -> None:
    assert attempts([("a", "1", "x"), ("b", "1", "y")], [("a", "1", "x"), ("b", "1", "z")]) == [
        "retry-divergence:@1 warning"
    ]


def test_another_call_is_a_divergence_that_is_told_once() -> None:
    first, second = [("a", "1", "x"), ("b", "1", "y")], [("a", "1", "x"), ("c", "1", "y"), ("d", "2", "y")]
    assert attempts(first, second) == ["retry-divergence:@1 info"]


def test_the_same_steps_again_are_no_divergence_and_neither_is_going_further() -> None:
    steps = [("a", "1", "x"), ("b", "1", "y")]
    assert attempts(steps, steps, [*steps, ("c", "1", "z")]) == []


def test_another_input_is_another_try_and_not_a_divergence() -> None:
    assert attempts([("a", "1", "x")], [("b", "1", "x")], given=("do it", "do it differently")) == []


def test_another_turn_is_not_compared() -> None:
    play = Play()
    for answer in ("x", "y"):
        play.turn("do it")
        play.call("a", "1", answer)
        play.end()
    assert play.flags(RetryDivergence) == []


def test_a_late_worker_who_says_otherwise_is_a_divergence() -> None:
    play = Play()
    play.call("pay", "order 1", "paid as ch_1", effect="external")
    action = f"pay-{play._calls}"
    play.add(ev.ActionEvidence(action=action, outcome="succeeded", output="paid as ch_1"))
    assert play.flags(RetryDivergence) == []
    play.add(ev.ActionEvidence(action=action, outcome="succeeded", output="paid as ch_2"))
    [found] = play.found(RetryDivergence)
    assert (found.flag, found.severity) == ("retry-divergence:pay", "error")
    assert "twice" in found.message


def test_a_test_that_fails_again_after_each_edit_is_only_noted() -> None:
    play = Play()
    play.turn()
    for number in range(3):
        play.call("edit", {"n": number}, "ok", effect="write")
        play.call("run_tests", "all", error="1 failed")
    [found] = play.found(RepeatedFailure)
    assert (found.severity, found.pause) == ("info", False)
