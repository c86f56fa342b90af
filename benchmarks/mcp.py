"""What the recording proxy costs a tool call over stdio, beside the same server without it.

    python -m benchmarks.mcp [--quick]

A call is one line to the server and one line back, its time taken at the client. The servers run side by side, and
blocks of calls go to each in shuffled order within a round, so that a slow moment hits all of them. After a block the
record is waited for, so that no proxy is still writing while another is timed. `plain` answers at
once and is no real server: against it the proxy looks worst. `sdk` is a small tool on the official SDK. After the run
every call must be in the record with its outcome, or no time is shown.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import IO

import wakelog
from benchmarks.scratch import FOLDER, empty_folder

PLAIN = """
import json, sys
for line in sys.stdin.buffer:
    frame = json.loads(line)
    if "id" in frame:
        result = {"content": [{"type": "text", "text": "x" * 2000}]}
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}).encode() + b"\\n")
        sys.stdout.buffer.flush()
"""
SDK = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bench", log_level="CRITICAL")
@server.tool()
def look(q: str) -> str:
    return "x" * 2000
server.run()
"""
WAYS = ("bare", "proxy", "proxy --durable")
BLOCK = 20
_HELLO: dict[str, object] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Line:
    """One client, speaking to one server."""

    def __init__(self, command: list[str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: IO[bytes] = self._process.stdin
        self._out: IO[bytes] = self._process.stdout
        self._number = 0
        self._ask("initialize", _HELLO)
        self._in.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def call(self) -> float:
        """Seconds for one tool call."""
        start = time.perf_counter()
        self._ask("tools/call", {"name": "look", "arguments": {"q": "y" * 200}})
        return time.perf_counter() - start

    def _ask(self, method: str, params: dict[str, object]) -> None:
        self._number += 1
        frame = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._in.write(json.dumps(frame).encode() + b"\n")
        if b'"result"' not in (answer := self._out.readline()):
            raise RuntimeError(f"the server answered {answer[:500]!r}")

    def close(self) -> None:
        self._in.close()
        self._process.wait(60)


def measure(script: str, folder: Path, rounds: int) -> dict[str, list[list[float]]]:
    """For each way, the times of each round's block."""
    server = [sys.executable, "-c", script]
    lines = {}
    for way in WAYS:
        proxy = [sys.executable, "-m", *f"wakelog {way}".split(), "--store", str(folder / way), "--into", "rec", "--"]
        lines[way] = Line(server if way == "bare" else [*proxy, *server])
    times: dict[str, list[list[float]]] = defaultdict(list)
    for number in range(rounds + 1):
        for way in random.sample(WAYS, len(WAYS)):
            block = [lines[way].call() for _ in range(BLOCK)]
            if way != "bare":
                _settle(folder / way, BLOCK * (number + 1))
            if number:  # the first one warms up
                times[way].append(block)
    for line in lines.values():
        line.close()
    for way in WAYS[1:]:
        with wakelog.open(folder / way) as store:
            done = sum(1 for _ in store.resume("rec").events(kind="action.succeeded"))
        if done != BLOCK * (rounds + 1):
            raise RuntimeError(f"{way}: {done} of {BLOCK * (rounds + 1)} calls are in the record")
    return times


def _settle(folder: Path, calls: int) -> None:
    """Waits until the record holds so many calls, each of three events."""
    with wakelog.open(folder) as store:
        until = time.monotonic() + 60
        while store.session("rec").head.seq < 3 * calls:
            if time.monotonic() > until:
                raise RuntimeError("the record does not follow")
            time.sleep(0.01)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rounds = 10 if options.quick else 50
    print(f"| server, {rounds} rounds of {BLOCK} calls | ms a call | more than bare, ms | × bare |")
    print("|---|---:|---:|---:|")
    for name, script in (("plain", PLAIN), ("sdk", SDK)):
        with empty_folder(FOLDER) as folder:
            times = measure(script, folder, rounds)
        middle = {way: [statistics.median(block) * 1000 for block in times[way]] for way in WAYS}
        for way in WAYS:
            ratio = statistics.median(a / b for a, b in zip(middle[way], middle["bare"], strict=True))
            more = statistics.median(a - b for a, b in zip(middle[way], middle["bare"], strict=True))
            print(f"| {name}, {way} | {statistics.median(middle[way]):.2f} | {more:.2f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
