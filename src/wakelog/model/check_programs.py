"""Which commands are checks: `test`, `lint`, `types` or `build`.

Some programs are always a check (`pytest`), some with a certain verb (`cargo test`), and some run what a project calls
a check (`npm run lint`, `make test`): there the name decides. To install a checker, or to ask for its version, checks
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from wakelog.model.command_lines import ShellCommand


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _kinds(**programs: str) -> Mapping[str, str]:
    """Each program with its kind of check."""
    return {program: kind for kind, names in programs.items() for program in names.split()}


_PROGRAMS: Final = _kinds(
    test="pytest py.test tox nox jest vitest mocha ava rspec phpunit ctest bats nosetests gotestsum nextest karma pest "
    "runtests.py run_tests.sh runtests.sh behave robot trial ward ginkgo cucumber newman cargo-nextest tap "
    "cypress:run hurl wtr web-test-runner molecule kuttl conftest busted elm-test testcafe gotest nose2 green pytest-3 "
    "wdio shellspec",
    lint="flake8 pylint eslint golangci-lint shellcheck rubocop stylelint hadolint ktlint swiftlint oxlint pycodestyle "
    "pydocstyle staticcheck revive credo markdownlint markdownlint-cli2 bandit yamllint actionlint commitlint tflint "
    "ansible-lint cfn-lint checkov semgrep clang-tidy cppcheck knip depcheck vale detekt standardrb standard xo tslint "
    "kubeconform kubeval interrogate vulture djlint cspell codespell luacheck selene pyflakes htmlhint html-validate "
    "phpcs erb_lint erblint reek brakeman publint secretlint deptry solhint slither",
    types="mypy dmypy pyright basedpyright tsc vue-tsc pyre flow pytype svelte-check sorbet ty tsgo attw phpstan psalm "
    "pyrefly zuban tsd glint",
    build="webpack rollup xcodebuild ninja javac tsup esbuild parcel kotlinc electron-builder wasm-pack maturin",
)
_VERBS: Final[Mapping[str, Mapping[str, str]]] = {
    "cargo": _kinds(test="test t nextest bench", lint="clippy deny audit", types="check", build="build b"),
    "go": _kinds(test="test", lint="vet", build="build"),
    "mix": _kinds(test="test", lint="credo", types="dialyzer", build="compile"),
    "dotnet": _kinds(test="test", build="build publish"),
    "swift": _kinds(test="test", build="build"),
    "zig": _kinds(test="test", build="build"),
    "deno": _kinds(test="test", lint="lint", types="check", build="compile"),
    "flutter": _kinds(test="test", lint="analyze", build="build"),
    "dart": _kinds(test="test", lint="analyze"),
    "ruff": _kinds(lint="check"),
    "biome": _kinds(lint="check lint ci"),
    "next": _kinds(build="build", lint="lint"),
    "vite": _kinds(build="build"),
    "astro": _kinds(build="build", types="check"),
    "nuxt": _kinds(build="build generate", types="typecheck"),
    "nuxi": _kinds(build="build generate", types="typecheck"),
    "ng": _kinds(test="test e2e", lint="lint", build="build"),
    "remix": _kinds(build="vite:build build"),
    "expo": _kinds(build="export", lint="lint"),
    "playwright": _kinds(test="test"),
    "cypress": _kinds(test="run"),
    "pre-commit": _kinds(lint="run"),
    "lefthook": _kinds(lint="run"),
    "stack": _kinds(test="test", build="build"),
    "cabal": _kinds(test="test", build="build"),
    "bazel": _kinds(test="test", build="build"),
    "bazelisk": _kinds(test="test", build="build"),
    "pants": _kinds(test="test", lint="lint", types="check"),
    "docker": _kinds(build="build"),
    "podman": _kinds(build="build"),
    "rails": _kinds(test="test spec"),
    "lein": _kinds(test="test", build="compile uberjar"),
    "forge": _kinds(test="test", build="build"),
    "hardhat": _kinds(test="test", build="compile"),
    "anchor": _kinds(test="test", build="build"),
    "meson": _kinds(test="test", build="compile"),
    "terraform": _kinds(types="validate"),
    "tofu": _kinds(types="validate"),
    "helm": _kinds(lint="lint"),
    "buf": _kinds(lint="lint", build="build"),
    "sqlfluff": _kinds(lint="lint"),
    "mkdocs": _kinds(build="build"),
    "jekyll": _kinds(build="build"),
    "pio": _kinds(test="test", build="run"),
    "platformio": _kinds(test="test", build="run"),
    "prisma": _kinds(types="validate"),
    "storybook": _kinds(build="build"),
    "gleam": _kinds(test="test", types="check", build="build"),
    "dune": _kinds(test="test runtest", build="build"),
    "rebar3": _kinds(test="eunit ct proper", types="dialyzer", build="compile"),
    "crystal": _kinds(test="spec", build="build"),
    "elm": _kinds(build="make"),
    "nix": _kinds(build="build"),
    "truffle": _kinds(test="test", build="compile"),
    "scala-cli": _kinds(test="test", build="compile"),
    "mill": _kinds(test="test", build="compile"),
    "detox": _kinds(test="test", build="build"),
    "maestro": _kinds(test="test"),
    "k6": _kinds(test="run"),
    "arduino-cli": _kinds(build="compile"),
    "idf.py": _kinds(build="build"),
    "west": _kinds(test="twister", build="build"),
    "gatsby": _kinds(build="build"),
    "vercel": _kinds(build="build"),
    "docusaurus": _kinds(build="build"),
    "vitepress": _kinds(build="build"),
    "react-scripts": _kinds(test="test", build="build"),
    "vue-cli-service": _kinds(test="test:unit test:e2e", lint="lint", build="build"),
    "craco": _kinds(test="test", build="build"),
    "nest": _kinds(build="build"),
    "oxfmt": _kinds(lint="check"),
    "wails": _kinds(build="build"),
    "tauri": _kinds(build="build"),
}
_NAMED: Final = _words(
    "npm pnpm yarn bun make gmake just task mise rake gradle gradlew mvn mvnw mvnd sbt ant composer turbo nx lerna "
    "hatch pdm invoke inv earthly poe rye moon rush vp wireit pixi"
)
"""They run what a project has given a name."""
_MODULES: Final = _kinds(
    test="pytest unittest nose nose2 tox nox doctest behave twisted.trial green",
    lint="flake8 ruff pylint pyflakes pycodestyle bandit pre_commit",
    types="mypy pyright basedpyright",
    build="compileall py_compile build",
)
_JVM: Final = frozenset({"gradle", "gradlew", "mvn", "mvnw", "mvnd"})

_TARGETS: Final = (
    ("lint", re.compile(r"(?:.*[-_:.])?(?:es|stylint|kt)?lint(?:er|ing)?(?:[-_:.A-Z].*)?$|clippy$|vet$|detekt$")),
    (
        "lint",
        re.compile(r"(?:format|fmt|prettier|style|spotless)[-_:]?check$|check[-_:](?:format|fmt|style|lint)", re.I),
    ),
    ("types", re.compile(r"(?:.*[-_:])?(?:type[-_]?check|check[-_:]?types?|tsc|mypy|pyright)(?:[-_:].*)?$|types$")),
    ("test", re.compile(r"(?:.*[-_:.])?(?:run[-_]?)?(?:tests?|specs?|e2e|coverage)(?:[-_:.A-Z].*)?$|units?$|ci$")),
    ("build", re.compile(r"(?:.*[-_:])?(?:build|compile|package|assemble|bundle)(?:[-_:.A-Z].*)?$|all$")),
    ("test", re.compile(r"check$|verify$|validate$|preflight$|qa$|check[-_:]all$|all[-_:]checks$")),
)
"""The names that projects give to checks, in this order: `lint-tests` is a lint."""
_SCRIPT: Final = re.compile(r"(?:.*[-_])?(test|lint|typecheck|build|check)s?(?:[-_]\w+)?\.(?:sh|bash|ps1)")
_TEST_CALL: Final = re.compile(r"\bPkg\.test\b|\b(?:devtools::|testthat::)?test(?:_\w+)?\(|\bcheck\(\)")
_TEST_SCRIPT: Final = re.compile(r"(?:.*[-_.])?(?:tests?|specs?)(?:[-_.A-Z].*)?\.(?:[cm]?[jt]sx?|py|rb|php|lua|pl|R)")
"""A script that is a test by its name."""
_INTERPRETERS: Final = re.compile(r"(?:python|pypy|node|deno|bun|tsx|ts-node|ruby|php|lua|perl|Rscript)[\d.]*|py")
_TOOLS: Final = (
    ("test", re.compile(r"(?:copilot_)?run_?(?:unit_?)?tests?", re.I)),
    ("lint", re.compile(r"(?:read|get|run|check)_?lint(?:s|er|_?errors)?", re.I)),
    ("types", re.compile(r"(?:copilot_)?(?:get|read|lsp|ide)?_?(?:file_?)?(?:errors|diagnostics|problems)", re.I)),
)
"""Tools of editors that run tests, or return what the editor's language servers complain about."""
_TEST_PROGRAM: Final = re.compile(r"(?:.*[-_])?(?:run)?_?tests?(?:\.(?:sh|py|js|mjs|ts|rb))?")
_FORMATTERS: Final = _words(
    "black prettier gofmt gofumpt goimports isort rustfmt ruff dprint biome clang-format nixfmt shfmt stylua "
    "taplo pint "
    "php-cs-fixer"
)
_ONLY_CHECKS: Final = frozenset(
    {"--check", "-l", "--diff", "--list-different", "-c", "-check", "--verify-no-changes", "--dry-run", "-d", "--test"}
)
_FORMATS: Final = {
    "cargo": "fmt",
    "deno": "fmt",
    "dotnet": "format",
    "terraform": "fmt",
    "tofu": "fmt",
    "mix": "format",
}
"""Programs that also format, with the verb for it."""
_SYNTAX: Final = {
    "node": _words("--check -c"),
    "php": _words("-l"),
    "bash": _words("-n"),
    "sh": _words("-n"),
    "zsh": _words("-n"),
    "ruby": _words("-c"),
    "perl": _words("-c"),
}
"""Interpreters with the options to only check the syntax."""
_INSTALLS: Final = _words(
    "install i add ci remove rm uninstall un update up upgrade create init publish view info outdated why ls list link "
    "audit pack login config dedupe fund"
)
_STEPS: Final = frozenset(
    {"run", "run-script", "exec", "x", "t", "tst", "-s", "dlx", "run-many", "affected", "workspace"}
)
_COMPOSE: Final = _words("build up logs exec run down ps pull push config restart stop start kill rm")
_ASKS: Final = frozenset({"--version", "--help", "--collect-only", "-h", "--list", "--init", "--showConfig"})
_WINDOWS: Final = re.compile(r"\.(?:exe|cmd|bat)$", re.IGNORECASE)
_NAMED_TARGET: Final = re.compile(r"(?:-t|--targets?)[= ]?(.+)")


