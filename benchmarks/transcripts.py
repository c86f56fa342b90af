"""How fast transcripts come in: `python -m benchmarks.transcripts --mb 60`.

Makes a folder of Claude Code transcripts like real ones: answers split over lines, files read and edited, output of
commands, lines of progress, sub-agents. It imports them into a store on disk and brings its index up to date. Decoding
the same bytes, with the two JSON libraries and nothing else, is measured in the same run: a busy machine slows all of
it alike, so the ratios say more than the numbers.
"""

from __future__ import annotations

import argparse
import cProfile
import datetime
import json
import pstats
import random
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

import wakelog
from benchmarks.memory import peak_mb
from benchmarks.scratch import FOLDER, empty_folder
from wakelog.cli.commands.imports import rare_collection
from wakelog.importers.transcript_import import import_transcript

MODEL = "claude-sonnet-4-5-20250929"
CWD = "/home/ada/shop"
_TEXT = (
    "the parser reads a header and then every record of the file until the end of input or an error that says where "
    "request response handler cache index value result self return import class def None True False error test assert "
    "raise path config session_id user_name max_retries total_count is_valid get_items build_query write_header"
)
_WORDS = _TEXT.split()


class Script:
    """One made-up session. The same seed makes the same one."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self.session = self._uuid()
        self._last: str | None = None
        self._at = 1_760_000_000.0 + seed * 10_000
        self._count = 0

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._dice.getrandbits(128), version=4))

    def _id(self, prefix: str) -> str:
        return prefix + "".join(self._dice.choices("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ123456789", k=22))

    def _code(self, lines: int) -> str:
        said = [" " * self._dice.choice((0, 4, 8)) + " ".join(self._dice.choices(_WORDS, k=9)) for _ in range(lines)]
        return "\n".join(said) + "\n"

    def _line(self, kind: str, **more: Any) -> dict[str, Any]:
        self._at += self._dice.random() * 4
        name = self._uuid()
        when = datetime.datetime.fromtimestamp(self._at, datetime.UTC).isoformat(timespec="milliseconds")
        line = {
            "parentUuid": self._last,
            "isSidechain": False,
            "userType": "external",
            "cwd": CWD,
            "sessionId": self.session,
            "version": "2.1.38",
            "gitBranch": "main",
            "type": kind,
            **more,
            "uuid": name,
            "timestamp": when.replace("+00:00", "Z"),
        }
        self._last = name
        return line

    def turn(self) -> Iterator[dict[str, Any]]:
        yield self._line("user", message={"role": "user", "content": self._code(2)}, promptId=self._uuid())
        for _ in range(self._dice.randint(3, 14)):
            yield from self._step()
        yield from self._reply({"type": "text", "text": self._code(5)})

    def _reply(self, *blocks: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self._count += 1
        said = self._id("msg_01")
        usage = {"input_tokens": 8, "cache_read_input_tokens": 40_000 + self._count, "output_tokens": 200}
        for block in blocks:
            message = {"id": said, "type": "message", "role": "assistant", "model": MODEL, "content": [block]}
            more = {"stop_reason": None, "stop_sequence": None, "usage": {**usage, "service_tier": "standard"}}
            yield self._line("assistant", message={**message, **more}, requestId=self._id("req_011"))

    def _step(self) -> Iterator[dict[str, Any]]:
        call, path = self._id("toolu_01"), f"{CWD}/src/{self._dice.choice(_WORDS)}.py"
        kind = self._dice.choice(("Read", "Read", "Bash", "Bash", "Edit"))
        content, output, result, given = self._content(kind, path)
        thought = {"type": "thinking", "thinking": self._code(3), "signature": self._id("E") * 12}
        ask = {"type": "tool_use", "id": call, "name": kind, "input": given}
        yield from self._reply(thought, {"type": "text", "text": self._code(1)}, ask)
        for _ in range(self._dice.randint(0, 3)):
            about = {"type": "hook_progress", "hookEvent": "PostToolUse", "hookName": f"PostToolUse:{kind}"}
            yield self._line("progress", data={**about, "command": "callback"}, toolUseID=call, parentToolUseID=call)
        block = {"tool_use_id": call, "type": "tool_result", "content": output}
        yield self._line("user", message={"role": "user", "content": [block]}, toolUseResult=result)
        if kind == "Edit":
            backup = {path: {"backupFileName": self._id("b"), "version": 2, "size": len(content)}}
            yield {"type": "file-history-snapshot", "messageId": self._last, "snapshot": {"trackedFileBackups": backup}}

    def _content(self, kind: str, path: str) -> tuple[str, str, dict[str, Any], dict[str, Any]]:
        """What a file or an output holds, what the model sees of it, the structured result, and the call's input."""
        content = self._code(self._dice.choice((20, 60, 200)))
        if kind == "Read":
            lines = content.split("\n")
            shown = "\n".join(f"{n:>6}→{line}" for n, line in enumerate(lines, 1))
            about = {"filePath": path, "content": content, "numLines": len(lines), "startLine": 1}
            return content, shown, {"type": "text", "file": about}, {"file_path": path}
        if kind == "Bash":
            output = content.strip()
            about = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
            return content, output, about, {"command": f"pytest -q {path}", "description": "Run the tests"}
        old = content.split("\n")[5]
        new = self._code(1).strip()
        patch = [{"oldStart": 6, "oldLines": 1, "newStart": 6, "newLines": 1, "lines": [f"-{old}", f"+{new}"]}]
        about = {"filePath": path, "oldString": old, "newString": new, "originalFile": content}
        given = {"file_path": path, "old_string": old, "new_string": new}
        return content, f"The file {path} has been updated.", {**about, "structuredPatch": patch}, given


