"""Times as programs write them."""

from typing import Any

from tests.every import every
from wakelog.importers.source.timestamps import microseconds

NEW_YEAR = 1_767_261_602_000_000


@every(
    "case",
    [
        ("2026-01-01T10:00:02.000Z", NEW_YEAR),
        ("2026-01-01T12:00:02+02:00", NEW_YEAR),
        ("2026-01-01 10:00:02", NEW_YEAR),
        ("1767261602", NEW_YEAR),
        ("1767261602.5", NEW_YEAR + 500_000),
        ("1767261602000", NEW_YEAR),
        (1767261602000, NEW_YEAR),
        ("20260101", NEW_YEAR - 10 * 3600 * 1_000_000 - 2_000_000),
        ("0001-01-01T00:00:00Z", 0),
        ("9999-12-31T23:59:59Z", 0),
        ("9" * 400, 0),
        ("yesterday", 0),
        (1e300, 0),
        (-5, 0),
        (None, 0),
    ],
)
def test_a_time_is_read_in_any_unit_and_one_that_cannot_be_is_none(case: tuple[Any, int]) -> None:
    given, at = case
    assert microseconds(given) == at