def checks_in(commands: Sequence[ShellCommand]) -> list[str]:
    """Returns the names of the checks that commands run, each once, in order."""
    return list(dict.fromkeys(name for c in commands if (name := check_of(c))))


def check_of(command: ShellCommand) -> str:
    """The check that a command runs; empty if none."""
    program, words = _WINDOWS.sub("", command.program), [w for w in command.words[1:] if not w.startswith("+")]
    if _ASKS & set(words):
        return ""
    if re.fullmatch(r"python[\d.]*|pypy3?|py", program):
        return _python_check(words)
    plain = [w for w in words if not w.startswith("-")]
    if re.fullmatch(r"go\d[\w.]*", program):  # a version of Go beside the default one
        program = "go"
    if program == "xcodebuild" and plain[-1:] == ["test"]:
        return "test"
    if program == "coverage" and plain[:1] == ["run"]:
        return _python_check(words[1:])
    if program == "docker-compose" or (program in ("docker", "podman") and plain[:1] == ["compose"]):
        verb = next((w for w in plain if w in _COMPOSE), "")
        return "build" if verb == "build" or (verb == "up" and "--build" in words) else ""
    return (
        _format_check(program, words, plain)
        or _PROGRAMS.get(program, "")
        or (_VERBS[program].get(plain[0], "") if program in _VERBS and plain else "")
        or (_named_check(program, words, plain) if program in _NAMED else "")
        or _script_check(command, program, words, plain)
    )


