"""The parts of the pages that follow from the code are what the code says now.

All of it is made at once, which takes seconds: so it is one test.
"""

from docs.generate import outputs, rows_without_sentence, written


def test_generated_parts_are_up_to_date_and_every_row_has_its_sentence() -> None:
    made = outputs()
    assert [*made] == written(), "every file that is made is compared"
    old = [path for path, text in made.items() if path.read_text(encoding="utf-8") != text]
    assert not old, f"run: .venv/bin/python docs/generate.py; it will change {[*map(str, old)]}"
    missing = {path: rows for path, text in made.items() if (rows := rows_without_sentence(text))}
    assert not missing, f"write what these mean in the last column of their row: {missing}"
