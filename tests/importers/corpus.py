"""Real transcripts, where there are some: they belong to others and are no part of the project."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def corpus() -> Path:
    """The folder with real transcripts; the test is skipped where there is none."""
    folder = Path(os.environ.get("WAKELOG_CORPUS") or ROOT.parent / "shared" / "corpus")
    if not (folder / "oracle.json").is_file():
        pytest.skip("there is no corpus of real transcripts here; WAKELOG_CORPUS names one")
    return folder


def expected(format: str) -> list[tuple[Path, dict[str, Any]]]:
    """The files of a format, each with what an independent reader counted in it."""
    folder = corpus()
    oracle = json.loads((folder / "oracle.json").read_text())
    return [(folder / name, counts) for name, counts in oracle.items() if name.partition("/")[0] == format]