def check_of_tool(tool: str) -> str:
    """The check that a tool of an editor runs, by its name without its server's; empty if none."""
    return next((kind for kind, pattern in _TOOLS if pattern.fullmatch(tool)), "")


def runs_test_script(command: ShellCommand) -> bool:
    """Whether a command runs a script that is a test by its name. It may be a test of the project, or a script to try
    something: its output says which."""
    words = [w for w in command.words if not w.startswith("-")]
    if words and _INTERPRETERS.fullmatch(command.program):
        words = words[2:] if words[1:2] == ["run"] else words[1:]
    return bool(words) and bool(_TEST_SCRIPT.fullmatch(words[0].rsplit("/", 1)[-1]))


def _python_check(words: list[str]) -> str:
    if "-m" in words[:-1]:
        module, rest = words[words.index("-m") + 1], words[words.index("-m") + 2 :]
        return _python_check(rest[1:]) if module == "coverage" and rest[:1] == ["run"] else _MODULES.get(module, "")
    script = next((w for w in words if not w.startswith("-")), "").rsplit("/", 1)[-1]
    if script in ("manage.py", "setup.py"):
        return "test" if "test" in words else "lint" if "check" in words else ""
    return "test" if script in ("runtests.py", "run_tests.py", "pytest") else ""


def _format_check(program: str, words: list[str], plain: list[str]) -> str:
    """A formatter that only checks is a linter."""
    formats = program in _FORMATTERS or (program in _FORMATS and plain[:1] == [_FORMATS[program]])
    return "lint" if formats and _ONLY_CHECKS & set(words) and "-w" not in words else ""


