"""`wakelog why`: the session in front, by -s, or in the thing itself, asks the same question."""

import pytest

from tests.cli.conftest import Cli


@pytest.mark.parametrize("what", ["/facts/spf", "e14", "@2"])
def test_session_in_front_asks_the_same_as_dash_s(move: Cli, what: str) -> None:
    in_front = move("why", "injection", what, "--json")
    assert in_front.code == 0
    assert in_front.data == move("why", "-s", "injection", what, "--json").data


def test_line_of_a_file_takes_the_session_in_front(move: Cli) -> None:
    asked = ("src/auth/session.py:4", "--json")
    assert move("why", "fix-bug", *asked).data == move("why", "-s", "fix-bug", *asked).data


def test_point_in_front_is_from_where_it_is_looked_at(move: Cli) -> None:
    early = move("why", "fix-bug@3", "/data", "--json")
    assert early.data == move("why", "-s", "fix-bug", "/data", "--at", "@3", "--json").data
    assert early.data != move("why", "fix-bug", "/data", "--json").data


@pytest.mark.parametrize(
    "words", [("injection", "fix-bug@e3"), ("fix-bug@1..@2", "/data"), ("fix-bug@3", "/data", "--at", "@2")]
)
def test_more_than_one_session_or_point_is_refused(move: Cli, words: tuple[str, ...]) -> None:
    assert move("why", *words).code == 2


def test_third_word_is_refused(move: Cli) -> None:
    refused = move("why", "fix-bug", "/data", "/facts")
    assert refused.code == 2
    assert "one thing" in refused.err
