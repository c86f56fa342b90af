"""The act of a call comes from its effect, and for a shell from its programs: checks, writes, looks."""

from typing import Any

import pytest

from tests.insight.turns import Scene
from wakelog.insight.acts import act_of, files_of
from wakelog.insight.blocks import Did
from wakelog.insight.checks import find_checks, find_files
from wakelog.model.command_lines import command_line, shell_commands, written_files


@pytest.mark.parametrize(
    ("command", "detail"),
    [
        ("pytest -q tests", "test pass"),
        ("cd app && FOO=1 npx jest --ci", "test pass"),
        ("python -m unittest", "test pass"),
        ("uv run ruff check . && uv run mypy src", "lint+types pass"),
        ("npm run build", "build pass"),
        ("npm test -- --watch=false", "test pass"),
        ("cargo clippy --all", "lint pass"),
        ("go test ./... 2>&1 | tail -20", "test pass"),
        ("make test", "test pass"),
        ("mise run fmt && mise run lint", "lint pass"),
        ("./gradlew test", "test pass"),
        ("python tests/runtests.py pagination", "test pass"),
        ("tsc --noEmit", "types pass"),
        ("bash -lc 'cd app && pytest'", "test pass"),
        ("ruff format --check .", "lint pass"),
        ("bin/test sympy/core", "test pass"),
        ("node --test", "test pass"),
        ("docker-compose -f docker-compose.prod.yml build frontend", "build pass"),
        ("docker compose up -d --build", "build pass"),
        ("GOEXPERIMENT=simd go1.26rc2 test ./...", "test pass"),
        ("bun --bun vitest run", "test pass"),
        ("uv run -m pytest -x", "test pass"),
        ("npx -y -p typescript tsc", "types pass"),
        ("pnpm -F api exec vitest run", "test pass"),
        ("docker compose -f a.yml run --rm web pytest -q", "test pass"),
        ("docker exec -it c bash -c 'make lint'", "lint pass"),
        ("kubectl exec pod -- pytest", "test pass"),
        ("./gradlew :app:testDebugUnitTest", "test pass"),
        ("mvn -q clean install", "build pass"),
        ("nx run web:test", "test pass"),
        ("make lint-tests", "lint pass"),
        ("npm run typecheck", "types pass"),
        ("cargo fmt -- --check", "lint pass"),
        ("terraform validate", "types pass"),
        ("python -m coverage run -m pytest", "test pass"),
        ("bash scripts/run_tests.sh", "test pass"),
        ("node --check a.js", "build pass"),
    ],
)
def test_a_check_is_known_by_its_program(command: str, detail: str) -> None:
    [found] = find_checks(Scene().runs(command, "1 passed").done())
    assert found.detail == detail


@pytest.mark.parametrize(
    "command",
    [
        "ls tests",
        "cat test.py",
        "python reproduce.py",
        "npm install jest",
        "git commit -m 'run pytest'",
        "pytest --version",
        "docker compose up -d",
        "docker-compose logs build",
        "npm ci",
        "npm install --save-dev eslint",
        "npm run generate-types",
        "docker run -d -p 80:80 nginx",
        "cargo fmt",
        "sed -i '' 's/a/b/' a.go",
    ],
)
def test_what_only_mentions_a_check_is_none(command: str) -> None:
    assert not list(find_checks(Scene().runs(command, "done").done()))


@pytest.mark.parametrize(
    ("command", "output", "fails", "result"),
    [
        ("pytest", "1 failed, 3 passed", True, "fail"),
        ("cargo test one", "---- compiler::tests::one stdout ----\n", False, "fail"),
        ("npx eslint src", "src/app.tsx\n  102:9  error  'x' is never used  no-unused-vars", False, "fail"),
        ("pytest | tail -3", "=== 1 failed, 3 passed ===", False, "fail"),
        ("go test ./... | head", "FAIL\tpkg/a\nok\tpkg/b", False, "fail"),
        ("npm test | cat", "Tests: 0 failed, 9 passed", False, "pass"),
        ("tsc | head", "a.ts(1,1): error TS2322: no", False, "fail"),
        ("ruff check .", "All checks passed!", False, "pass"),
    ],
)
def test_a_check_has_a_result_even_behind_a_pipe(command: str, output: str, fails: bool, result: str) -> None:
    [found] = find_checks(Scene().runs(command, output, fails=fails).done())
    assert found.detail.split()[1] == result


@pytest.mark.parametrize(
    ("command", "output"),
    [("pytest -q | tail -3", ""), ("npm test", "Command running in background with ID: b1")],
)
def test_a_result_that_nothing_tells_is_unknown(command: str, output: str) -> None:
    [found] = find_checks(Scene().runs(command, output).done())
    assert found.detail == "test unknown"


def test_a_check_that_the_user_refused_has_no_result() -> None:
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    assert not list(find_checks(Scene().runs("npm run typecheck", refused, fails=True).done()))


