"""`wakelog replay`: what people and programs see, and the exit codes."""

import functools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.cli.stories import check_story
from wakelog.replay.plan import Plan

NOW_US = 1_800_000_000_000_000

SHOP = """
import wakelog

@wakelog.tool(effect="read")
def lookup(order_id: str) -> dict:
    return {"id": order_id, "email": f"c{order_id}@example.org", "cents": 1999}

@wakelog.tool(effect="write")
def refund(order: int, cents: int) -> str:
    return f"Refund RF-{order}88 booked"

@wakelog.tool
def mail(to: str, body: str) -> str:
    return f"sent to {to}"

def model(messages, model="opus", temperature=0):
    return {"text": "refund it"}

def run(session, text, *, temperature=0, more=""):
    print("the agent prints this")
    with session.turn(user=text) as turn:
        number = text.split("order ")[1].split(",")[0]
        order = lookup(number)
        turn.model(model, [text, order], temperature=temperature)
        refund(int(number), order["cents"])
        turn.data["last"] = number + more
        mail(order["email"], f"Refund RF-{number}88 is booked" + more)

def warmer(session, text):
    run(session, text, temperature=0.7)

def wordy(session, text):
    run(session, text, more="!")

def swapped(session, text):
    with session.turn(user=text):
        number = text.split("order ")[1].split(",")[0]
        refund(int(number), 1999)
        lookup(number)

def broken(session, text):
    with session.turn(user=text):
        raise ValueError("\\x1b[31mnot today")

def all_of_it(session):
    run(session, "please refund order 4711, thanks")
    run(session, "and order 4800, quickly")
"""


@pytest.fixture
def shop(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """The command line in the folder of a shop whose agent was recorded in two turns."""
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", "store")
    monkeypatch.syspath_prepend(str(tmp_path))
    import shop  # type: ignore[import-not-found]

    with wakelog.open("store", clock=lambda: NOW_US) as store:
        shop.all_of_it(store.session("refunds", data={"last": ""}))
    yield functools.partial(cli, now=NOW_US)
    del sys.modules["shop"]


# Each list is one story in a fresh store: later commands see what earlier ones did.
STORIES: dict[str, list[tuple[str, ...]]] = {
    "recording": [
        ("replay", "refunds@1"),
        ("replay", "refunds", "--dry-run", "--agent", "shop:run", "--mode", "fill"),
        ("replay", "refunds", "--from", "@2"),
        ("replay", "refunds@9"),
        ("replay", "refunds@1", "--from", "other@2"),
    ],
    "strict": [
        ("replay", "refunds", "--agent", "shop:run"),
        ("replay", "refunds", "--agent", "shop:all_of_it", "--record"),
        ("replay", "refunds", "--agent", "shop:warmer"),
        ("replay", "refunds@1", "--agent", "shop:swapped"),
        ("replay", "refunds@1", "--agent", "shop:wordy"),
        ("replay", "refunds@1", "--agent", "shop:broken"),
        ("replay", "refunds@1", "--agent", "shop:nothing"),
        ("replay", "refunds@1", "--agent", "shop"),
        ("replay", "refunds@1", "--agent", "shop:run", "--set", "input=x"),
    ],
    "fill": [
        ("replay", "refunds@1", "--mode", "fill", "--agent", "shop:warmer"),
        ("replay", "refunds@1", "--mode", "fill", "--agent", "shop:wordy"),
        ("replay", "refunds@1", "--mode", "fill", "--agent", "shop:wordy", "--effects", "allow"),
        ("replay", "refunds@1", "--mode", "fill", "--agent", "shop:run", "--set", "other=x"),
    ],
    "live": [
        ("replay", "refunds@2", "--mode", "live", "--agent", "shop:run"),
        ("replay", "refunds@2", "--mode", "live", "--agent", "shop:run", "--effects", "allow"),
        (
            *("replay", "refunds", "--from", "@2", "--mode", "live", "--agent", "shop:run", "--effects", "allow"),
            *("--set", "input=and order 4900, quickly", "--set", '/data/last="x"'),
        ),
    ],
    "plan": [
        ("replay", "refunds@1", "--plan"),
        ("replay", "refunds@1", "--plan", "--set", "order_id=9999"),
        ("replay", "refunds@1", "--plan", "--set", "nothing=9999"),
    ],
    "json": [
        ("replay", "refunds@1", "--json"),
        ("replay", "refunds@1", "--agent", "shop:warmer", "--json"),
        ("replay", "refunds@1", "--agent", "shop:run", "--ndjson"),
        ("replay", "refunds@1", "--plan", "--json"),
    ],
}


def _masked(text: str) -> str:
    text = re.sub(r"s_[0-9A-Z]{26}", "s_" + "#" * 26, text)
    return re.sub(r"(?<=#{26})\.[0-9A-Z]{8}\b", ".########", text)


@pytest.mark.parametrize("name", STORIES)
def test_people_and_programs_see_what_they_saw_before(shop: Cli, name: str) -> None:
    check_story(shop, STORIES[name], f"replay/{name}", _masked)


def test_what_the_agent_prints_is_not_the_answer(shop: Cli) -> None:
    done = shop("replay", "refunds", "--agent", "shop:run", "--json")
    assert done.data["ok"] is True
    assert "the agent prints this" in done.err


def test_a_strict_replay_leaves_nothing_and_the_others_a_fork(shop: Cli) -> None:
    def sessions() -> int:
        return len(shop("ls", "--json").data)

    assert sessions() == 1
    shop("replay", "refunds", "--agent", "shop:warmer")
    shop("replay", "refunds", "--dry-run", "--mode", "live")
    assert sessions() == 1
    fork = shop("replay", "refunds", "--mode", "fill", "--agent", "shop:warmer", "--json").data["fork"]
    assert sessions() == 2
    assert shop("verify", fork).code == 0


def test_an_input_from_a_file(shop: Cli, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("or order 4900, please")
    args = ("replay", "refunds@2", "--mode", "fill", "--effects", "allow", "--agent", "shop:run", "--json")
    rows = shop(*args, "--set", "input=@new.txt").data["steps"]
    assert rows[0]["made"] == "'or order 4900, please'"
    assert shop(*args, "--set", "input=@none.txt").code == 2
    assert shop(*args, "--set", "input").code == 2


def test_a_plan_written_by_the_command_line_runs(shop: Cli) -> None:
    plan = Plan.from_json(shop("replay", "refunds@1", "--plan", "--json").out)
    shown = json.loads(plan.to_json())
    assert shown["steps"][0]["input"]["order_id"]["$use"] == "order_id"
    with wakelog.open("store") as store:
        import shop as code

        session = store.session("today")
        done = plan.run(session, {"order_id": "5000"}, tools=[code.lookup, code.refund, code.mail])
    assert done.ok
    assert done.results[3] == "sent to c5000@example.org"
