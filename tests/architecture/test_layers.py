"""Holds the order of the rooms: imports go down the list only.

A room is the first name below `wakelog`, whether it is a module (`codec.py`) or a package (`codec/`). Every
import statement counts, also inside functions and under TYPE_CHECKING: a type that is needed from above is a
value in the wrong room. The package root re-exports `store` and what lies below it, so importing from the
root counts as importing `store`.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import SOURCE, tree

PACKAGE = SOURCE.name

# Top to bottom. Rooms in one tuple do not import each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("cli",),
    ("http", "mcp"),
    ("web",),
    ("hooks", "adapters"),
    ("exporters",),
    ("importers",),
    ("instruments",),
    ("testing",),
    ("maintenance", "webhooks"),
    ("store",),
    ("config",),
    ("session",),
    ("replay",),
    ("runtime",),
    ("context", "files", "monitors"),
    ("compare", "knowledge"),
    ("diff", "provenance", "insight", "patterns"),
    ("timeline",),
    ("index",),
    ("log", "evidence"),
    ("state", "engines", "encryption"),
    ("key_source", "engine_wrapper"),
    ("codec", "redaction", "engine", "conformance", "atomic_file", "child_process", "user_code", "otlp"),
    ("model", "errors"),
    ("native",),
)
SIDEWAYS = {("model", "errors")}
NEVER_IMPORTED = {"testing"}
ROOT_COUNTS_AS = "store"

LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
ROOT_FILES = {"__init__.py", "__main__.py"}
FIX = "Move the value into model, or pass it in as an argument."


def violations(package_dir: Path) -> list[str]:
    """One sentence for each import that breaks the order, and for each room that has no place in it."""
    found = []
    for path in sorted(package_dir.rglob("*.py")):
        inside = path.relative_to(package_dir)
        if len(inside.parts) == 1 and inside.name in ROOT_FILES:
            continue
        room = inside.parts[0].removesuffix(".py")
        where = f"{package_dir.name}/{inside.as_posix()}"
        if room not in LEVEL:
            found.append(
                f"{where} is in the room {room!r}, which has no place in the order. "
                "Put it into LAYERS in tests/architecture/test_layers.py, or move the file into another room."
            )
            continue
        for line, target in _imported_rooms(tree(path), (package_dir.name, *inside.parts), package_dir):
            problem = _judge(room, target)
            if problem:
                found.append(f"{where}:{line}: {problem}")
    return found


def _judge(room: str, target: str | None) -> str | None:
    """Why `room` may not import `target` (None is the package root), or None where it may."""
    if target is None:
        if LEVEL[room] < LEVEL[ROOT_COUNTS_AS]:
            return None
        return (
            f"room {room!r} imports from the package root, which stands above it. "
            f"Import from the room that defines the name. If that room is above: {FIX}"
        )
    if target == room or (room, target) in SIDEWAYS:
        return None
    if target not in LEVEL:
        return f"room {room!r} imports {target!r}, which is not a room. Put it into LAYERS, or correct the name."
    if target in NEVER_IMPORTED:
        return f"room {room!r} imports room {target!r}, which no other room may import. {FIX}"
    if LEVEL[target] < LEVEL[room]:
        return f"room {room!r} imports room {target!r}, which is above it. {FIX}"
    if LEVEL[target] == LEVEL[room]:
        return f"room {room!r} imports room {target!r}, which is beside it. {FIX}"
    return None


def _imported_rooms(module: ast.Module, parts: tuple[str, ...], package_dir: Path) -> Iterator[tuple[int, str | None]]:
    for node in ast.walk(module):
        for dotted in _imported_names(node, parts):
            names = dotted.split(".")
            if names[0] != PACKAGE:
                continue
            # `from wakelog import x` names a room where there is one, and else something the root re-exports.
            if len(names) == 2 and isinstance(node, ast.ImportFrom) and not _is_room(names[1], package_dir):
                names.pop()
            yield getattr(node, "lineno", 0), names[1] if len(names) > 1 else None


def _imported_names(node: ast.AST, parts: tuple[str, ...]) -> Iterator[str]:
    """Absolute dotted names, with the imported name at the end of each `from … import`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            base = ".".join([*parts[: -node.level], *([node.module] if node.module else [])])
        yield from (f"{base}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and node.args:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0]
        if called in {"import_module", "__import__"} and isinstance(first, ast.Constant):
            yield str(first.value)


def _is_room(name: str, package_dir: Path) -> bool:
    return name in LEVEL or (package_dir / name).is_dir() or (package_dir / f"{name}.py").is_file()


def test_imports_go_down_only() -> None:
    assert list(SOURCE.rglob("*.py")), f"no modules found under {SOURCE}"
    found = violations(SOURCE)
    assert not found, "\n" + "\n".join(found)


def test_every_room_in_the_order_is_there() -> None:
    there = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.name not in ROOT_FILES}
    assert {room for room in LEVEL if room not in there} == set()


