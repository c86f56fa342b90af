"""Addresses in text, and where the agent read them first: links, mail addresses, accounts.

An injected instruction needs an address to send something to. So of everything the agent reads, only addresses are
remembered: the event that first mentioned each, and whether anything trusted ever mentioned it. Whether a tool reads
the current project or brings in content from elsewhere is guessed from its name and input, only to keep ordinary work
free of flags.
"""

from __future__ import annotations

import re
from typing import Any

from wakelog.model.ids import Seq
from wakelog.model.read_texts import texts_of
from wakelog.model.values import Value

ADDRESSES_MAX, TEXT_MAX = 4096, 200_000
"""How many addresses to remember, and how many characters of a text to search."""

_LINK = re.compile(r"https?://", re.IGNORECASE)
_ADDRESS = re.compile(
    r"""(?<![\w.+-]) (?:
      https?://[^\s"'<>\\)\]}]+               # a link
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+            # a mail address
    | [A-Z]{2}\d{2}(?:\ ?[A-Z0-9]{4}){2,7}(?:\ ?[A-Z0-9]{1,3})?\b  # an account (IBAN)
    | 0x[0-9a-fA-F]{40}\b | bc1[0-9a-z]{20,}\b                     # a wallet
    | \d{9,}\b                                # a long number, such as an account or a phone number
    )""",
    re.VERBOSE,
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]*|[\w-]+\.[A-Za-z]{1,4}")

_LOOKUP_WORDS = frozenset(
    (
        *("browse", "cat", "check", "describe", "fetch", "find", "get", "glob", "grep"),
        *("head", "list", "lookup", "ls", "open", "query", "read", "search", "show"),
        *("status", "tail", "view", "wait"),
    )
)
_PROJECT_WORDS = frozenset(
    (
        *("build", "cat", "commit", "compile", "dir", "directory", "edit", "file", "files"),
        *("folder", "format", "git", "glob", "grep", "lint", "ls", "make", "patch"),
        *("pytest", "python", "repo", "test", "tests", "tree", "write"),
    )
)
_PATH_ARGUMENTS = frozenset(("dir", "directory", "file", "file_path", "filename", "folder", "path", "paths"))
_SHELLS = frozenset(("bash", "command", "exec", "run", "sh", "shell", "terminal"))


def addresses_in(value: Value) -> list[str]:
    """The addresses in a value's texts, each once."""
    found = (match for text in texts_of(value) for match in _ADDRESS.findall(text[:TEXT_MAX]))
    return list(dict.fromkeys(match.rstrip(".,;:").replace(" ", "") for match in found))


def is_lookup(tool: str) -> bool:
    """Whether a tool's name says that it looks something up. Such a tool is meant to follow links."""
    return bool(_LOOKUP_WORDS & _words(tool))


def is_project_tool(tool: str) -> bool:
    """Whether a tool's name says that it works on the project: files, tests, a shell."""
    return bool((_PROJECT_WORDS | _SHELLS) & _words(tool))


def reads_project(tool: str, value: Value) -> bool:
    """Whether a call with this input reads the current project, not content from elsewhere."""
    texts = list(texts_of(value))
    # Content to be written may contain links. An argument that is a link, or a link in a shell command, is visited.
    is_shell = bool(_SHELLS & _words(tool))
    if any(_LINK.search(text) if is_shell else _LINK.match(text) for text in texts):
        return False
    names = value.keys() if isinstance(value, dict) else ()
    return (
        is_project_tool(tool) or not _PATH_ARGUMENTS.isdisjoint(names) or any(_PATH.fullmatch(text) for text in texts)
    )


class Addresses:
    """Where distrusted content first mentioned each address, and which addresses trusted content mentioned."""

    def __init__(self) -> None:
        self._distrusted: dict[str, Seq] = {}
        self._trusted: dict[str, None] = {}

    def take(self, value: Value, seq: Seq, *, is_trusted: bool) -> None:
        for address in addresses_in(value):
            if is_trusted:
                _remember(self._trusted, address, None)
            elif address not in self._distrusted:
                _remember(self._distrusted, address, seq)

    def carried(self, value: Value) -> list[tuple[str, Seq]]:
        """The addresses in a value that only distrusted content mentioned, and where."""
        return [
            (address, self._distrusted[address])
            for address in addresses_in(value)
            if address in self._distrusted and address not in self._trusted
        ]


def _remember(kept: dict[str, Any], address: str, value: Any) -> None:
    kept[address] = value
    if len(kept) > ADDRESSES_MAX:
        del kept[next(iter(kept))]


def _words(tool: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(tool))
