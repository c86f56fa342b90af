"""Content blocks that hold more than words, as text."""

from typing import Any

import pytest

from wakelog.model.parts import content_text

PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"type": "document", "source": PDF}, "(a document: application/pdf)"),
        ({"type": "document", "source": PDF, "title": "bill.pdf"}, "(a document: bill.pdf)"),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "milk"}}, "milk"),
        ({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "eggs"}]}}, "eggs"),
        (
            {"type": "document", "source": {"type": "url", "url": "https://a.example/b"}},
            "(a document: https://a.example/b)",
        ),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "row"}}, "row"),
        ({"type": "resource", "resource": {"uri": "file:///a", "blob": "JVBERi0="}}, "(a resource: file:///a)"),
    ],
)
def test_a_document_is_shown_by_its_words_or_its_name(block: dict[str, Any], shown: str) -> None:
    assert content_text([{"type": "text", "text": "see"}, block]) == f"see\n{shown}"
