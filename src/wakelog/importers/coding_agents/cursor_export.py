"""Cursor: the Markdown file that the command `Export Chat` writes.

After the title and a line `_Exported on … from Cursor (version)_`, rules separate what the user and Cursor said, each
under `**User**` or `**Cursor**`. Calls, times and models are not in the file; an answer holds the texts between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

from wakelog.importers import steps as st
from wakelog.importers.common.chat import text_block
from wakelog.importers.source.files import Sample, digest, home_files, open_source

NAME = "cursor-export"
TITLE = "Cursor export"
find_in_home = home_files()
_EXPORTED = re.compile(
    r"\A\s*# (?P<title>[^\n]*)\n_Exported on (?P<when>[^\n]*) from Cursor \((?P<version>[^)\n]*)\)_[ \t]*\n"
)
_HEADING = re.compile(r"(?<=\n---\n\n)\*\*(User|Cursor)\*\*[ \t]*(?=\n\n|\n?\Z)")


def recognises(sample: Sample) -> bool:
    return sample.path.name.endswith(".md") and _EXPORTED.match(_text(sample.start)) is not None


def transcripts(path: Path) -> Iterator[st.Transcript]:
    with open_source(path) as file:
        text = _text(file.read())
    about = _EXPORTED.match(text)
    title, version = (about["title"], about["version"]) if about else ("", "")
    # A chat that is exported again has the same first words, under any name.
    first = next(iter(_said(text)), ("", ""))[1]
    head = st.TranscriptHead(digest(f"{title}\n{first}"), "cursor", goal=title, labels={"agent_version": version})
    yield st.Transcript(head, partial(_records, text))


def _records(text: str) -> Iterator[tuple[st.SourceRecord, int]]:
    before = text.partition("\n---\n")[0]
    yield st.SourceRecord("start", rest={"start": before}), len(before.encode())
    for number, (who, words) in enumerate(_said(text)):
        id = f"{number}.{digest(words, 8)}"
        step = st.PromptStep(words) if who == "User" else st.ReplyStep(id, [text_block(words)], is_last=True)
        yield st.SourceRecord(id, (step,) if words else ()), len(words.encode())


def _said(text: str) -> Iterator[tuple[str, str]]:
    for heading, after in pairwise([*_HEADING.finditer(text), None]):
        if heading is not None:
            words = text[heading.end() : after.start() if after else len(text)].strip()
            yield heading[1], words.removesuffix("\n---").rstrip()


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace").replace("\r\n", "\n")
