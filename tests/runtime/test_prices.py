"""Cost of model calls: computed from usage and the price table, checked against limits, unknown without a price."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wakelog
from wakelog.model.events import Cost
from wakelog.session import Session

OWN = """
[[price]]
provider = "openai"
models = ["gpt-x"]
input = "2.00"
output = "8.00"
cache_read = "0.50"
reasoning = "10.00"

[[price]]
provider = "anthropic"
model = "claude-x"
input = 3
output = 15
cache_read = 0.3
cache_write = 3.75
cache_write_1h = 6

[[price]]
provider = "google"
models = ["gemini-x"]
input = "0.1"
output = "0.4"

[[price]]
provider = "local"
models = ["free"]
input = "0"
output = "0"
"""


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session[Any]]:
    monkeypatch.setenv("WAKELOG_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "prices.toml").write_text(OWN)
    with wakelog.open("memory:") as store:
        yield store.session("agent")


def answers(usage: dict[str, Any], name: str = "usage", **more: Any) -> Any:
    def create(messages: Any, model: str) -> dict[str, Any]:
        return {name: usage, **more}

    return create


CASES = {
    # 600 at $2, 400 from the cache at $0.50, 70 at $8, 30 reasoning at $10
    "chat": (
        "gpt-x",
        answers(
            {
                "prompt_tokens": 1000,
                "completion_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 400},
                "completion_tokens_details": {"reasoning_tokens": 30},
            }
        ),
        1200 + 200 + 560 + 300,
    ),
    "responses": (
        "gpt-x",
        answers(
            {
                "input_tokens": 1000,
                "output_tokens": 100,
                "input_tokens_details": {"cached_tokens": 400},
                "output_tokens_details": {"reasoning_tokens": 30},
            }
        ),
        1200 + 200 + 560 + 300,
    ),
    # 600 at $3, 300 read at $0.30, 60 written at $3.75, 40 for an hour at $6, 100 at $15
    "messages": (
        "claude-x",
        answers(
            {
                "input_tokens": 600,
                "cache_read_input_tokens": 300,
                "cache_creation_input_tokens": 100,
                "cache_creation": {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 40},
                "output_tokens": 100,
            }
        ),
        1800 + 90 + 225 + 240 + 1500,
    ),
    # 1000 at $0.10 (its cache is not told apart), 100 and 30 at $0.40
    "google": (
        "gemini-x",
        answers(
            {
                "promptTokenCount": 1000,
                "candidatesTokenCount": 100,
                "cachedContentTokenCount": 400,
                "thoughtsTokenCount": 30,
            },
            "usageMetadata",
        ),
        100 + 52,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_call_costs_what_its_usage_comes_to(session: Session[Any], name: str) -> None:
    model, create, usd_micros = CASES[name]
    session.model(create, [], model=model)
    (outcome,) = session.events(kind="action.succeeded")
    assert outcome.body["cost"]["usd_micros"] == usd_micros
    assert outcome.body["cost"]["price"].endswith(model)
    assert session.state().budget.spent["usd_micros"] == usd_micros


def test_the_sum_is_rounded_up_to_a_millionth(session: Session[Any]) -> None:
    session.model(answers({"prompt_tokens": 1, "completion_tokens": 0}), [], model="gemini-x")
    assert session.state().budget.spent["usd_micros"] == 1


def test_without_a_price_the_money_stays_unknown_and_the_tokens_are_kept(session: Session[Any]) -> None:
    session.model(answers({"input_tokens": 5, "output_tokens": 1}), [], model="nobody-knows")
    (outcome,) = session.events(kind="action.succeeded")
    cost = outcome.body["cost"]
    assert (cost["tokens_in"], cost.get("usd_micros"), cost.get("price")) == (5, None, None)


def test_a_model_that_costs_nothing_is_known_to(session: Session[Any]) -> None:
    session.budget.set(usd="1.00")
    session.model(answers({"input_tokens": 5, "output_tokens": 1}), [], model="free")
    (outcome,) = session.events(kind="action.succeeded")
    assert outcome.body["cost"]["price"] == "local/free"


def test_a_limit_in_money_stops_model_calls(session: Session[Any]) -> None:
    session.budget.set(usd="0.002")
    _, create, _ = CASES["chat"]
    session.model(create, [], model="gpt-x")
    with pytest.raises(wakelog.NotAllowedError) as caught:
        session.model(create, [], model="gpt-x")
    assert caught.value.kind == "budget-reached"


@pytest.mark.parametrize("kind", ["session", "scope"])
def test_a_limit_in_money_without_a_price_refuses_the_call_before_it_starts(
    session: Session[Any], kind: str, tmp_path: Path
) -> None:
    asked = []

    def create(messages: Any, model: str) -> None:
        asked.append(model)

    def call() -> None:
        session.model(create, [], model="nobody-knows")

    with pytest.raises(wakelog.NotAllowedError, match="no price is known for the model 'nobody-knows'") as caught:
        if kind == "session":
            session.budget.set(usd="1.00")
            call()
        else:
            with session.budget.limit(usd="1.00"):
                call()
    assert caught.value.kind == "price-unknown"
    assert str(tmp_path / "prices.toml") in caught.value.hint
    assert 'models = ["nobody-knows"]' in caught.value.hint
    assert not asked
    assert not list(session.events(kind="action"))


def test_a_limit_in_tokens_needs_no_price(session: Session[Any]) -> None:
    session.budget.set(tokens=100)
    session.model(answers({"input_tokens": 5, "output_tokens": 1}), [], model="nobody-knows")


def test_a_caller_that_says_what_it_costs_needs_no_price(session: Session[Any]) -> None:
    session.budget.set(usd="1.00")
    policy = wakelog.Policy(effect="model", cost=lambda answer: Cost(usd_micros=7))
    session.model(answers({}), [], model="nobody-knows", policy=policy)
    assert session.state().budget.spent["usd_micros"] == 7


def test_a_turn_that_was_stopped_for_want_of_a_price_goes_on_when_there_is_one(session: Session[Any]) -> None:
    session.budget.set(usd="1.00")
    for model, ends in (("nobody-knows", "interrupted"), ("gpt-x", "completed")):
        try:
            with session.turn("go"):
                session.model(CASES["chat"][1], [], model=model)
        except wakelog.NotAllowedError:
            assert ends == "interrupted"
        assert session.state().turn.status == ends
    assert session.state().turn.number == 1
