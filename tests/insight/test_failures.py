"""After an error: another way is a change of approach, a repaired call is not, and giving up is a dead end."""

from tests.insight.turns import Scene
from wakelog.insight.blocks import Finding
from wakelog.insight.derivation import minor_findings
from wakelog.insight.rules import Carry, derive, find_failures


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


def test_what_is_said_of_the_code_that_is_looked_at_next_is_no_dead_end() -> None:
    scene = Scene().runs("cat rows.pl").says("Let's further examine the loop: it doesn't work with strings.")
    assert not _of(scene, "dead_end")


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


def _after_work(scene: Scene, file: str = "app.py") -> list[Finding]:
    """What is found in a turn after one that changed a file."""
    carry = Carry()
    derive(Scene(0).user("make it fast").says("I'll cache it.").edits(file).done(), carry)
    return derive(scene.done(), carry)


def test_what_the_user_says_did_not_help_is_a_dead_end_and_what_follows_a_change() -> None:
    scene = (
        Scene().user("still the same").says("Let me try a different approach: a wrapper that gets the events.").edits()
    )
    found = {f.kind: f for f in _after_work(scene)}
    assert scene.quote(found["dead_end"]) == "still the same"
    assert found["dead_end"].calls == (2,), "the change that did not help"
    assert found["approach_change"].calls == (1002,)
    assert not list(find_failures(scene.done()))


def test_a_condition_reports_no_dead_end() -> None:
    scene = Scene().user("If the output is the same, then we are done.").says("I'll compare the two files.").edits()
    assert not [f for f in _after_work(scene) if f.kind in ("dead_end", "approach_change")]


def test_a_report_and_the_same_file_again_is_a_change_without_a_word() -> None:
    scene = Scene().user("it still doesn't work").edits("app.py")
    [found] = [f for f in _after_work(scene) if f.kind == "approach_change"]
    assert scene.quote(found) == ""
    assert found.calls == (1001,)
    assert not [f for f in _after_work(scene, "other.py") if f.kind == "approach_change"]


def test_to_do_as_the_user_says_is_no_change_of_approach() -> None:
    scene = Scene().user("no use the proper schema").says("I'll use the proper schema instead.").edits("b.py")
    kinds = {f.kind for f in _after_work(scene)}
    assert "correction" in kinds or "redirect" in kinds
    assert "approach_change" not in kinds


def test_to_try_again_what_failed_before_is_no_change() -> None:
    scene = Scene().runs("start job 008", "error: no such job", fails=True)
    scene.runs("start job 8", "error: no job 8", fails=True)
    scene.says("Let's try the name with its zeros instead:").runs("start job 008", "error: no such job", fails=True)
    assert not _of(scene, "approach_change")


def test_a_pasted_error_after_work_is_a_report() -> None:
    scene = Scene().user("$ npm run dev\n\nError: no such route").says("I'll remove the rewrite again.").edits("app.py")
    kinds = {f.kind for f in _after_work(scene)}
    assert {"failure_report", "approach_change"} <= kinds
    assert "dead_end" not in kinds  # the report says it already


def test_a_failure_that_comes_back_after_a_change_is_answered_by_another() -> None:
    scene = Scene().user("npm run dev fails").edits("a.json").runs("npm run dev", "Error: not found", fails=True)
    scene.says("I'll add the loader to the config.").edits("b.json").runs("npm run dev", "Error: not found", fails=True)
    scene.says("I'll change the imports to full paths.").edits("c.ts")
    [found] = _of(scene, "approach_change")
    assert scene.quote(found) == "I'll change the imports to full paths."


def test_a_change_that_is_taken_back_is_a_dead_end() -> None:
    scene = Scene().edits("a.py").says("I'll revert that change and use a lock instead.").edits("a.py")
    [end] = _of(scene, "dead_end")
    assert end.calls == (1000, 1002)
    [change] = _of(scene, "approach_change")
    assert scene.quote(change) == "I'll revert that change and use a lock instead."


def test_to_take_something_back_is_no_other_way_by_itself() -> None:
    scene = Scene().edits("a.py").says("I should revert the changes to the lock file.").edits("a.py")
    assert not _of(scene, "approach_change")


