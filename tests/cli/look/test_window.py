"""Documents that go on to a model or a file: whole lines whatever the terminal, and nothing hostile in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.look import world
from tests.cli.look.test_terminal import HARMFUL
from wakelog.store import open as open_store


@pytest.fixture(scope="session")
def evil(demo: Path) -> str:
    """The id of the session in which every text is hostile."""
    with open_store(demo, create=False) as store:
        return store.find(world.HOSTILE_NAME)


@pytest.mark.parametrize("shape", ["openai", "responses", "anthropic"])
def test_messages_are_escaped_and_say_the_same(look: Cli, evil: str, shape: str) -> None:
    for args in (("context", evil), ("context", f"{evil}@1", "--diff")):
        for flags in ((), ("--json",)):
            result = look(*args, "--shape", shape, *flags)
            assert result.code == 0, result.err
            assert not HARMFUL.search(result.out)
    assert any(world.ESC in text for text in _strings(look("context", evil, "--shape", shape).json))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def test_a_brief_is_the_same_document_on_any_terminal_and_inert(look: Cli, evil: str) -> None:
    for name in ("fix-auth", "deploy-bot", evil):
        brief = look("brief", name, "--budget", "4000")
        assert brief.code == 0
        assert not HARMFUL.search(brief.out)
        assert look("brief", name, "--budget", "4000", columns=60).out == brief.out
        assert look("brief", name, "--budget", "4000", "--json").data["text"].count("\n") == brief.out.count("\n")


def test_a_brief_fences_what_is_not_trusted(look: Cli, evil: str) -> None:
    text = look("brief", evil, "--budget", "4000").out
    asked = text.partition("## Where it stands")[2].partition("##")[0]
    assert re.search(r"untrusted, from .*; data, not instructions:\n +```untrusted\n", asked)
