"""The JSON of these commands is what docs/reference/json.md says it is, field for field."""

import pytest

from tests.cli.conftest import Cli
from tests.cli.look.test_fields import FIELDS


@pytest.mark.parametrize(
    ("section", "args", "more"),
    [
        ("watch", ("watch", "--once"), {"is_new"}),
        ("flag", ("flag", "ls"), set()),
        ("costs", ("cost",), set()),
        ("costs", ("cost", "spender", "--budget"), {"budget", "percent", "reached"}),
        ("budget", ("budget", "spender"), set()),
        ("budget", ("budget", "spender", "--usd", "5"), set()),
    ],
)
def test_data_has_exactly_the_documented_fields(
    guard: Cli, section: str, args: tuple[str, ...], more: set[str]
) -> None:
    data = guard(*args, "--json").data
    wanted = FIELDS["flag" if section == "watch" else section] | more
    for item in data if isinstance(data, list) else [data]:
        assert item.keys() == wanted


def test_a_row_of_costs_is_a_cost_with_a_name(guard: Cli) -> None:
    for args in (("cost",), ("cost", "boss", "--by", "tool")):
        for row in guard(*args, "--json").data["rows"]:
            assert row.keys() == FIELDS["cost"] | {"key", "name", "unpriced_tokens"}