def test_a_silent_restore_is_a_dead_end_without_words() -> None:
    scene = Scene().edits("a.py").runs("python a.py", "Traceback", fails=True).runs("git checkout -- a.py")
    [end] = _of(scene, "dead_end")
    assert end.span.start == end.span.end
    assert end.calls == (1000, 1002)


def test_a_restore_to_compare_is_no_dead_end() -> None:
    scene = (
        Scene().edits("a.py").says("To be sure, I'll revert my change and run it again.").runs("git checkout -- a.py")
    )
    assert not _of(scene, "dead_end")


def test_a_write_that_the_user_refused_is_no_dead_end() -> None:
    no = "The user denied this operation."
    scene = Scene().edits("a.py", fails=True, output=no)
    assert not _of(scene.edits("b.py", fails=True, output=no), "dead_end")


def test_the_last_of_several_silent_tries_is_a_change() -> None:
    scene = Scene().runs("deploy app --region a", "unknown flag: --region").runs("deploy app -r a", "error: no region")
    [found] = _of(scene.runs("deploy app --zone a", "done"), "approach_change")
    assert found.calls == (1002, 1000)
    assert found.span.start == found.span.end


def test_writes_of_one_file_that_fail_again_and_again_are_one_dead_end() -> None:
    scene = Scene().edits(fails=True).runs("cat app.py").edits(fails=True).edits(fails=True)
    scene.calls("Write", {"file_path": "app.py"}, effect="write", output="ok")
    [found] = _of(scene, "dead_end")
    assert found.calls == (1000, 1002, 1003)
    assert found.detail == "failed again"
    [change] = _of(scene, "approach_change")
    assert change.calls == (1004, 1000)


def test_a_write_that_fails_once_is_only_a_slip() -> None:
    assert not _of(Scene().edits(fails=True).edits(), "dead_end")


def test_parallel_writes_that_fail_are_one_try() -> None:
    scene = Scene()
    for _ in range(3):
        scene.calls("Edit", {"file_path": "app.py"}, effect="write", fails=True, batch=7)
    assert not _of(scene, "dead_end")


def test_an_agent_that_was_wrong_gives_up_its_own_idea() -> None:
    scene = Scene().runs("cat notes.md", "text").says("I was **completely wrong** about the random crops.")
    [found] = _of(scene, "dead_end")
    assert scene.quote(found).startswith("I was **completely wrong**")


def test_a_diagnosis_after_a_look_is_no_dead_end() -> None:
    scene = Scene().calls("Read", {"file_path": "a.ts"}, effect="read", output="text")
    scene.says("The issue is that the compiler can't find the right type.").edits("a.ts")
    assert not _of(scene, "dead_end")


def test_what_was_only_written_down_wrongly_is_no_dead_end() -> None:
    scene = Scene().edits("a.py").runs("python a.py", "IndentationError", fails=True)
    scene.says("I messed up the indentation. I'll restore the file and add the line again.")
    scene.runs("git checkout a.py")
    assert not _of(scene, "dead_end")


def test_without_calls_the_words_alone_can_change_the_approach() -> None:
    scene = Scene().says("create-app cancelled because the directory wasn't empty. Creating the setup manually.")
    [found] = _of(scene, "approach_change")
    assert scene.quote(found) == "Creating the setup manually."
    assert scene.reason(found) == "create-app cancelled because the directory wasn't empty."


def test_the_cause_of_a_failure_is_the_sentence_that_explains_it() -> None:
    scene = Scene().runs("./host", "ERROR: 25", fails=True)
    scene.says(
        "The call failed (error 25). The libraries probably aren't in the path since this is a new shell."
        " I'll source the setup script in the same shell session instead."
    ).runs("source setup.sh && ./host", "ok")
    [found] = _of(scene, "approach_change")
    assert scene.reason(found).startswith("The libraries probably")


def test_to_go_on_after_a_report_is_no_dead_end() -> None:
    for words in ("Let me fix the cache then.", "I see the total is still wrong, you are still getting the old one."):
        found = _after_work(Scene().user("still the same").says(words).edits("app.py"))
        assert not [f for f in found if f.kind == "dead_end"]


