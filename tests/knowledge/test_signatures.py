"""Equal errors have the same signature, and different errors do not."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.knowledge.corpus import corpus_store
from wakelog.model.error_signature import SIGNATURE_MAX, error_signature

LABELS = Path(__file__).parent / "labels" / "corpus_errors.json"

SAME = [
    ("KeyError: 'name'", "Traceback (most recent call last):\n  File \"/a/b.py\", line 3\nKeyError: 'id'"),
    ("Exit code 1\nerror: file src/a.py has 3 problems", "error: file lib/b.py has 12 problems"),
    ("ls: cannot access 'x/': No such file or directory", "sed: src/a.ts: No such file or directory"),
    ("bash: line 1: psql: command not found", "(eval):1: command not found: tree"),
    ("/usr/bin/python3: No module named pytest", "ModuleNotFoundError: No module named 'yaml'"),
    ("a.ts(5,3): error TS2307: Cannot find module 'x'.", "src/b.ts(1,2): error TS2307: Cannot find module 'y'."),
    ("request 7f9c2ba4e88f827d616045507605853e failed", "request a9993e364706816aba3e25717850c26c9cd0d89d failed"),
    ("flight HAT030 not available on date 2024-05-13", "flight HAT223 not available on date 2024-05-14"),
    ("timeout after 30s waiting for https://a.example/x", "timeout after 31s waiting for https://b.example/y?z=1"),
    ("\x1b[31mValueError: bad\x1b[0m", "ValueError: bad"),
]
OTHER = [
    ("KeyError: 'name'", "ValueError: 'name'"),
    ("error TS2307: Cannot find module 'x'.", "error TS2345: Argument of type 'x'."),
    ("payment method not found", "payment amount does not add up"),
]
NOTHING = [
    "",
    "...",
    "Exit code 1",
    "<returncode>1</returncode>\n<output>\n</output>",
    "Error",
    "Sibling tool call errored",
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_same_error_in_another_place_has_the_same_signature(a: str, b: str) -> None:
    assert error_signature("error", a) == error_signature("error", b) != ""


@pytest.mark.parametrize(("a", "b"), OTHER)
def test_another_error_has_another_signature(a: str, b: str) -> None:
    assert error_signature("error", a) != error_signature("error", b)


@pytest.mark.parametrize("text", NOTHING)
def test_a_text_that_says_nothing_has_no_signature(text: str) -> None:
    assert error_signature("error", text) == ""


def test_a_typed_error_is_named_by_its_type() -> None:
    assert error_signature("ConnectionRefused", "port 8080") == "ConnectionRefused: port <n>"
    assert error_signature("timed_out", "whatever") == "timed out"


def test_a_signature_is_short_whatever_the_text() -> None:
    assert len(error_signature("error", "x y" * 100_000)) <= SIGNATURE_MAX


@pytest.mark.slow
def test_signatures_agree_with_a_reader_on_the_corpus(tmp_path: Path) -> None:
    labels = json.loads(LABELS.read_text(encoding="utf-8"))["errors"]
    with corpus_store(tmp_path) as store:
        rows = store.index.query_sql("select type, message from errors", max_rows=10_000, timeout_s=10).rows
    found = [(labels[_hash(*row)], error_signature(*row)) for row in rows if _hash(*row) in labels]
    assert len(found) > 150
    right = both = told = 0
    for (label, sign), (other, sign2) in itertools.combinations(found, 2):
        is_same, is_told = label == other != "", sign == sign2 != ""
        right, both, told = right + is_same, both + (is_same and is_told), told + is_told
    assert both / told >= 0.95
    assert both / right >= 0.85
    silent = Counter(bool(sign) for label, sign in found if not label)
    assert silent[True] == 0


def _hash(type_: str, message: str) -> str:
    return hashlib.sha256(f"{type_}\0{message}".encode()).hexdigest()[:10]
