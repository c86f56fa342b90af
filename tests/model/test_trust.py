"""The one order of trust."""

from wakelog.model.trust import TRUSTS, Trust, distrust, least_trusted


def test_the_order_is_best_first_and_distrust_is_the_place_in_it() -> None:
    assert TRUSTS == ("trusted", "unverified", "untrusted")
    assert [distrust(trust) for trust in TRUSTS] == [0, 1, 2]


def test_what_nobody_knows_counts_as_untrusted() -> None:
    assert distrust("of a later version") == distrust("untrusted")


def test_the_least_trusted_keeps_its_source_and_the_first_of_equals_wins() -> None:
    marks: list[tuple[Trust, str]] = [("trusted", "me"), ("unverified", "a"), ("untrusted", "b"), ("untrusted", "c")]
    assert least_trusted(marks) == ("untrusted", "b")
    assert least_trusted([]) == ("trusted", "")
