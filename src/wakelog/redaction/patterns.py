r"""The table of secrets that are recognised by their format.

A row has a stable name, which is also the marker's (`[redacted:github-token]`), the source of the format, and a regular
expression. The group `secret` is replaced if there is one, else the whole match. A `check` makes the final decision on
a match (plausible.py). Most sources were named from memory: look one up before you rely on it.

The expression runs only if one of the `literals` is found. `where` says where to search for them, which makes a table
of this length affordable (redactor.py):

    text      the whole text. Each costs a scan: for rare single characters, and for your own rows
    word      the long words: 20 or more of [A-Za-z0-9_-], a digit or capital among them. Most texts have none. Every
              match must contain one, with the literal inside; a literal that starts with a line break starts the word
    before    the 40 characters before a long word
    keyword   texts in which assignments.py found the first line of a private key, `curl`, or `cookie:`

Sources: `gitleaks: X` is the rule X of github.com/gitleaks/gitleaks; a name alone is the vendor's documentation.

Order matters: if two rows match the same characters, the earlier one gives the name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

import msgspec

from wakelog.redaction.late_expression import LateExpression
from wakelog.redaction.plausible import (
    COOKIE,
    decodes_as_jose,
    decodes_as_login,
    has_capitals,
    has_digits,
    has_key_material,
    is_login,
    is_session_cookie,
    is_shell_login,
    is_shell_password,
    is_signature,
    not_an_example,
    random_body,
    random_word,
)
from wakelog.redaction.prefixes import PREFIXES

Where = Literal["text", "word", "before", "keyword"]
Check = Callable[[re.Match[str]], bool]

# A letter before a token rules it out (`task-…` is not `sk-…`), unless it is half of an escape in JSON: `\nsk-…`. This
# is checked after the prefix, because an expression that starts with fixed characters is much faster.
_FREE = r"(?:(?<![A-Za-z0-9]{0})|(?<=\\[nrt]{0}))"


class Pattern(msgspec.Struct, frozen=True):
    """One kind of secret. `name` is lower case with hyphens."""

    name: str
    regex: re.Pattern[str] | LateExpression[str]
    literals: tuple[str, ...] = ()
    check: Check | None = None
    where: Where = "text"
    source: str = ""
    """Where the format is documented."""
    lead: int = 0
    """How many characters before the match belong to the secret."""


def _text(name: str, source: str, regex: str, *literals: str, check: Check = random_body, lead: int = 0) -> Pattern:
    return Pattern(name, LateExpression(regex), literals, check, "text", source, lead)


def _word(name: str, source: str, regex: str, *literals: str, check: Check = random_body) -> Pattern:
    return Pattern(name, LateExpression(regex), literals, check, "word", source)


def _before(name: str, source: str, regex: str, *literals: str, check: Check = random_body) -> Pattern:
    return Pattern(name, LateExpression(regex), literals, check, "before", source)


def _after(regex: str) -> str:
    """Makes an expression match only at the start of a word."""
    return rf"(?:(?<![A-Za-z0-9_\-])|(?<=\\[nrt])){regex}"


def _prefixed(name: str, source: str, prefixes: tuple[str, ...], body: str) -> Pattern:
    """Makes a pattern from a row of prefixes.py. The text after the prefix must look random."""
    any_prefix = "|".join(map(re.escape, prefixes))
    return _word(name, source, _after(rf"(?:{any_prefix})(?P<word>{body})"), *prefixes, check=random_word)


# The user name stops at whatever ends a URL. Otherwise a port and a later mail address would be read as a password.
_LOGIN = r"""://(?P<user>[^\s:/@"'`<>\\?#\[]{0,128}):(?P<secret>[^\s"'`<>\\/,?#]{1,256})@(?=[\w\[$])"""
_CURL = (
    r"""curl\b(?:[^\n]|\\\n){0,256}?\s(?:-u[ ]?|--user[ =])\\{0,4}["']?"""
    r"""(?P<user>[^\s:"'`\\$]{1,64}):(?P<secret>[^\s"'`\\]{1,256})"""
)
_SHELL = (
    r"""(?:sshpass +-p *|mysql(?:dump|admin)?\b[^\n|;&]{0,128}? -p(?! ))"""
    r"""\\{0,4}["']?(?P<secret>[^\s"'`\\$<|;&]{6,128})"""
)
_CRYPT = (
    r"\$(?:apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|2[aby]\$\d\d\$[./A-Za-z0-9]{53}"
    r"|[56]\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$(?:[./A-Za-z0-9]{86}|[./A-Za-z0-9]{43})"
    r"|y\$[./A-Za-z0-9]{1,12}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43})(?![./A-Za-z0-9])"
)
# Complete schemes, because texts are full of dollar signs.
_CRYPT_SCHEMES = ("$apr1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$")
_PEM_BODY = r"""[^"'`<>\-]*+(?:-(?!----)[^"'`<>\-]*+)*+"""
_PEM_NAME = r"(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
# Complete, or cut off: then as far as the lines of key material go.
_PEM = rf"""-----BEGIN {_PEM_NAME}(?:{_PEM_BODY}-----END {_PEM_NAME}|(?:\s|\\[nr/]|[A-Za-z0-9+/=]{{16,}}+)++)"""
_SEGMENT = r"[A-Za-z0-9_\-]"
# Discord: each starts with an account number in base64, so only few characters are possible.
_DIGITS64 = r"[MNO][DTjz](?:[AEIMQUYcgk][wxyz0-5][MNO][DTjz]){4,5}[A-Za-z0-9]{2,4}"
_DIGITS64_STARTS = tuple(f"\n{a}{b}" for a in "MNO" for b in "DTjz")

