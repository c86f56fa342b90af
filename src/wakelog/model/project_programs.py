"""Programs that write files of a project which their command line does not name: they set up a project or a component,
or add a package to the file that lists them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final


def _verbs(**programs: str) -> Mapping[str, frozenset[str]]:
    return {program.replace("_", "-"): frozenset(verbs.split()) for program, verbs in programs.items()}


_MAKES: Final = _verbs(
    cargo="init new",
    shadcn="init add",
    shadcn_ui="init add",
    npm="init create",
    pnpm="init create",
    yarn="init create",
    bun="init create",
    uv="init",
    poetry="init new",
    rails="new generate g",
    dotnet="new",
    ng="new generate g",
    nest="new generate g",
    flutter="create",
    django_admin="startproject startapp",
    alembic="init revision",
)
_CREATOR: Final = re.compile(r"create-[\w-]+")
_ADDS: Final = _verbs(
    npm="install i add uninstall remove rm",
    pnpm="install i add remove rm",
    yarn="add remove",
    bun="install i add remove rm",
    cargo="add remove",
    uv="add remove",
    poetry="add remove",
    pdm="add remove",
    composer="require remove",
)
_LISTS: Final = {"cargo": "Cargo.toml", "composer": "composer.json"} | dict.fromkeys(
    ("uv", "poetry", "pdm"), "pyproject.toml"
)
"""The file that lists the packages, where it is not `package.json`."""
_ELSEWHERE: Final = frozenset({"-g", "--global", "--no-save", "--dry-run"})


def files_made(program: str, words: Sequence[str]) -> list[str]:
    """The files that a command writes by its verb; none if it is not such a program. `words` follow the program."""
    name, plain = program.partition("@")[0], [word for word in words if not word.startswith("-")]
    if _CREATOR.fullmatch(name) or (plain and plain[0] in _MAKES.get(name, ())):
        return ["(a new project)"]
    if name == "ni" and plain:
        return ["package.json"]
    if len(plain) > 1 and plain[0] in _ADDS.get(name, ()) and _ELSEWHERE.isdisjoint(words):
        return [_LISTS.get(name, "package.json")]
    return []
