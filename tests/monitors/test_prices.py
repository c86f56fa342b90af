"""The price table: dated, editable, exact, and honest about what it does not know."""

import datetime
from pathlib import Path

import pytest

from wakelog.errors import InvalidInputError
from wakelog.model.usage import Usage
from wakelog.monitors.prices import built_in, load, parse


def at(day: str) -> int:
    return int(datetime.datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp() * 1_000_000)


TWO = """
[[price]]
provider = "p"
models = ["m"]
until = "2026-05-01"
input = "1"
output = "2"

[[price]]
provider = "p"
models = ["m"]
from = 2026-05-01
input = "3"
output = "4"
"""


def test_a_price_holds_from_its_day_on_until_before_the_next() -> None:
    table = parse(TWO, "here")
    inputs = []
    for day in ("2020-01-01", "2026-04-30", "2026-05-01", "2030-01-01"):
        price = table.find("m", "p", at(day))
        assert price is not None
        inputs.append(int(price.amount("input")))
    assert inputs == [1, 1, 3, 3]


def test_sums_are_exact_where_floats_are_not() -> None:
    table = parse('[[price]]\nprovider = "p"\nmodels = ["m"]\ninput = 0.1\noutput = 0.2\n', "here")
    price = table.find("m", "p", at("2026-01-01"))
    assert price is not None
    assert price.usd_micros(Usage(input=10)) == 1
    assert price.usd_micros(Usage(input=3_000_000_000, output=3_000_000_000)) == 900_000_000


def test_a_model_of_two_providers_needs_the_provider() -> None:
    table = parse(
        "\n".join(
            f'[[price]]\nprovider = "{p}"\nmodels = ["m"]\ninput = "{n}"\noutput = "1"' for n, p in enumerate("ab")
        ),
        "here",
    )
    assert table.find("m", "", at("2026-01-01")) is None
    found = table.find("m", "b", at("2026-01-01"))
    assert found is not None
    assert found.provider == "b"
    assert table.find("m", "c", at("2026-01-01")) is None


def test_what_a_persons_file_says_of_a_model_replaces_what_is_shipped(tmp_path: Path) -> None:
    shipped = built_in().rows[0]
    file = tmp_path / "prices.toml"
    file.write_text(
        f'[[price]]\nprovider = "{shipped.provider}"\nmodels = ["{shipped.model}"]\ninput = "99"\noutput = "99"\n'
    )
    table = load(file)
    (mine,) = [p for p in table.rows if p.model == shipped.model]
    assert (mine.origin, int(mine.amount("input"))) == (str(file), 99)
    assert len(table.rows) == len(built_in().rows)
    assert load(tmp_path / "absent.toml").rows == built_in().rows


def test_the_shipped_table_says_of_when_it_is_and_where_from() -> None:
    table = built_in()
    assert datetime.date.fromisoformat(table.as_of).isoformat() == table.as_of
    assert "not compared with an invoice" in table.source
    assert table.rows
    assert {row.source.partition(": ")[0] for row in table.rows} == {"list", "second-hand"}
    assert all(row.source.partition(": ")[2] for row in table.rows), "each row says where it was looked up"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[price]", "not TOML"),
        ('[[price]]\nprovider = "p"\nmodels = ["m"]\ninput = "1"\n', "input and output"),
        ('[[price]]\nprovider = "p"\nmodels = ["m"]\ninput = "cheap"\noutput = "1"\n', "'cheap' is not an amount"),
        ('[[price]]\nprovider = "p"\nmodels = ["m"]\ninput = "-1"\noutput = "1"\n', "not an amount"),
        ('[[price]]\nmodels = ["m"]\ninput = "1"\noutput = "1"\n', "no provider"),
        ('[[price]]\nprovider = "p"\nmodels = ["m"]\ninputs = "1"\noutput = "1"\n', "inputs is not known"),
        ('[[price]]\nprovider = "p"\nmodels = ["m"]\nfrom = "May"\ninput = "1"\noutput = "1"\n', "not a day"),
        (TWO.replace('until = "2026-05-01"\n', ""), "two prices at one time"),
    ],
)
def test_a_table_that_is_wrong_says_where_and_how(text: str, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says) as caught:
        parse(text, "here")
    assert caught.value.kind == "bad-prices"
