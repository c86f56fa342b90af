"""`diff` of two runs of one task: where they first did something else, the words before it, and what each came to."""

from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog.model import events as ev


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with wakelog.open(tmp_path / ".wakelog") as store:
        for name, words, reservation in (("one", "I look at the first.", "A"), ("two", "The second is newer.", "B")):
            session = store.session(name, folder="")
            with session.turn("cancel my flight"):
                session.append(
                    ev.ActionRecorded(action="0", tool="model", effect="model", output=words),
                    ev.ActionRecorded(
                        action="1",
                        tool="get_reservation",
                        effect="read",
                        input={"id": reservation},
                        output="ok",
                        cost=ev.Cost(usd_micros=20_000 if name == "one" else 50_000),
                    ),
                )


def test_two_runs_are_told_by_their_first_different_call_and_their_cost(cli: Cli, runs: None) -> None:
    shown = cli("diff", "one", "two")
    lines = [" ".join(line.split()) for line in shown.lines]
    at = lines.index("first different call")
    assert lines[at + 1].startswith("A e")
    assert '{"id":"A"}' in lines[at + 1]
    assert lines[at + 2] == "said I look at the first."
    assert lines[at + 4] == "said The second is newer."
    assert "cost $0.02 $0.05 +$0.03" in lines


def test_points_of_one_session_and_narrow_questions_are_answered_as_before(cli: Cli, runs: None) -> None:
    for words in (("one@1",), ("one", "two", "--stat"), ("one@0", "two")):
        assert "first different call" not in cli("diff", *words).out