@pytest.mark.parametrize(
    ("script", "files"),
    [
        ("node -e \"require('fs').writeFileSync('a.txt', 'some longer text')\"", ["a.txt"]),
        ("python - <<'E'\np = Path(name)\np.write_text('x')\nE", ["(a file)"]),
    ],
)
def test_a_script_on_the_command_line_writes_files(script: str, files: list[str]) -> None:
    assert written_files(script) == files


@pytest.mark.parametrize("tool", ["search_replace", "replace_string_in_file", "apply_diff", "mcp__fs__write_file"])
def test_the_editing_tools_of_other_agents_write(tool: str) -> None:
    assert act_of(Did(1, tool, "external", {"path": "a.py"}, "succeeded")) == "write"


def test_a_check_that_did_not_start_has_no_result() -> None:
    assert not list(find_checks(Scene().runs("pytest", "bash: pytest: command not found", fails=True).done()))
    assert not list(find_checks(Scene().runs("mix test", "Interrupted by user", fails=True).done()))


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("cat <<'EOF' > a.py\nif a > b:\n    rm -rf x\nEOF", ["a.py"]),
        ("sed -i 's/a > b/c/' src/x.py", ["src/x.py"]),
        ("rm a.txt b.txt", ["a.txt", "b.txt"]),
        ("echo hi 2>/dev/null", []),
        ("pytest > out.txt 2>&1", ["out.txt"]),
        (
            "apply_patch <<'P'\n*** Begin Patch\n*** Update File: a.ts\n*** Add File: b.ts\n*** End Patch\nP",
            ["a.ts", "b.ts"],
        ),
        ("git checkout -- a.py", ["a.py"]),
        ("git checkout src/a.py", ["src/a.py"]),
        ("git checkout -b fix/a.b", []),
        ("git checkout feature/login", []),
        ("python - <<'E'\nopen('made.txt', 'w').write('x')\nE", ["made.txt"]),
        ("grep -rn 'a > b' src | head", []),
    ],
)
def test_a_shell_names_the_files_it_writes(command: str, files: list[str]) -> None:
    assert written_files(command) == files


def test_a_refused_edit_changed_no_file() -> None:
    turn = (
        Scene()
        .edits("a.py", fails=True)
        .edits("a.py", output="Your edit has introduced new syntax error(s)")
        .edits("a.py")
    )
    assert [f.calls for f in find_files(turn.done())] == [(1002,)]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"command": "ls"}, "ls"),
        ({"command": ["bash", "-lc", "ls -a"]}, "ls -a"),
        ({"cmd": ["git", "status"]}, "git status"),
        ({"path": "a"}, ""),
        (None, ""),
    ],
)
def test_the_command_line_is_found_in_the_input(given: Any, line: str) -> None:
    assert command_line(given) == line


@pytest.mark.parametrize("line", ["echo 'open quote", "a | | b", ">", "", "$(", "x <<'EOF'\nnever ends"])
def test_a_broken_command_line_is_read_as_far_as_it_goes(line: str) -> None:
    assert isinstance(shell_commands(line), tuple)


@pytest.mark.parametrize(
    ("tool", "effect", "given", "act"),
    [
        ("Bash", "external", {"command": "git status"}, "look"),
        ("Bash", "external", {"command": "git commit -m x"}, "record"),
        ("Bash", "external", {"command": "pip install x"}, "run"),
        ("Read", "read", {"file_path": "a"}, "look"),
        ("Edit", "write", {"file_path": "a"}, "write"),
        ("TodoWrite", "write", {}, "plan"),
        ("book_flight", "external", {"id": 1}, "run"),
        ("str_replace_editor", "write", {"command": "view", "path": "a"}, "look"),
    ],
)
def test_a_call_is_one_kind_of_act(tool: str, effect: str, given: Any, act: str) -> None:
    assert act_of(Did(1, tool, effect, given, "succeeded")) == act


def test_recorded_changes_of_files_come_before_what_the_input_says() -> None:
    call = Did(1, "Edit", "write", {"file_path": "a"}, "succeeded", files=("real/a",))
    assert files_of(call) == ["real/a"]


@pytest.mark.parametrize(
    ("command", "detail"),
    [
        ("gleam test", "test pass"),
        (r".\gradlew.bat test", "test pass"),
        (r".venv\Scripts\python.exe -m pytest", "test pass"),
        ("ssh build 'cd app && npm test'", "test pass"),
        ("python -m pyflakes src", "lint pass"),
        ("make all", "build pass"),
        ("julia --project -e 'using Pkg; Pkg.test()'", "test pass"),
        ("react-scripts build", "build pass"),
        ("gofumpt -l .", "lint pass"),
    ],
)
def test_a_check_is_known_in_other_languages_and_shells(command: str, detail: str) -> None:
    [found] = find_checks(Scene().runs(command, "1 passed").done())
    assert found.detail == detail


