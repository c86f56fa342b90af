"""Error signatures: one name for errors that differ only in details.

The signature of a typed error is made from its type and message. In a text, it is the last line that names an
exception, else the first line that looks like an error of a compiler, linter or shell, else the first line. Ids, paths,
numbers, hashes and quoted words are masked, so that the same mistake in another file has the same signature. An error
that only follows from another one, or says nothing, has no signature.

The rules have a version. Signatures of different versions are never compared: the index is rebuilt instead.
"""

from __future__ import annotations

import re
from typing import Final

from wakelog.model.short_text import cut

SIGNATURE_MAX: Final = 160
TEXT_MAX: Final = 16_000
"""Of a longer text, only the first and the last half of this size are read."""

_GENERAL: Final = frozenset({"", "error", "failed", "failure", "tool_error", "exception", "timed_out", "timeout"})
"""Error types that only say that something went wrong."""
_CASCADE: Final = re.compile(r"Sibling tool call errored|cancelled because another|not executed because", re.IGNORECASE)
_FENCES: Final = re.compile(r"</?(?:tool_use_error|output|stdout|stderr|error)>|<returncode>-?\d+</returncode>")
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NOISE: Final = re.compile(
    r"\s*(?:Exit code:? -?\d+|npm warn .*|npm notice.*|warning:? .*|\w*Warning: .*|[-=*_~.#>\s]*|Error|\[[\w-]+\] \$ .*"
    r"|Traceback \(most recent call last\):.*|\$ .*|> .*|ok\s+\S+.*|Running .*"
    r"|On branch .*|Your branch .*|=+ .* =+|platform \w+ -- .*|(?:\[[\w-]+\] )?ERROR task failed"
    r"|\?\s+\S+\s+\[no test files\].*)$",
    re.IGNORECASE,
)
_WRAPPERS: Final = re.compile(
    r"^(?:failed in sandbox .{0,160}?stderr:\s*|Error:\s*|ERROR:\s*|error:\s*|execution error:\s*|Tool execution failed"
    r" with error:\s*|bash: (?:-c: )?line \d+:\s*|\(eval\):\d+:\s*|/\S+\.sh: line \d+:\s*|\[[\w-]+\] )"
)
_RAISED: Final = re.compile(
    r"^\s*(?:E\s+|- |\w\d{3} |uncaught |unhandled |panic: )*"
    r"((?:[A-Za-z_]\w*\.)*_?[A-Z]\w*(?:Error|Exception|Interrupt|Failure|Refused|Timeout|Expired|NotFound|DoesNotExist))"
    r"(?::\s*(.*))?$",
    re.IGNORECASE | re.MULTILINE,
)
_PYTHON: Final = re.compile(r"Error|Exception|Interrupt|Failure|Refused|Timeout|Expired|NotFound|DoesNotExist")
_CODED: Final = re.compile(
    r"error TS\d+: .*|error\[E\d+\]: .*|\bfatal: .*|\bpanic: .*|\b(?:E|F|W|C|R)\d{3,4} .*|\bE[A-Z]{3,}: .*"
    r"|(?<=: )error: .*|^[\w.-]+: error: .*|\bundefined: .*|FAILED? .*|FAIL\t.*|--- FAIL: .*|FAIL: .*|syntax error .*"
)
_TELLING: Final = re.compile(
    r"command not found|No such file or directory|No module named |cannot (?:access|find|open|import) "
    r"|[Pp]ermission denied|not permitted|timed out"
)
"""Words that mark an error anywhere in a line."""
_PLACE: Final = re.compile(r"^\S+?[:(]\d+(?:[:,]\d+)?\)?:?\s+")

