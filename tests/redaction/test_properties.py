"""Properties that hold for any text around any secret."""

import json
import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.redaction.corpus import make, negatives, positives, templates
from wakelog.redaction import redact_text

# Secrets that are known by their own form, wherever they stand. The others need the name before them.
TEMPLATES = [each for each in templates() if "§" in each or "{jwt:" in each or "{pem:" in each]
TEXTS = [*(case.text for case in positives()), *(case.redacted for case in positives()), *negatives()]
QUIET = st.text(st.characters(codec="utf-8", exclude_characters="@[")).filter(lambda t: not _is_loud(t))
PADDED = {"stripe-webhook-secret"}
"""These are base64, so that what looks like the padding of one is taken for it."""
SEPARATORS = st.sampled_from([" ", "\n", '"', "'", ", ", "; ", "(", ") ", "=", " | ", "\t", "`", "<", ">"])


@st.composite
def _secrets(draw: st.DrawFn) -> str:
    return make(draw(st.sampled_from(TEMPLATES)), draw(st.integers(0, 10**6)))


def _text_at(number: int) -> str:
    return TEXTS[number]


PIECES = st.one_of(
    _secrets(),
    st.integers(0, len(TEXTS) - 1).map(_text_at),
    st.text(),
    st.sampled_from(["password", "token", "=", ":", "\\", '"']),
)
MIXED = st.lists(st.tuples(PIECES, SEPARATORS | st.just(""))).map(lambda parts: "".join(a + b for a, b in parts))
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | PIECES | MIXED,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["password", "token:", "n", "api_key", "a=b"]) | st.text(max_size=5), inner)
    ),
    max_leaves=12,
)


def _is_loud(text: str) -> bool:
    """Whether a text has any of the things that make the search look closer."""
    return re.search(r"[A-Za-z0-9_\-]{20}|ke[ny]|pass|wd|cret", text, re.IGNORECASE) is not None


@given(QUIET)
def test_text_without_a_literal_is_the_same_object(text: str) -> None:
    redacted, names = redact_text(text)
    assert names == ()
    assert redacted is text


@example("", " ", "whsec_0UAqFzWsDK4FrUMp48Y3tT3QDgAL47D1", "=", "x")
@given(QUIET, SEPARATORS, _secrets(), SEPARATORS, QUIET)
def test_a_secret_is_replaced_wherever_it_stands(before: str, left: str, secret: str, right: str, after: str) -> None:
    redacted, names = redact_text(before + left + secret + right + after)
    assert len(names) == 1
    rest = f"{right}{after}"
    if names[0] in PADDED:
        rest = rest.lstrip("=")
    assert redacted == f"{before}{left}[redacted:{names[0]}]{rest}"
    assert secret not in redacted


@given(MIXED)
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once, _ = redact_text(text)
    again, names = redact_text(once)
    assert names == ()
    assert again is once


@given(MIXED)
def test_as_many_markers_appear_as_names_are_given(text: str) -> None:
    redacted, names = redact_text(text)
    added = re.findall(r"\[redacted:([a-z0-9-]+)\]", redacted)
    for name in re.findall(r"\[redacted:([a-z0-9-]+)\]", text):
        added.remove(name)
    assert sorted(added) == sorted(names)


@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 1]), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_json_stays_json_of_the_same_shape(
    document: Any, ascii: bool, indent: int | None, marks: tuple[str, str]
) -> None:
    text = json.dumps(document, ensure_ascii=ascii, indent=indent, separators=marks)
    redacted, _ = redact_text(text)
    assert _shape(json.loads(redacted)) == _shape(json.loads(text))


def _shape(value: Any) -> Any:
    """A document without its texts. Keys are texts too, and two of them may become the same marker."""
    if isinstance(value, dict):
        return "dict"
    if isinstance(value, list):
        return [_shape(each) for each in value]
    return "text" if isinstance(value, str) else value
