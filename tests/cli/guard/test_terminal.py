"""Recorded text stays text, and rows fit the terminal."""

import re

import pytest

from tests.cli.conftest import Cli
from tests.seeds import some
from wakelog.cli.text import width

COMMANDS = (
    ("watch", "--once"),
    ("watch", "--once", "--dry-run"),
    ("watch", "hostile", "--once"),
    ("flag", "ls"),
    ("cost",),
    ("cost", "--by", "tool"),
    ("cost", "--by", "agent"),
    ("cost", "--by", "label:repo"),
    ("cost", "hostile", "--budget"),
    ("budget", "hostile"),
    ("ps",),
    ("ps", "--over-budget"),
    ("log", "hostile"),
    ("status", "hostile"),
)
HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\U000e0000-\U000e007f]")


@pytest.mark.parametrize("form", [(), ("--json",), ("--ndjson",)])
def test_no_command_lets_recorded_text_through_raw(guard: Cli, form: tuple[str, ...]) -> None:
    for args in COMMANDS:
        result = guard(*args, *form)
        assert result.code in (0, 1), (args, result.err)
        assert not HOSTILE.search(result.out + result.err), args


@pytest.mark.parametrize("columns", some([60, 80, 120]))
def test_no_row_is_wider_than_the_terminal(guard: Cli, columns: int) -> None:
    for args in COMMANDS:
        wide = [line for line in guard(*args, columns=columns).lines if width(line) > columns]
        assert not wide, (args, wide)


def test_following_shows_hostile_names_inert(guard: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Follows until the first wait, which stands for Ctrl-C."""

    def interrupted(self: object, timeout_s: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("wakelog.monitors.store_watch.Watcher.wait", interrupted)
    result = guard("watch", columns=60)
    assert result.code == 130
    assert "repeated-failure" in result.out
    assert not HOSTILE.search(result.out)
    assert all(width(line) <= 60 for line in result.lines)
