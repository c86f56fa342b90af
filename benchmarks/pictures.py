"""What capturing files costs: pictures of a large tree, beside `git status` of the same tree.

python -m benchmarks.pictures [FILES]
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.scratch import FOLDER, empty_folder
from wakelog.files.capture import Capture

ROUNDS = 7


def main(count: int) -> None:
    with empty_folder(FOLDER) as folder:
        _make(folder, count)
        _git(folder, "init", "-q")
        _git(folder, "add", "-A")
        _git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
        status = _best(lambda: _git(folder, "status", "--porcelain"))
        capture = Capture([folder], folder=folder)
        first = _once(capture.before)
        again = _best(capture.before)
        picture = capture.before()
        for number in range(0, count, 1000):
            (folder / f"d{number // 100}" / f"f{number}.py").write_text("changed\n")
        changed = _once(lambda: capture.changes(picture))
    print(f"{count:,} files")
    print(f"  first picture       {first:7.3f} s, {capture.size_bytes / 1e6:.1f} MB kept")
    print(f"  unchanged           {again:7.3f} s")
    print(f"  changes of {count // 1000:>3} files {changed:7.3f} s")
    print(f"  git status          {status:7.3f} s")


def _make(folder: Path, count: int) -> None:
    """Files of source code, 8 KB on average, a hundred to a folder."""
    text = "".join(path.read_text() for path in sorted(Path(__file__).parent.glob("*.py")))
    for number in range(count):
        place = folder / f"d{number // 100}"
        place.mkdir(exist_ok=True)
        start = number * 97 % 20_000
        (place / f"f{number}.py").write_text(f"# {number}\n" + text[start : start + 200 + number * 37 % 16_000])
    (folder / ".gitignore").write_text("*.pyc\nbuild/\nnode_modules\n.env\n*.log\n")


def _git(folder: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True)


def _once(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _best(work: Callable[[], object]) -> float:
    return min(_once(work) for _ in range(ROUNDS))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
