"""Acts: what kind of thing a call did. It looked, wrote files, ran a check, recorded work, or ran something else.

The tool's name and declared effect decide; a shell is classified by the programs on its command line. A table of
programs names four kinds of checks: `test`, `lint`, `types`, `build`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Final, Literal

from wakelog.model.command_lines import ShellCommand, command_line, shell_commands, written_files
from wakelog.model.values import Value

Act = Literal["look", "write", "check", "record", "plan", "run"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TEST: Final = re.compile(r"(unit[-_:]?|e2e[-_:]?|integration[-_:]?|run[-_]?)?tests?([-_:.].*)?$|spec$|ci$")
_LINT: Final = re.compile(r"lint([-_:].*)?$|eslint$|clippy$|vet$")
_TYPES: Final = re.compile(r"(type[-_]?check|check[-_:]?types?|types|tsc|mypy)([-_:].*)?$")
_BUILD: Final = re.compile(r"(build|compile|package|assemble|bundle)([-_:].*)?$")
_TARGETS: Final = (("test", _TEST), ("lint", _LINT), ("types", _TYPES), ("build", _BUILD))

_BY_PROGRAM: Final = {
    **dict.fromkeys(
        _words(
            "pytest py.test tox nox jest vitest mocha ava rspec phpunit ctest bats nosetests gotestsum nextest karma "
            "runtests.py run_tests.sh runtests.sh pest behave robot trial ward ginkgo"
        ),
        "test",
    ),
    **dict.fromkeys(
        _words(
            "flake8 pylint eslint golangci-lint shellcheck rubocop stylelint hadolint ktlint swiftlint oxlint "
            "pycodestyle pydocstyle staticcheck revive credo markdownlint bandit"
        ),
        "lint",
    ),
    **dict.fromkeys(
        ["mypy", "pyright", "basedpyright", "tsc", "vue-tsc", "pyre", "flow", "pytype", "svelte-check", "sorbet"],
        "types",
    ),
    **dict.fromkeys(_words("webpack rollup xcodebuild ninja javac"), "build"),
}
_BY_VERB: Final = {
    "cargo": {"test": "test", "t": "test", "nextest": "test", "clippy": "lint", "check": "types", "build": "build"},
    "go": {"test": "test", "vet": "lint", "build": "build"},
    "mix": {"test": "test", "credo": "lint", "dialyzer": "types", "compile": "build"},
    "dotnet": {"test": "test", "build": "build"},
    "swift": {"test": "test", "build": "build"},
    "zig": {"test": "test", "build": "build"},
    "deno": {"test": "test", "lint": "lint", "check": "types"},
    "flutter": {"test": "test", "analyze": "lint", "build": "build"},
    "dart": {"test": "test", "analyze": "lint"},
    "ruff": {"check": "lint"},
    "biome": {"check": "lint", "lint": "lint", "ci": "lint"},
    "next": {"build": "build", "lint": "lint"},
    "vite": {"build": "build"},
    "playwright": {"test": "test"},
    "cypress": {"run": "test"},
    "pre-commit": {"run": "lint"},
    "stack": {"test": "test", "build": "build"},
    "cabal": {"test": "test", "build": "build"},
    "bazel": {"test": "test", "build": "build"},
    "docker": {"build": "build"},
    "rake": {"test": "test", "spec": "test"},
    "rails": {"test": "test"},
    "artisan": {"test": "test"},
}
_COMPOSE: Final = _words("build up logs exec run down ps pull push config restart stop start kill rm")
_NAMED: Final = _words(
    "npm pnpm yarn bun make gmake just task mise rake gradle gradlew mvn mvnw sbt ant composer turbo nx lerna hatch "
    "pdm invoke inv earthly"
)
_MODULES: Final = {
    **dict.fromkeys(("pytest", "unittest", "nose", "nose2", "tox"), "test"),
    **dict.fromkeys(("flake8", "ruff", "pylint"), "lint"),
    **dict.fromkeys(("compileall", "py_compile", "build"), "build"),
    "mypy": "types",
}

_FORMATTERS: Final = _words("black prettier gofmt isort rustfmt ruff")
_LOOKS: Final = _words(
    "ls cat head tail grep egrep rg ag ack find fd wc pwd which whereis type file stat du df tree less more nl od xxd "
    "hexdump strings jq yq sort uniq cut awk tr diff cmp comm date whoami id env printenv uname ps top lsof man echo "
    "printf true false test [ cd pushd popd export set source . sleep open scroll_down scroll_up goto search_dir "
    "search_file find_file column basename dirname realpath readlink history ping nslookup dig column fold decompile "
    "disassemble read cksum md5sum sha256sum rev tac bat eza exa"
)
_GIT_LOOKS: Final = _words(
    "status log diff show branch blame grep ls-files ls-tree rev-parse remote describe config shortlog reflog fetch "
    "cat-file merge-base rev-list name-rev ls-remote for-each-ref worktree tag stash"
)
_GIT_RECORDS: Final = frozenset({"add", "commit", "push", "tag", "pull"})
_RECORDS: Final = frozenset({"submit", "exit_forfeit", "exit"})
SHELL_TOOLS: Final = re.compile(
    r"(bash|shell|local_shell|exec(ute)?(_bash|_command)?|run_(shell_)?command|terminal|container\.exec)$", re.I
)
_WRITE_TOOLS: Final = re.compile(
    r"(edit|multi_?edit|notebook_?edit|write|write_?file|create_?file|create|replace|apply_?patch|str_replace.*|insert"
    r"|edit_?file|delete_?file)$",
    re.I,
)
_LOOK_TOOLS: Final = re.compile(
    r"(read|get|search|list|find|view|glob|grep|ls|fetch|web_?search|web_?fetch|calculate|think|query|describe|lookup"
    r"|read_?file|tool_?search|bash_?output)([_A-Z].*)?$"
)
_PLAN_TOOLS: Final = re.compile(
    r"(todo_?write|write_?todos|update_?plan|exit_?plan_?mode|enter_?plan_?mode|task_?(create|update|list)|think"
    r"|ask_?user.*)$",
    re.I,
)


def act_of_call(tool: str, effect: str, arguments: Value, *, has_files: bool = False) -> Act:
    """Classifies a call, whether it succeeded or not."""
    act = _act_of_tool(tool, effect, has_files)
    if act == "run" and SHELL_TOOLS.search(tool):
        return _shell_act(command_line(arguments))
    return "look" if act == "write" and _is_view(arguments) else act


@functools.lru_cache(maxsize=1024)
def _act_of_tool(tool: str, effect: str, has_files: bool) -> Act:
    """Classifies a tool by its name and effect. A shell is `run` until its command line is read."""
    if _PLAN_TOOLS.match(tool):
        return "plan"
    if SHELL_TOOLS.search(tool):
        return "run"
    if effect == "write" or has_files or _WRITE_TOOLS.match(tool):
        return "write"
    if effect in ("read", "pure") or _LOOK_TOOLS.match(tool):
        return "look"
    return "run"


def _is_view(arguments: Value) -> bool:
    return isinstance(arguments, dict) and arguments.get("command") in ("view", "read")


def _shell_act(line: str) -> Act:
    acts = [act_of_command(command) for command in shell_commands(line)]
    return act_of_line(acts, writes=bool(written_files(line)))


def act_of_line(acts: Sequence[Act], *, writes: bool) -> Act:
    """Classifies a command line by its commands and whether it writes files."""
    if "check" in acts:
        return "check"
    if writes:
        return "write"
    for act in ("run", "record"):
        if act in acts:
            return act
    return "look"


def act_of_command(command: ShellCommand) -> Act:
    """Classifies one command of a command line."""
    if checks_in([command]):
        return "check"
    program, words = command.program, command.words
    if program == "git":
        verb = next((w for w in words[1:] if not w.startswith("-")), "")
        return "record" if verb in _GIT_RECORDS else "look" if verb in _GIT_LOOKS else "run"
    if program in _RECORDS:
        return "record"
    if program in _LOOKS or program in ("sed", "gh", "curl") or words[-1:] == ("--version",):
        return "look"
    return "run"


def checks_in(commands: Sequence[ShellCommand]) -> list[str]:
    """Returns the names of the checks that commands run, each once, in order."""
    return list(dict.fromkeys(name for c in commands if (name := _check(c))))


def _check(command: ShellCommand) -> str:
    program, words = command.program, [w for w in command.words[1:] if not w.startswith("+")]
    plain = [w for w in words if not w.startswith("-")]
    if "--version" in words or "--help" in words or "--collect-only" in words:
        return ""
    if re.fullmatch(r"python[\d.]*|pypy3?|py", program):
        return _python_check(words)
    if program in _BY_PROGRAM:
        return _BY_PROGRAM[program]
    if re.fullmatch(r"go\d[\w.]*", program):  # a version of Go beside the default one
        program = "go"
    if program == "docker-compose" or (program == "docker" and plain[:1] == ["compose"]):
        verb = next((w for w in plain if w in _COMPOSE), "")
        return "build" if verb == "build" or (verb == "up" and "--build" in words) else ""
    if program in _FORMATTERS and {"--check", "-l", "--diff", "--list-different"} & set(words):
        return "lint" if "-w" not in words else ""
    if command.words[0].endswith("bin/test") or (program == "node" and "--test" in words):
        return "test"
    if program == "php" and plain[:2] == ["artisan", "test"]:
        return "test"
    if program in _BY_VERB and plain:
        return _BY_VERB[program].get(plain[0], "")
    if program in _NAMED:
        targets = [w for w in plain if w not in ("run", "run-script", "exec", "-s", "x")]
        return _BY_PROGRAM.get(targets[0], "") or _named_check(targets) if targets else ""
    if re.search(r"(^|[_-])(run)?_?tests?(\.(sh|py|js|ts|rb))?$", program) and program != "test":
        return "test"
    return ""


def _python_check(words: list[str]) -> str:
    if "-m" in words[:-1]:
        return _MODULES.get(words[words.index("-m") + 1], "")
    script = next((w for w in words if not w.startswith("-")), "").rsplit("/", 1)[-1]
    if script == "manage.py":
        return "test" if "test" in words else "lint" if "check" in words else ""
    if script in ("runtests.py", "run_tests.py", "bin/test"):
        return "test"
    return "test" if script == "setup.py" and "test" in words else ""


def _named_check(targets: list[str]) -> str:
    for target in targets:
        for name, pattern in _TARGETS:
            if pattern.match(target.rsplit(":", 1)[-1] if ":" in target and name == "test" else target):
                return name
        if target == "check":
            return "test"
    return ""
