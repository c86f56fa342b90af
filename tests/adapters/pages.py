"""Runs the code of a framework's how-to page, which the tests of the docs cannot: there the framework is missing."""

from __future__ import annotations

import ast
import asyncio
import inspect
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT, read_blocks


def run_first_block(page: str, *, instead: dict[str, str] | None = None, **given: Any) -> dict[str, Any]:
    """The names that the first Python block of a page leaves. `given` are those that a reader has: a model, say; it
    stands `instead` of a part of the code, such as the name of a real one."""
    markdown = Path(ROOT / "docs" / "how-to" / page).read_text("utf-8")
    block = next(block for block in read_blocks(markdown) if block.language == "python")
    names: dict[str, Any] = {"__name__": "page", **given}
    text = block.text
    for part, name in (instead or {}).items():
        assert part in text
        text = text.replace(part, name)
    code = compile(text, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)
    return names
