"""What starting costs: fresh interpreters, with and without wakelog, one after the other."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.results import Sample, Startup
from benchmarks.scratch import empty_folder

IMPORT = "import wakelog"
_NOTHING = "pass"
_CODES = {
    IMPORT: IMPORT,
    "import wakelog, and everything it needs to append": "import wakelog; wakelog.open; import wakelog.engines.sqlite",
    "import wakelog, open a new store, append the first event": (
        "import wakelog; from wakelog.model.events import NoteAdded;"
        " wakelog.open('store').log('first').append(NoteAdded(text='hello'))"
    ),
}


def measure(times: int, folder: Path) -> list[Startup]:
    """Each code's time less that of an empty program started next to it."""
    found: dict[str, list[float]] = {name: [] for name in _CODES}
    with empty_folder(folder) as here:
        _run(_NOTHING, here)  # the first start reads the interpreter from the disk
        for number in range(times):
            nothing = _run(_NOTHING, here)
            for name, code in _CODES.items():
                found[name].append((_run(code, here / str(number)) - nothing) * 1e3)
    return [Startup(name, Sample(values)) for name, values in found.items()]


def _run(code: str, folder: Path) -> float:
    folder.mkdir(exist_ok=True)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - start
