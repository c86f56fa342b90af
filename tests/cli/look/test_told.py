"""What people see of imported times and of models' answers."""

from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog.model import events as ev

LONG_AGO = 1_600_000_000_000_000
ANSWER = {
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "text", "text": "I will look"},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"where": "north"}},
    ],
    "usage": {"input_tokens": 5, "output_tokens": 1},
}


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("WAKELOG_CONFIG", str(tmp_path / "config.toml"))
    path = str(tmp_path / "store")
    with wakelog.open(path) as store:
        session = store.session("told")
        session.append(
            ev.TurnStarted(input="hi", occurred_at=LONG_AGO),
            ev.FactRecorded(key="colour", value="red", occurred_at=LONG_AGO + 1_000_000),
            ev.TurnEnded(occurred_at=LONG_AGO + 2_000_000),
        )
        with session.turn("now"):
            session.model(lambda messages, model: ANSWER, [], model="nobody-knows")
    return path


def run(cli: Cli, store: str, *words: str) -> Any:
    return cli(*words, "--store", store, "--utc")


def test_the_time_shown_is_when_it_happened_and_is_marked(cli: Cli, told: str) -> None:
    listed = run(cli, told, "log", "told", "--events").lines
    (fact,) = [line for line in listed if "colour" in line]
    assert "12:26:41*" in fact
    (now,) = [line for line in listed if "now" in line and "turn" in line]
    assert "*" not in now
    spine = run(cli, told, "log", "told").out
    assert "09-13 12:26*" in spine
    assert "2020-09-13 12:26:41 UTC (stored 20" in run(cli, told, "show", "-s", "told", "e3").out
    assert "12:26*" in run(cli, told, "blame", "-s", "told", "/facts").out


def test_json_has_both_times(cli: Cli, told: str) -> None:
    shown = run(cli, told, "show", "-s", "told", "e3", "--json").data
    event = shown["events"][0] if "events" in shown else shown
    assert event["timestamp"] == "2020-09-13T12:26:41.000000Z"
    assert event["stored_at"] > event["timestamp"]
    (key,) = run(cli, told, "blame", "-s", "told", "/facts", "--json").data["keys"]
    assert key["writer"]["timestamp"] < key["writer"]["stored_at"]
    turn = run(cli, told, "log", "told", "--json").data["turns"][-1]
    assert turn["started_at"] < turn["stored_at"]


def test_a_models_answer_is_shown_by_what_it_says_and_asks_for(cli: Cli, told: str) -> None:
    says = 'I will look (asks for look: {"where":"north"})'
    assert says in run(cli, told, "log", "told", "--events").out
    for words in (("show", "told@2", "--with-output"), ("search", "look"), ("show", "-s", "told", "e9")):
        out = run(cli, told, *words).out
        assert "will" in out
        assert "tool_use" not in out, words


def test_money_without_a_price_is_shown_as_unknown(cli: Cli, told: str) -> None:
    out = run(cli, told, "cost", "told").out
    assert "unknown" in out
    assert "6 tokens have no known price" in out
    assert run(cli, told, "cost", "told", "--json").data["total"]["unpriced_tokens"] == 6


def test_the_prices_are_shown_with_their_date_and_where_to_add_one(cli: Cli, told: str, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(
        '[[price]]\nprovider = "mine"\nmodels = ["m-1"]\ninput = "0.10"\noutput = "2"\nfrom = "2026-01-01"\n'
    )
    out = run(cli, told, "cost", "--prices").out
    assert "built-in prices are as of 20" in out
    assert str(tmp_path / "prices.toml") in out.replace("\n", "")
    data = run(cli, told, "cost", "--prices", "--json").data
    (mine,) = [price for price in data["prices"] if price["provider"] == "mine"]
    assert (mine["input"], mine["from"], mine["cache_read"]) == ("0.10", "2026-01-01", None)


def test_paths_are_cut_in_the_middle_so_that_two_files_look_like_two(cli: Cli, tmp_path: Path) -> None:
    folder = "src/" + "a/long/way/down/" * 8
    with wakelog.open(tmp_path / "store") as store:
        session = store.session("deep")
        with session.turn("edit both"):
            session.append(*(ev.FileChanged(path=f"{folder}handler_{name}.py", after="x") for name in ("one", "two")))
    shown = run(cli, str(tmp_path / "store"), "show", "deep@1").out
    assert "handler_one.py" in shown
    assert "handler_two.py" in shown
