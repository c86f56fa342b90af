"""The code of the how-to page runs, and leaves a session that the command line can show."""

from pathlib import Path

import pytest

pytest.importorskip("langgraph")

import wakelog
from tests.docs.pages import ROOT, read_blocks


def test_the_ten_lines_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "how-to" / "langgraph.md").read_text("utf-8")
    first = next(block for block in read_blocks(page) if block.language == "python")
    exec(compile(first.text, "langgraph.md", "exec"), {})
    with wakelog.open("graphs") as store:
        session = store.resume("demo")
        assert [message.text for message in session.messages()] == ["hello", "You said hello."]
        assert session.state().turn.status == "completed"
