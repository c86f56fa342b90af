"""Properties that are computed when they are first used.

`functools.cached_property` does the same, but before Python 3.12 it holds a lock meanwhile. A process that is forked at
that moment would wait for the lock for ever. Here two threads may both compute a value, which does no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LateValue(Generic[T]):
    """A decorator: the method becomes a property that is computed at its first use, and kept."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__

    def __get__(self, instance: object, owner: type) -> T:
        value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value