def make_tree(folder: Path, size: int, each: int = 3 << 20) -> list[Path]:
    """Transcripts of about `size` bytes in all."""
    found: list[Path] = []
    made = 0
    while made < size:
        script = Script(len(found))
        path = folder / f"{script.session}.jsonl"
        with path.open("wb") as file:
            while file.tell() < min(each, size - made):
                for line in script.turn():
                    file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            made += file.tell()
        found.append(path)
    return found


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of this process and by the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def decode_all(paths: list[Path], decode: Callable[[bytes], object]) -> None:
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                decode(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=30)
    parser.add_argument("--from", dest="given", help="a folder of transcripts to read instead of made-up ones")
    parser.add_argument("--profile", metavar="ORDER", help="tottime, cumtime: what takes the time")
    options = parser.parse_args()
    with empty_folder(FOLDER) as folder:
        given = sorted(Path(options.given).glob("**/*.jsonl")) if options.given else []
        paths = given or make_tree(folder, options.mb << 20)
        size = sum(path.stat().st_size for path in paths) / 1e6
        store = wakelog.open(str(folder / "store"))
        before = peak_mb()
        base, _ = spent(lambda: decode_all(paths, msgspec.json.Decoder().decode))
        plain, _ = spent(lambda: decode_all(paths, json.loads))
        profile = cProfile.Profile(time.process_time)
        if options.profile:
            profile.enable()
        with rare_collection():  # as the command does
            taken, wall = spent(lambda: [import_transcript(store, path) for path in paths])
            index, index_wall = spent(store.index.catch_up)
        profile.disable()
        again, _ = spent(lambda: [import_transcript(store, path) for path in paths])
        store.close()
    print(f"{len(paths)} transcripts, {size:.1f} MB; peak memory {peak_mb():.0f} MB, {before:.0f} MB before")
    print(f"decoded by json     {plain:6.2f} s CPU  {size / plain:7.1f} MB/s")
    print(f"decoded by msgspec  {base:6.2f} s CPU  {size / base:7.1f} MB/s")
    for name, cpu, clock in (
        ("imported", taken, wall),
        ("index caught up", index, index_wall),
        ("both", taken + index, wall + index_wall),
    ):
        rate, ratio = f"{size / cpu:7.1f} MB/s", f"{cpu / plain:5.2f} × json"
        print(f"{name:<18}  {cpu:6.2f} s CPU  {rate}  {ratio}  ({size / clock:.1f} MB/s by clock)")
    print(f"imported again      {again:6.2f} s CPU  (nothing is new)")
    if options.profile:
        pstats.Stats(profile).sort_stats(options.profile).print_stats(60)


if __name__ == "__main__":
    main()
