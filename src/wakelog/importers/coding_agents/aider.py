"""Aider: `.aider.chat.history.md` in the folder that it works in.

One Markdown file holds all sessions of a folder. Each starts with `# aider chat started at …`. The user's input is in
lines with `####`, what Aider itself says in quoted lines with `>`, and everything else is from the model. A block of
one of these kinds is a record. Only the start of a session has a time, in the local time of the machine. The file does
not say who wrote a line inside a reply that looks like one of the other kinds. Such a line counts as what it looks
like, unless it is in a fenced code block.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.common.chat import text_block
from wakelog.importers.common.file_changes import file_change
from wakelog.importers.source.files import Sample, bad_transcript, digest, home_files, open_source, stat_of
from wakelog.model.usage import Usage

NAME = "aider"
TITLE = "Aider"
FILE: Final = ".aider.chat.history.md"
# There is no fixed location: the file is in a project's folder. One in the home folder is found.
find_in_home = home_files(FILE)
_START = re.compile(rb"(?m)^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \t]*\r?$")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_MODEL = re.compile(r"(?:Main model|Model|Models): (\S+?),? with ")
_VERSION = re.compile(r"Aider (v\S+)$")
_APPLIED = re.compile(r"Applied edit to (.+)")
_TOKENS = re.compile(
    r"Tokens: ([\d.,]+[km]?) sent(?:, ([\d.,]+[km]?) cache write)?(?:, ([\d.,]+[km]?) cache hit)?"
    r", ([\d.,]+[km]?) received\.?(?: Cost: \$([\d.]+) message)?"
)
_ASKING = ("/ask ", "/code ", "/architect ")
"""Commands whose arguments go to the model."""


class HistoryBlock(msgspec.Struct):
    """Consecutive lines of one kind."""

    kind: str
    lines: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def recognises(found: Sample) -> bool:
    return found.path.name.endswith(".md") and _START.search(found.start) is not None


def transcripts(path: Path) -> Iterator[st.Transcript]:
    with open_source(path) as file:
        content = file.read()
    starts = list(_START.finditer(content))
    if not starts:
        raise bad_transcript(f"{path} has no line `# aider chat started at …`", "is it Aider's history?")
    folder = str(path.resolve().parent)
    mark, changed = digest(folder.encode(), 8), stat_of(path)[1]
    taken: dict[str, int] = {}
    for start, after in zip(starts, [*starts[1:], None], strict=True):
        when = start[1].decode()
        count = taken[when] = taken.get(when, 0) + 1
        origin = f"{when.replace(' ', 'T').replace(':', '')}-{mark}" + (f"-{count}" if count > 1 else "")
        text = content[start.end() : after.start() if after else len(content)]
        head = st.TranscriptHead(origin, NAME, labels={"project": folder})
        # Only the last session of a file can grow.
        stat = (len(text), changed if after is None else _local_time(when))
        yield st.Transcript(head, partial(_records, text, _local_time(when), is_last=after is None), stat)


def _records(raw: bytes, at: int, *, is_last: bool) -> Iterator[tuple[st.SourceRecord, int]]:
    blocks = list(_blocks(raw.decode(errors="replace")))
    yield st.SourceRecord("start", (), at, {"started": at}), 0
    for number, block in enumerate(blocks):
        text = block.text
        # A block at the end of the file may continue: two replies in a row are one block.
        is_partial = is_last and number == len(blocks) - 1 and block.kind == "model"
        id = f"{number}.{digest(text.encode(), 8)}"
        rest = text if block.kind == "aider" else None
        yield st.SourceRecord(id, tuple(_steps(block, id)), 0, rest, is_partial=is_partial), len(text.encode())


def _blocks(text: str) -> Iterator[HistoryBlock]:
    """The blocks of a session, without empty ones."""
    block = HistoryBlock("model")
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        kind = "model"
        if fence and block.kind == "model":
            if mark and mark[1].startswith(fence) and not line.strip().strip(mark[1][0]):
                fence = ""
        elif line.startswith("####"):
            kind, line = "person", line[4:].removeprefix(" ").removesuffix("  ")
        elif line.startswith(">"):
            kind, line = "aider", line[1:].removeprefix(" ").removesuffix("  ")
        elif mark:
            fence = mark[1]
        # Input that was typed at once has no empty line: after one, the user typed again.
        if kind != block.kind and (kind != "model" or line.strip() or block.kind == "person"):
            if block.text:
                yield block
            block, fence = HistoryBlock(kind), fence if kind == "model" else ""
        if kind == block.kind:
            block.lines.append(line)
    if block.text:
        yield block


def _steps(block: HistoryBlock, id: str) -> Iterator[st.Step]:
    text = block.text
    if block.kind == "model":
        yield st.ReplyStep(id, [text_block(text)], is_last=True)
    elif block.kind == "person":
        is_command = text.startswith(("/", "!")) and not text.startswith(_ASKING)
        if is_command:
            yield st.MessageStep("user", text, name="command")
        elif text != "<blank>":
            yield st.PromptStep(text)
    else:
        yield from _aider_steps(text, id)


def _aider_steps(text: str, id: str) -> Iterator[st.Step]:
    labels: dict[str, str] = {}
    for number, line in enumerate(text.splitlines()):
        if found := _MODEL.match(line):
            labels["model"] = found[1]
        elif found := _VERSION.match(line):
            labels["agent_version"] = found[1]
        elif found := _APPLIED.match(line):
            call = f"{id}.{number}"
            yield st.CallStep(call, "edit", {"path": found[1]}, "write")
            yield st.ResultStep(call, line, files=(file_change(found[1], action=call),))
        elif found := _TOKENS.match(line):
            sent, written, hit, received = (_count(found[n]) for n in (1, 2, 3, 4))
            usage = Usage(input=max(0, sent - written - hit), cache_write=written, cache_read=hit, output=received)
            yield st.CostStep("", usage, round(float(found[5].rstrip(".")) * 1_000_000) if found[5] else 0)
    if labels:
        yield st.LabelsStep(labels)
    yield st.MessageStep("system", text, name="aider")


def _count(text: str | None) -> int:
    """Reads a rounded number of tokens, such as `4.2k`."""
    if not text:
        return 0
    unit = {"k": 1_000, "m": 1_000_000}.get(text[-1], 1)
    try:
        return round(float(text.rstrip("km").replace(",", "")) * unit)
    except ValueError:
        return 0


def _local_time(when: str) -> int:
    try:
        return int(datetime.datetime.fromisoformat(when).astimezone().timestamp() * 1_000_000)
    except (ValueError, OverflowError, OSError):
        return 0
