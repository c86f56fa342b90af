"""What starting costs: fresh interpreters that import a contender, beside an empty program started next to them."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.kinds import OURS, Kind
from benchmarks.process import ROOT, Round
from benchmarks.results import Trouble
from benchmarks.scratch import empty_folder

READY = f"{OURS}, ready to append"
FIRST = f"{OURS}, first event stored"
_MORE = {
    READY: "import wakelog; wakelog.open; import wakelog.engines.sqlite",
    FIRST: (
        "import wakelog; from wakelog.model.events import NoteAdded;"
        " wakelog.open('store').log('first').append(NoteAdded(text='hello'))"
    ),
}
_MEMORY = f"\nimport sys; sys.path.insert(0, {str(ROOT)!r}); from benchmarks.memory import peak_mb; print(peak_mb())"


def measure(kinds: list[Kind], now: Round, folder: Path) -> None:
    """One round: each code's time less that of an empty program, and the memory it leaves."""
    codes = {kind.name: kind.start for kind in kinds if kind.start}
    if OURS in codes:
        codes |= _MORE
    with empty_folder(folder) as here:
        if now.number == 0:  # the first start reads the modules from the disk, and compiles them
            for code in ("pass", *codes.values()):
                _run(code, here / "first")
        for name in random.Random(now.number).sample(list(codes), len(codes)):
            now.tell(name)
            nothing, _ = _run("pass", here)
            try:
                taken, memory = _run(codes[name], here / "again")
            except subprocess.CalledProcessError as exc:
                now.results.complain(Trouble(name, "start", 0, "failed", f"importing it exits with {exc.returncode}"))
                continue
            now.note(name, "start.ms", 0, (taken - nothing) * 1e3)
            now.note(name, "start.memory_mb", 0, memory)


def _run(code: str, folder: Path) -> tuple[float, float]:
    folder.mkdir(exist_ok=True)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code + _MEMORY],
        cwd=folder,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - start, float(done.stdout.split()[-1])
