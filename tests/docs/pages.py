"""Reads Markdown pages: their fenced code blocks and their links, and runs what is meant to run.

A page is a small program. Its `python` blocks run in order and share one namespace; the `$ wakelog …` lines
of its `console` blocks run in between, in the same folder. `<!-- no-run: reason -->` before a block leaves it
out.

A page may show what its code prints: in a `text` block right after a `python` block, or below a command in a `console`
block. A line `…` there stands for any number of lines, and `…` in a line for anything. When such an output has changed
on purpose,

    .venv/bin/python -m tests.docs.pages README.md docs/tutorial/first-session.md

writes the new one into the pages.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sysconfig.get_path("scripts")

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
    """A command, the numbers of its first and last line, and what the page shows below it."""

    text: str
    exit_code: int
    line: int
    last: int
    shown: str = ""


@dataclass(frozen=True)
class Shown:
    """What a page says that its code prints, from `line` on, and what it printed."""

    line: int
    shown: str
    printed: str

    @property
    def is_true(self) -> bool:
        pattern = "".join(
            r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*")
            for line in self.shown.splitlines(keepends=True)
        )
        return re.fullmatch(pattern, self.printed) is not None


def read_blocks(markdown: str) -> list[Block]:
    return [block for block, _ in _scan(markdown) if block is not None]


def read_commands(block: Block) -> list[Command]:
    """The `$ wakelog …` lines of a console block, each joined with the lines that a backslash continues."""
    commands: list[Command] = []
    lines = iter(enumerate(block.text.splitlines(), start=block.line))
    is_ours = False
    for number, line in lines:
        if not line.startswith("$ "):
            if is_ours and (line or commands[-1].shown):
                commands[-1] = replace(commands[-1], shown=f"{commands[-1].shown}{line}\n")
            continue
        is_ours = line.startswith("$ wakelog ")
        if is_ours:
            text, last = line.removeprefix("$ "), number
            while text.endswith("\\"):
                last, more = next(lines)
                text = text.removesuffix("\\") + more.removeprefix(">").strip()
            marked = _EXIT.search(text)
            commands.append(Command(text, int(marked["code"]) if marked else 0, number, last))
    return [replace(each, shown=each.shown.rstrip("\n") + "\n" if each.shown else "") for each in commands]


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


def has_code(page: Path) -> bool:
    """Whether anything of a page runs."""
    return any(block.language in ("python", "console") for block in _blocks_that_run(page))


def has_commands(page: Path) -> bool:
    return any(read_commands(block) for block in _blocks_that_run(page) if block.language == "console")


def _blocks_that_run(page: Path) -> list[Block]:
    return [block for block in read_blocks(page.read_text(encoding="utf-8")) if not block.no_run]


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, commands: str | Path = SCRIPTS) -> list[Shown]:
    """Runs all blocks of a page with `folder` as the working directory and home; gives the outputs that it shows.
    `commands` is where `wakelog` is found."""
    blocks = _blocks_that_run(page)
    _enter(folder, monkeypatch)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ.get('PATH', '')}")
    # Registered, because type annotations of classes defined on the page are looked up through their module.
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    with _without_its_modules(folder, monkeypatch):
        return _run_blocks(page, blocks, module)


@contextlib.contextmanager
def _without_its_modules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a page wrote and imported is forgotten: another page or test has a module of that name too."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    try:
        yield
    finally:
        inside = f"{folder}{os.sep}"
        for name, each in list(sys.modules.items()):
            if (getattr(each, "__file__", None) or "").startswith(inside):
                del sys.modules[name]


def _run_blocks(page: Path, blocks: list[Block], module: types.ModuleType) -> list[Shown]:
    found = []
    for block, after in zip(blocks, [*blocks[1:], None], strict=False):
        if block.language == "python":
            out = io.StringIO()
            # Blank lines in front make tracebacks show the line of the page.
            padded = "\n" * (block.line - 1) + block.text
            with contextlib.redirect_stdout(out):
                exec(compile(padded, str(page), "exec", dont_inherit=True), module.__dict__)
            # Two fences and a blank line lie between the last line of one and the first line of the other.
            if after and after.language == "text" and after.line == block.line + block.text.count("\n") + 3:
                found.append(Shown(after.line, after.text, out.getvalue()))
        elif block.language == "console":
            for command in read_commands(block):
                printed = _run_command(page, command)
                if command.shown:
                    found.append(Shown(command.last + 1, command.shown, printed))
    return found


def _enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder / "home"
    work = folder / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    for name in os.environ:
        if name.startswith(("WAKELOG_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NO_COLOR", "1")


def _run_command(page: Path, command: Command) -> str:
    done = subprocess.run(
        command.text, shell=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == command.exit_code, (
        f"{page.name}:{command.line}: `{command.text}` exited with {done.returncode}, "
        f"not {command.exit_code}\n{done.stdout}\n{done.stderr}"
    )
    return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


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


def _refresh(page: Path) -> None:
    """Writes into the page what its code prints now; where the page leaves something out, only says so."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        found = run_page(page, Path(folder), monkeypatch)
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    for each in reversed(found):
        if each.is_true:
            continue
        if "…" in each.shown:
            print(f"{page.name}:{each.line} is not true any more; it is now:\n{each.printed}")
            continue
        lines[each.line - 1 : each.line - 1 + each.shown.count("\n")] = each.printed.splitlines(keepends=True)
        print(f"{page.name}:{each.line}: written anew")
    page.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        _refresh(Path(name).resolve())
