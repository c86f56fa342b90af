"""The checker of histories finds what it is there to find."""

import pytest

from tests.chaos.history import Operation, check, longest_stall

LOG = {"s": [(2, "a"), (3, "b")]}


def append(key: str, seq: int, began: float, ended: float, client: str = "c") -> Operation:
    return Operation(client, "s", "append", began, ended, seq, key)


def head(seq: int, began: float, ended: float, client: str = "c") -> Operation:
    return Operation(client, "s", "head", began, ended, seq)


A, B = append("a", 2, 1, 2), append("b", 3, 3, 4)


def test_a_history_that_one_order_explains_is_good() -> None:
    verdict = check([A, head(2, 2.5, 2.6), B, head(3, 5, 6), head(3, 3.5, 3.9, "d"), append("c", 0, 7, 0)], LOG)
    assert verdict.faults == []
    assert (verdict.appends, verdict.unknown, verdict.heads, verdict.stale) == (2, 1, 3, 0)
    assert longest_stall([A, B], 1, 5) == 2
    assert longest_stall([A, B], 1, 9) == 5


@pytest.mark.parametrize(
    ("history", "log", "word"),
    [
        ([A, B, append("c", 4, 5, 6)], LOG, "acknowledged at 4"),
        ([A, B], {"s": [(2, "a"), (3, "b"), (4, "a")]}, "stored 2 times"),
        ([A, B], {"s": [(3, "b"), (2, "a")]}, "out of order"),
        ([A], LOG, "nobody appended b"),
        ([append("a", 2, 5, 6), append("b", 3, 1, 2)], LOG, "had been told before it began"),
        ([A, B, head(2, 5, 6)], LOG, "saw 3, and then the head 2"),
        ([A, B, head(3, 1.5, 1.6)], LOG, "before anybody appended it"),
    ],
)
def test_what_is_wrong_is_found(history: list[Operation], log: dict[str, list[tuple[int, str]]], word: str) -> None:
    assert any(word in fault for fault in check(history, log).faults)


def test_an_old_head_that_somebody_else_is_told_is_counted_apart() -> None:
    verdict = check([A, B, head(2, 5, 6, "d")], LOG)
    assert (verdict.faults, verdict.stale) == ([], 1)


def test_an_append_without_an_answer_counts_if_the_log_has_it() -> None:
    assert check([A, append("b", 0, 3, 0)], LOG).faults == []
    assert check([A, append("b", 0, 3, 0)], {"s": [(2, "a")]}).faults == []
