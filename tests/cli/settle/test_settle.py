"""Settling calls by hand: what people and programs see, and what the agent's script then does."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.cli.look.test_fields import FIELDS
from tests.cli.stories import check_story
from wakelog.session import Session

STORIES: dict[str, list[tuple[str, ...]]] = {
    "pending": [("pending",), ("pending", "billing"), ("pending", "quiet"), ("pending", "nobody")],
    "reconcile": [
        ("reconcile", "billing", "charge-1a2b"),
        ("reconcile", "billing", "charge-1a9c"),
        ("reconcile", "billing", "charge-1"),
        ("reconcile", "billing", "refund"),
        ("reconcile", "billing", "charge-1a2b", "--from-evidence"),
        ("reconcile", "billing", "charge-1a9c", "--from-evidence"),
        ("reconcile", "billing", "charge", "--never-ran", "-m", "the bank has nothing"),
        ("pending", "billing"),
        ("reconcile", "deploy", "release-77", "--succeeded"),
        ("reconcile", "busy", "crawl-5", "--failed"),
        ("log", "billing", "--events", "-n", "4"),
    ],
    "decide": [
        ("approve", "deploy", "release", "-m", "checked the diff"),
        ("approve", "deploy", "release"),
        ("deny", "deploy", "notify", "-m", "not on a Friday"),
        ("abandon", "deploy", "release", "-m", "superseded"),
        ("abandon", "billing", "charge-1a2b"),
        ("pending", "deploy"),
    ],
    "answer": [
        ("answer", "busy", "which", "c"),
        ("answer", "busy", "crawl-5", "yes"),
        ("answer", "busy", "whi", "b", "-m", "it is newer"),
        ("answer", "busy", "which", "a"),
        ("log", "busy", "--events", "-n", "1"),
    ],
    "json": [
        ("pending", "billing", "--json"),
        ("pending", "busy", "--ndjson"),
        ("reconcile", "billing", "charge-1a9c", "--json"),
        ("reconcile", "billing", "charge-1a2b", "--succeeded", "--output", '{"receipt": 7}', "--json"),
        ("reconcile", "billing", "charge-1a2b", "--succeeded", "--json"),
        ("deny", "deploy", "release", "--json"),
    ],
}


@pytest.mark.parametrize("name", STORIES)
def test_the_same_words_as_before(desk: Cli, name: str) -> None:
    check_story(desk, STORIES[name], f"settle/{name}", join=shlex.join)


def test_data_has_exactly_the_documented_fields(desk: Cli) -> None:
    for item in desk("pending", "--json").data:
        assert item.keys() == FIELDS["pending"]
    assert desk("reconcile", "billing", "charge-1a9c", "--json").data.keys() == FIELDS["pending"] | {"evidence"}
    for args in (("reconcile", "billing", "charge-1a2b", "--failed"), ("approve", "deploy", "release")):
        assert desk(*args, "--json").data.keys() == FIELDS["settled"]


def test_every_command_that_is_offered_can_be_pasted(desk: Cli) -> None:
    """Also where a name or an id was chosen to do harm."""
    offered = [item["settle"] for item in desk("pending", "--json").data if item["settle"]]
    commands = [re.search(r"wakelog ([^|]*)", text)[1] for text in offered]  # type: ignore[index]
    assert len(commands) == 7
    for command in commands:
        assert re.fullmatch(r"[\w -]+", command)
        assert desk(*command.split()).code == 0
    left = [(item["action"], item["status"]) for item in desk("pending", "--json").data]
    assert left == [("release-77", "requested")]


def test_what_is_reconciled_is_what_the_script_goes_on_with(desk: Cli, tmp_path: Path) -> None:
    ran: list[int] = []

    def script() -> Any:
        with wakelog.open("demo") as store:
            session: Session[Any] = store.session("agent")

            @session.tool(approval=lambda n: n > 1)
            def pay(n: int) -> dict[str, int]:
                ran.append(n)
                if ran == [1]:
                    raise KeyboardInterrupt
                return {"paid": n}

            with session.turn("pay"):
                return [pay(1), pay(2)]

    with pytest.raises(KeyboardInterrupt):
        script()
    with pytest.raises(wakelog.NotAllowedError) as stopped:
        script()
    assert desk(*shlex.split(stopped.value.hint.partition("wakelog ")[2])[:4]).code == 0
    with pytest.raises(wakelog.NotAllowedError):
        script()
    (waiting,) = desk("pending", "agent", "--json").data
    assert waiting["input"] == {"n": 2}
    assert desk("approve", "agent", "pay").code == 0
    assert script() == [None, {"paid": 2}]
    assert ran == [1, 2]
    assert desk("pending", "agent").code == 1


def test_output_is_json_or_text(desk: Cli) -> None:
    for action, text, value in (("charge-1a2b", "[1, 2]", [1, 2]), ("charge-1a9c", "not json", "not json")):
        seq = desk("reconcile", "billing", action, "--succeeded", "--output", text, "--json").data["seq"]
        with wakelog.open("demo") as store:
            assert store.resume("billing").log.entry(seq).body["output"] == value
