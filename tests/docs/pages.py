"""Reads Markdown pages: their fenced code blocks and their links, and runs what is meant to run.

A page is a small program. Its `python` blocks run in order and share one namespace; the `$ wakelog …` lines
of its `console` blocks run in between, in the same folder. `<!-- no-run: reason -->` before a block leaves it
out.
"""

import os
import re
import subprocess
import sys
import sysconfig
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<language>[\w+-]*)[^`]*$")
_NO_RUN = re.compile(r"<!-- *no-run: *(?P<reason>\S.*?) *-->")
_EXIT = re.compile(r"# exit (?P<code>\d+)\s*$")
_INLINE_LINK = re.compile(r"\]\(\s*<?(?P<target>[^)\s>]+)>?(?:\s+[^)]*)?\)")
_REFERENCE_LINK = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(?P<target>[^\s>]+)>?")


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is the number of its first line of text, from 1."""

    language: str
    text: str
    line: int
    no_run: bool


@dataclass(frozen=True)
class Command:
    text: str
    exit_code: int
    line: int


def read_blocks(markdown: str) -> list[Block]:
    return [block for block, _ in _scan(markdown) if block is not None]


def read_commands(block: Block) -> list[Command]:
    """The `$ wakelog …` lines of a console block, each joined with the lines that a backslash continues."""
    commands = []
    lines = iter(enumerate(block.text.splitlines(), start=block.line))
    for number, line in lines:
        if not line.startswith("$ wakelog "):
            continue
        text = line.removeprefix("$ ")
        while text.endswith("\\"):
            text = text.removesuffix("\\") + next(lines)[1].removeprefix(">").strip()
        marked = _EXIT.search(text)
        commands.append(Command(text, int(marked["code"]) if marked else 0, number))
    return commands


def broken_links(page: Path) -> list[str]:
    """Relative links whose file does not exist. Code, web addresses and anchors are left alone."""
    broken = []
    for block, text in _scan(page.read_text(encoding="utf-8")):
        if block is not None:
            continue
        prose = re.sub(r"(`+).+?\1", "", text)
        found = [*_INLINE_LINK.finditer(prose), *_REFERENCE_LINK.finditer(prose)]
        for target in (match["target"] for match in found):
            name = target.partition("#")[0]
            if name and not re.match(r"[a-z][a-z0-9+.-]*:", name) and not (page.parent / name).exists():
                broken.append(f"{page.name} links to {target}, which does not exist")
    return broken


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs all blocks of a page with `folder` as the working directory and home."""
    blocks = [block for block in read_blocks(page.read_text(encoding="utf-8")) if not block.no_run]
    _enter(folder, monkeypatch)
    # Registered, because type annotations of classes defined on the page are looked up through their module.
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for block in blocks:
        if block.language == "python":
            # Blank lines in front make tracebacks show the line of the page.
            padded = "\n" * (block.line - 1) + block.text
            exec(compile(padded, str(page), "exec", dont_inherit=True), module.__dict__)
        elif block.language == "console":
            for command in read_commands(block):
                _run_command(page, command)


def _enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder / "home"
    work = folder / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    for name in os.environ:
        if name.startswith(("WAKELOG_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts") + os.pathsep + os.environ.get("PATH", ""))


def _run_command(page: Path, command: Command) -> None:
    done = subprocess.run(
        command.text, shell=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == command.exit_code, (
        f"{page.name}:{command.line}: `{command.text}` exited with {done.returncode}, "
        f"not {command.exit_code}\n{done.stdout}\n{done.stderr}"
    )


def _scan(markdown: str) -> Iterator[tuple[Block | None, str]]:
    """Yields each fenced block whole, and every other line as text."""
    before = ""
    lines = iter(enumerate(markdown.splitlines(), start=1))
    for number, line in lines:
        opening = _FENCE.match(line)
        if opening is None:
            if line.strip():
                before = line.strip()
            yield None, line
            continue
        inside = list(_until_closed(lines, opening["fence"], number))
        indent = len(opening["indent"])
        text = "".join(each[min(indent, len(each) - len(each.lstrip(" "))) :] + "\n" for each in inside)
        yield Block(opening["language"], text, number + 1, _is_no_run(before, number)), ""
        before = ""


def _until_closed(lines: Iterator[tuple[int, str]], fence: str, opened: int) -> Iterator[str]:
    closing = re.compile(rf"^ *{re.escape(fence)}{re.escape(fence[0])}* *$")
    for _, line in lines:
        if closing.match(line):
            return
        yield line
    raise ValueError(f"the code block that opens in line {opened} is never closed")


def _is_no_run(before: str, number: int) -> bool:
    if not re.match(r"<!-- *no-run", before):
        return False
    if not _NO_RUN.fullmatch(before):
        raise ValueError(f"the block in line {number} is marked no-run without a reason: <!-- no-run: reason -->")
    return True
