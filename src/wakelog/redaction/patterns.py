r"""The table of secrets that can be told by their form.

A row has a stable name, which is the marker's (`[redacted:github-token]`), and a regular expression. What is replaced
is the group `secret` where there is one, else the whole match. A `check` has the last word on a match: a JWT's header
must decode, a token's body must not be `xxxx`.

`literals` keep the expression from running: at least one of them must be there. `where` says in what they are looked
for, which is what makes a table this long affordable (redactor.py):

    text      the whole text. Each costs a scan: for rare single characters, and for rows of your own
    word      the long words: 20 or more of [A-Za-z0-9_-], a digit or capital among them. Most texts have none. Every
              match must hold one, with the literal inside
    before    the 40 characters before a long word, for a literal that stands there
    keyword   where assignments.py found the first line of a private key

Order matters: where two rows claim the same characters, the earlier one names them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Literal

import msgspec

from wakelog.redaction.plausible import entropy, is_placeholder, is_random

Where = Literal["text", "word", "before", "keyword"]
Check = Callable[[re.Match[str]], bool]

# A letter before a token speaks against it (`task-…` is no `sk-…`), unless it is half of an escape in JSON: `\nsk-…`.
# It is asked after the prefix, since an expression that starts with fixed characters is found much faster.
_FREE = r"(?:(?<![A-Za-z0-9]{0})|(?<=\\[nrt]{0}))"


class Pattern(msgspec.Struct, frozen=True):
    """One kind of secret. `name` is lower case with hyphens."""

    name: str
    regex: re.Pattern[str]
    literals: tuple[str, ...] = ()
    check: Check | None = None
    where: Where = "text"


def secret_span(match: re.Match[str]) -> tuple[int, int]:
    """The part of a match that is replaced."""
    return match.span("secret") if "secret" in match.re.groupindex else match.span()


def _secret(match: re.Match[str]) -> str:
    start, end = secret_span(match)
    return match.string[start:end]


def _random_body(match: re.Match[str]) -> bool:
    return is_random(_secret(match))


def _random_word(match: re.Match[str]) -> bool:
    return is_random(match["word"])


def _not_an_example(match: re.Match[str]) -> bool:
    return not match[0].endswith("EXAMPLE") and entropy(match[0]) >= 2.5


def _has_digits(match: re.Match[str]) -> bool:
    """Prose and style sheets have `sk-fading-circle-large`; keys have digits between the letters."""
    body = _secret(match)
    return any(map(str.isdigit, body)) and is_random(body) and "xxxx" not in body.lower()


def _decodes_as_jose(match: re.Match[str]) -> bool:
    header = match[0].partition(".")[0]
    try:
        decoded = msgspec.json.decode(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))
    except (ValueError, msgspec.DecodeError):
        return False
    return isinstance(decoded, dict) and ("alg" in decoded or "typ" in decoded)


def _decodes_as_login(match: re.Match[str]) -> bool:
    text = _secret(match)
    try:
        login = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    _, colon, password = login.partition(":")
    return bool(colon) and login.isprintable() and not is_placeholder(password)


def _has_key_material(match: re.Match[str]) -> bool:
    """Documents name the first and last line of a key without anything between."""
    return re.search(r"[A-Za-z0-9+/]{16}", match[0]) is not None


def _is_login(match: re.Match[str]) -> bool:
    password = _secret(match)
    if len(password) < 3 or password.lower() in {"pass", "pwd", match["user"].lower()}:
        return False
    return not is_placeholder(password)


def _word(name: str, regex: str, *literals: str, check: Check = _random_body) -> Pattern:
    return Pattern(name, re.compile(regex), literals, check, "word")


def _before(name: str, regex: str, *literals: str, check: Check = _random_body) -> Pattern:
    return Pattern(name, re.compile(regex), literals, check, "before")


# The user name stops at whatever ends a URL, so that a port and a later mail address are not read as a password.
_LOGIN = r"""://(?P<user>[^\s:/@"'`<>\\?#\[]{0,128}):(?P<secret>[^\s"'`<>\\/,?#]{1,256})@(?=[\w\[$])"""
_PEM_BODY = r"""[^"'`<>\-]*+(?:-(?!----)[^"'`<>\-]*+)*+"""
_PEM_NAME = r"(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "private-key",
        # Whole, or cut off: then as far as lines of key material go.
        re.compile(
            rf"""-----BEGIN {_PEM_NAME}(?:{_PEM_BODY}-----END {_PEM_NAME}|(?:\s|\\[nr/]|[A-Za-z0-9+/=]{{16,}}+)++)"""
        ),
        ("-----",),
        _has_key_material,
        "keyword",
    ),
    _word(
        "aws-access-key-id",
        r"A[KS]IA(?<![A-Z0-9]A[KS]IA)[A-Z0-9]{16}(?![A-Z0-9])",
        *("AKIA", "ASIA"),
        check=_not_an_example,
    ),
    _word("github-token", r"gh[pousr]_[A-Za-z0-9]{36,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _word("github-token", r"github_pat_[A-Za-z0-9]{20,}_[A-Za-z0-9]{40,}", "b_pat_"),
    _word(
        "gitlab-token",
        r"gl(?:pat|dt|rt|ft|cbt|ptt|soat|agent|imt)-[A-Za-z0-9_\-]{20,}(?:\.[0-9a-z.]{2,20})?",
        *("glpat-", "gldt-", "glrt-", "glft-", "glcbt-", "glptt-", "glsoat-", "glagent-", "glimt-"),
    ),
    _word("slack-token", r"xox[abeoprs]-[A-Za-z0-9\-]{16,}", "xox", check=_has_digits),
    _word("slack-token", r"xapp-\d-[A-Za-z0-9\-]{20,}", "xapp-", check=_has_digits),
    _before(
        "slack-webhook",
        r"hooks\.slack\.com/services/(?P<secret>T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{20,})",
        "services/T",
    ),
    _word("stripe-key", r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}", "k_live_", "k_test_"),
    _word("stripe-webhook-secret", r"whsec_[A-Za-z0-9]{18}[A-Za-z0-9+/]{6,}=*", "whsec_"),
    _word("anthropic-key", r"sk-" + _FREE.format("sk-") + r"ant-[A-Za-z0-9_\-]{24,}", "sk-", check=_has_digits),
    _word("openai-key", r"sk-" + _FREE.format("sk-") + r"[A-Za-z0-9_\-]{20,}", "sk-", check=_has_digits),
    _word("google-api-key", r"AIza[A-Za-z0-9_\-]{35,}", "AIza"),
    _word("google-oauth-secret", r"GOCSPX-[A-Za-z0-9_\-]{24,}", "GOCSPX-"),
    _before("google-oauth-token", r"ya29\.[A-Za-z0-9_\-]{20,}", "ya29."),
    _word("npm-token", r"npm_[A-Za-z0-9]{36,}", "npm_"),
    _word("pypi-token", r"pypi-AgE[A-Za-z0-9_\-]{50,}", "pypi-AgE"),
    _word("huggingface-token", r"hf_[A-Za-z0-9]{30,}", "hf_"),
    _before("sendgrid-key", r"SG\.[A-Za-z0-9_\-]{20,24}\.[A-Za-z0-9_\-]{39,50}", "SG."),
    _word("twilio-key", r"SK(?<![A-Z]SK)[0-9a-f]{32}(?![0-9a-f])", "SK"),
    _word("jwt", r"eyJ[A-Za-z0-9_\-]{17,2048}+(?:\.[A-Za-z0-9_\-]*+){2,4}", "eyJ", check=_decodes_as_jose),
    _before(
        "bearer-token",
        r"(?:[Bb]earer|BEARER) {1,4}(?P<secret>(?P<word>[A-Za-z0-9_\-]{20,})[A-Za-z0-9_\-.~+/]*=*)",
        *("earer ", "EARER "),
        check=_random_word,
    ),
    _before(
        "basic-auth",
        r"(?:[Bb]asic|BASIC) {1,4}(?P<secret>[A-Za-z0-9]{20}[A-Za-z0-9+/]*={0,2})",
        *("asic ", "ASIC "),
        check=_decodes_as_login,
    ),
    Pattern("url-password", re.compile(_LOGIN), ("@",), _is_login),
)
