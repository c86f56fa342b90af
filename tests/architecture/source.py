"""The package's source as trees: parsed once for all the rules that are held against it."""

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "wakelog"


@cache
def tree(path: Path) -> ast.Module:
    """The tree of a file that does not change while tests run."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
