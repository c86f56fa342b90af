"""Which events a log reads, for tests that hold how little a question needs."""

from collections.abc import Iterator
from typing import Any

import pytest

from wakelog.log import Log
from wakelog.log.reader import Entry


def note_events_read(patch: pytest.MonkeyPatch) -> list[int]:
    """The seq of every event that any log reads from now on, in order."""
    read: list[int] = []
    entries = Log.entries

    def noted(log: Log, **where: Any) -> Iterator[Entry]:
        for entry in entries(log, **where):
            read.append(entry.seq)
            yield entry

    patch.setattr(Log, "entries", noted)
    return read
