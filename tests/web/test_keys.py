"""The keyboard table of the how-to is the page's own."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_how_to_lists_every_key_of_the_page() -> None:
    source = (ROOT / "ui" / "src" / "keyboard.ts").read_text("utf-8")
    source = source[source.index("KEY_TABLE") :]
    listed = set(re.findall(r'\["([^"]+)", "([^"]+)"\]', source))
    how_to = (ROOT / "docs" / "how-to" / "the-page.md").read_text("utf-8")
    told = set(re.findall(r"^\| `([^`]+)` \| (.+) \|$", how_to, re.MULTILINE))
    assert len(listed) > 20
    assert told == listed
