"""Decides whether a string at the place of a secret is a secret.

Two questions are asked. A *placeholder* is what people write instead of a secret: `changeme`, `<token>`, `${VAR}`,
`os.environ["X"]`, `xxxx`, one of our own markers. A value is *plausible* if it does not read like words or code, and
its characters vary like those of a password or key.

Wrong answers have different costs. A placeholder taken for a secret spoils a line of a document; a secret taken for a
placeholder is stored permanently. In doubt the answer is "secret", except for unquoted text, which is mostly code.
"""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from urllib.parse import unquote

import msgspec

from wakelog.redaction.late_expression import LateExpression

MARKER = "[redacted:"
MIN_LENGTH = 8
"""Shorter values do not count as secrets by their name alone."""

_STAND_INS = LateExpression(
    r"example|placeholder|change.?me|replace.?(?:me|this|with)|redacted|dummy|fake|sample|not.?a?.?real|x{4}|\*{3}|\.{3}|•{3}"
    r"|^your|[_\-]your|your[_\-]|^my[_\-]|[_\-]here$|^[<\[(]|>$|^test|[_\-]test|^todo|^insert|foobar"
    r"|^(?:my|the|db|user|admin|root|super|top|some|default|new|old)?[_\-]?(?:password|passwd|secret|token|key)[_\-]?\d{0,3}$"
    r"|^(?:none|null|nil|true|false|undefined|required|optional|string|unknown)$",
    re.IGNORECASE,
)
# A reference to the secret instead of the secret: a variable, a template, a vault, a URL.
_REFERENCE = LateExpression(
    r"[$:@][A-Za-z_]\w*$|%[A-Za-z_]+%$|%s$|[$#%@]?\{|\$\(|<%|.*\{[A-Za-z_][\w.]*\}"
    r"|(?:os|process|import|deno|system|self|this|cls|config|settings|secrets|vars|env)\."
    r"|(?:env|vault|file|ref|ssm|arn|op|keyring|secretref|secretkeyref|sops|kms|enc)[:!\[]|[a-z][a-z0-9+.\-]*://",
    re.IGNORECASE,
)
_PATH = LateExpression(r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@+\-]*)+|[\w\-]+(?:/[\w.\-]+)+\.[a-z]{1,5}")
_WORDS = LateExpression(r"[._\-]*[A-Za-z]+\d{0,2}(?:[._\-:/]+(?:[A-Za-z]+\d{0,2}|\d{1,4}))*[._\-]*")
_LETTERS = LateExpression(r"[^\W\d_]+(?:[._\-' ]+[^\W\d_]+)*")
# A pair of a cookie header: name and value.
COOKIE = r"""(?P<name>[A-Za-z0-9_.$%\-]{1,64})=(?P<secret>[A-Za-z0-9_.%+/=:~!*|\-]{8,4096}+)"""
_COOKIE = LateExpression(COOKIE)
_COOKIES_BEFORE = LateExpression(
    r"""(?i:cookie)["'\\ ]{0,12}(?:[:=]|(?<=--cookie ))(?:[^\n\\(){}<>]|\\++(?![nr]))*\Z"""
)
_COOKIE_OF_A_SESSION = LateExpression(r"(?i)sess|^sid|sid$|auth|jwt|token|csrf|xsrf|login|remember")
_LONG_ID = LateExpression(r"[A-Za-z0-9_\-]{20,}")
_PASSWORD_ELSEWHERE = LateExpression(
    r"(?i)passwor[td]|kennwort|contrase.a|wachtwoord|l.senord|adgangskode|hidden|encrypted|protected|secure"
)
_RUNS = ("0123456789", "1234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "asdfghjkl", "0123456789abcdef")


def entropy(text: str) -> float:
    """Returns the Shannon entropy in bits per character: 0 for `aaaa`, 4 for sixteen different characters."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if text else 0.0


def is_random(text: str) -> bool:
    """Whether a token's body looks machine-made: varied characters, not only lower-case words."""
    return _is_mixed(text) and entropy(text) >= 3.0


def is_placeholder(value: str) -> bool:
    """Whether `value` is a placeholder for a secret."""
    if MARKER in value or _STAND_INS.search(value[:64]) or _REFERENCE.match(value[:64]):
        return True
    low = value.lower()
    return len(set(low)) <= 3 or any(low in run or low in run[::-1] for run in _RUNS)


def is_plausible(value: str, *, password: bool = False, quoted: bool = False) -> bool:
    """Whether a value assigned to a name that means "secret" is a secret.

    A quoted password may be simple, like people's passwords. Keys and tokens are made by machines, and unquoted text is
    mostly code, so both must look random.
    """
    if not quoted:
        value = value.rstrip("+*/-")  # operators: `a.token+".end"`
    if len(value) < MIN_LENGTH or is_placeholder(value) or _PATH.fullmatch(value):
        return False
    if password and quoted:
        # Only letters: a label or a constant. A passphrase of words is long, with hyphens or nothing in between.
        return not _LETTERS.fullmatch(value) or (len(value) >= 20 and "_" not in value)
    if value.isdigit():
        return password
    return not _WORDS.fullmatch(value) and _is_mixed(value) and entropy(value) >= 2.5


def is_element_password(value: str) -> bool:
    """Whether the text of an element named `password` is a password. The only other texts there are placeholders, or
    the word for "password" in another language."""
    return len(value) >= 6 and not (
        is_placeholder(value) or _PATH.fullmatch(value) or _PASSWORD_ELSEWHERE.fullmatch(value)
    )


def holds_session_cookie(header: str) -> bool:
    """Whether one of the cookies in the value of a header opens a session."""
    return any(map(_opens_session, _COOKIE.finditer(header)))


def _opens_session(match: re.Match[str]) -> bool:
    """Whether a cookie opens a session: by its name, or because it is long and random. Visitor counters are digits and
    dots."""
    value = match["secret"]
    if is_placeholder(value):
        return False
    if _COOKIE_OF_A_SESSION.search(match["name"]) and is_plausible(value):
        return True
    return any(is_random(word) for word in _LONG_ID.findall(value))


def _is_mixed(text: str) -> bool:
    """Whether a text has at least two of: digits, lower case, upper case, other characters. Separators do not count."""
    bare = re.sub(r"[_\-.]", "", text)
    kinds = (str.isdigit, str.islower, str.isupper)
    return sum(any(map(kind, bare)) for kind in kinds) + (not bare.isalnum()) >= 2


# Final checks on a match of a pattern: a JWT's header must decode, a token's body must not be `xxxx`.


def secret_span(match: re.Match[str]) -> tuple[int, int]:
    """Returns the part of a match that is replaced."""
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
    """Whether the body has digits, as keys do. Prose and style sheets have `sk-fading-circle-large`."""
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
    except ValueError:  # not base64, not text inside, or not ASCII
        return False
    _, colon, password = login.partition(":")
    return bool(colon) and login.isprintable() and not is_placeholder(password)


def has_key_material(match: re.Match[str]) -> bool:
    """Whether there is key material between the first and the last line. Documentation often has none."""
    return re.search(r"[A-Za-z0-9+/]{16}", match[0]) is not None


def is_login(match: re.Match[str]) -> bool:
    password = secret_of(match)
    if len(password) < 3 or password.lower() in {"pass", "pwd", match["user"].lower()}:
        return False
    return not is_placeholder(password)


def is_shell_login(match: re.Match[str]) -> bool:
    """Whether it is a login; `-u 1000:1000` is a user and a group."""
    return is_login(match) and not secret_of(match).isdigit()


def is_shell_password(match: re.Match[str]) -> bool:
    """Whether it is a password; `-p3306` is a port, and `-password=…` is an assignment."""
    password = secret_of(match)
    return not password.isdigit() and not password.startswith(("assword", "ort")) and not is_placeholder(password)


def is_signature(match: re.Match[str]) -> bool:
    """Whether it is base64 of 32 random bytes, as encoded in a URL."""
    text = unquote(secret_of(match))
    return len(text) == 44 and is_random(text)


def is_session_cookie(match: re.Match[str]) -> bool:
    """Whether it is a session cookie in a header: `cookie` comes earlier on its line, with no code in between."""
    return (
        _opens_session(match)
        and _COOKIES_BEFORE.search(match.string, max(0, match.start() - 4096), match.start()) is not None
    )


def has_capitals(match: re.Match[str]) -> bool:
    """Whether the token has capitals. `patched-…` and `path/…` start the same way, but are lower case."""
    return random_word(match) and not match["word"].islower()
