"""Loads a recorded session from a bundle file into memory: for tests that replay it, and for reading without a
store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotFoundError
from wakelog.session.data import DataType, initial
from wakelog.session.session import Session


def recorded(bundle: str | os.PathLike[str], *, data: Any = None, version: int = 1) -> Session[Any]:
    """Loads and verifies the session of a bundle, in memory: `wakelog.recorded("fix-auth.wakelog").replay("@4")`. The
    file never changes. `data` is the type of the session's own data, as for `Store.session`."""
    from wakelog.log.bundle import import_bundle

    try:
        with Path(bundle).open("rb") as source:
            log = import_bundle(MemoryEngine(), source)
    except FileNotFoundError as exc:
        raise NotFoundError(
            f"there is no recording at {os.fspath(bundle)}",
            kind="recording-not-found",
            hint="wakelog export SESSION -o FILE, or --format pytest, writes one",
        ) from exc
    kind, _ = initial(data)
    return Session(log, name=log.head().name, data_type=DataType(kind, version=version))