def test_a_dead_end_told_again_after_another_change_is_another_one() -> None:
    scene = (
        Scene().edits("a.css").runs("shot page", "page.png").says("The header is still broken. Let me see the grid.")
    )
    scene.runs("cat grid.css", "gap").says("The header is still broken, as I said.")
    assert len(_of(scene, "dead_end")) == 1
    scene.edits("b.css").runs("shot page", "page.png").says("The header is still broken.")
    first, second = _of(scene, "dead_end")
    assert scene.quote(first) == scene.quote(second) == "The header is still broken."
    assert first.calls != second.calls


def test_what_is_still_so_is_a_dead_end_only_if_a_call_failed_after_a_change() -> None:
    for words, is_end in (("Still 12 rows.", True), ("Still works fine.", False), ("Still need the key.", False)):
        scene = Scene().edits("load.py").runs("python count.py", "12", fails=True).says(words)
        assert bool(_of(scene, "dead_end")) is is_end, words
    assert not _of(Scene().runs("python count.py", "12", fails=True).says("Still 12 rows."), "dead_end")
    assert not _of(Scene().edits("load.py").runs("python count.py", "12").says("Still 12 rows."), "dead_end")


def test_one_failure_that_is_left_is_no_dead_end() -> None:
    scene = Scene().edits("a.py").runs("pytest", "8 passed, 1 failed", fails=True)
    assert not _of(scene.says("Only the test of the header still fails."), "dead_end")


def test_an_own_guess_that_was_wrong_is_a_dead_end_after_a_look() -> None:
    scene = Scene().calls("Read", {"file_path": "cache.py"}, effect="read", output="text")
    scene.says("My first guess was wrong: the cache is not even read here.")
    assert len(_of(scene, "dead_end")) == 1


def test_a_silent_change_is_not_shown_by_default() -> None:
    scene = Scene().runs("deploy app --region a", "unknown flag: --region").runs("deploy app -r a", "error: no region")
    [found] = _of(scene.runs("deploy app --zone a", "done"), "approach_change")
    assert found in minor_findings([found], 3)


def test_a_change_that_the_user_undoes_is_a_correction_and_a_dead_end() -> None:
    scene = Scene().user("round the totals").says("I'll round them up.").edits("bill.py").user("/undo")
    found = {f.kind: f for f in derive(scene.done(), Carry())}
    assert scene.quote(found["dead_end"]) == scene.quote(found["correction"]) == "/undo"
    assert found["dead_end"].calls == (1002,)
    later = {f.kind: f for f in _after_work(Scene().user("/undo"))}
    assert later["dead_end"].calls == (2,)
    assert not _of(Scene().user("what is open?").says("Nothing.").user("/undo"), "dead_end")


def test_what_an_earlier_turn_changed_can_be_taken_back() -> None:
    scene = Scene().user("the page must not know that").says("I'll revert the page and move the rule into the field.")
    [found] = [f for f in _after_work(scene.edits("app.py")) if f.kind == "dead_end"]
    assert found.calls == (2, 1002)
    other = Scene().user("and the tests?").says("I'll revert the page and move the rule into the field.")
    assert not [f for f in _after_work(other.edits("b.py")) if f.kind == "dead_end"]


def test_a_way_with_problems_is_given_up() -> None:
    scene = Scene().calls("Write", {"file_path": "clean.js"}, effect="write", output="ok")
    scene.says("The script route has loader problems. I'll clear the table in the console.").runs("psql -c x", "ok")
    assert [scene.quote(f) for f in _of(scene, "dead_end")] == ["The script route has loader problems."]


def test_a_new_way_is_a_change_also_after_a_tool_that_only_shows() -> None:
    scene = Scene().edits("a.json").runs("pnpm install", "done").runs("cat link", "wrong").says("Still wrong!")
    scene.runs("pnpm list", "a 1.0").says("It is listed. Let me try a clean install:").runs("pnpm install -f", "done")
    [found] = _of(scene, "approach_change")
    assert scene.quote(found) == "Let me try a clean install:"
