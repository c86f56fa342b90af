"""Pending work that the agent names at the end of a turn."""

import pytest

from tests.insight.turns import Scene
from wakelog.insight.pending import find_pending, open_items


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        (
            "All is done. Next steps: wire the hook, then stop the poll.",
            "Next steps: wire the hook, then stop the poll.",
        ),
        (
            "Done.\n\n## Next steps for tracing\n1. Turn logs on.\n2. Run it.\n\n## Notes\nNone.",
            "Turn logs on.\n2. Run it.",
        ),
        ("Done.\n\n**Next steps:**\n- Deploy it.", "Deploy it."),
        ("Done.\n\nNext Steps\n- Deploy it.", "Deploy it."),
        ("You'll need to restart the server.", "You'll need to restart the server."),
        ("- **Validation**: outline the tests, and next steps for later.", ""),
        ("Done.\n\n## Next steps", ""),
    ],
)
def test_what_is_left_is_quoted_and_never_a_title(text: str, quote: str) -> None:
    scene = Scene().edits().says(text)
    assert "".join(scene.quote(found) for found in find_pending(scene.done())) == quote


def test_a_todo_list_may_be_a_checklist() -> None:
    todos = {"todos": "- [x] read the code\n- [-] write the parser\n[ ] write the tests\nno item"}
    assert open_items(todos) == ["write the parser", "write the tests"]
    assert [f.calls for f in find_pending(Scene().calls("update_todo_list", todos).done())] == [(1000,)]


@pytest.mark.parametrize(
    "text",
    [
        "Next steps: add the cache. Would you like me to start with it?",
        "With that library we'd still need to write the reader ourselves.",
    ],
)
def test_what_is_only_proposed_is_not_pending(text: str) -> None:
    assert not list(find_pending(Scene().edits().says(text).done()))
