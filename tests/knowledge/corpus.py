"""A store with the open corpus of transcripts, for tests that read all of it. The corpus is not part of the project."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.importers.corpus import FOLDER
from wakelog.errors import WakelogError
from wakelog.importers.transcript_import import import_transcript
from wakelog.store import Store
from wakelog.store import open as open_store


@contextlib.contextmanager
def corpus_store(folder: Path, *parts: str) -> Iterator[Store]:
    """A store with the transcripts of some folders of the corpus, or of all; skips the test if there is no corpus."""
    if not FOLDER.is_dir():
        pytest.skip("no corpus of transcripts: put one beside the repository, or name it in WAKELOG_CORPUS")
    with open_store(folder, redact=None) as store:
        for path in sorted(p for p in FOLDER.rglob("*") if p.is_file() and p.suffix in (".json", ".jsonl", ".traj")):
            if parts and path.parent.name not in parts:
                continue
            with contextlib.suppress(WakelogError):
                import_transcript(store, path)
        yield store
