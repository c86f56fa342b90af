"""Addresses in text, and where the agent met them: links, mail addresses, accounts.

An address is what an injected instruction needs: somewhere to send to. So of everything read, only addresses are
remembered, with the event that brought each in first, and whether anything trusted ever named it. What a tool reads in
the project at hand is told from what it brings in from elsewhere by its name and by what it was given: a guess, made
only to keep ordinary work quiet.
"""

from __future__ import annotations

import re
from typing import Any

from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.provenance.text_matches import texts_of

KEPT, LOOKED_AT = 4096, 200_000
"""How many addresses are remembered, and how many characters of a text are looked through."""

_LINK = re.compile(r"https?://", re.IGNORECASE)
_ADDRESS = re.compile(
    r"""(?<![\w.+-]) (?:
      https?://[^\s"'<>\\)\]}]+               # a link
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+            # a mail address
    | [A-Z]{2}\d{2}(?:\ ?[A-Z0-9]{4}){2,7}(?:\ ?[A-Z0-9]{1,3})?\b  # an account (IBAN)
    | 0x[0-9a-fA-F]{40}\b | bc1[0-9a-z]{20,}\b                     # a wallet
    | \d{9,}\b                                # a number that somebody was given
    )""",
    re.VERBOSE,
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]*|[\w-]+\.[A-Za-z]{1,4}")

_LOOKS = frozenset(
    (
        *("browse", "cat", "check", "describe", "fetch", "find", "get", "glob", "grep"),
        *("head", "list", "lookup", "ls", "open", "query", "read", "search", "show"),
        *("status", "tail", "view", "wait"),
    )
)
_WORKS = frozenset(
    (
        *("build", "cat", "commit", "compile", "dir", "directory", "edit", "file", "files"),
        *("folder", "format", "git", "glob", "grep", "lint", "ls", "make", "patch"),
        *("pytest", "python", "repo", "test", "tests", "tree", "write"),
    )
)
_PLACES = frozenset(("dir", "directory", "file", "file_path", "filename", "folder", "path", "paths"))
"""What arguments are called that name a file."""
_SHELLS = frozenset(("bash", "command", "exec", "run", "sh", "shell", "terminal"))


def addresses_in(value: Value) -> list[str]:
    """The addresses in a value's texts, each once."""
    found = (_ADDRESS.findall(text[:LOOKED_AT]) for text in texts_of(value))
    return list(dict.fromkeys(_plain(each) for some in found for each in some))


def only_looks(tool: str) -> bool:
    """Whether a tool's name says that it looks something up: following a link is what it is for."""
    return bool(_LOOKS & _words(tool))


def works_here(tool: str) -> bool:
    """Whether a tool's name says that it works on the project: files, tests, a shell."""
    return bool((_WORKS | _SHELLS) & _words(tool))


def reads_here(tool: str, given: Value) -> bool:
    """Whether a call read the project at hand, and not something from elsewhere."""
    texts = list(texts_of(given))
    # A file that is written may hold links; a link that is given by itself, or to a shell, is gone to.
    is_shell = bool(_SHELLS & _words(tool))
    if any(_LINK.search(text) if is_shell else _LINK.match(text) for text in texts):
        return False
    names = given.keys() if isinstance(given, dict) else ()
    return works_here(tool) or not _PLACES.isdisjoint(names) or any(_PATH.fullmatch(text) for text in texts)


class Addresses:
    """Where each address was met first in what is not trusted, and those that something trusted named."""

    def __init__(self) -> None:
        self._met: dict[str, Seq] = {}
        self._named: dict[str, None] = {}

    def take(self, value: Value, seq: Seq, *, is_trusted: bool) -> None:
        for each in addresses_in(value):
            if is_trusted:
                _remember(self._named, each, None)
            elif each not in self._met:
                _remember(self._met, each, seq)

    def carried(self, value: Value) -> list[tuple[str, Seq]]:
        """The addresses in a value that only untrusted or unverified content named, and where."""
        return [
            (each, self._met[each]) for each in addresses_in(value) if each in self._met and each not in self._named
        ]


def _remember(kept: dict[str, Any], address: str, value: Any) -> None:
    kept[address] = value
    if len(kept) > KEPT:
        del kept[next(iter(kept))]


def _plain(address: str) -> str:
    return address.rstrip(".,;:").replace(" ", "")


def _words(tool: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(tool))
