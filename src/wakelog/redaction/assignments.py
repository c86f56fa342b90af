r"""Finds secrets by the name they are assigned to: `API_KEY=…`, `"password": "…"`, `client_secret => '…'`, `--token …`.

The names end in a few words, so the search starts there: fast expressions over the lower-case text stop at an ending
that is followed by a separator. At each stop the name is read backwards and the value forwards. A value must be long
enough and plausible (plausible.py), because `password: str` and `token = next(tokens)` look similar.

Text may be JSON, and must stay JSON. So a value never crosses a quote or half an escape, and after a quoted name it
must be quoted too: the number in `"token": 12345678` is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import msgspec

from wakelog.redaction.late_expression import LateExpression
from wakelog.redaction.plausible import (
    MARKER,
    MIN_LENGTH,
    entropy,
    holds_session_cookie,
    is_element_password,
    is_encoded_login,
    is_placeholder,
    is_plausible,
)

Kind = Literal["password", "secret", "token", "api-key"]

NAMES = ("aws-secret-key", "azure-storage-key", "password", "secret", "token", "api-key")
"""The markers used here. A key of AWS or Azure is recognised by length and alphabet in addition to its name."""
MAX_NAME = 64

_SEP = rb"""((?:["'\]\\ \t]{0,12}(?:=>|:=|={1,3}|:(?!:))| is:? |>))"""
# The last word on its line, or before another entry, as in .netrc files.
_LAST = rb"""[^\s"'`\\<>]{4,256}+(?:\s*(?:$|["'\\\r\n])|\s+(?:machine|account|macdef|default)\b)"""
# Each starts with one or two fixed letters, rare ones if possible: that makes them fast. Three forms are not
# assignments: the end of a private key's first line, a command that may contain a login, and the header or option for
# cookies (patterns.py).
_ENDINGS = (
    LateExpression(
        rb"ke(?:(?:n|y(?<=[a-z_\-.]key)(?:_base)?|y(?<=[a-z0-9] key))"
        + _SEP
        + rb"|n( )(?<=-token )|y( )(?<=-key )|y(?: block)?-----)"
    ),
    LateExpression(
        rb"p(?:ass(?:word|phrase|wd)?(?:"
        + _SEP
        + rb"|( )(?<=--password )|( )(?<=\Wpassword )(?="
        + _LAST
        + rb"))|wd"
        + _SEP
        + rb")"
    ),
    LateExpression(rb"c(?:ret(?:" + _SEP + rb"|( )(?<=-secret ))|url |ookie[\"'\\\\ ]{0,12}(?:[:=]|(?<=--cookie )))"),
)
_NAME_BACKWARDS = LateExpression(r"[A-Za-z0-9_.\-]+(?: [A-Za-z0-9_.\-]+)?")
# A value between quotes may contain escapes; between escaped quotes (JSON inside JSON) it contains none.
_VALUE = LateExpression(
    r"""[ \t]*+(?:[bBfFrRuU]{0,2}(?P<quote>\\*+["'`])(?![:,}\]])"""
    r"""(?P<quoted>(?:(?<!\\["'`])(?:[^\s"'`\\]|\\[^\s"'`]){1,4096}+|[^\s"'`\\]{1,4096}+))(?P=quote)"""
    r"""|(?P<bare>[^\s"'`\\,;&|<>(){}\[\]]{1,4096}+)(?![(\[{]))"""
)
_ELEMENT = LateExpression(r"""(?P<quoted>[^\s<>"'`\\]{1,4096}+)(?=<\\?/)""")
# Elements that contain the words of a form, or its components, not a password.
_LABEL = LateExpression(
    r"(?i:forg[eo]t|reset|change|confirm|enter|show|hide|repeat|wrong|invalid|lost)|[A-Z][a-z]+[A-Z]"
)
_ENTRY = LateExpression(r"""(?P<quoted>[^\s"'`\\<>]{1,4096}+)""")
_SPACE = r"(?:\s|\\+[nrt])+"
_MACHINE = LateExpression(
    rf"(?:\bmachine{_SPACE}[^\s\\]+|\bdefault)(?:{_SPACE}(?:login|account){_SPACE}[^\s\\]+){{0,2}}{_SPACE}$"
)
# In NAME=value at the start of a line, as in .env files, the value may contain characters that end a value elsewhere.
_WHOLE_LINE = LateExpression(r"""[^\s"'`\\]{1,4096}+""")

_TOKEN_OF_ANOTHER_KIND = LateExpression(
    r"(?:page|next|prev|previous|continuation|cursor|sync|pad|eos|bos|unk|cls|mask|sep|stop|first|last|start|end|special"
    r"|cancel|cancellation|resume|change|current|this|each|per|lexer|parser|syntax)token$"
)
_KEY_OF_THIS_KIND = LateExpression(
    r"(?:api|apis|access|secret|private|auth|account|shared|master|encryption|signing|service|subscription|license|licence"
    r"|app|application|client|consumer|storage|deploy|webhook|admin|root|bot|session|jwt|hmac|aes|ssh|function|bearer)key"
    r"(?:base)?$"
)
_LOGINS = frozenset({"auth", "_auth"})  # of Docker and npm
_COOKIES = frozenset({"cookie", "set-cookie"})
_AWS = LateExpression(r"[A-Za-z0-9/+]{40}")
_AZURE = LateExpression(r"[A-Za-z0-9/+]{86}==")


class Stop(msgspec.Struct, frozen=True, gc=False):
    """A position after which a secret may follow. Without a separator, it triggers the rows with `where="keyword"`."""

    name_end: int
    value_start: int
    separator: bytes


def find_stops(low: bytes) -> list[Stop]:
    """Finds the positions in a lower-case ASCII text where a value may be assigned to a name that means "secret"."""
    stops = []
    for ending in _ENDINGS:
        match = ending.search(low)
        while match is not None:
            group = match.lastindex or 0
            stops.append(Stop(match.start(group), match.end(), match[group] if group else b""))
            match = ending.search(low, match.end())
    if len(stops) > 1:
        stops.sort(key=_place)
    return stops


def find_assigned(text: str, stops: list[Stop]) -> Iterator[tuple[int, int, str]]:
    """Yields start, end and marker name of each value that is a secret by its name."""
    nested, reached = 0, 0
    for stop in stops:
        # In `a=b=c=…` each sign starts another value inside the first one; stop after a few.
        nested = nested + 1 if stop.value_start < reached else 0
        if nested > 3:
            continue
        name = _name_before(text, stop.name_end) if stop.separator else ""
        kind = kind_of_name(name)
        if kind is None or _is_no_name(text, stop, name):
            continue
        form = _form_of_value(text, stop, name)
        match = form.match(text, stop.value_start) if form is not None else None
        if match is None:
            continue
        quoted = match["quoted"] is not None
        start, end = match.span("quoted" if quoted else "bare")
        reached = max(reached, end)
        if not quoted:
            if b'"' in stop.separator or b"'" in stop.separator:
                continue
            end = _end_of_bare(text, stop, name, start, end)
        value = text[start:end]
        marker = _marker(name, kind, value)
        if form is _ENTRY:
            is_secret = not is_placeholder(value)
        elif form is _ELEMENT and kind == "password" and not _LABEL.match(name):
            is_secret = is_element_password(value)
        else:
            is_secret = marker != kind or is_plausible(value, password=kind == "password", quoted=quoted)
        if is_secret:
            yield start, end, marker


@lru_cache(4096)
def kind_of_name(name: str) -> Kind | None:
    """Returns the kind of secret that a name suggests, or None."""
    if len(name) > MAX_NAME:
        return None
    flat = re.sub(r"[^a-z0-9]", "", name.lower())
    if flat.endswith(("password", "passwd", "passphrase", "pwd")) or _is_pass(name):
        return "password"
    if flat.endswith("secret"):
        return "secret"
    if flat.endswith("authorization") or (flat.endswith("token") and not _TOKEN_OF_ANOTHER_KIND.search(flat)):
        return "token"
    return "api-key" if flat.endswith(("key", "keybase")) and _KEY_OF_THIS_KIND.search(flat) else None


@lru_cache(4096)
def may_name_secret(key: object) -> bool:
    """Whether the key alone may make its value a secret. It rarely does, so the answers are cached. The value of a
    patch is named by its path, so the key `value` may mean anything."""
    if not isinstance(key, str) or key == "value":
        return True
    return kind_of_name(key) is not None or key in _LOGINS or key.lower() in _COOKIES


def is_named_secret(name: str, value: str) -> bool:
    """Whether `value`, stored under `name` in structured data, is a secret. Data cannot be confused with code, so the
    rules are simple: long enough, not a placeholder, not a sentence."""
    kind = kind_of_name(name) if len(value) >= MIN_LENGTH and isinstance(name, str) else None
    if name in _LOGINS:
        return is_encoded_login(value)
    if str(name).lower() in _COOKIES:
        return holds_session_cookie(value)
    if kind is None or is_placeholder(value):
        return False
    if kind == "password":
        return " " not in value.strip() or name.lower().endswith("phrase")
    return is_plausible(value.rpartition(" ")[2], password=True) and len(value.split()) <= 2


def _place(stop: Stop) -> int:
    return stop.value_start


def _is_pass(name: str) -> bool:
    """Whether the name ends in `pass` as a separate word: not `bypass`, `compass`, `first pass`."""
    return re.search(r"(?:^|[_\-.])(?:pass|PASS|Pass)$|[a-z]Pass$", name) is not None


def _name_before(text: str, end: int) -> str:
    """Reads the name before a position: up to two words, because prose says `API key: …`."""
    match = _NAME_BACKWARDS.match(text[max(0, end - MAX_NAME) : end][::-1])
    return match[0][::-1] if match else ""


def _is_no_name(text: str, stop: Stop, name: str) -> bool:
    """Whether it is part of a path, such as `arn:aws:secretsmanager:eu-west-1:1234:secret:prod-a1b2` or
    `AWS::IAM::AccessKey`, or of one of our own markers."""
    start = stop.name_end - len(name)
    return text.endswith(MARKER, 0, start) or (text.endswith(":", 0, start) and stop.separator.endswith(b":"))


def _form_of_value(text: str, stop: Stop, name: str) -> LateExpression[str] | None:
    """Returns the expression for the value; None if there can be no value here."""
    if stop.separator == b">":
        return _ELEMENT if text.endswith("<", 0, stop.name_end - len(name)) else None
    if stop.separator == b" " and name.lower().endswith("password") and not name.endswith("-password"):
        start = stop.name_end - len("password")
        return _ENTRY if _MACHINE.search(text, max(0, start - 300), start) else None
    return _VALUE


def _end_of_bare(text: str, stop: Stop, name: str, start: int, end: int) -> int:
    before = stop.name_end - len(name) - 1
    if stop.separator == b"=" and name.isupper() and (before < 0 or text[before] in "\n\"'\\"):
        whole = _WHOLE_LINE.match(text, start)
        end = whole.end() if whole else end
    while end > start and text[end - 1] in ".:":
        end -= 1
    return end


def _marker(name: str, kind: Kind, value: str) -> str:
    if kind == "api-key" and entropy(value) > 3.5 and not is_placeholder(value):
        if "secret" in name.lower() and _AWS.fullmatch(value):
            return "aws-secret-key"
        if "account" in name.lower() and _AZURE.fullmatch(value):
            return "azure-storage-key"
    return kind