def test_the_page_for_contributors_lists_the_same_rooms_in_the_same_order() -> None:
    page = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    part = page.partition("## Rooms")[2].partition("\n## ")[0]
    listed = re.findall(r"^ {4}(\d+) +(\w+) {2,}\S", part, re.MULTILINE)
    levels = {room: int(number) - 1 for number, room in listed}
    assert levels == LEVEL
    assert list(levels.values()) == sorted(levels.values())


def _tree(tmp_path: Path, files: dict[str, str]) -> Path:
    package_dir = tmp_path / PACKAGE
    for name, text in {"__init__.py": "", **files}.items():
        path = package_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return package_dir


@pytest.mark.parametrize(
    "source",
    [
        "import wakelog.session",
        "import wakelog.session as s",
        "from wakelog.session import append",
        "from wakelog import session",
        "from .session import append",
        "from . import session",
        "def f():\n    from wakelog.session import append",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from wakelog.session import Session",
        "import importlib\nimportlib.import_module('wakelog.session')",
    ],
)
def test_checker_catches_an_upward_import(tmp_path: Path, source: str) -> None:
    [sentence] = violations(_tree(tmp_path, {"log.py": source, "session.py": ""}))
    assert "wakelog/log.py" in sentence
    assert "'log'" in sentence
    assert "'session'" in sentence
    assert FIX in sentence


@pytest.mark.parametrize("source", ["from ..session import append", "from .. import session"])
def test_checker_resolves_relative_imports_in_packages(tmp_path: Path, source: str) -> None:
    files = {"state/__init__.py": "", "state/fold.py": source, "session.py": ""}
    [sentence] = violations(_tree(tmp_path, files))
    assert "wakelog/state/fold.py:1" in sentence
    assert "'session'" in sentence


def test_checker_resolves_relative_imports_in_a_package_init(tmp_path: Path) -> None:
    files = {"state/__init__.py": "from .session import x\nfrom ..session import y", "state/session.py": ""}
    [sentence] = violations(_tree(tmp_path, files))
    assert "wakelog/state/__init__.py:2" in sentence


def test_checker_catches_a_sideways_import(tmp_path: Path) -> None:
    files = {"state/fold.py": "from wakelog.engines import memory", "engines/memory.py": ""}
    [sentence] = violations(_tree(tmp_path, files))
    assert "beside it" in sentence


@pytest.mark.parametrize("room", ["cli", "http", "store", "model"])
def test_checker_lets_no_room_import_testing(tmp_path: Path, room: str) -> None:
    [sentence] = violations(_tree(tmp_path, {f"{room}.py": "import wakelog.testing.toy", "testing/toy.py": ""}))
    assert "'testing'" in sentence


def test_checker_refuses_a_room_without_a_place(tmp_path: Path) -> None:
    [sentence] = violations(_tree(tmp_path, {"utils/text.py": ""}))
    assert "wakelog/utils/text.py" in sentence
    assert "has no place" in sentence


def test_checker_refuses_an_import_of_an_unknown_room(tmp_path: Path) -> None:
    [sentence] = violations(_tree(tmp_path, {"log.py": "import wakelog.missing"}))
    assert "not a room" in sentence


def test_checker_counts_the_package_root_as_the_store(tmp_path: Path) -> None:
    [sentence] = violations(_tree(tmp_path, {"log.py": "from wakelog import Session", "cli.py": "import wakelog"}))
    assert "wakelog/log.py" in sentence
    assert "package root" in sentence


def test_checker_accepts_what_is_allowed(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from wakelog.cli import main",
        "__main__.py": "from wakelog.cli import main",
        "cli/__init__.py": "from . import render\nimport wakelog",
        "cli/render.py": "import rich\nfrom .. import store",
        "testing/contract.py": "from wakelog.engine import Engine\nfrom wakelog.session import Session",
        "store.py": "from wakelog.session import Session\nfrom wakelog.engines.memory import Memory",
        "session.py": "import wakelog.log, wakelog.errors",
        "log.py": "from wakelog.state.fold import fold",
        "state/fold.py": "from .diff import diff\nfrom wakelog.codec import seal",
        "state/diff.py": "from wakelog import errors, model",
        "engines/memory.py": "",
        "engine.py": "",
        "codec.py": "import json",
        "model/events.py": "from wakelog.errors import WakelogError",
        "errors.py": "",
    }
    assert violations(_tree(tmp_path, files)) == []
