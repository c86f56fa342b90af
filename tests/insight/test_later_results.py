"""Checks whose result comes from elsewhere: a later call, an editor's diagnostics, or a script's own summary."""

from typing import Any

import pytest

from tests.insight.turns import Scene
from wakelog.insight.acts import act_of, files_of, works_on_files
from wakelog.insight.blocks import Did
from wakelog.insight.checks import find_checks
from wakelog.insight.derivation import minor_findings


def _checks(scene: Scene) -> list[tuple[str, int]]:
    return [(found.detail, len(found.calls)) for found in find_checks(scene.done())]


@pytest.mark.parametrize(
    ("answer", "tool", "given"),
    [
        ("Process running with session ID 4711\nOutput:\n", "write_stdin", {"session_id": 4711, "chars": ""}),
        ("Command running in background with ID: bash_2", "BashOutput", {"bash_id": "bash_2"}),
        ("Command running in background with ID: b7e1. Output is in /x/b7e1.output", "TaskOutput", {"task_id": "b7e1"}),
        ("Command running in background with ID: b7e1. Output is in /x", "Read", {"file_path": "/x/b7e1.output"}),
        ("Command is running in terminal with ID=c0-ffee", "get_terminal_output", {"id": "c0-ffee"}),
        ("Background command ID: 5f-1", "command_status", {"CommandId": "5f-1"}),
    ],
)
def test_a_check_ends_with_the_call_that_asks_for_its_output(answer: str, tool: str, given: dict[str, Any]) -> None:
    started = Scene().runs("make test", answer)
    assert _checks(started) == [("test unknown", 1)]
    started.calls(tool, given, output="<status>running</status>")
    assert _checks(started) == [("test unknown", 2)]
    started.calls(tool, {"id": "another"}, output="9 passed")
    started.calls(tool, given, output="2 failed, 7 passed")
    assert _checks(started) == [("test fail", 2)]


def test_another_argument_that_is_the_same_number_asks_for_nothing() -> None:
    scene = Scene().calls("exec_command", {"cmd": "npm test"}, output="Process running with session ID 5")
    scene.calls("Read", {"file_path": "a.ts", "limit": 5}, effect="read", output="3 passed")
    assert _checks(scene) == [("test unknown", 1)]


def test_a_command_that_ends_without_a_word_has_the_outcome_of_its_last_call() -> None:
    scene = Scene().calls("exec_command", {"cmd": "pnpm lint"}, output="Process running with session ID 9")
    scene.calls("write_stdin", {"session_id": 9}, output="Process running with session ID 9")
    assert _checks(scene.calls("write_stdin", {"session_id": 9})) == [("lint pass", 2)]


@pytest.mark.parametrize(
    ("command", "output", "found"),
    [
        ("node test-parser.js", "Passed: 12\nFailed: 1", ["test fail"]),
        ("python3 tests/test_parser.py", "Passed: 12\nFailed: 0", ["test pass"]),
        ("npx tsx parser.test.ts", "4/4 tests passed", ["test pass"]),
        ("ruby parser_spec.rb", "Ran 3 tests in 0.1s\n\nOK", ["test pass"]),
        ("python test_idea.py", "the value is 3", ["test pass"]),
        ("python test_idea.py", "", ["test unknown"]),
        ("cat > test_idea.py <<'E'\nprint(3)\nE\npython test_idea.py", "3", []),
        ("python latest.py", "3 passed", []),
        ("node -c parser.js", "", ["build pass"]),
    ],
)
def test_a_script_that_is_a_test_by_its_name_is_a_check(command: str, output: str, found: list[str]) -> None:
    assert [detail for detail, _ in _checks(Scene().runs(command, output))] == found


def test_beside_a_test_runner_a_script_is_a_check_only_if_it_counts() -> None:
    scene = Scene().runs("pytest", "3 passed").runs("python test_idea.py", "3").runs("python test_x.py", "2 passed")
    assert _checks(scene) == [("test pass", 1), ("test pass", 1)]


@pytest.mark.parametrize(
    ("tool", "output", "detail"),
    [
        ("get_errors", "No errors found.", "types pass"),
        ("copilot_getErrors", '<errors path="a.ts">x is not defined</errors>', "types fail"),
        ("read_lints", "Found 2 linter errors:", "lint fail"),
        ("ReadLints", "No linter errors found.", "lint pass"),
        ("mcp__ide__getDiagnostics", "[]", "types pass"),
        ("mcp__ide__getDiagnostics", '[{"severity": "Error", "message": "no such name"}]', "types fail"),
        ("mcp__ide__getDiagnostics", '[{"severity": "Hint", "message": "unused"}]', "types pass"),
        ("get_errors", "", "types unknown"),
        ("runTests", "3 passed, 1 failed", "test fail"),
    ],
)
def test_the_diagnostics_of_an_editor_are_a_check(tool: str, output: str, detail: str) -> None:
    assert _checks(Scene().calls(tool, {"filePaths": ["a.ts"]}, effect="read", output=output)) == [(detail, 1)]


