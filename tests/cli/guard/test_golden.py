"""What people and programs see, word for word."""

import pytest

from tests.cli.conftest import Cli
from tests.cli.stories import check_story

STORIES: dict[str, list[tuple[str, ...]]] = {
    "watch": [
        ("watch", "--once", "--dry-run"),
        ("watch", "--once"),
        ("watch", "--once"),
        ("watch", "owner", "--once", "--pause"),
        ("watch", "boss", "--once"),
        ("watch", "--once", "--rules", "nowhere:rule"),
    ],
    "after-watch": [
        ("watch", "--once", "-q"),
        ("ps",),
        ("ps", "--over-budget"),
        ("ps", "--stuck"),
        ("ls",),
        ("log", "owner"),
        ("status", "owner"),
        ("log", "spender", "--events", "-n", "4"),
    ],
    "before-watch": [("ps", "--over-budget"), ("ps",)],
    "cost": [
        ("cost",),
        ("cost", "--by", "tool"),
        ("cost", "--by", "model"),
        ("cost", "--by", "agent"),
        ("cost", "--by", "day"),
        ("cost", "--by", "label:repo"),
        ("cost", "-n", "2"),
        ("cost", "-A", "-s", "boss", "-n", "2"),
        ("cost", "-A", "boss"),
        ("cost", "boss"),
        ("cost", "boss", "--by", "session"),
        ("cost", "thrifty", "--budget"),
        ("cost", "thrifty@1..@2"),
        ("cost", "--since", "1m"),
        ("cost", "--by", "euro"),
    ],
    "budget": [
        ("budget", "spender"),
        ("budget", "hanging"),
        ("budget", "owner"),
        ("budget", "spender", "--usd", "5.00", "-m", "it is worth it"),
        ("budget", "spender", "--lift", "--tokens", "50000"),
        ("budget", "spender", "--lift"),
        ("budget", "spender", "--usd", "much"),
    ],
    "flag": [
        ("flag", "ls"),
        ("flag", "add", "owner", "odd", "-m", "who is Bob?", "--on", "e4", "--severity", "error"),
        ("flag", "ls", "owner"),
        ("flag", "clear", "owner", "odd", "-m", "a colleague"),
        ("flag", "ls", "owner"),
        ("flag", "clear", "owner", "odd", "-m", "again"),
    ],
    "json": [
        ("cost", "boss", "--json"),
        ("cost", "--by", "tool", "--ndjson"),
        ("budget", "spender", "--json"),
        ("watch", "spender", "--once", "--json"),
        ("flag", "ls", "spender", "--json"),
        ("ps", "--over-budget", "--ndjson"),
    ],
}


@pytest.mark.parametrize("name", STORIES)
def test_the_same_words_as_before(guard: Cli, name: str) -> None:
    check_story(guard, STORIES[name], f"guard/{name}")
