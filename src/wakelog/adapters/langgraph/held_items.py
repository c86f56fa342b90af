"""Finds the items of a list that somebody else holds a reference to.

An item that only one list holds cannot be changed by anybody but the owner of that list, so it may be handed out again
without a copy. An item is held elsewhere if it has more references than that list makes. The same goes for the lists
and dicts inside it.
"""

from __future__ import annotations

import operator
import sys
from typing import Any

from wakelog.adapters.langgraph.codec import ATOMS, MESSAGES

_CONTAINERS = frozenset({dict, list})
_ARGUMENT = 1
"""The reference that the call of `getrefcount` makes itself."""
_fields_of = operator.attrgetter("__dict__")


def held_places(items: list[Any], *, are_rows: bool) -> list[int] | None:
    """The places of items that are held elsewhere, to be copied. None if that is more than half of them, or if a list
    or dict inside an item is held elsewhere. For lists of plain data, or of messages; rows hold no lists or dicts."""
    counts = list(map(sys.getrefcount, items))
    if counts.count(1 + _ARGUMENT) == len(counts):
        held = []
    else:
        places = [place for place, count in enumerate(counts) if count > 1 + _ARGUMENT]
        held = [place for place in places if type(items[place]) not in ATOMS]
        if 2 * len(held) > len(items):
            return None
    return held if are_rows or not _holds_shared(items) else None


def _holds_shared(items: list[Any]) -> bool:
    """True if a list or dict inside the items is held by more than what it is in, or if that cannot be seen: a set or
    a `Send` has no fields to look at."""
    kinds = set(map(type, items))
    if kinds <= ATOMS:
        return False
    if kinds <= _CONTAINERS | ATOMS:
        level = [item for item in items if type(item) in _CONTAINERS]
    elif not kinds <= MESSAGES:
        return True
    else:
        level = list(map(_fields_of, items))
        if max(map(sys.getrefcount, level)) > 2 + _ARGUMENT:  # the message and `level`
            return True
    while level := _inside(level):
        if max(map(sys.getrefcount, level)) > 2 + _ARGUMENT:  # what it is in, and `level`
            return True
    return False


def _inside(containers: list[Any]) -> list[Any]:
    """The lists and dicts that these hold."""
    return [
        value
        for each in filter(None, containers)  # most are empty
        for value in (each.values() if type(each) is dict else each)
        if type(value) in _CONTAINERS
    ]
