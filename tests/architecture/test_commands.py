"""Commands call verbs: they do not reach below the rooms where the verbs are.

A command, and what renders its answer, may import the rooms of `ROOMS`. From a room below it may import constants, and
the types that verbs take or give: to annotate with, and to say how a result is shown. Functions, and types that no verb
leads to, are a verb that is missing. `EXCEPTIONS` has the few that are meant, each with its reason.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source import SOURCE, tree

PLACES = ("cli/commands", "cli/render", "cli/selectors.py")
ROOMS = {"cli", "config", "errors", "maintenance", "model", "session", "store"}
VERBS = (("wakelog.session.session", "Session"), ("wakelog.store", "Store"))
"""Types are reached from here."""

POSITIONS = "this file is where words become positions"
USERS_CODE = "imports code of the user, which the command line names"
SURFACE = "starts a server, which stands beside the verbs"
EXCEPTIONS = {
    ("cli/selectors.py", "wakelog.importers.imported_sessions", "name_of_origin"): POSITIONS,
    ("cli/selectors.py", "wakelog.importers.imported_sessions", "session_of_file"): POSITIONS,
    ("cli/selectors.py", "wakelog.state.patch", "escape"): POSITIONS,
    ("cli/selectors.py", "wakelog.state.patch", "tokens_of"): POSITIONS,
    ("cli/selectors.py", "wakelog.timeline.points", "first_commit"): POSITIONS,
    ("cli/selectors.py", "wakelog.timeline.points", "seq_at_time"): POSITIONS,
    ("cli/selectors.py", "wakelog.timeline.selectors", "Selector"): POSITIONS,
    ("cli/selectors.py", "wakelog.timeline.selectors", "parse_selector"): POSITIONS,
    ("cli/selectors.py", "wakelog.timeline.selectors", "parse_time"): POSITIONS,
    ("cli/selectors.py", "wakelog.timeline.selectors", "resolve_change"): POSITIONS,
    ("cli/selectors.py", "wakelog.timeline.selectors", "resolve_range"): POSITIONS,
    (
        "cli/commands/doctor.py",
        "wakelog.engines.sqlite.inspection",
        "file_system",
    ): "there may be no store yet",
    ("cli/commands/git.py", "wakelog.files.git_hook", "install_hook"): "there may be no store yet",
    ("cli/commands/git.py", "wakelog.files.git_hook", "remove_hook"): "there may be no store yet",
    ("cli/commands/plans.py", "wakelog.replay.agent_run", "load_tools"): USERS_CODE,
    ("cli/commands/replay.py", "wakelog.replay.agent_run", "load_agent"): USERS_CODE,
    ("cli/commands/watch.py", "wakelog.monitors.rules", "load_rules"): USERS_CODE,
}
KEYS = "reads keys, which come from outside the store"
AGENTS = "changes settings of other programs, where there is no store to ask"
FORMATS = "foreign formats stand above the verbs, which know none of them"
WHOLE_ROOMS = {
    "cli/commands/anchor.py": ({"evidence"}, KEYS),
    "cli/commands/audit.py": ({"evidence", "exporters"}, KEYS + "; pages stand above the verbs"),
    "cli/commands/enable.py": ({"hooks"}, AGENTS),
    "cli/commands/export.py": ({"exporters"}, FORMATS),
    "cli/commands/hook.py": ({"hooks"}, "writes down what an agent says, without a store"),
    "cli/commands/doctor.py": ({"hooks"}, AGENTS),
    "cli/commands/imports.py": ({"adapters", "importers"}, "reads files of other programs, before there is a session"),
    "cli/commands/record.py": ({"instruments", "child_process"}, "runs a program of the user behind a proxy"),
    "cli/commands/conformance.py": ({"conformance"}, "judges a server over the wire, where there is no store to ask"),
    "cli/commands/mcp.py": ({"mcp", "child_process"}, SURFACE),
    "cli/commands/otel.py": ({"exporters", "http", "importers", "otlp"}, f"{FORMATS}; {SURFACE}"),
    "cli/commands/project.py": ({"http"}, "namespaces are made by servers; a store knows only its own"),
    "cli/commands/serve.py": ({"http"}, SURFACE),
    "cli/commands/ui.py": ({"http", "web"}, SURFACE),
    "cli/commands/webhooks.py": (
        {"webhooks", "key_source"},
        "sends to others, and keeps its own books; no verb of a session",
    ),
    "cli/commands/verify.py": ({"evidence"}, KEYS),
}


def test_commands_import_verbs_and_what_verbs_give() -> None:
    found = [f"{where}: {reason}" for where, reason in _violations(SOURCE)]
    assert not found, "\n" + "\n".join(found)


def test_every_exception_is_still_needed() -> None:
    imported = {(where, module, name) for where, module, name in _imports(SOURCE)}
    assert set(EXCEPTIONS) <= imported
    assert {where for where, *_ in imported} >= set(WHOLE_ROOMS)


@pytest.mark.parametrize(
    ("line", "is_refused"),
    [
        ("from wakelog.log.bundle import export_bundle", True),
        ("from wakelog.engines.memory import MemoryEngine", True),
        ("import wakelog.log.bundle", True),
        ("from wakelog import log", True),
        ("def f():\n    from wakelog.log.bundle import export_bundle", True),
        ("from wakelog.log.verify import VerifyReport", False),
        ("from wakelog.log.reader import Entry", False),
        ("from wakelog.index.sql import ROWS_MAX", False),
        ("from wakelog.store import Store", False),
        ("from wakelog.errors import WakelogError", False),
        ("import wakelog", False),
    ],
)
def test_the_check_tells_a_verb_from_what_is_below(tmp_path: Path, line: str, is_refused: bool) -> None:
    path = tmp_path / "cli/commands/new.py"
    path.parent.mkdir(parents=True)
    path.write_text(line, encoding="utf-8")
    assert bool(list(_violations(tmp_path))) is is_refused


def _violations(source: Path) -> Iterator[tuple[str, str]]:
    for where, module, name in _imports(source):
        room = module.split(".")[1] if "." in module else ""
        allowed = ROOMS | WHOLE_ROOMS.get(where, (set(), ""))[0]
        if not room or room in allowed or (where, module, name) in EXCEPTIONS:
            continue
        if name.isupper() or _defined(module, name) in _reached():
            continue
        yield where, f"imports {name or 'the module'} of {module}. Give Session or Store a verb that does it."


def _imports(source: Path) -> Iterator[tuple[str, str, str]]:
    """(file, module, name) for each import of ours; the name is empty where a module itself is imported."""
    for place in PLACES:
        for path in sorted((source / place).rglob("*.py")) if not place.endswith(".py") else [source / place]:
            if not path.exists():
                continue
            for node in ast.walk(tree(path)):
                for module, name in _names(node):
                    yield path.relative_to(source).as_posix(), module, name


def _names(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names if alias.name.startswith("wakelog"))
    elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wakelog"):
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield (inner, "") if _file(inner) is not None else (str(node.module), alias.name)


# The types that verbs lead to: those in the annotations of their public methods and fields, and on from there.


@cache
def _reached() -> frozenset[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    waiting = list(VERBS)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += _leads_to(*one)
    return frozenset(found)


def _leads_to(module: str, name: str) -> Iterator[tuple[str, str]]:
    parsed, homes = _module(module)
    for node in parsed.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            annotations = [*node.bases, *_annotations(node)]
        elif isinstance(node, ast.Assign) and any(getattr(t, "id", "") == name for t in node.targets):
            annotations = [node.value]  # an alias, such as `Side = str | Session`
        else:
            continue
        for annotation in annotations:
            for part in ast.walk(annotation):
                if isinstance(part, ast.Name) and part.id in homes:
                    yield homes[part.id]
                elif isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value in homes:
                    yield homes[part.value]


def _annotations(of: ast.ClassDef) -> Iterator[ast.expr]:
    for node in of.body:
        if isinstance(node, ast.AnnAssign):
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield from _of_function(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            yield from node.value.args  # a verb made of a question, such as `decisions = _asks(AskDecisions)`
        elif isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__call__", "__getitem__"):
            yield from _of_function(node)
            yield from (inner.annotation for inner in ast.walk(node) if isinstance(inner, ast.AnnAssign))


def _of_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    arguments = node.args
    given = [*arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    yield from (each.annotation for each in given if each is not None and each.annotation is not None)
    if node.returns is not None:
        yield node.returns


@cache
def _module(module: str) -> tuple[ast.Module, dict[str, tuple[str, str]]]:
    """A module, and where each of its names is defined, as far as that is in a module of ours."""
    path = _file(module)
    assert path is not None, module
    parsed = tree(path)
    homes = {node.name: (module, node.name) for node in parsed.body if isinstance(node, ast.ClassDef)}
    homes |= {
        target.id: (module, target.id)
        for node in parsed.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(parsed):
        for inner, name in _names(node):
            if name:
                homes[name] = _defined(inner, name)
    return parsed, homes


def _defined(module: str, name: str) -> tuple[str, str]:
    """Where a name that a package re-exports comes from."""
    path = _file(module)
    if path is not None and path.name == "__init__.py":
        for node in tree(path).body:
            for inner, each in _names(node):
                if each == name:
                    return _defined(inner, name)
    return module, name


def _file(module: str) -> Path | None:
    inside = SOURCE.joinpath(*module.split(".")[1:])
    return next((p for p in (inside.with_suffix(".py"), inside / "__init__.py") if p.is_file()), None)
