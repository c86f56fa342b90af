"""Looking for secrets with the native scan in front finds what Python alone finds, in any text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.native.core import installed_core
from tests.redaction.corpus import negatives, positives
from wakelog.redaction import PATTERNS, Redactor

core = installed_core()

NATIVE, PURE = Redactor(), Redactor()
PURE.scanner = None

# What signs are made of: endings of names, what stands around them, literals, and runs of characters of a word.
endings = st.sampled_from(
    ["token", "key", "_key", "secret", "-secret", "password", "pass", "passwd", "passphrase", "pwd", "curl", "Cookie"]
) | st.sampled_from(
    ["KEY_BASE", "key_base", "--password", "-token", "-key", "PRIVATE KEY", "key block", "Token", "bypass", "monkey"]
)
separators = st.sampled_from([" " * 12 + "=", " " * 13 + "="]) | st.sampled_from(
    ["=", ":", "::", "=>", ":=", "===", " is ", " is: ", ">", " ", '": "', "'] = '", '\\": \\"', "-----", "\t", "\n"]
)
literals = st.sampled_from([literal for p in PATTERNS for literal in p.literals])
words = st.text("aZ9_-", min_size=1, max_size=30) | st.sampled_from(["A1" * 12, "x" * 19 + "9", "x" * 25, "Zz+/" * 520])
odd = st.text(max_size=3) | st.sampled_from(["é", "\ud800", "\u2028", "😀", "İ", "K", "ſ", "@", "://u:", "Q~", "sig="])
texts = st.lists(st.one_of(endings, separators, literals, words, odd), max_size=14).map("".join)


@given(texts)
@example("éé password hunter22hunter\n")
@example("x" * 50 + "Bearer " + "aB3" * 12)
@example("İ_KEY=aB3dE5gH7jK9mN1p")
def test_any_text_has_the_same_secrets(text: str) -> None:
    assert NATIVE.find(text) == PURE.find(text)
    assert NATIVE.suspects(text) == PURE.suspects(text)


@pytest.mark.parametrize("joined", [False, True], ids=["one by one", "as one"])
def test_the_corpus_has_the_same_secrets(joined: bool) -> None:
    found = [each.text for each in positives()] + negatives()
    for text in ["\n".join(found)] if joined else found:
        assert NATIVE.find(text) == PURE.find(text)
        assert NATIVE.suspects(text) == PURE.suspects(text)


def test_a_text_without_a_sign_is_known_by_the_core_alone() -> None:
    text = "def monkey(keys): return [passed for passed in keys if tokens]\n" * 40
    assert NATIVE.scanner is not None
    assert NATIVE.scanner.look(text) == 0
