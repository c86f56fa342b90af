"""After an error: another way is a change of approach, a repaired call is not, and giving up is a dead end."""

from tests.insight.turns import Scene
from wakelog.insight.blocks import Finding
from wakelog.insight.failures import find_failures


def _of(scene: Scene, kind: str) -> list[Finding]:
    return [f for f in find_failures(scene.done()) if f.kind == kind]


def test_another_tool_after_refused_edits_is_a_change_of_approach() -> None:
    scene = Scene().edits(fails=True).edits(fails=True).says("Let me use sed instead, it is simpler for this.")
    scene.runs("sed -i s/a/b/ app.py")
    [found] = _of(scene, "approach_change")
    assert found.calls == (1003, 1000)
    assert scene.quote(found) == "Let me use sed instead, it is simpler for this."


def test_the_same_call_repaired_is_no_change() -> None:
    scene = Scene().edits(fails=True).says("I will fix the indentation.").edits()
    assert not _of(scene, "approach_change")


def test_a_fallback_in_the_code_is_no_change() -> None:
    scene = Scene().edits(fails=True).says("Let me find the correct fallback section:").runs("grep -n fallback app.py")
    scene.runs("sed -i s/a/b/ app.py")
    assert not _of(scene, "approach_change")


def test_a_failed_look_is_no_change() -> None:
    scene = Scene().calls("Read", {"file_path": "logs"}, effect="read", fails=True).runs("ls logs")
    assert not _of(scene, "approach_change")


def test_a_failing_test_is_no_change() -> None:
    scene = Scene().runs("pytest", "1 failed", fails=True).says("Now I fix the code.").edits()
    assert not _of(scene, "approach_change")


def test_siblings_of_a_failed_call_did_not_fail() -> None:
    error = "<tool_use_error>Sibling tool call errored</tool_use_error>"
    scene = Scene().runs("make deploy", error, fails=True).says("Let me try another way instead.").edits()
    assert not _of(scene, "approach_change")


def test_another_request_to_a_service_that_refused_is_a_change() -> None:
    scene = Scene().calls("pay", {"by": "gift card"}, fails=True, output="Error: not enough")
    scene.calls("pay", {"by": "credit card"})
    [found] = _of(scene, "approach_change")
    assert found.calls == (1001, 1000)
    assert found.reason is None, "nobody said why"


def test_words_that_refute_a_try_are_a_dead_end() -> None:
    scene = Scene().runs("cat state.json", "{}").says("The flag is not set. So that's not the issue.")
    [found] = _of(scene, "dead_end")
    assert scene.quote(found) == "So that's not the issue."
    assert found.calls == (1000,)


def test_a_dead_end_told_twice_is_one() -> None:
    scene = Scene().runs("gofmt -w .").thinks("gofmt didn't help with the linter.").says("gofmt didn't help with it.")
    assert len(_of(scene, "dead_end")) == 1


def test_a_refusal_told_to_the_user_is_a_dead_end() -> None:
    scene = Scene().calls("book", {"seat": 1}, fails=True, output="Error: full")
    scene.says("There are not enough seats available. Would you like another flight?")
    [found] = _of(scene, "dead_end")
    assert scene.quote(found) == "There are not enough seats available."


def test_success_is_no_dead_end() -> None:
    scene = Scene().runs("pytest", "3 passed").says("All tests still pass. Let me verify that it still works.")
    assert not _of(scene, "dead_end")


def test_a_failure_that_was_wanted_leads_to_no_change() -> None:
    scene = Scene().runs("python show_bug.py", "Traceback", fails=True).says("The reproduction was successful!")
    assert not _of(scene.edits(), "approach_change")


def test_the_reason_of_a_dead_end_that_points_back_stands_before_it() -> None:
    scene = Scene().calls("book", {"seat": 1}, fails=True, output="Error: not enough seats")
    scene.says("There aren't enough seats on it. Unfortunately, I cannot go on due to this limitation.")
    [found] = _of(scene, "dead_end")
    assert scene.reason(found) == "There aren't enough seats on it."


def test_another_call_after_an_error_is_no_change_where_nobody_says_so() -> None:
    scene = Scene().edits("app.py", fails=True).says("The file is long.").runs("sed -i s/a/b/ app.py")
    assert not _of(scene, "approach_change")


def test_words_that_give_up_and_name_another_way_are_a_change() -> None:
    scene = Scene().runs("gofmt -w .").says("That had no effect. Let's try sed instead.").runs("sed -i s/a/b/ app.go")
    [found] = _of(scene, "approach_change")
    assert scene.quote(found) == "Let's try sed instead."
    assert found.calls == (1002, 1000)


def test_a_title_is_not_quoted_as_the_cause() -> None:
    scene = Scene().edits("app.py", fails=True).edits("app.py", fails=True)
    scene.says("**Analysis of the command that failed**\n\nLet me rewrite the file from scratch.").calls(
        "Write", {"file_path": "app.py"}, effect="write"
    )
    [found] = _of(scene, "approach_change")
    assert found.reason is None


def test_what_the_user_says_did_not_help_is_a_dead_end_and_what_follows_a_change() -> None:
    scene = (
        Scene().user("still the same").says("Let me try a different approach: a wrapper that gets the events.").edits()
    )
    found = {f.kind: f for f in find_failures(scene.done(), is_reaction=True)}
    assert scene.quote(found["dead_end"]) == "still the same"
    assert found["approach_change"].calls == (1002,)
    assert not list(find_failures(scene.done()))


def test_a_condition_reports_no_dead_end() -> None:
    scene = Scene().user("If the output is the same, then we are done.").says("I'll compare the two files.").edits()
    assert not list(find_failures(scene.done(), is_reaction=True))
