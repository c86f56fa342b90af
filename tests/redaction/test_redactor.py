"""A set of patterns: which are on, what is added, and how overlapping matches are merged."""

import json
import re
import subprocess
import sys
import time

import pytest

from tests.docs.pages import ROOT
from tests.redaction.corpus import make
from wakelog.errors import InvalidInputError
from wakelog.redaction import PATTERNS, Pattern, Redactor, redact_text
from wakelog.redaction.redactor import DEFAULT

GITHUB = make("gh§p_{b62:36}", 1)
TICKET = Pattern("acme-ticket", re.compile(r"ACME-\d{6}"), ("ACME-",))


def test_names_are_stable() -> None:
    assert {p.name for p in PATTERNS} <= set(DEFAULT.names)
    assert {"private-key", "github-token", "jwt", "url-password", "password", "api-key", "named-secret"} <= set(
        DEFAULT.names
    )


def test_a_pattern_can_be_switched_off() -> None:
    quiet = Redactor().without("github-token")
    assert quiet.redact_text(f"see {GITHUB}") == (f"see {GITHUB}", ())
    assert redact_text(f"see {GITHUB}")[1] == ("github-token",)


def test_assignments_can_be_switched_off() -> None:
    text = "password = 'c0rrect-h0rse'"
    assert Redactor().without("password").redact_text(text) == (text, ())


def test_only_the_named_patterns_run() -> None:
    text = f"password = 'c0rrect-h0rse' {GITHUB}"
    assert Redactor().only("password").redact_text(text)[1] == ("password",)


def test_own_patterns_are_added_and_name_what_others_would_claim_too() -> None:
    own = Redactor().adding(TICKET, Pattern("house-token", re.compile(r"ghp_\w+"), ("ghp_",)))
    assert own.redact_text(f"ACME-123456 {GITHUB}") == (
        "[redacted:acme-ticket] [redacted:house-token]",
        ("acme-ticket", "house-token"),
    )


def test_own_pattern_replaces_its_group_and_its_check_has_the_last_word() -> None:
    regex = re.compile(r"pin (?P<secret>\d{4})")
    own = Redactor().adding(Pattern("pin", regex, ("pin",), check=lambda match: match["secret"] != "0000"))
    assert own.redact_text("pin 1234, not pin 0000") == ("pin [redacted:pin], not pin 0000", ("pin",))


def test_own_pattern_without_literals_runs_over_every_text() -> None:
    assert Redactor().adding(Pattern("digits", re.compile(r"\d{12}"))).redact_text("no 123456789012")[1] == ("digits",)


def test_own_pattern_that_matches_anything_leaves_markers_whole() -> None:
    greedy = Redactor().adding(Pattern("word", re.compile(r"\w{4,}")))
    once, _ = greedy.redact_text(f"token {GITHUB} elsewhere")
    assert greedy.redact_text(once) == (once, ())


def test_a_pattern_that_matches_nothing_at_all_changes_nothing() -> None:
    assert Redactor().adding(Pattern("empty", re.compile(r"z*"))).redact_text("some ordinary text")[1] == ()


def test_a_redactor_stays_as_it_is() -> None:
    redactor = Redactor()
    names = redactor.names
    redactor.without("jwt")
    redactor.adding(TICKET)
    assert redactor.names == names


@pytest.mark.parametrize("change", [Redactor().without, Redactor().only])
def test_an_unknown_name_is_refused_with_the_names_there_are(change) -> None:
    with pytest.raises(InvalidInputError, match="no redaction pattern is called 'gihtub-token'") as caught:
        change("gihtub-token")
    assert caught.value.kind == "unknown-pattern"
    assert "github-token" in caught.value.hint


@pytest.mark.parametrize("name", ["", "Token", "my token", "a]", "-a", "a--b"])
def test_a_name_that_would_break_a_marker_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Redactor().adding(Pattern(name, re.compile("x")))
    assert caught.value.kind == "bad-pattern"


def test_a_token_given_to_a_name_goes_by_the_token() -> None:
    assert redact_text(f"password={GITHUB}") == ("password=[redacted:github-token]", ("github-token",))


def test_the_name_in_a_marker_is_not_the_name_of_a_value() -> None:
    text = "[redacted:google-api-key]=q7w8e9r0t1y2, [redacted:slack-token]: q7w8e9r0t1y2"
    assert redact_text(text) == (text, ())


def test_what_follows_a_token_is_kept() -> None:
    text = f"https://x-access-token:{GITHUB}@github.com/acme/app.git"
    assert redact_text(text)[0] == "https://x-access-token:[redacted:github-token]@github.com/acme/app.git"