def test_arguments_may_have_capital_letters() -> None:
    run = Did(1, "run_command", "external", {"CommandLine": "npm test", "Cwd": "/w"}, "succeeded", "3 passed")
    assert act_of(run) == "check"
    edit = Did(2, "replace_file_content", "external", {"TargetFile": "/w/a.ts", "Instruction": "x"}, "succeeded")
    assert (act_of(edit), files_of(edit)) == ("write", ["/w/a.ts"])


def test_a_list_of_edits_names_its_files() -> None:
    edits = {"replacements": [{"filePath": "a.ts"}, {"filePath": "b.ts"}, {"filePath": "a.ts"}]}
    assert files_of(Did(1, "multi_replace_string_in_file", "write", edits, "succeeded")) == ["a.ts", "b.ts"]


@pytest.mark.parametrize("command", ["cargo init tool", "npx shadcn@latest add card", "npm create vite@latest shop"])
def test_a_program_that_sets_up_a_project_writes_files(command: str) -> None:
    assert files_of(Did(1, "Bash", "external", {"command": command}, "succeeded"))


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("npm install -D lodash", "package.json"),
        ("cd app && cargo add serde", "Cargo.toml"),
        ("uv add x", "pyproject.toml"),
    ],
)
def test_a_new_package_changes_the_file_that_lists_them(command: str, file: str) -> None:
    assert files_of(Did(1, "Bash", "external", {"command": command}, "succeeded")) == [file]


@pytest.mark.parametrize("command", ["rm -rf ~/.local/state/tool/x", "npm install", "npm i -g tool", "pip install x"])
def test_what_is_installed_elsewhere_is_no_file_of_the_project(command: str) -> None:
    assert not files_of(Did(1, "Bash", "external", {"command": command}, "succeeded"))


@pytest.mark.parametrize(
    ("tool", "is_work"),
    [("read_file", True), ("list_directory", True), ("get_user_profile", False), ("find_director", False)],
)
def test_a_tool_for_files_is_known_by_its_name(tool: str, is_work: bool) -> None:
    assert works_on_files(Did(1, tool, "read", {}, "succeeded")) is is_work


def test_a_check_without_a_result_is_not_shown_by_default() -> None:
    found = list(find_checks(Scene().runs("make test | head -1", "").runs("ruff check .", "All checks passed!").done()))
    assert [f.detail for f in found] == ["test unknown", "lint pass"]
    assert minor_findings(found, 2) == found[:1]


def test_where_an_export_left_all_outputs_out_nothing_has_passed() -> None:
    scene = Scene().runs("cat a.py").edits("a.py", output="").runs("tsc --noEmit")
    assert _checks(scene) == [("types unknown", 1)]
    assert _checks(Scene().runs("cat a.py", "x").edits("a.py", output="").runs("tsc --noEmit")) == [("types pass", 1)]
    assert _checks(Scene().runs("tsc --noEmit")) == [("types pass", 1)]


def test_lines_picked_out_of_a_test_run_do_not_tell_how_it_ended() -> None:
    picked = Scene().runs("go test ./lamp 2>&1 | grep 'bulb:' | head -3", "lamp.go:12 bulb: on")
    assert _checks(picked) == [("test unknown", 1)]
    assert _checks(Scene().runs("go test ./lamp 2>&1 | grep FAIL", "--- FAIL: TestBulb")) == [("test fail", 1)]


def test_what_an_export_left_of_an_output_does_not_tell_how_a_check_ended() -> None:
    cut = "> lamp@1.0.0 test\n> vitest run\n… +56 lines (ctrl+o to expand)"
    assert _checks(Scene().runs("npm test 2>&1 | tail -80", cut)) == [("test unknown", 1)]
    assert _checks(Scene().runs("npm test", cut)) == [("test pass", 1)]
    assert _checks(Scene().runs("npm test 2>&1 | tail -80", f"{cut}\n9 passed")) == [("test pass", 1)]


@pytest.mark.parametrize(
    ("command", "output", "found"),
    [
        ("npx tsc --noEmit 2>&1 | wc -l", "65", "types fail"),
        ("npx tsc --noEmit | grep -c error", "0", "types pass"),
        ("npx tsc --noEmit; echo TSC_RC=$?", "TSC_RC=2", "types fail"),
    ],
)
def test_the_result_of_a_check_may_be_a_number(command: str, output: str, found: str) -> None:
    assert _checks(Scene().runs(command, output)) == [(found, 1)]


def test_a_program_that_only_has_the_name_of_a_compiler_is_no_check() -> None:
    assert not _checks(Scene().runs("npx tsc", "This is not the tsc command you are looking for"))
