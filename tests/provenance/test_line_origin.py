"""Which change brought a line into a file, followed back through several edits."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.provenance.story import Story
from wakelog import NotFoundError
from wakelog.log.removal import erase
from wakelog.model import events as ev
from wakelog.provenance.line_origin import LINES_MAX, find_line


def _edit(s: Story, before: str | None, after: str | None, **fields: Any) -> int:
    return s.add(ev.FileChanged(path="a.py", before=before, after=after, **fields))


def test_each_line_is_traced_to_the_edit_that_made_it() -> None:
    s = Story()
    contents = [
        "import os\n\ndef main():\n    return 1\n",
        "import os\nimport sys\n\ndef main():\n    return 1\n",
        "import os\nimport sys\n\ndef helper():\n    pass\n\ndef main():\n    return 1\n",
        "import os\nimport sys\n\ndef helper():\n    pass\n\ndef main():\n    return helper()\n",
    ]
    made = [_edit(s, None, contents[0], change="created")]
    made += [_edit(s, a, b) for a, b in itertools.pairwise(contents)]
    found = [find_line(s.log, "a.py", made, n) for n in range(1, 9)]
    assert [made.index(f.seq) for f in found] == [0, 1, 0, 2, 2, 2, 0, 3]
    assert all(f.way == "lines" and f.note == "" for f in found)
    assert found[7].text == "    return helper()"


def test_contents_after_a_change_do_for_those_before_the_next() -> None:
    s = Story()
    made = [_edit(s, None, "a\nb\n", change="created"), _edit(s, None, "a\nx\nb\n"), _edit(s, None, "a\nx\nb\nc\n")]
    assert [find_line(s.log, "a.py", made, n).seq for n in (1, 2, 3, 4)] == [made[0], made[1], made[0], made[2]]


def test_a_line_from_before_the_first_change_is_told_as_such() -> None:
    s = Story()
    made = [_edit(s, "old\n", "old\nnew\n")]
    found = find_line(s.log, "a.py", made, 1)
    assert (found.seq, found.way) == (0, "older")
    assert "older than this session" in found.note
    assert find_line(s.log, "a.py", made, 2).note == ""


def test_an_edit_by_hand_in_between_is_told_as_such() -> None:
    s = Story()
    made = [_edit(s, None, "a\n", change="created"), _edit(s, "a\nby hand\n", "a\nby hand\nc\n")]
    found = find_line(s.log, "a.py", made, 2)
    assert (found.seq, found.way) == (0, "elsewhere")
    assert "from elsewhere" in found.note
    assert find_line(s.log, "a.py", made, 1).seq == made[0]


def test_without_contents_it_is_the_newest_change() -> None:
    s = Story()
    made = [_edit(s, None, "a\n", change="created"), _edit(s, None, None)]
    found = find_line(s.log, "a.py", made, 1)
    assert (found.seq, found.way) == (made[1], "newest change")
    assert "not recorded" in found.note
    erase(s.log, made[:1], why="asked")
    assert "removed" in find_line(s.log, "a.py", made[:1], 1).note


def test_without_the_content_before_the_search_ends_there_and_says_so() -> None:
    s = Story()
    made = [_edit(s, None, None), _edit(s, None, "a\nb\n")]
    found = find_line(s.log, "a.py", made, 1)
    assert (found.seq, found.way) == (made[1], "lines")
    assert found.note


@pytest.mark.parametrize("line", [0, 3, 99])
def test_a_line_the_file_does_not_have_is_not_found(line: int) -> None:
    s = Story()
    made = [_edit(s, None, "a\nb\n", change="created")]
    with pytest.raises(NotFoundError, match="2 lines"):
        find_line(s.log, "a.py", made, line)


def test_a_large_rewrite_is_still_answered() -> None:
    s = Story()
    old = [f"line {n}" for n in range(LINES_MAX + 10)]
    new = ["first", *reversed(old), "last"]
    made = [_edit(s, None, "\n".join(old), change="created"), _edit(s, "\n".join(old), "\n".join(new))]
    assert find_line(s.log, "a.py", made, 1).seq == made[1]
    assert find_line(s.log, "a.py", made, 2).seq == made[0]


@given(st.data())
def test_lines_that_are_all_different_are_traced_exactly(data: st.DataObject) -> None:
    """Every line is named after the edit that makes it, so the truth is written in the file."""
    s = Story()
    lines: list[str] = []
    made: list[int] = []
    for edit in range(data.draw(st.integers(1, 6))):
        before = list(lines)
        for number in range(data.draw(st.integers(1, 3))):
            place = data.draw(st.integers(0, len(lines)))
            deletes: bool = data.draw(st.booleans())
            if lines and deletes:
                del lines[place % len(lines)]
            else:
                lines.insert(place, f"edit {edit} line {number}")
        made.append(
            _edit(
                s, "\n".join(before) if before else None, "\n".join(lines), change="modified" if before else "created"
            )
        )
    for number, line in enumerate(lines, 1):
        assert find_line(s.log, "a.py", made, number).seq == made[int(line.split()[1])]
