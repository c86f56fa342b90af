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


def test_programs_get_the_same_first_different_call(cli: Cli, runs: None) -> None:
    found = cli("diff", "one", "two", "--json").data["first_call"]
    a, b = found["a"], found["b"]
    assert (a["tool"], a["said"], a["by"]) == ("get_reservation", "I look at the first.", "model")
    assert (b["tool"], b["said"], b["turn"]) == ("get_reservation", "The second is newer.", 1)
    assert f"A e{a['seq']} " in " ".join(cli("diff", "one", "two").out.split())
    with wakelog.open(".wakelog") as store:
        [one, two] = [store.resume(name) for name in ("one", "two")]
        part = one.diff(other=two).first_call
        assert part is not None
        assert (part.a.seq, part.b.seq) == (a["seq"], b["seq"])
        assert one.diff("@0", other=two).first_call is None
        assert one.diff(other=one.fork("@")).first_call is None
    assert cli("diff", "one@1", "--json").data["first_call"] is None


def test_points_of_one_session_and_narrow_questions_are_answered_as_before(cli: Cli, runs: None) -> None:
    for words in (("one@1",), ("one", "two", "--stat"), ("one@0", "two")):
        assert "first different call" not in cli("diff", *words).out


def test_a_sub_agent_is_told_by_its_name_and_task(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with wakelog.open(tmp_path / ".wakelog") as store:
        child = store.session("fix-tests", folder="")
        session = store.session("fix", folder="")
        with session.turn("fix it"):
            session.append(
                ev.SubagentSpawned(session=child.id, task="fix the tests"),
                ev.SubagentReturned(session=child.id, outcome="succeeded"),
            )
    shown = cli("show", "fix@1").out
    assert "started fix-tests: fix the tests" in shown
    assert "returned fix-tests: succeeded" in shown
    assert "- fix-tests succeeded: fix the tests" in cli("brief", "fix").out
    changed = cli("log", "fix", "-p").out
    assert f"sub-agent {child.id[:12]}  succeeded: fix the tests" in changed
    assert '{"task"' not in changed
