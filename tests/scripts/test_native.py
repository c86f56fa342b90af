"""The native core is built where that is possible; where it is not, whoever asked is told why and what stays in use."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "native.py"


def test_without_cargo_the_script_says_what_is_missing_and_that_nothing_needs_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "cargo is not installed" in done.stderr
    assert "pure Python stays in use" in done.stderr
    assert "Traceback" not in done.stderr
