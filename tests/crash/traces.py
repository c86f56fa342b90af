"""Finding what is left of secrets in the files of a store, where they stand packed or plain."""

from pathlib import Path
from typing import Any

import apsw

_SLICE = 24


class Traces:
    """What the present content of a store looks like in its files: slices of its stored blobs, and given words."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        self._words = [word.encode() for word in words]
        self._slices = [
            blob[at : at + _SLICE] for blob in _blobs(folder) for at in range(0, len(blob) - _SLICE, _SLICE // 2)
        ]

    def found(self, folder: Path) -> list[bytes]:
        """Traces that are in the files, and not because something that is still to be read looks the same."""
        files = b"\n".join(file.read_bytes() for file in sorted(folder.iterdir()))
        rightful = b"\n".join(_blobs(folder))
        return [word for word in self._words if word in files] + [
            piece for piece in self._slices if piece in files and piece not in rightful
        ]


def _blobs(folder: Path) -> list[bytes]:
    db = apsw.Connection(str(folder / "log.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows: list[Any] = [
            *db.execute("select records, payloads, fingerprint from log").fetchall(),
            *db.execute("select data from snapshot").fetchall(),
        ]
        return [bytes(value) for row in rows for value in row]
    finally:
        db.close()
