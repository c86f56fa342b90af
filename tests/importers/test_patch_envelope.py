"""Patches as Codex writes them."""

import pytest

from wakelog.importers.coding_agents.codex.patch_envelope import PatchedFiles, apply_hunks, patch_sections

TEXT = "def a():\n    return 1\n\n\ndef b():\n    return 1\n"


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        (["@@", "-    return 1", "+    return 2"], "def a():\n    return 2\n\n\ndef b():\n    return 1\n"),
        (["@@ def b():", "-    return 1", "+    return 2"], "def a():\n    return 1\n\n\ndef b():\n    return 2\n"),
        (
            ["@@", " def b():", "+    # why", "     return 1"],
            "def a():\n    return 1\n\n\ndef b():\n    # why\n    return 1\n",
        ),
        (["@@", "+# end"], TEXT + "# end\n"),
        (
            ["@@", "-def a():", "+def c():", "@@", "-def b():", "+def d():"],
            TEXT.replace("a()", "c()").replace("b()", "d()"),
        ),
        (["@@", "-nothing like it", "+x"], None),
    ],
)
def test_hunks_change_the_lines_that_they_name(lines: list[str], after: str | None) -> None:
    assert apply_hunks(TEXT, lines) == after


def test_a_patch_is_found_inside_a_command() -> None:
    text = "cd x && apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a b.txt\n+x\n*** End Patch\nEOF\necho +done"
    (section,) = patch_sections(text)
    assert (section.change, section.path, section.lines) == ("Add", "a b.txt", ["+x"])
    assert list(patch_sections("no patch")) == []


def test_a_file_that_is_not_known_has_counts_and_no_contents() -> None:
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-x\n+y\n+z\n*** End of File\n*** End Patch"
    (change,) = PatchedFiles().apply(patch, "/srv")
    assert (change.path, change.folder, change.added, change.removed) == ("a.txt", "/srv", 2, 1)
    assert set(change.missing) == {"before", "after"}
