"""Real transcripts that other people's agents wrote, where they are at hand: `../shared/corpus` beside the repository,
or `WAKELOG_CORPUS`. They are not part of the project. Beside every test that needs them is one that runs everywhere."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import wakelog
from wakelog.importers.transcript_import import ImportReport, import_transcript
from wakelog.importers.writer.imported_records import rests_of
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.store import Store

FOLDER = Path(os.environ.get("WAKELOG_CORPUS") or Path(__file__).resolve().parents[3] / "shared" / "corpus")


@cache
def oracle() -> dict[str, dict[str, Any]]:
    """Counts of each file, made by an independent reader."""
    path = FOLDER / "oracle.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def corpus_files(*formats: str) -> list[Any]:
    """The files of some formats, as parameters of a test; one that is skipped when there are none."""
    found = sorted(name for name in oracle() if name.split("/")[0] in formats)
    if not found:
        return [pytest.param("", marks=pytest.mark.skip(reason="the corpus of real transcripts is not here"))]
    return [pytest.param(name, id=name[-48:]) for name in found]


def imported(name: str, store: Store | None = None) -> tuple[Store, ImportReport]:
    """A file of the corpus, imported into a store of its own."""
    store = store or wakelog.open("memory:")
    return store, import_transcript(store, FOLDER / name)


def records_of(session: Session[Any]) -> list[tuple[str, int, Value]]:
    """The records that a session was made from: id, number of events, and what the events do not hold."""
    found: list[tuple[str, int, Value]] = []
    for entry in session.log.entries():
        if entry.kind == "records.imported":
            body = entry.body
            rests = rests_of(session.log.value(entry, body["rest"]))
            found += zip(body.get("ids", ()), body.get("counts", ()), rests, strict=True)
    return found


def corpus() -> Path:
    """The folder with real transcripts; the test is skipped where there is none."""
    if not (FOLDER / "oracle.json").is_file():
        pytest.skip("the corpus of real transcripts is not here")
    return FOLDER


def expected(format: str) -> list[tuple[Path, dict[str, Any]]]:
    """The files of a format, each with what an independent reader counted in it."""
    folder = corpus()
    return [(folder / name, counts) for name, counts in oracle().items() if name.partition("/")[0] == format]
