"""Aider: `.aider.chat.history.md` in the folder that it works in.

One Markdown file holds all sessions of a folder. Each starts with `# aider chat started at …`. The user's input is in
lines with `####`, what Aider itself says in quoted lines with `>`, and everything else is from the model. Of a longer
text of Aider only the first line is quoted; two spaces end it. A block of one of these kinds is a record. Only the
start of a session has a time, in the local time of the machine. The file does not say who wrote a line inside a reply
that looks like one of the other kinds. Such a line counts as what it looks like, unless it is in a fenced code block,
or is quoted without the two spaces. A reply may leave a block open; Aider's count of tokens then ends it.

Not all of the user's lines are prompts: Aider also writes its own questions with their answers there, and what follows
`/ask` once more without the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.common.amounts import micros, tokens
from wakelog.importers.common.chat import text_block, thinking_block
from wakelog.importers.common.file_changes import file_change
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import Sample, bad_transcript, digest, home_files, open_source, stat_of
from wakelog.importers.source.timestamps import local_microseconds
from wakelog.model.usage import Usage
from wakelog.model.values import Value

NAME = "aider"
TITLE = "Aider"
FILE: Final = ".aider.chat.history.md"
# There is no fixed location: the file is in a project's folder. One in the home folder is found.
find_in_home = home_files(FILE)
_START = re.compile(rb"(?m)^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \t]*\r?$")
_QUOTE_END = re.compile(r"(?m)^> .*  $")
"""Aider ends what it says with two spaces. Files that people pasted somewhere may have lost them."""
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_MODEL = re.compile(r"(?:Main model|Model|Models): (\S+?),?(?: with |$)")
_VERSION = re.compile(r"Aider (v\S+)$")
_APPLIED = re.compile(r"Applied edit to (.+)")
_TOKENS = re.compile(
    r"Tokens: ([\d.,]+[km]?) sent(?:, ([\d.,]+[km]?) cache write)?(?:, ([\d.,]+[km]?) cache hit)?"
    r", ([\d.,]+[km]?) received\.?(?: Cost: \$(\d+(?:\.\d+)?) (?:message|request))?"
)
_UNAPPLIED = re.compile(r"#* ?SearchReplaceNo\w+: .* lines in (.+)")
_RUNNING = re.compile(r"Running (.+)")
_ANSWERED = re.compile(r"(.+\?) (?:\(\w\)[^\s(]*(?: \w+)*/?)+ \[\w+\]: ?(\w*)")
"""A question of Aider, with the answer: `Create new file? (Y)es/(N)o [Yes]: y`."""
_PROVIDER_ERROR = re.compile(r"litellm\.\w+Error\b")
_THINKING = re.compile(
    r"<(thinking-content-\w+)>(?P<tagged>.*?)</\1>|-+\n► \*\*THINKING\*\*(?P<titled>.*?)-+\n► \*\*ANSWER\*\*", re.DOTALL
)
_ASKING = ("/ask ", "/code ", "/architect ", "/context ")
"""Commands whose arguments go to the model."""


class HistoryBlock(msgspec.Struct):
    """Consecutive lines of one kind."""

    kind: str
    lines: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def recognises(sample: Sample) -> bool:
    return sample.path.name.endswith(".md") and _START.search(sample.start) is not None


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
        at = local_microseconds(when)
        count = taken[when] = taken.get(when, 0) + 1
        origin = f"{when.replace(' ', 'T').replace(':', '')}-{mark}" + (f"-{count}" if count > 1 else "")
        text = content[start.end() : after.start() if after else len(content)]
        head = st.TranscriptHead(origin, NAME, labels={"project": folder})
        # Only the last session of a file can grow.
        stat = (len(text), changed if after is None else at)
        yield st.Transcript(head, partial(_records, text, at, is_last=after is None), stat)


def _records(raw: bytes, at: int, *, is_last: bool) -> Iterator[tuple[st.SourceRecord, int]]:
    blocks = list(_blocks(raw.decode(errors="replace")))
    yield st.SourceRecord("start", (), at, {"started": at}), 0
    before, model = "", ""
    for number, block in enumerate(blocks):
        text = block.text
        # A block at the end of the file may continue: two replies in a row are one block.
        is_partial = is_last and number == len(blocks) - 1 and block.kind == "model"
        id = f"{number}.{digest(text.encode(), 8)}"
        steps = tuple(_steps(block, id, model)) if not _is_repeated(block, before) else ()
        rest = text if block.kind == "aider" or not steps else None
        yield st.SourceRecord(id, steps, 0, rest, is_partial=is_partial), len(text.encode())
        before = text if block.kind == "person" else ""
        model = next((s.labels.get("model", model) for s in steps if isinstance(s, st.LabelsStep)), model)


def _is_repeated(block: HistoryBlock, before: str) -> bool:
    """Whether Aider wrote a question a second time, without the command that asked it."""
    return block.kind == "person" and before.startswith(_ASKING) and before.partition(" ")[2].strip() == block.text


def _blocks(text: str) -> Iterator[HistoryBlock]:
    """The blocks of a session, without empty ones."""
    block = HistoryBlock("model")
    fence, is_open, ends_are_marked = "", False, _QUOTE_END.search(text) is not None
    for line in text.splitlines():
        mark = _FENCE.match(line)
        kind = "model"
        if is_open and not line.startswith(("####", "> ")):
            # Only the first line of a longer text is quoted.
            kind, is_open, line = "aider", not line.endswith("  "), line.removesuffix("  ")
        elif fence and block.kind == "model" and not (line.startswith("> ") and _TOKENS.match(line[2:])):
            if mark and mark[1].startswith(fence) and not line.strip().strip(mark[1][0]):
                fence = ""
        elif line.startswith("####"):
            kind, line = "person", line[4:].removeprefix(" ").removesuffix("  ")
        elif line.startswith(">") and (line.endswith("  ") or not ends_are_marked or block.kind != "model"):
            is_open = ends_are_marked and not line.endswith("  ")
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


def _steps(block: HistoryBlock, id: str, model: str) -> Iterator[st.Step]:
    text = block.text
    if block.kind == "model":
        yield st.ReplyStep(id, list(_reply_blocks(text)), model=model, is_last=True)
    elif block.kind == "person":
        is_command = text.startswith(("/", "!")) and not text.startswith(_ASKING)
        if is_command:
            yield st.MessageStep("user", text, name="command")
        elif _ANSWERED.fullmatch(text):
            yield st.MessageStep("system", text, name="aider")
        elif text != "<blank>":
            yield st.PromptStep(text)
    else:
        yield from _aider_steps(text, id, model)


def _reply_blocks(text: str) -> Iterator[dict[str, Value]]:
    place = 0
    for match in _THINKING.finditer(text):
        if said := text[place : match.start()].strip():
            yield text_block(said)
        yield thinking_block((match["tagged"] or match["titled"] or "").strip())
        place = match.end()
    if said := text[place:].strip():
        yield text_block(said)


def _aider_steps(text: str, id: str, model: str) -> Iterator[st.Step]:
    labels: dict[str, str] = {}
    created: set[str] = set()
    line, answered = "", ""
    for number, next_line in enumerate(text.splitlines()):
        before, line, call = line, next_line, f"{id}.{number}"
        if match := _ANSWERED.fullmatch(line):
            answered = match[1] if match[2].lower() in ("", "y", "yes", "a", "all") else ""
            if answered == "Create new file?":
                created.add(before)
        elif match := _MODEL.match(line):
            labels["model"] = model = match[1]
        elif match := _VERSION.match(line):
            labels["agent_version"] = match[1]
        elif match := _APPLIED.match(line):
            yield st.CallStep(call, "edit", {"path": match[1]}, "write")
            change = file_change(match[1], change="created" if match[1] in created else "", action=call)
            yield st.ResultStep(call, line, files=(change,))
        elif match := _UNAPPLIED.match(line):
            yield st.CallStep(call, "edit", {"path": match[1]}, "write")
            yield st.ResultStep(call, line, "failed", error=line)
        elif answered.startswith("Run shell command") and (match := _RUNNING.match(line)):
            yield st.CallStep(call, "shell", {"command": match[1]}, effect_of("shell", match[1]))
            yield st.ResultStep(call, None)
        elif match := _TOKENS.match(line):
            sent, written, hit, received = (_count(match[n]) for n in (1, 2, 3, 4))
            usage = Usage(input=max(0, sent - written - hit), cache_write=written, cache_read=hit, output=received)
            yield st.CostStep(model, usage, micros(float(match[5] or 0)))
    if labels:
        yield st.LabelsStep(labels)
    yield st.MessageStep("system", text, name="aider")
    if _PROVIDER_ERROR.match(line) or (_PROVIDER_ERROR.search(text) and "Retrying in" not in text):
        yield st.TurnEndStep("failed", next(filter(_PROVIDER_ERROR.search, text.splitlines())))


def _count(text: str | None) -> int:
    """Reads a rounded number of tokens, such as `4.2k`."""
    if not text:
        return 0
    unit = {"k": 1_000, "m": 1_000_000}.get(text[-1], 1)
    try:
        return tokens(round(float(text.rstrip("km").replace(",", "")) * unit))
    except (ValueError, OverflowError):
        return 0
