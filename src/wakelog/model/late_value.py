"""Properties that are computed when they are first used.

`functools.cached_property` does the same, but before Python 3.12 it holds a lock meanwhile. A process that is forked at
that moment would never get the lock. Since 3.12 two threads may get two objects. Here two threads may both compute a
value; the first one to be ready is kept and given to both, and the other one is closed if it can be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class LateValue(Generic[T]):
    """A decorator: the method becomes a property that is computed at its first use, and kept."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        made = self.compute(instance)
        kept: T = instance.__dict__.setdefault(self.compute.__name__, made)
        if kept is not made and (close := getattr(made, "close", None)) is not None:
            close()
        return kept
