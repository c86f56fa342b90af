"""Translates one line of an ignore file into a regular expression, exactly as git reads it.

Git matches bytes. Here each byte is one Latin-1 character, so that an expression over text does the same:

    ?  *       one character, any number of them; never a slash
    **         between slashes, or at an end: any number of folders
    [a-z!]     one of these, also [!…], [^…], [[:digit:]]; never a slash
    \\x         x itself

A line without a slash (except at its end) matches names at any depth; any other line matches paths relative to the
ignore file's folder. A slash at the end restricts it to folders. A line that git can never match (an open bracket, a
backslash at the end) is not a rule.
"""

from __future__ import annotations

import re
import string

import msgspec

_SPECIAL = frozenset("*?[\\")
_STARS = re.compile(r"\*+")
_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, [*range(32), 127])),
    "digit": string.digits,
    "graph": "".join(map(chr, range(33, 127))),
    "lower": string.ascii_lowercase,
    "print": "".join(map(chr, range(32, 127))),
    "punct": string.punctuation,
    "space": " \t\n\v\f\r",
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}


class IgnoreRule(msgspec.Struct, frozen=True):
    regex: re.Pattern[str]
    ignores: bool
    """False for a line with `!`, which cancels earlier lines."""
    only_folders: bool
    only_names: bool

    def matches(self, path: str, name: str, is_folder: bool) -> bool:
        """Whether the line matches an entry. `path` is relative to the ignore file's folder."""
        if self.only_folders and not is_folder:
            return False
        return self.regex.fullmatch(name if self.only_names else path) is not None


def parse(line: str) -> IgnoreRule | None:
    """The rule on a line; None if there is none."""
    text = _trim(line)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[negated:]
    only_folders = text.endswith("/")
    text = text[: len(text) - only_folders]
    only_names = "/" not in text
    try:
        regex = _translate(text if only_names else text.removeprefix("/"))
    except _NoMatchError:
        return None
    return IgnoreRule(re.compile(regex, re.DOTALL), not negated, only_folders, only_names) if text else None


def _trim(text: str) -> str:
    """Removes trailing spaces, except one behind a backslash."""
    cut = text.rstrip(" ")
    slashes = len(cut) - len(cut.rstrip("\\"))
    return cut + " " if slashes % 2 and len(cut) < len(text) else cut


class _NoMatchError(Exception):
    """The pattern can never match."""


def _translate(pattern: str) -> str:
    out: list[str] = []
    start = next((i for i, char in enumerate(pattern) if char in _SPECIAL), len(pattern))
    out.append(re.escape(pattern[:start]))
    i = start
    while i < len(pattern):
        char = pattern[i]
        if char == "*":
            stars = _STARS.match(pattern, i)
            assert stars is not None
            part, i = _stars(pattern, stars, start)
            out.append(part)
        elif char == "?":
            out.append("[^/]")
            i += 1
        elif char == "[":
            part, i = _bracket(pattern, i + 1)
            out.append(part)
        else:
            i += char == "\\"
            if i >= len(pattern):
                raise _NoMatchError
            out.append(re.escape(pattern[i]))
            i += 1
    return "".join(out)


def _stars(pattern: str, stars: re.Match[str], start: int) -> tuple[str, int]:
    """A run of stars as an expression, and the position after it."""
    first, end = stars.span()
    after = pattern[end : end + 2]
    # Git matches the part before the first special character separately, so two stars right after it count as being
    # at the start: `a**/b` is `a` and then `**/b`.
    is_bound = (first == start or pattern[first - 1] == "/") and (after[:1] in ("", "/") or after == "\\/")
    if end - first == 1 or not is_bound:
        return "[^/]*", end
    return ("(?:.*/)?", end + 1) if after[:1] == "/" else (".*", end)


def _bracket(pattern: str, i: int) -> tuple[str, int]:
    """A bracket as an expression, and the position after it. `i` is the position after `[`."""
    negated = pattern[i : i + 1] in ("!", "^")
    i += negated
    chosen: set[int] = set()
    last = -1  # the character a range may start from
    is_first = True
    while True:
        char = pattern[i : i + 1]
        if not char:
            raise _NoMatchError
        if char == "]" and not is_first:
            break
        is_first = False
        if char == "-" and last >= 0 and pattern[i + 1 : i + 2] not in ("", "]"):
            end, i = _member(pattern, i + 1)
            chosen.update(range(last, end + 1))
            last = -1
        elif pattern.startswith("[:", i) and (name := _class_at(pattern, i)) is not None:
            chosen.update(map(ord, _CLASSES[name]))
            i += len(name) + 4
            last = -1
        else:
            last, i = _member(pattern, i)
            chosen.add(last)
    wanted = (set(range(1, 256)) - chosen if negated else chosen) - {ord("/")}
    if not wanted:
        raise _NoMatchError
    return "[" + "".join(f"\\x{code:02x}" for code in sorted(wanted)) + "]", i + 1


def _member(pattern: str, i: int) -> tuple[int, int]:
    """One character of a bracket, perhaps after a backslash, and the position after it."""
    i += pattern[i] == "\\"
    if i >= len(pattern):
        raise _NoMatchError
    return ord(pattern[i]), i + 1


def _class_at(pattern: str, i: int) -> str | None:
    """The name in `[:name:]`; None if it is not a class, so that the bracket is an ordinary member."""
    end = pattern.find("]", i + 2)
    if end < 0:
        raise _NoMatchError
    if end < i + 3 or pattern[end - 1] != ":":
        return None
    name = pattern[i + 2 : end - 1]
    if name not in _CLASSES:
        raise _NoMatchError
    return name
