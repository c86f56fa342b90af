"""The last word on a match: is it what it looks like, or an example, a word, or something else of that form?

Each takes a match of a pattern (patterns.py) and says whether it is a secret: a JWT's header must decode, a token's
body must not be `xxxx`.
"""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import unquote

import msgspec

from wakelog.redaction.plausible import entropy, is_placeholder, is_random


def secret_span(match: re.Match[str]) -> tuple[int, int]:
    """The part of a match that is replaced."""
    return match.span("secret") if "secret" in match.re.groupindex else match.span()


def secret_of(match: re.Match[str]) -> str:
    start, end = secret_span(match)
    return match.string[start:end]


def random_body(match: re.Match[str]) -> bool:
    return is_random(secret_of(match))


def random_word(match: re.Match[str]) -> bool:
    return is_random(match["word"])


def not_an_example(match: re.Match[str]) -> bool:
    return not match[0].endswith("EXAMPLE") and entropy(match[0]) >= 2.5


def has_digits(match: re.Match[str]) -> bool:
    """Prose and style sheets have `sk-fading-circle-large`; keys have digits between the letters."""
    body = secret_of(match)
    return any(map(str.isdigit, body)) and is_random(body) and "xxxx" not in body.lower()


def decodes_as_jose(match: re.Match[str]) -> bool:
    header = match[0].partition(".")[0]
    try:
        decoded = msgspec.json.decode(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))
    except (ValueError, msgspec.DecodeError):
        return False
    return isinstance(decoded, dict) and ("alg" in decoded or "typ" in decoded)


def decodes_as_login(match: re.Match[str]) -> bool:
    return is_encoded_login(secret_of(match))


def is_encoded_login(text: str) -> bool:
    """Whether this is `user:password` in base64."""
    try:
        login = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    _, colon, password = login.partition(":")
    return bool(colon) and login.isprintable() and not is_placeholder(password)


def has_key_material(match: re.Match[str]) -> bool:
    """Documents name the first and last line of a key without anything between."""
    return re.search(r"[A-Za-z0-9+/]{16}", match[0]) is not None


def is_login(match: re.Match[str]) -> bool:
    password = secret_of(match)
    if len(password) < 3 or password.lower() in {"pass", "pwd", match["user"].lower()}:
        return False
    return not is_placeholder(password)


def is_shell_login(match: re.Match[str]) -> bool:
    """`-u 1000:1000` is a user and a group."""
    return is_login(match) and not secret_of(match).isdigit()


def is_signature(match: re.Match[str]) -> bool:
    """Base64 of 32 bytes, as it stands in a URL."""
    text = unquote(secret_of(match))
    return len(text) == 44 and is_random(text)
