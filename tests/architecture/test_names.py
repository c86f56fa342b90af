"""Names tell things apart: a public class name is used once, and a file is named after what it holds."""

import ast
from collections import defaultdict

from tests.architecture.source import SOURCE, tree
from wakelog.session import Session

NOUNS = {"pending", "recording", "ring", "testing", "string", "setting"}
"""Words on -ing that are things, or what a command is called."""


def test_a_public_class_name_is_used_once() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path.relative_to(SOURCE).as_posix())
    assert homes
    doubled = {name: files for name, files in homes.items() if len(files) > 1}
    assert not doubled, f"give each a name of its own, so that a search finds one: {doubled}"


def test_files_are_named_after_things() -> None:
    gerunds = [
        path.relative_to(SOURCE).as_posix()
        for path in sorted(SOURCE.rglob("*ing.py"))
        if path.stem not in NOUNS and path.stem.split("_")[-1] not in NOUNS
    ]
    assert not gerunds, f"name these after what they hold, not after an activity: {gerunds}"


def test_a_session_keeps_to_the_verbs_of_daily_work() -> None:
    public = [name for name in dir(Session) if not name.startswith("_")]
    assert len(public) <= 52, f"{len(public)} members: give a new verb a namespace, such as session.history (0086)"
