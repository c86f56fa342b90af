"""Sentences are spans that can be quoted, without code; other languages are recognised."""

import pytest

from wakelog.insight.sentences import is_english, sentences_of


def test_every_sentence_is_quoted_letter_by_letter() -> None:
    text = "Found it! The list in `types.go` is short, e.g. `a`.\n\n- first item\n2. second item. And more"
    for sentence in sentences_of(text):
        assert text[sentence.start : sentence.end] == sentence.text
    assert [s.text for s in sentences_of(text)] == [
        "Found it!",
        "The list in `types.go` is short, e.g. `a`.",
        "first item",
        "second item.",
        "And more",
    ]


def test_code_and_tables_are_no_sentences() -> None:
    text = "Before.\n```python\nx = 1. y = 2.\n```\n| a | b. c |\nAfter."
    assert [s.text for s in sentences_of(text)] == ["Before.", "After."]


def test_a_name_in_code_is_not_cut() -> None:
    text = "I used `models.Index` in the wrong way. It takes `fields`."
    assert [s.text for s in sentences_of(text)] == ["I used `models.Index` in the wrong way.", "It takes `fields`."]


def test_a_missing_space_does_not_join_two_sentences() -> None:
    assert [s.text for s in sentences_of("It is on line 1475.To fix it, round.")] == [
        "It is on line 1475.",
        "To fix it, round.",
    ]


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("I will change the parser so that it keeps the comments in the file", True),
        ("Ich ändere den Parser, damit er die Kommentare in der Datei behält und nichts verliert", False),
        ("Je vais modifier le fichier pour que les tests passent sans autre changement dans le code", False),
        ("請修改這個檔案", False),
        ("ok", True),
        (
            "## Created\n\nEpic shop-1: Setup quality tools (Credo, Dialyxir, audit)\n\n| Id | Task |\n| 1 | Install |",
            True,
        ),
        ("[REDACTED_TEXT len=179 sha=44b8562b] " * 9, True),
        ("Dodaję teraz obsługę błędów do modułu, który czyta plik i zwraca wynik do programu", False),
        ("", True),
    ],
)
def test_the_language_is_told_by_its_small_words(text: str, is_so: bool) -> None:
    assert is_english(text) is is_so


def test_code_does_not_make_a_text_foreign() -> None:
    assert is_english("Fix the bug in the parser:\n```\nfoo bar baz qux quux corge grault garply waldo fred\n```")


def test_notes_in_keywords_are_english_by_the_few_small_words_they_have() -> None:
    notes = (
        "Scope: confirm data sources, required aggregations, existing hooks, components, filters, charts, widgets."
        " Layer: design reusable metrics service supporting filters, date range, labels, teams, comparison overlay;"
        " specify query params, response shape, efficient queries."
        " Page: map state shape, decide hooks and pieces; define how it joins."
    )
    assert is_english(notes)


def test_a_full_stop_in_code_ends_no_sentence() -> None:
    text = "I should use it (after checking for `.` in it). Then done."
    assert [s.text for s in sentences_of(text)] == ["I should use it (after checking for `.` in it).", "Then done."]
    assert [s.text for s in sentences_of("It is the third.I will use it.")] == ["It is the third.", "I will use it."]


def test_a_sentence_knows_the_heading_above_it() -> None:
    text = "## Key decisions\n- One file.\n\n**Tests**\nAll pass.\n\nMinimal fix\n\nAdd a check.\n"
    titles = {s.text: s.title for s in sentences_of(text)}
    assert titles["One file."] == "Key decisions"
    assert titles["All pass."] == "Tests"
    assert titles["Add a check."] == "Minimal fix"
    assert [s.text for s in sentences_of(text) if s.is_item] == ["One file."]
