"""The reader of Markdown pages, tried on small pages: a checker that sees nothing would pass every page."""

from pathlib import Path

import pytest

from tests.docs.pages import Shown, broken_links, read_blocks, read_commands, run_page


def _page(tmp_path: Path, text: str) -> Path:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_blocks_keep_language_line_and_order() -> None:
    first, second = read_blocks("# Title\n\n```python\nx = 1\n```\n\n- item\n\n  ```console\n  $ ls\n  ```\n")
    assert (first.language, first.text, first.line) == ("python", "x = 1\n", 4)
    assert (second.language, second.text, second.line) == ("console", "$ ls\n", 10)


def test_longer_fence_holds_a_shorter_one() -> None:
    [block] = read_blocks("````markdown\n```python\nx\n```\n````\n")
    assert block.language == "markdown"


def test_unclosed_block_is_an_error() -> None:
    with pytest.raises(ValueError, match="never closed"):
        read_blocks("```python\nx = 1\n")


def test_no_run_covers_the_next_block_only() -> None:
    text = "<!-- no-run: needs a server -->\n\n```python\nx\n```\n\n```python\ny\n```\n"
    assert [block.no_run for block in read_blocks(text)] == [True, False]


@pytest.mark.parametrize("comment", ["<!-- no-run -->", "<!-- no-run: -->", "<!-- no-run:  -->"])
def test_no_run_needs_a_reason(comment: str) -> None:
    with pytest.raises(ValueError, match="without a reason"):
        read_blocks(f"{comment}\n```python\nx\n```\n")


def test_commands_are_the_wakelog_lines_with_their_exit_codes() -> None:
    text = "$ pip install wakelog\n$ wakelog show a\noutput\n$ wakelog show \\\n>   b # exit 3\nwakelog x\n"
    [block] = read_blocks(f"```console\n{text}```\n")
    assert [(each.text, each.exit_code, each.line) for each in read_commands(block)] == [
        ("wakelog show a", 0, 3),
        ("wakelog show b # exit 3", 3, 5),
    ]


def test_blocks_of_a_page_share_names_and_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "```python\nx = 1\n```\n```python\nopen('out', 'w').close()\nassert x == 1\n```\n"
    run_page(_page(tmp_path, text), tmp_path, monkeypatch)
    assert (tmp_path / "work" / "out").exists()


def test_failing_block_names_the_line_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(_page(tmp_path, "text\n\n```python\n1 / 0\n```\n"), tmp_path, monkeypatch)
    assert caught.traceback[-1].lineno == 3  # pytest counts from 0


def test_command_with_another_exit_code_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "```console\n$ wakelog no-such-command\n```\n"
    with pytest.raises(AssertionError, match=r"page\.md:2: `wakelog no-such-command` exited with"):
        run_page(_page(tmp_path, text), tmp_path, monkeypatch)


def test_links_are_checked_outside_code_only(tmp_path: Path) -> None:
    text = (
        "[here](page.md) [part](page.md#x) [within](#y) [out](https://example.com/a) ![gone](gone.png)\n"
        '`[code](no.md)` [titled](lost.md "title")\n\n[ref]: missing.md\n\n```text\n[block](no.md)\n```\n'
    )
    broken = broken_links(_page(tmp_path, text))
    assert [sentence.split()[3] for sentence in broken] == ["gone.png,", "lost.md,", "missing.md,"]


def test_commands_keep_what_the_page_shows_below_them() -> None:
    text = "$ wakelog a\none\n\ntwo\n\n$ ls\nthree\n$ wakelog \\\n>   b\n$ wakelog c\nfour\n"
    [block] = read_blocks(f"```console\n{text}```\n")
    assert [(each.last, each.shown) for each in read_commands(block)] == [(2, "one\n\ntwo\n"), (10, ""), (11, "four\n")]


def test_outputs_are_what_a_page_shows_beside_what_it_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "```python\nprint(1)\n```\n\n```text\n2\n```\n\n```console\n$ wakelog --version\nwakelog…\n```\n"
    first, second = run_page(_page(tmp_path, text), tmp_path, monkeypatch)
    assert (first.line, first.shown, first.printed, first.is_true) == (6, "2\n", "1\n", False)
    assert second.is_true


@pytest.mark.parametrize(
    ("shown", "is_true"),
    [("a\nb\nc\n", True), ("a\n…\n", True), ("a\n  …\nc\n", True), ("a\n…\nb\n", False), ("a\n…x\nc\n", False)],
)
def test_dots_stand_for_what_is_left_out(shown: str, is_true: bool) -> None:
    assert Shown(1, shown, "a\nb\nc\n").is_true is is_true
