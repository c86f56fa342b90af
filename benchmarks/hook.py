"""What a hook costs an agent: `wakelog hook`, beside a Python that does nothing, started in turn.

    .venv/bin/python -m benchmarks.hook [--rounds 200] [--kib 4] [--tool Bash]

Each round starts both, with the same input on stdin. `beyond` is a quantile of the hook less the median of the empty
program: what wakelog adds to the start of Python, with the noise counted against us. Processor time is given beside it,
because on a busy machine the clock mostly measures what else runs. The program that older versions of pip put into
`bin` imports `re` before ours begins; `without launcher` is what ours takes alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BARE = "python -c pass"


def measure(rounds: int, kib: int, tool: str) -> dict[str, dict[str, float]]:
    """Milliseconds of each command, median and 95 %, by the clock and of the processor; and what ours adds."""
    script = Path(sys.executable).with_name("wakelog")
    ours = [str(script)] if script.exists() else [sys.executable, "-m", "wakelog"]
    commands = {
        BARE: [sys.executable, "-c", "pass"],
        "wakelog hook": [*ours, "hook", "claude-code"],
        "without launcher": [sys.executable, "-c", "from wakelog.cli import main; main()", "hook", "claude-code"],
    }
    given = json.dumps(
        {
            "session_id": "7f3f6a0e-0c54-4a6f-9d0b-3a1f6f1d2c11",
            "transcript_path": "/nowhere/7f3f6a0e.jsonl",
            "cwd": "/nowhere",
            "hook_event_name": "PostToolUse",
            "tool_name": tool,
            "tool_input": {"command": "make test"},
            "tool_use_id": "toolu_01",
            "tool_response": {"stdout": "x" * (kib << 10)},
        }
    ).encode()
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "WAKELOG_DATA": folder}
        for round_ in range(rounds + 3):  # the first ones read modules from the disk, and compile them
            for name, command in commands.items():
                start, used = time.perf_counter(), _processor_s()
                subprocess.run(command, input=given, env=environ, check=True, stdout=subprocess.DEVNULL)
                if round_ >= 3:
                    taken[name].append((time.perf_counter() - start, _processor_s() - used))
        written = sum(path.stat().st_size for path in Path(folder).rglob("*.log"))
        assert written > (rounds + 3) * len(given), "not every record was written"
    out = {name: _quantiles(each) for name, each in taken.items()}
    bare = out[BARE]
    for name in [each for each in out if each != BARE]:
        out[f"{name}, beyond"] = {at: value - bare[at.replace("p95", "p50")] for at, value in out[name].items()}
    return out


def _quantiles(taken: list[tuple[float, float]]) -> dict[str, float]:
    out: dict[str, float] = {}
    for at, name in enumerate(("", " processor")):
        values = sorted(each[at] * 1e3 for each in taken)
        out |= {f"p50{name}": statistics.median(values), f"p95{name}": values[int(len(values) * 0.95)]}
    return out


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--kib", type=int, default=4, help="size of the input")
    parser.add_argument("--tool", default="Bash", help="Bash is the dearest: the files that it names are looked at")
    given = parser.parse_args()
    for name, values in measure(given.rounds, given.kib, given.tool).items():
        print(f"{name:<25}" + "".join(f"{what} {value:6.1f} ms   " for what, value in values.items()).rstrip())


if __name__ == "__main__":
    main()
