"""Blame: for each key of the state, the event that last wrote it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wakelog.diff.writers import Writer, Writers
from wakelog.log import Log
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.state.patch import escape, get

_WHOLE = 2
"""Outside /data, keys are told to this depth: an entry of a map is written as a whole."""


class Blame(msgspec.Struct, frozen=True):
    """One key, its value and who wrote it."""

    pointer: str
    value: Value
    writer: Writer | None


def blame(log: Log, pointer: str, at: Seq) -> list[Blame]:
    """Who last wrote each key at and below a pointer. One pass over the log; memory follows the keys, not the
    events."""
    state = log.state(at)
    value = get(state, pointer)
    writers = Writers(log).feed(log.entries(upto=at), pointer)
    return [Blame(p, v, writers.who(p)) for p, v in _keys(value, pointer)]


def _keys(value: Value, pointer: str) -> Iterator[tuple[str, Value]]:
    is_data = pointer == "/data" or pointer.startswith("/data/")
    deep_enough = pointer.count("/") >= _WHOLE and not is_data
    if type(value) is dict and value and not deep_enough:
        for key, item in value.items():
            yield from _keys(item, f"{pointer}/{escape(key)}")
    elif value != {} or pointer.count("/") > 1:
        yield pointer, value