@pytest.mark.parametrize(
    ("command", "output", "detail"),
    [
        ("golangci-lint run | tail -5 && go test ./a | tail -3", "Error: no config\nok  \ta\t0.3s", "lint+test fail"),
        ("go build ./... 2>&1 | head", "./main.go:3:5: undefined: x", "build fail"),
        ("go vet ./... 2>&1 | head", "", "lint pass"),
        ("npm test > out.log; echo EXIT: $?", "EXIT: 1", "test fail"),
        ("pytest -q || true", "", "test unknown"),
        ("npm test &", "", "test unknown"),
        ("set -o pipefail; pytest -q | tee log", "", "test pass"),
        ("dotnet build | tail", "Build FAILED.", "build fail"),
        ("ctest | tail -2", "100% tests passed, 0 tests failed out of 3", "test pass"),
    ],
)
def test_a_result_behind_a_pipe_is_what_the_output_says(command: str, output: str, detail: str) -> None:
    [found] = find_checks(Scene().runs(command, output).done())
    assert found.detail == detail


def test_a_check_that_was_started_in_the_background_has_no_result_yet() -> None:
    scene = Scene().calls("Bash", {"command": "npm run build", "run_in_background": True}, output="b1")
    assert [f.detail for f in find_checks(scene.done())] == ["build unknown"]


def test_a_check_that_was_interrupted_is_none() -> None:
    stopped = "Interrupted · What should Claude do instead?"
    assert not list(find_checks(Scene().runs("npx ng test | tail", stopped, fails=True).done()))


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("rm -rf .next node_modules", []),
        ('rm -f "$COOKIE_JAR"; curl -s x', []),
        ("cp a.go b.go /private/tmp/scratch/wt/pkg/", []),
        ("rm $ROOT/app/page.tsx", ["$ROOT/app/page.tsx"]),
        ("cat > fix.py <<'E'\nopen(name, 'w').write(text)\nE", ["fix.py"]),
        ("sed -i '' '1s/a/b/' app.go", ["app.go"]),
    ],
)
def test_files_that_are_thrown_away_are_not_listed(command: str, files: list[str]) -> None:
    assert files_of(Did(1, "Bash", "external", {"command": command}, "succeeded")) == files


@pytest.mark.parametrize(
    ("command", "output", "fails", "result"),
    [
        ("npx tsc --noEmit | findstr error", "Done (exit code 0).\na.ts(3,1): error TS2304: no name", False, "fail"),
        ("npx tsc --noEmit | findstr north", "Command failed with exit code 1.", True, "unknown"),
        ("pytest -q | tail -3; echo exit code ${PIPESTATUS[0]}", "exit code 0", False, "pass"),
        ("npm run build", "", False, "unknown"),
        ("npm run build > build.log", "", False, "pass"),
    ],
)
def test_the_exit_code_of_a_filter_is_not_that_of_the_check(
    command: str, output: str, fails: bool, result: str
) -> None:
    [check] = find_checks(Scene().runs(command, output, fails=fails).done())
    assert check.detail.split()[-1] == result


@pytest.mark.parametrize(
    ("tool", "given", "files"),
    [
        ("Write", {"file_path": "/home/ann/.claude/plans/blue-hill.md"}, []),
        ("write_to_file", {"file_path": r"C:\Users\ann\.gemini\antigravity\brain\1\plan.md"}, []),
        (
            "Write",
            {"file_path": "/home/ann/app/.claude/commands/check.md"},
            ["/home/ann/app/.claude/commands/check.md"],
        ),
        ("Bash", {"command": "sudo mv tool /usr/local/bin/"}, ["tool"]),
        ("Bash", {"command": "cd /tmp/try && echo 1 > probe.go"}, []),
        ("Bash", {"command": "cd /tmp/try && ls; cd /srv/app && echo 1 > probe.go"}, ["probe.go"]),
        ("Bash", {"command": "app | tee ~/app.log"}, []),
        ("Bash", {"command": "ni -D some-package"}, ["package.json"]),
    ],
)
def test_only_files_of_the_project_are_listed(tool: str, given: dict[str, str], files: list[str]) -> None:
    [call] = Scene().calls(tool, given).done().blocks
    assert isinstance(call, Did)
    assert files_of(call) == files


@pytest.mark.parametrize(
    ("command", "act"),
    [
        ("gh pr view 4", "look"),
        ("gh pr create --title x", "run"),
        ("gh api repos/a/b", "look"),
        ("curl -s localhost:8080/rows", "look"),
        ("curl -X POST localhost:8080/rows", "run"),
        ("curl localhost:8080/rows -d a=1", "run"),
        ("pnpm list --depth 0", "look"),
        ("docker compose logs web", "look"),
        ("docker ps -a", "look"),
        ("docker restart web", "run"),
        ("npm run status", "run"),
        ("systemctl status web", "look"),
    ],
)
def test_a_program_that_only_shows_something_looks(command: str, act: str) -> None:
    [call] = [b for b in Scene().runs(command, "done").blocks if isinstance(b, Did)]
    assert act_of(call) == act
