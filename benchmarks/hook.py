"""What a hook costs an agent: `wakelog hook`, beside a Python that does nothing, started in turn.

    .venv/bin/python -m benchmarks.hook [--rounds 200] [--kib 4]

Each round starts both, with the same input on stdin. `beyond` is a quantile of the hook less the median of the empty
program: what wakelog adds to the start of Python, with the noise counted against us.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def measure(rounds: int, kib: int) -> dict[str, dict[str, float]]:
    """Milliseconds of each command: median and 95 %, and for ours what it adds."""
    script = Path(sys.executable).with_name("wakelog")
    ours = [str(script)] if script.exists() else [sys.executable, "-m", "wakelog"]
    commands = {"python -c pass": [sys.executable, "-c", "pass"], "wakelog hook": [*ours, "hook", "claude-code"]}
    given = json.dumps(
        {
            "session_id": "7f3f6a0e-0c54-4a6f-9d0b-3a1f6f1d2c11",
            "transcript_path": "/nowhere/7f3f6a0e.jsonl",
            "cwd": "/nowhere",
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "make test"},
            "tool_use_id": "toolu_01",
            "tool_response": {"stdout": "x" * (kib << 10)},
        }
    ).encode()
    taken: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "WAKELOG_DATA": folder}
        for round_ in range(rounds + 3):  # the first ones read modules from the disk, and compile them
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, input=given, env=environ, check=True, stdout=subprocess.DEVNULL)
                if round_ >= 3:
                    taken[name].append((time.perf_counter() - start) * 1e3)
        written = sum(path.stat().st_size for path in Path(folder).rglob("*.log"))
        assert written > (rounds + 3) * len(given), "not every record was written"
    out = {name: {"p50": statistics.median(each), "p95": _p95(each)} for name, each in taken.items()}
    bare = out["python -c pass"]["p50"]
    out["beyond"] = {name: value - bare for name, value in out["wakelog hook"].items()}
    return out


def _p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--kib", type=int, default=4, help="size of the input")
    given = parser.parse_args()
    for name, values in measure(given.rounds, given.kib).items():
        print(f"{name:<16} p50 {values['p50']:6.1f} ms   p95 {values['p95']:6.1f} ms")


if __name__ == "__main__":
    main()