_MASKS: Final = (
    (re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|(?<![A-Za-z0-9])'[^'\n]*'(?![A-Za-z0-9])|«[^»\n]*»|“[^”\n]*”"), "<q>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://\S+"), "<url>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"(?<![\w/])(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@+~()\[\]-]+)+[/\\]?"), "<path>"),
    (re.compile(r"(?<![\w/])[\w.@+-]+(?:/[\w.@+()\[\]-]+)+/?"), "<path>"),
    (re.compile(r"\b[\w-]+\.(?:py|js|jsx|ts|tsx|go|rs|rb|java|c|h|cpp|md|json|ya?ml|toml|txt|sh|sql|html|css|lock)\b"),
     "<path>"),
    (re.compile(r"\b(?=[a-zA-Z_]*\d)[a-zA-Z]*[_-]?[0-9a-fA-F]{7,}\b|\b[A-Za-z]+_\w*\d\w*\b|\b[A-Z]{2,}\d{2,}\b"),
     "<id>"),
    (re.compile(r"(?<=: )[\w.]*_[\w.]*$"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?Z?)?\b"), "<time>"),
    (re.compile(r"(?<![A-Za-z_\d.])[-+]?(?:0x[0-9a-fA-F]+|\d[\d,.]*)(?:e[-+]?\d+)?(?:\s?(?:ms|s|[KMG]i?B|%))?"
                r"(?![A-Za-z_\d])"), "<n>"),
)  # fmt: skip
_PLAIN: Final = (
    (re.compile(r"no such file or directory|^file does not exist|file or directory not found", re.IGNORECASE),
     "No such file or directory"),
    (re.compile(r"command not found", re.IGNORECASE), "command not found"),
    (re.compile(r"No module named "), "ModuleNotFoundError: No module named <q>"),
)  # fmt: skip
"""Common errors that programs phrase differently, with one phrase for each."""
_KEPT_CODE: Final = re.compile(r"^(?:error )?(?:TS\d+|\[?E\d+\]?|[EFWCR]\d{3,4})\b")


def error_signature(type_: str, message: str) -> str:
    """Returns the signature of an error; empty if it has none."""
    if _CASCADE.search(message[:400]):
        return ""
    name = type_.strip()
    if name.lower() not in _GENERAL:
        line = _first_line(_plain(message))
        return cut(f"{name}: {_masked(line)}" if line else name, SIGNATURE_MAX)
    if name.lower() in ("timed_out", "timeout"):
        return "timed out"
    text = _plain(message)
    line = _raised(text) or _coded(text) or _masked(_first_line(text))
    return cut(line, SIGNATURE_MAX) if re.search(r"[A-Za-z]{2}", re.sub(r"<\w+>", "", line)) else ""


def _plain(message: str) -> str:
    text = message if len(message) <= TEXT_MAX else f"{message[: TEXT_MAX // 2]}\n{message[-TEXT_MAX // 2 :]}"
    return _ANSI.sub("", _FENCES.sub("\n", text.replace("\r", "")))


def _raised(text: str) -> str:
    """Returns the last line that names an exception: the end of a traceback."""
    for name, message in reversed(_RAISED.findall(text)):
        if _PYTHON.search(name):
            short, masked = name.rpartition(".")[2], _masked(message)
            return f"{short}: {masked.removeprefix(f'{short}: ')}" if masked else short
    return ""


def _coded(text: str) -> str:
    for line in text.splitlines():
        if _NOISE.match(line) or len(line) > 2000:
            continue
        plain = _PLACE.sub("", _unwrapped(line))
        if _TELLING.search(plain):
            return _masked(plain)
        if match := _CODED.search(plain):
            return _masked(match[0])
    return ""


def _first_line(text: str) -> str:
    return next((_PLACE.sub("", _unwrapped(line)) for line in text.splitlines() if not _NOISE.match(line)), "").strip()


def _unwrapped(line: str) -> str:
    line = line.strip()[:2000]
    while (shorter := _WRAPPERS.sub("", line, count=1).strip()) != line:
        line = shorter
    return line


def _masked(line: str) -> str:
    line = _unwrapped(line)
    for pattern, plain in _PLAIN:
        if pattern.search(line):
            return plain
    code = _KEPT_CODE.match(line)
    kept, rest = (f"{code[0]} ", line[code.end() :]) if code else ("", line)
    for pattern, word in _MASKS:
        rest = pattern.sub(word, rest)
    return kept + re.sub(r"(<\w+>)(?:[\s,]+\1)+", r"\1", " ".join(rest.split())).removeprefix(": ")
