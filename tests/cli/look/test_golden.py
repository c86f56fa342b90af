"""What people and programs see, word for word."""

import re

import pytest

from tests.cli.conftest import Cli
from tests.cli.stories import check_story, mask_hashes

HUMAN: dict[str, list[tuple[str, ...]]] = {
    "status": [("status",), ("status", "deploy-bot"), ("status", "--at", "fix-auth@2"), ("status", "try-redis")],
    "ls": [
        ("ls",),
        ("ls", "--live", "-n", "2"),
        ("ls", "--failed"),
        ("ls", "--label", "team=ops"),
        ("ls", "--name", "x"),
    ],
    "log": [
        ("log", "fix-auth"),
        ("log", "fix-auth", "-n", "2"),
        ("log", "fix-auth", "--reverse", "-n", "3"),
        ("log", "fix-auth@2..@4", "--stat"),
        ("log", "fix-auth", "--oneline"),
        ("log", "fix-auth", "--graph"),
        ("log", "try-redis", "--graph"),
        ("log", "fix-auth@4..@4", "-p"),
        ("log", "hello"),
        ("log", "fix-auth", "--events", "-n", "12"),
        ("log", "fix-auth", "--tool", "run_sql"),
        ("log", "fix-auth", "--kind", "decision", "--kind", "file.changed"),
        ("log", "--at", "fix-auth@2"),
    ],
    "show": [
        ("show", "fix-auth@4"),
        ("show", "fix-auth@1", "--with-output", "--max-bytes", "120"),
        ("show", "fix-auth@4", "e52", "--max-bytes", "200"),
        ("show", "-s", "fix-auth", "e57"),
        ("show", "-s", "fix-auth", "last-error"),
        ("show", "hello"),
    ],
    "state": [
        ("state", "-s", "fix-auth"),
        ("state", "/data", "--at", "fix-auth@2"),
        ("state", "/facts", "-s", "fix-auth"),
    ],
    "diff": [
        ("diff", "fix-auth"),
        ("diff", "fix-auth@4"),
        ("diff", "fix-auth@4", "--stat"),
        ("diff", "fix-auth@2..@4", "/data"),
        ("diff", "fix-auth@3", "try-redis@4"),
        ("diff", "fix-auth@4", "--patch"),
        ("diff", "-s", "fix-auth", "e57"),
        ("diff", "fix-auth@3", "fix-auth@3"),
    ],
    "blame": [("blame", "/data", "-s", "fix-auth"), ("blame", "/facts", "--at", "fix-auth@1")],
    "context": [
        ("context", "fix-auth"),
        ("context", "fix-auth@4", "--diff"),
        ("context", "fix-auth@2", "--budget", "250"),
        ("context", "fix-auth@2", "--budget", "20"),
        ("context", "-s", "fix-auth", "e12"),
        ("context", "hello", "--shape", "anthropic"),
        ("context", "deploy-bot", "--shape", "openai"),
    ],
    "brief": [
        ("brief", "fix-auth"),
        ("brief", "fix-auth@2"),
        ("brief", "deploy-bot", "--budget", "160"),
        ("brief", "hello", "--budget", "10"),
    ],
    "tail": [("tail",), ("tail", "fix-auth", "--errors"), ("tail", "--all", "-n", "3"), ("tail", "-n", "0")],
    "ps": [("ps",), ("ps", "--stuck"), ("ps", "--waiting")],
}
MACHINE: dict[str, list[tuple[str, ...]]] = {
    "status": [("status", "deploy-bot", "--json")],
    "ls": [("ls", "--json", "--name", "*a*")],
    "log": [("log", "fix-auth@4..@5", "--json"), ("log", "hello", "--ndjson")],
    "show": [("show", "-s", "fix-auth", "e52", "--json", "--max-bytes", "100"), ("show", "hello", "--ndjson")],
    "state": [("state", "/data", "-s", "fix-auth", "--json")],
    "diff": [("diff", "fix-auth@3", "--json")],
    "blame": [("blame", "/data", "-s", "fix-auth", "--json")],
    "context": [("context", "fix-auth@2", "--json", "--diff"), ("context", "hello", "--ndjson")],
    "brief": [("brief", "deploy-bot", "--json")],
    "tail": [("tail", "fix-auth", "-n", "2", "--ndjson")],
    "ps": [("ps", "--stuck", "--json")],
    "query": [("query", "select name, turns from sessions order by name limit 3", "--json")],
}


def _masked(text: str) -> str:
    return mask_hashes(re.sub(r"c:[0-9a-f]{8,}", lambda m: "c:" + "f" * (len(m[0]) - 2), text))


@pytest.mark.parametrize("name", HUMAN)
def test_people_see_what_they_saw_before(look: Cli, name: str) -> None:
    check_story(look, HUMAN[name], f"look/{name}", _masked)


@pytest.mark.parametrize("name", MACHINE)
def test_programs_read_what_they_read_before(look: Cli, name: str) -> None:
    check_story(look, MACHINE[name], f"look/{name}.json", _masked)
