"""Diffs by lines: git takes them for patches, and counts as we do."""

import subprocess
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.files.repository import needs_git
from wakelog.files import line_diff as lines
from wakelog.files.line_diff import counts, split, unified_hunks

line = st.sampled_from(["", "a", "b", "c", "  d", "\x0c", "\u2028", "é", "\r"])
text = st.builds(lambda parts, end: "\n".join(parts) + end, st.lists(line, max_size=12), st.sampled_from(["", "\n"]))


@given(text)
def test_lines_put_together_are_the_text(whole: str) -> None:
    assert "".join(split(whole)) == whole


@needs_git
@given(text, text, st.booleans())
def test_a_diff_is_a_patch(before: str, after: str, is_short: bool) -> None:
    """Also where the texts are too long to be compared in full."""
    limit, lines.LINES_MAX = lines.LINES_MAX, 2 if is_short else lines.LINES_MAX
    try:
        body = list(unified_hunks(before, after))
    finally:
        lines.LINES_MAX = limit
    if before == after:
        assert body == []
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "f")
        path.write_bytes(before.encode())
        patch = "\n".join(["--- a/f", "+++ b/f", *body]) + "\n"
        done = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"], cwd=folder, input=patch.encode(), capture_output=True
        )
        assert done.returncode == 0, (done.stderr, patch)
        assert path.read_bytes().decode() == after


@given(text, text)
def test_added_and_removed_make_up_the_difference(before: str, after: str) -> None:
    added, removed = counts(before, after)
    assert added - removed == len(split(after)) - len(split(before))
    assert (added, removed) == (
        sum(row.startswith("+") for row in unified_hunks(before, after)),
        sum(row.startswith("-") for row in unified_hunks(before, after)),
    )


def test_very_long_texts_are_counted_in_a_moment() -> None:
    before = "".join(f"{n}\n" for n in range(100_000))
    after = "".join(f"{n}\n" for n in reversed(range(100_001)))
    assert counts(before, after) == (1, 0)
    assert sum(1 for _ in unified_hunks(before, after)) > 200_000
