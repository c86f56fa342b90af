"""What several threads may convert to is described for msgspec first (`model/described.py`)."""

import ast

from tests.architecture.source import SOURCE, tree

KNOWN = {"Cost", "Failure", "PayloadRef"}
"""Described when `codec/records.py` is imported."""


def _needs_description(kind: ast.expr) -> bool:
    """Whether the type may hold a struct that nobody described."""
    if isinstance(kind, ast.Call) and isinstance(kind.func, ast.Name):
        return kind.func.id != "described"
    names = {node.id for node in ast.walk(kind) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(kind) if isinstance(node, ast.Attribute)}
    return bool(names - KNOWN - {"ev", "list", "dict", "tuple", "int", "str", "Any", "struct"})


def _kind_of(call: ast.Call) -> ast.expr | None:
    """The type that a call gives to msgspec."""
    text = ast.unparse(call.func)
    if text == "msgspec.convert":
        return call.args[1]
    if text in ("msgspec.json.decode", "msgspec.msgpack.decode"):
        return next((word.value for word in call.keywords if word.arg == "type"), None)
    return None


def test_a_struct_is_described_before_msgspec_meets_it() -> None:
    seen, bare = 0, []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.is_relative_to(SOURCE / "cli"):
            continue  # a command is one thread
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and (kind := _kind_of(node)) is not None:
                seen += 1
                if _needs_description(kind):
                    bare.append(f"{path.relative_to(SOURCE).as_posix()}:{node.lineno}")
    assert seen > 20
    assert not bare, f"wrap the type in described(…), because several threads may come here first: {bare}"
