"""Chats of Cursor as its command `Export Chat` writes them, made here."""

from pathlib import Path

import pytest

from tests.importers.growth import check_growth, seen_once
from wakelog.importers.discovery import find_in_folder
from wakelog.importers.formats import detect_format

CHAT = """# The limit
_Exported on 1/5/2026 at 10:00:00 GMT+1 from Cursor (2.4.27)_

---

**User**

make the limit a setting

---

**Cursor**

I look first.

---

## What I did

**User** settings hold it now.

---

**User**

thanks
"""


def test_rules_and_names_inside_an_answer_do_not_end_it(tmp_path: Path) -> None:
    path = tmp_path / "chat.md"
    path.write_text(CHAT)
    (tmp_path / "notes.md").write_text("# Notes\n\n---\n\n**User**\n\nhello\n")
    assert detect_format(path).NAME == "cursor-export"
    assert [each.path for each in find_in_folder(tmp_path)] == [path]
    seen = seen_once(path)
    assert seen.prompts() == ["make the limit a setting", "thanks"]
    assert seen.said() == ["I look first.\n\n---\n\n## What I did\n\n**User** settings hold it now."]


def test_a_chat_that_is_exported_again_adds_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = [CHAT.partition("\n---\n\n**User**\n\nthanks")[0], CHAT]
    check_growth([v.encode() for v in versions], tmp_path / "chat.md", "cursor-export", monkeypatch)
