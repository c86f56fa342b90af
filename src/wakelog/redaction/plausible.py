"""Is this string a secret, or does it only stand where one would?

Two questions, asked of a value whose place already speaks for a secret. A *placeholder* is what people write instead of
one: `changeme`, `<token>`, `${VAR}`, `os.environ["X"]`, `xxxx`, a marker of our own. A value is *plausible* when it
does not read as words or code and its characters vary as those of a password or key do.

Wrong answers cost differently. A placeholder taken for a secret spoils a line of a document; a secret taken for a
placeholder is stored for good. In doubt the answer is "secret", except for unquoted text, which is mostly code.
"""

from __future__ import annotations

import math
import re
from collections import Counter

MARKER = "[redacted:"
MIN_LENGTH = 8
"""Shorter values are not taken for secrets on the word of their name alone."""

_STAND_INS = re.compile(
    r"example|placeholder|change.?me|replace.?(?:me|this|with)|redacted|dummy|fake|sample|not.?a?.?real|x{4}|\*{3}|\.{3}|•{3}"
    r"|^your|[_\-]your|your[_\-]|^my[_\-]|[_\-]here$|^[<\[(]|>$|^test|[_\-]test|^todo|^insert|foobar"
    r"|^(?:my|the|db|user|admin|root|super|top|some|default|new|old)?[_\-]?(?:password|passwd|secret|token|key)[_\-]?\d{0,3}$"
    r"|^(?:none|null|nil|true|false|undefined|required|optional|string|unknown)$",
    re.IGNORECASE,
)
# Where the secret is to be found, instead of the secret: a variable, a template, a vault, an address.
_REFERENCE = re.compile(
    r"[$:@][A-Za-z_]\w*$|%[A-Za-z_]+%$|%s$|[$#%@]?\{|\$\(|<%|.*\{[A-Za-z_][\w.]*\}"
    r"|(?:os|process|import|deno|system|self|this|cls|config|settings|secrets|vars|env)\."
    r"|(?:env|vault|file|ref|ssm|arn|op|keyring|secretref|secretkeyref|sops|kms|enc)[:!\[]|[a-z][a-z0-9+.\-]*://",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@+\-]*)+|[\w\-]+(?:/[\w.\-]+)+\.[a-z]{1,5}")
_WORDS = re.compile(r"[._\-]*[A-Za-z]+\d{0,2}(?:[._\-:/]+(?:[A-Za-z]+\d{0,2}|\d{1,4}))*[._\-]*")
_LETTERS = re.compile(r"[^\W\d_]+(?:[._\-' ]+[^\W\d_]+)*")
_RUNS = ("0123456789", "1234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "asdfghjkl", "0123456789abcdef")


def entropy(text: str) -> float:
    """Shannon entropy in bits per character: 0 for `aaaa`, 4 for sixteen different characters."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if text else 0.0


def is_random(text: str, bits: float = 3.0) -> bool:
    """Whether the body of a token was made by a machine: varied characters, and not lower-case words alone."""
    return _is_mixed(text) and entropy(text) >= bits


def is_placeholder(value: str) -> bool:
    """Whether `value` stands for a secret without being one."""
    if MARKER in value or _STAND_INS.search(value[:64]) or _REFERENCE.match(value[:64]):
        return True
    low = value.lower()
    return len(set(low)) <= 3 or any(low in run or low in run[::-1] for run in _RUNS)


def is_plausible(value: str, *, password: bool = False, quoted: bool = False) -> bool:
    """Whether a value assigned to a name that says "secret" is one.

    A quoted password may be simple, as people's passwords are. Keys and tokens are made by machines, and unquoted text
    is mostly code, so both must look random.
    """
    if not quoted:
        value = value.rstrip("+*/-")  # operators: `a.token+".end"`
    if len(value) < MIN_LENGTH or is_placeholder(value) or _PATH.fullmatch(value):
        return False
    if password and quoted:
        # Letters alone are a label or a constant; a passphrase of words is long, with hyphens or nothing between.
        return not _LETTERS.fullmatch(value) or (len(value) >= 20 and "_" not in value)
    if value.isdigit():
        return password
    return not _WORDS.fullmatch(value) and _is_mixed(value) and entropy(value) >= 2.5


def _is_mixed(text: str) -> bool:
    """At least two of digits, lower case, upper case, other characters; separators between words do not count."""
    bare = re.sub(r"[_\-.]", "", text)
    kinds = (str.isdigit, str.islower, str.isupper)
    return sum(any(map(kind, bare)) for kind in kinds) + (not bare.isalnum()) >= 2
