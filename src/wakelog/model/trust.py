"""Trust: how far content can be relied on, and the one order of it.

Trust only goes down on its own: an event is as trusted as the least trusted thing it depends on. Numbers grow with
distrust, so that the least trusted is a maximum; the index stores them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

Trust = Literal["trusted", "unverified", "untrusted"]

TRUSTS: Final[tuple[Trust, ...]] = get_args(Trust)
"""Best first: the place of each is its distrust."""

_DISTRUST: Final[dict[str, int]] = {trust: rank for rank, trust in enumerate(TRUSTS)}


def distrust(trust: str) -> int:
    """0 for trusted, growing with distrust. What a later version may call something counts as untrusted."""
    return _DISTRUST.get(trust, 2)


def least_trusted(marks: Iterable[tuple[Trust, str]]) -> tuple[Trust, str]:
    """The least trusted of (trust, source), the first of equals; trusted when there is nothing."""
    return max(marks, key=lambda mark: distrust(mark[0]), default=("trusted", ""))
