"""Trust: how far content can be trusted, and the order of the levels.

Trust only goes down by itself: an event is as trusted as the least trusted thing it depends on. Numbers grow with
distrust, so that the least trusted is the maximum; the index stores them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

Trust = Literal["trusted", "unverified", "untrusted"]

TRUSTS: Final[tuple[Trust, ...]] = get_args(Trust)
"""Most trusted first: the index of each is its distrust."""

FAR_REACHING: Final = frozenset({"history.rewound", "history.adopted", "trust.endorsed", "step.invalidated"})
"""Kinds of events that change what distant events count for."""

_DISTRUST: Final[dict[str, int]] = {trust: rank for rank, trust in enumerate(TRUSTS)}


def distrust(trust: str) -> int:
    """Returns 0 for trusted, more for less trusted. An unknown level, of a later version, counts as untrusted."""
    return _DISTRUST.get(trust, 2)


def least_trusted(marks: Iterable[tuple[Trust, str]]) -> tuple[Trust, str]:
    """Returns the least trusted of (trust, source), the first of equals; trusted if there are none."""
    return max(marks, key=lambda mark: distrust(mark[0]), default=("trusted", ""))
