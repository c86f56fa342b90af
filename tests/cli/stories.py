"""Command lines, and what they print, compared word for word with a kept text.

`WAKELOG_GOLDEN=write` writes the texts anew: read the difference."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.cli.conftest import Cli

WRITE = os.environ.get("WAKELOG_GOLDEN") == "write"
KEPT = Path(__file__).parent / "golden"


def mask_hashes(text: str) -> str:
    """Hashes cover stored bytes, which other tests are about. A hash has a letter, which tells it from a number; those
    few that have none are found by the word before them."""
    hashes = r"(?<=\bhead )\d{12}\b|\b(?=\w*[a-f])[0-9a-f]{12,64}\b"
    return re.sub(hashes, lambda match: "f" * len(match[0]), text)


def check_story(
    cli: Cli,
    commands: Iterable[tuple[str, ...]],
    name: str,
    mask: Callable[[str], str] = mask_hashes,
    join: Callable[[Iterable[str]], str] = " ".join,
    **how: Any,
) -> str:
    """Runs the commands in order, and compares what they print with the text kept under that name."""
    parts = []
    for args in commands:
        result = cli(*args, **how)
        parts.append(f"$ wakelog {join(args)}\n{result.out}{result.err}[{result.code}]\n")
    text, path = mask("\n".join(parts)), KEPT / f"{name}.txt"
    if WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    return text
