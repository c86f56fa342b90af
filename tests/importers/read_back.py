"""What became of a transcript, read back from the store: nothing here looks at the file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import wakelog
from wakelog.importers.transcript_import import ImportReport, import_transcript
from wakelog.importers.writer.imported_records import rests_of
from wakelog.session import Session
from wakelog.store import Store

DEFAULTS: dict[str, dict[str, Any]] = {
    "action.recorded": {"effect": "external", "outcome": "succeeded", "input": None, "output": None},
    "file.changed": {"change": "modified"},
    "turn.ended": {"outcome": "completed"},
    "session.closed": {"outcome": "completed"},
}
"""What is left out of a body where it is the usual."""


class ReadBack:
    """One session, with its bodies and the records that it was made from."""

    def __init__(self, session: Session[Any]) -> None:
        self.session = session
        log = session.log
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.records: dict[str, Any] = {}
        for entry in log.entries():
            body = DEFAULTS.get(entry.kind, {}) | {key: log.value(entry, value) for key, value in entry.body.items()}
            self.events.append((entry.kind, body))
            if entry.kind == "records.imported":
                self.records |= zip(body["ids"], rests_of(body["rest"]), strict=True)

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [body for kind, body in self.events if kind in kinds]

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.session.log.part("labels"))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Calls of tools that are over."""
        return [body for body in self.of("action.recorded") if body["effect"] != "model"]

    @property
    def replies(self) -> list[dict[str, Any]]:
        return [body for body in self.of("action.recorded") if body["effect"] == "model"]

    @property
    def outcome(self) -> str:
        """How the session ended; empty while it has not."""
        closed = self.of("session.closed")
        return str(closed[-1]["outcome"]) if closed else ""


def said(reply: dict[str, Any]) -> str:
    """The text of a reply."""
    return "".join(block.get("text", "") for block in reply["output"]["content"])


def bring_in(store: Store, path: Path, format: str = "") -> tuple[ImportReport, list[ReadBack]]:
    report = import_transcript(store, path, format=format)
    return report, [ReadBack(store.resume(found.session)) for found in report.sessions if found.session]


def written(path: Path, content: Any) -> Path:
    """A file with one JSON document."""
    path.write_text(json.dumps(content))
    return path


def lines(path: Path, content: Sequence[Any]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in content))
    return path


def memory() -> Store:
    return wakelog.open("memory:")
