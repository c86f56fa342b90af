"""Build the native core with cargo and install it beside wakelog. `make native` runs this in .venv.

    make native             build core/, install the wheel, say what is in use
    make native ONLY=dist   build the wheel into dist/ and install nothing

wakelog needs none of it. Where there is no cargo, or the build fails, this says so and pure Python stays in use.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "core"
WITHOUT = "wakelog works without the native core: pure Python stays in use."


def missing() -> str:
    """Why the core cannot be built here; empty when it can."""
    if shutil.which("cargo") is None:
        return "cargo is not installed, and the native core is written in Rust. https://rustup.rs installs it."
    return ""


def build(out: Path) -> Path:
    """A wheel of the core in `out`."""
    _run("-m", "pip", "install", "-qq", "-c", str(ROOT / "constraints.txt"), "maturin")
    _run("-m", "maturin", "build", "--quiet", "--release", "--interpreter", sys.executable, "--out", str(out), cwd=CORE)
    [wheel] = out.glob("wakelog_core-*.whl")
    return wheel


def _run(*arguments: str, cwd: Path = ROOT) -> None:
    # What maturin prints goes to the terminal: a build takes a minute or two, and may fail in its own way.
    subprocess.run([sys.executable, *arguments], cwd=cwd, check=True, env={**os.environ, "PYTHONPATH": ""})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", nargs="?", choices=["install", "dist"], default="install")
    given = parser.parse_args()
    problem = missing()
    if problem:
        print(f"make native: {problem}\n{WITHOUT}", file=sys.stderr)
        return 1
    try:
        if given.what == "dist":
            print(build(ROOT / "dist"))
            return 0
        with tempfile.TemporaryDirectory() as folder:
            wheel = build(Path(folder))
            _run("-m", "pip", "install", "-qq", "--no-deps", "--force-reinstall", str(wheel))
    except subprocess.CalledProcessError as exc:
        print(f"make native: {' '.join(map(str, exc.cmd))} failed.\n{WITHOUT}", file=sys.stderr)
        return 1
    _run("-c", "from wakelog.native import IN_USE; print('in use:', IN_USE)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
