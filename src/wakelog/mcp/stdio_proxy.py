"""The recording proxy over stdio: bytes pass unchanged between a client and the server that the proxy starts.

A client's request is passed to the recorder first and then to the server, so that no answer comes before its call. A
server's answer is passed on first. The child uses our stderr, signals go to the child, and its exit code becomes ours.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO

from wakelog.child_process import SignalForwarding
from wakelog.codec.lines import TOO_LONG, Lines
from wakelog.mcp.frames import frames_of
from wakelog.mcp.recorder import Side, TrafficRecorder

CHUNK_BYTES = 1 << 16


def run_proxy(
    command: Sequence[str],
    recorder: TrafficRecorder,
    *,
    wait_s: float = 0.0,
    stdin: int | None = None,
    stdout: int | None = None,
) -> int:
    """Runs a server behind the proxy until it ends; returns its exit code, or minus the signal that ended it.

    With `wait_s`, a tool call is passed on when its intent is stored, or after that time.
    """
    ours_in = sys.stdin.fileno() if stdin is None else stdin
    ours_out = sys.stdout.fileno() if stdout is None else stdout
    with SignalForwarding() as signals:
        child = signals.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert child.stdin is not None
        assert child.stdout is not None
        up = threading.Thread(
            target=_pump_up, args=(ours_in, child.stdin, recorder, wait_s), name="wakelog up", daemon=True
        )
        up.start()
        with child.stdout:
            _pump_down(child.stdout, ours_out, recorder)
        code = child.wait()
    recorder.close()
    return code


def _pump_up(source: int, target: IO[bytes], recorder: TrafficRecorder, wait_s: float) -> None:
    """Forwards from the client to the server. Records first, because a fast server may answer at once."""
    lines = Lines(lambda: recorder.note_skipped(TOO_LONG))
    with contextlib.suppress(OSError, ValueError):
        while chunk := os.read(source, CHUNK_BYTES):
            for line in lines.feed(chunk):
                _record(recorder, "client", line, wait_s)
            _write(target.fileno(), chunk)
    recorder.note_departure()
    with contextlib.suppress(OSError, ValueError):
        target.close()


def _pump_down(source: IO[bytes], target: int, recorder: TrafficRecorder) -> None:
    lines = Lines(lambda: recorder.note_skipped(TOO_LONG))
    is_delivered = True
    while chunk := os.read(source.fileno(), CHUNK_BYTES):
        # Record first, which does not wait: the client's next request must come after it in the record.
        complete = list(lines.feed(chunk))
        for line in complete:
            _record(recorder, "server", line, is_delivered=is_delivered)
        if is_delivered:
            try:
                _write(target, chunk)
            except OSError:
                is_delivered = False  # the client is gone; what the server still sends is recorded
                frames = [frame for line in complete for frame in frames_of(line)]
                recorder.note_departure(lost=tuple(frame["id"] for frame in frames if "id" in frame))


def _record(
    recorder: TrafficRecorder, side: Side, line: bytes, wait_s: float = 0.0, *, is_delivered: bool = True
) -> None:
    with contextlib.suppress(Exception):  # no frame may affect the traffic
        for frame in frames_of(line):
            is_call = frame.get("method") == "tools/call"
            recorder.add_frame(side, frame, wait_s=wait_s if is_call else 0.0, is_delivered=is_delivered)


def _write(target: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(target, view) :]
