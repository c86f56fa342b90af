"""Lines that are no JSON: kept as they are, so that nothing of a file is lost."""

from __future__ import annotations

from wakelog.importers.source.files import JsonLine, RecordIds, digest
from wakelog.importers.steps import SourceRecord


def broken_record(line: JsonLine, ids: RecordIds) -> SourceRecord:
    """The record of a line that cannot be read, or not yet: the last one may be half written."""
    return SourceRecord(ids.unique(digest(line.raw)), rest=line.text, broken=line.broken, is_partial=line.is_partial)
