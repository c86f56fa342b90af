"""Every secret of the corpus is found, completely and with its name; other texts stay unchanged."""

import json

from tests.every import every
from tests.redaction.corpus import Positive, negatives, positives
from wakelog.redaction import Redactor, redact_text

POSITIVES, NEGATIVES = positives(), negatives()


def _id(case: Positive | str) -> str:
    return (case if isinstance(case, str) else f"{case.names[0]}: {case.text}")[:40].encode("unicode_escape").decode()


def test_the_corpus_is_large_and_every_name_has_a_text() -> None:
    assert len(POSITIVES) >= 80
    assert len(NEGATIVES) >= 120
    assert len(set(NEGATIVES)) == len(NEGATIVES)
    found = {name for case in POSITIVES for name in case.names}
    assert found == set(Redactor().names) - {"named-secret"}


@every("case", POSITIVES, ids=_id)
def test_a_secret_is_replaced_by_its_marker(case: Positive) -> None:
    assert redact_text(case.text) == (case.redacted, case.names)
    assert not any(secret in case.redacted for secret in case.secrets)


@every("text", NEGATIVES, ids=_id)
def test_ordinary_text_is_the_same_object(text: str) -> None:
    redacted, names = redact_text(text)
    assert names == ()
    assert redacted is text


@every("case", POSITIVES, ids=_id)
def test_what_is_redacted_stays_as_it_is(case: Positive) -> None:
    again, names = redact_text(case.redacted)
    assert names == ()
    assert again is case.redacted


@every("case", POSITIVES, ids=_id)
def test_a_secret_is_found_inside_json_and_json_within_json(case: Positive) -> None:
    text = case.text
    for _ in range(2):
        text = json.dumps({"output": text, "n": 1})
        redacted, names = redact_text(text)
        assert len(names) == len(case.names)
        assert json.loads(redacted)["n"] == 1
        assert not any(secret in redacted for secret in case.secrets)


def test_secrets_are_found_one_by_one_in_a_long_text() -> None:
    """All negatives between all positives: neither hides or spoils the other."""
    pairs = [(case, NEGATIVES[number % len(NEGATIVES)]) for number, case in enumerate(POSITIVES)]
    text = "\n\n".join(part for case, negative in pairs for part in (case.text, negative))
    redacted = "\n\n".join(part for case, negative in pairs for part in (case.redacted, negative))
    assert redact_text(text) == (redacted, tuple(name for case in POSITIVES for name in case.names))