def _named_check(program: str, words: list[str], plain: list[str]) -> str:
    """A check by the name that the project gave it, or by the program that a package manager starts."""
    is_manager = program in ("npm", "pnpm", "yarn", "bun", "composer", "pdm", "rye", "pixi")
    if is_manager and next((w for w in plain if w in _STEPS or w in _INSTALLS), "") in _INSTALLS:
        return ""
    if program == "npm" and set(plain) & {"t", "tst"}:
        return "test"
    if program in ("make", "gmake") and not plain:
        return "build"
    if program in _JVM and not set(plain).isdisjoint({"install", "verify"}):
        return "build" if "install" in plain else "test"
    flagged = [m[1] for w in words if (m := _NAMED_TARGET.fullmatch(w))]
    targets = [w for w in [*plain, *flagged] if w not in _STEPS]
    for n, target in enumerate(targets):
        if target in _PROGRAMS:
            return _PROGRAMS[target]
        if kind := _VERBS.get(target, {}).get(targets[n + 1] if n + 1 < len(targets) else "", ""):
            return kind
        if kind := _check_named(target):
            return kind
    return ""


def _check_named(target: str) -> str:
    """The kind of check that a name says. Of `:app:testDebug` and `web:build`, the last part counts if the whole does
    not say it."""
    names = (target, target.rsplit(":", 1)[-1])
    return next((kind for name in names for kind, pattern in _TARGETS if pattern.match(name)), "")


def _script_check(command: ShellCommand, program: str, words: list[str], plain: list[str]) -> str:
    if plain and _SYNTAX.get(program, frozenset()) & set(words):
        return "build"
    if program in ("node", "tsx") and "--test" in words:
        return "test"
    if program in ("julia", "Rscript") and any(_TEST_CALL.search(w) for w in words):
        return "test"
    if program == "php" and plain[:2] == ["artisan", "test"]:
        return "test"
    if program in ("cmake", "R") and ("--build" in words or plain[:2] == ["CMD", "check"]):
        return "build" if program == "cmake" else "test"
    if program == "deno" and plain[:1] == ["task"]:
        return _check_named(plain[1]) if len(plain) > 1 else ""
    if command.words[0].endswith("bin/test"):
        return "test"
    script = plain[0].rsplit("/", 1)[-1] if program in ("bash", "sh", "zsh", "pwsh") and plain else program
    if match := _SCRIPT.fullmatch(script):
        return {"typecheck": "types", "check": "test"}.get(match[1], match[1])
    return "test" if program != "test" and _TEST_PROGRAM.fullmatch(program) else ""