def test_secrets_that_touch_are_all_replaced_and_named_in_order() -> None:
    aws, openai, jwt = make("AK§IA{b32:16}", 1), make("sk§-{b62:48}", 2), make("{jwt:HS256}", 3)
    redacted, names = redact_text(f"{GITHUB} {aws}{openai} {jwt} {aws}{openai}")
    pair = ("aws-access-key-id", "openai-key")
    assert names == ("github-token", *pair, "jwt", *pair)
    assert re.findall(r"\[redacted:([a-z-]+)\]", redacted) == list(names)
    assert redact_text(redacted)[0] is redacted


def test_a_value_that_only_begins_with_a_known_secret_goes_as_a_whole() -> None:
    own = Redactor().adding(Pattern("pin", re.compile(r"\d{4}")))
    assert own.redact_text("password=1234-abcd-99zz-efgh")[0] == "password=[redacted:pin]"


def test_a_quoted_name_with_a_number_leaves_json_as_it_is() -> None:
    text = json.dumps({"password": 1234567890, "token": 12345678901})
    assert redact_text(text) == (text, ())


def test_a_private_key_cut_off_is_replaced_as_far_as_it_goes() -> None:
    lines = make("{pem:RSA PRIVATE KEY}", 5).splitlines()
    text = "\n".join(["$ cat key", *lines[:-1], "", "(output cut)"])
    redacted, names = redact_text(text)
    assert names == ("private-key",)
    assert redacted.startswith("$ cat key\n[redacted:private-key]")
    assert redacted.endswith("(output cut)")
    assert not any(line in redacted for line in lines)


def test_text_that_is_not_ascii_keeps_its_places() -> None:
    text = f"Schlüssel für Ü… 🎉 {GITHUB} — пароль: geheim, password = 'pässw0rt-ßü' \ud800"
    redacted, names = redact_text(text)
    assert names == ("github-token", "password")
    assert (
        redacted
        == "Schlüssel für Ü… 🎉 [redacted:github-token] — пароль: geheim, password = '[redacted:password]' \ud800"
    )


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "password=",
            'password="',
            "a.secret_token=",
            "key: ",
            "://a:",
            "http://a:b@",
            "eyJ",
            "eyJhbGciOiJIUzI1NiJ9.",
        ),
        *(
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nMIIEabcdefghijklmnop ",
            "sk-",
            "xoxb-1-",
            "-",
            "aB",
        ),
        *(
            "Bearer A1b2C3d4E5f6G7h8I9j0K ",
            "[redacted:jwt]",
            "AKIA",
            "AIza{b64u:35}",
            "AKIA{b32:16}",
            "SK{hex:32}",
            "ghp_{b62:36}",
            "Basic ",
            "/A+b",
            "\\",
        ),
        *(
            "curl ",
            "curl -u a",
            "curl \\\n",
            "machine a login b password c\n",
            "default login a ",
            "<password>a",
            "secret_key_base=",
            "abc8Q~",
            "&sig=%41",
            '"auth": "aGVsbG86aGVsbG86aGVsbG8',
            "MTIzMTIzMTIzMTIzMTIzMTIz.",
            "123456789:AAaaaaaaaaaaaaaaaaaaaaaaaa",
            "devops_pat aaaaaaaaaaaaaaaaaaaaaaaaaB ",
        ),
    ],
)
def test_time_grows_with_the_text_whatever_it_repeats(unit: str) -> None:
    """Eight times the text takes about eight times as long; anything quadratic would take sixty-four times."""
    unit = make(unit, 1)
    short, long = (_cpu_s(unit * (size // len(unit))) for size in (6_250, 50_000))
    assert long < 24 * short


def _cpu_s(text: str) -> float:
    """What it takes of this thread, without what others do to the machine meanwhile: the best of several."""
    times = []
    for _ in range(3):
        began = time.thread_time()
        redact_text(text)
        times.append(time.thread_time() - began)
    return min(times)


def test_every_row_says_who_tells_its_form() -> None:
    assert [pattern.name for pattern in PATTERNS if not pattern.source] == []


def test_every_name_is_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "redaction.md").read_text(encoding="utf-8")
    assert [name for name in DEFAULT.names if f"`{name}`" not in page] == []


def test_a_clean_text_compiles_no_expression_of_the_table() -> None:
    script = """
from wakelog.redaction import PATTERNS, redact_text
assert redact_text("nothing to hide in this line of text") == ("nothing to hide in this line of text", ())
print([p.name for p in PATTERNS if "search" in vars(p.regex) or "finditer" in vars(p.regex)])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_expression_of_the_table_is_a_valid_one() -> None:
    assert [p.name for p in PATTERNS if p.regex.search("") is not None] == []