PATTERNS: tuple[Pattern, ...] = (
    Pattern("private-key", LateExpression(_PEM), ("-----",), has_key_material, "keyword", "RFC 7468; OpenSSH"),
    _word("age-secret-key", "gitleaks: age-secret-key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", "AGE-SECRET-KEY-1"),
    _word(
        "aws-access-key-id",
        "gitleaks: aws-access-token",
        r"A[KS]IA(?<![A-Z0-9]A[KS]IA)[A-Z0-9]{16}(?![A-Z0-9])",
        *("AKIA", "ASIA"),
        check=not_an_example,
    ),
    # Hosting and running code
    _word(
        "github-token",
        "gitleaks: github-pat, github-oauth, github-app-token, github-refresh-token",
        r"gh[pousr]_[A-Za-z0-9]{36,}",
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    ),
    _word(
        "github-token",
        "gitleaks: github-fine-grained-pat",
        r"github_pat_[A-Za-z0-9]{20,}_[A-Za-z0-9]{40,}",
        "b_pat_",
    ),
    _word(
        "gitlab-token",
        "gitleaks: gitlab-pat and its relatives",
        r"gl(?:pat|dt|rt|ft|cbt|ptt|soat|agent|imt)-[A-Za-z0-9_\-]{20,}(?:\.[0-9a-z.]{2,20})?",
        *("glpat-", "gldt-", "glrt-", "glft-", "glcbt-", "glptt-", "glsoat-", "glagent-", "glimt-"),
    ),
    _word(
        "atlassian-token",
        "gitleaks: atlassian-api-token",
        r"AT(?:ATT|CTT)3[A-Za-z0-9_\-]{40,}(?:=[0-9A-F]{8})?",
        *("ATATT3", "ATCTT3"),
    ),
    _word("azure-devops-token", "Azure DevOps", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])", "AZDO"),
    _before(
        "azure-devops-token",
        "Azure DevOps, before 2024",
        r"(?i:devops|_pat)[^\n]{0,32}?(?<![A-Za-z0-9])(?P<secret>[a-z2-7]{52})(?![A-Za-z0-9])",
        *("_PAT", "_pat", "evops", "evOps", "EVOPS"),
    ),
    _word("docker-token", "Docker", r"dckr_[po]at_[A-Za-z0-9_\-]{20,}", "ckr_pat_", "ckr_oat_"),
    _word("npm-token", "gitleaks: npm-access-token", r"npm_[A-Za-z0-9]{36,}", "npm_"),
    _word("pypi-token", "gitleaks: pypi-upload-token", r"pypi-AgE[A-Za-z0-9_\-]{50,}", "pypi-AgE"),
    _word("rubygems-key", "gitleaks: rubygems-api-token", r"rubygems_[a-f0-9]{48}", "rubygems_"),
    _word("linear-key", "gitleaks: linear-api-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", "lin_api_", "lin_oauth_"),
    _word("postman-key", "gitleaks: postman-api-token", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}", "PMAK-"),
    _before(
        "airtable-token",
        "gitleaks: airtable-personnal-access-token",
        _after(r"pat(?P<word>[A-Za-z0-9]{14})\.[a-f0-9]{64}(?![A-Za-z0-9])"),
        "pat",
        check=has_capitals,
    ),
    _before(
        "asana-token",
        "Asana",
        _after(r"(?:1/\d{12,19}|2/\d{12,19}/\d{12,19}):[a-f0-9]{32}(?![A-Za-z0-9])"),
        *("1/", "2/"),
    ),
    _before(
        "asana-token",
        "Asana, before 2019",
        r"(?i:asana)[^\n]{0,32}?(?<![A-Za-z0-9/])(?P<secret>0/[a-f0-9]{32})(?![A-Za-z0-9])",
        *("sana", "SANA"),
    ),
    # Chat
    _word("slack-token", "gitleaks: slack-bot-token", r"xox[abeoprs]-[A-Za-z0-9\-]{16,}", "xox", check=has_digits),
    _word("slack-token", "gitleaks: slack-app-token", r"xapp-\d-[A-Za-z0-9\-]{20,}", "xapp-", check=has_digits),
    _before(
        "slack-webhook",
        "gitleaks: slack-webhook-url",
        r"hooks\.slack\.com/services/(?P<secret>T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{20,})",
        "services/T",
    ),
    _word(
        "discord-token",
        "Discord",
        _after(rf"{_DIGITS64}\.{_SEGMENT}{{6,7}}\.{_SEGMENT}{{27,}}"),
        *_DIGITS64_STARTS,
    ),
    _before(
        "discord-webhook",
        "Discord",
        rf"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{{17,20}}/{_SEGMENT}{{60,}})",
        "webhooks/",
    ),
    _word(
        "telegram-token",
        "gitleaks: telegram-bot-api-token",
        _after(rf"(?:bot)?(?P<secret>[0-9]{{8,10}}:AA{_SEGMENT}{{32,33}})(?!{_SEGMENT})"),
        "\nAA",
    ),
    # Payment, mail, shops
    _word(
        "stripe-key",
        "gitleaks: stripe-access-token",
        r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}",
        *("k_live_", "k_test_"),
    ),
    _word("stripe-webhook-secret", "Stripe", r"whsec_[A-Za-z0-9]{18}[A-Za-z0-9+/]{6,}={0,2}", "whsec_"),
    _before("sendgrid-key", "gitleaks: sendgrid-api-token", rf"SG\.{_SEGMENT}{{20,24}}\.{_SEGMENT}{{39,50}}", "SG."),
    _word("mailgun-key", "gitleaks: mailgun-private-api-token", _after(r"key-[0-9a-f]{32}(?![A-Za-z0-9_\-])"), "key-"),
    # Base64 of numbers also begins with EAAA, and continues with more zeros.
    _word(
        "square-token",
        "gitleaks: square-access-token",
        rf"(?<![A-Za-z0-9_\-+/])EAAA(?P<word>(?:(?!AAA){_SEGMENT}){{56,60}})(?![A-Za-z0-9_\-+/])",
        "EAAA",
        check=random_word,
    ),
    _word("twilio-key", "gitleaks: twilio-api-key", r"SK(?<![A-Z]SK)[0-9a-f]{32}(?![0-9a-f])", "SK"),
    _word(
        "shopify-token",
        "gitleaks: shopify-access-token",
        r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
        *("shpat_", "shpca_", "shppa_", "shpss_"),
    ),
    # Models
    _word(
        "anthropic-key",
        "gitleaks: anthropic-api-key",
        r"sk-" + _FREE.format("sk-") + r"ant-[A-Za-z0-9_\-]{24,}",
        "sk-",
        check=has_digits,
    ),
    _word(
        "openai-key",
        "gitleaks: openai-api-key",
        r"sk-" + _FREE.format("sk-") + r"[A-Za-z0-9_\-]{20,}",
        "sk-",
        check=has_digits,
    ),
    _word("huggingface-token", "gitleaks: huggingface-access-token", r"hf_[A-Za-z0-9]{30,}", "hf_"),
    _word("groq-key", "Groq", _after(r"gsk_[A-Za-z0-9]{40,}"), "gsk_"),
    _word("xai-key", "xAI", _after(r"xai-[A-Za-z0-9]{60,}"), "xai-"),
    _word("perplexity-key", "gitleaks: perplexity-api-key", _after(r"pplx-[A-Za-z0-9]{40,}"), "pplx-"),
    _word("replicate-token", "Replicate", _after(r"r8_[A-Za-z0-9]{37}(?![A-Za-z0-9])"), "r8_"),
    _word("nvidia-key", "NVIDIA", _after(r"nvapi-[A-Za-z0-9_\-]{60,}"), "nvapi-"),
    # Clouds
    _word("google-api-key", "gitleaks: gcp-api-key", r"AIza[A-Za-z0-9_\-]{35,}", "AIza"),
    _word("google-oauth-secret", "Google", r"GOCSPX-[A-Za-z0-9_\-]{24,}", "GOCSPX-"),
    _before("google-oauth-token", "Google", r"ya29\.[A-Za-z0-9_\-]{20,}", "ya29."),
    _before("google-refresh-token", "Google", r"1//0(?<![A-Za-z0-9_\-]1//0)[A-Za-z0-9_\-]{38,}", "1//"),
    _text(
        "azure-client-secret",
        "gitleaks: azure-ad-client-secret",
        r"Q~(?<=[A-Za-z0-9_~.\-]{3}\dQ~)[A-Za-z0-9_~.\-]{31,34}(?![A-Za-z0-9_~\-])",
        "Q~",
        lead=4,
    ),
    _text(
        "azure-sas",
        "Azure Storage",
        r"sig=(?<=[?&;]sig=)(?P<secret>(?:[A-Za-z0-9+/]|%[0-9A-Fa-f]{2}){43,140}+=?)",
        "sig=",
        check=is_signature,
    ),
    _word(
        "digitalocean-token",
        "gitleaks: digitalocean-pat",
        r"do[opr]_v1_[a-f0-9]{64}",
        "_v1_",
    ),
    _before("vault-token", "gitleaks: vault-service-token", rf"hv[sbr]\.{_SEGMENT}{{24,}}", "hvs.", "hvb.", "hvr."),
    _before(
        "terraform-token",
        "gitleaks: hashicorp-tf-api-token",
        rf"{_SEGMENT}{{14}}\.atlasv1\.{_SEGMENT}{{60,}}",
        "atlasv1.",
    ),
    _word(
        "databricks-token",
        "gitleaks: databricks-api-token",
        _after(r"dapi[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])"),
        "\ndapi",
    ),
    _word(
        "newrelic-key",
        "gitleaks: new-relic-user-api-key",
        r"NR(?:AK|RA|II|SP|BR)-[A-Za-z0-9_\-]{27,}",
        *("NRAK-", "NRRA-", "NRII-", "NRSP-", "NRBR-"),
    ),
    _word("grafana-token", "gitleaks: grafana-service-account-token", r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}", "glsa_"),
    _word("pulumi-token", "gitleaks: pulumi-api-token", _after(r"pul-[a-f0-9]{40}(?![A-Za-z0-9])"), "pul-"),
    _before(
        "doppler-token",
        "gitleaks: doppler-api-token",
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_\-]{1,35}\.)?[A-Za-z0-9]{40,44}(?![A-Za-z0-9])",
        *("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
    ),
    _before(
        "dynatrace-token",
        "gitleaks: dynatrace-api-token",
        r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}",
        *("dt0c01.", "dt0s01."),
    ),
    _before(
        "braintree-token",
        "Braintree",
        r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}",
        *("production$", "sandbox$"),
    ),
    _before(
        "okta-token",
        "Okta",
        rf"SSWS {{1,4}}(?P<secret>00{_SEGMENT}{{38,}})",
        "SSWS ",
    ),
    *(_prefixed(*row) for row in PREFIXES),
    # Any service
    _word(
        "jwt",
        "RFC 7519",
        r"eyJ[A-Za-z0-9_\-]{17,2048}+(?:\.[A-Za-z0-9_\-]*+){2,4}",
        "eyJ",
        check=decodes_as_jose,
    ),
    _before(
        "bearer-token",
        "RFC 6750",
        r"(?:[Bb]earer|BEARER) {1,4}(?P<secret>(?P<word>[A-Za-z0-9_\-]{20,})[A-Za-z0-9_\-.~+/]*={0,2})",
        *("earer ", "EARER "),
        check=random_word,
    ),
    _before(
        "basic-auth",
        "RFC 7617",
        r"(?:[Bb]asic|BASIC) {1,4}(?P<secret>[A-Za-z0-9]{20}[A-Za-z0-9+/]*={0,2})",
        *("asic ", "ASIC "),
        check=decodes_as_login,
    ),
    _before(
        "basic-auth",
        "Docker: config.json; npm: .npmrc",
        r"""auth\\{0,4}"?\s?[:=]\s?\\{0,4}"?(?P<secret>[A-Za-z0-9]{20}[A-Za-z0-9+/]*={0,2})""",
        *('uth"', "uth\\", "uth="),
        check=decodes_as_login,
    ),
    _text("url-password", "RFC 3986", _LOGIN, "@", check=is_login),
    _text("shell-password", "sshpass, mysql", _SHELL, "sshpass ", "mysql", check=is_shell_password),
    # Password hashes in files of Apache and Unix; a password can be guessed from its hash.
    _text("password-hash", "Apache: htpasswd; crypt(5)", _CRYPT, *_CRYPT_SCHEMES),
    _text("password-hash", "Apache: htpasswd; RFC 2307", r":\{SS?HA\}(?P<secret>[A-Za-z0-9+/]{27,64}={0,2})", "HA}"),
    Pattern("session-cookie", LateExpression(COOKIE), ("=",), is_session_cookie, "keyword", "RFC 6265"),
    Pattern("curl-password", LateExpression(_CURL), ("curl",), is_shell_login, "keyword", "curl"),
)
