"""Lists in a plan: what was gone through item by item, and how many items there were.

A recording holds one call for each item that a loop went through, and not the loop. So a plan made over two items says
nothing about a third. How many there were is kept with the step that gave them; a run that meets another number stops
there, before the first item, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable

from wakelog.model.values import Value
from wakelog.replay.plan import Reference, lines_of
from wakelog.state.patch import escape, tokens_of


def gone_through(output: Value, uses: Iterable[Reference]) -> dict[str, int]:
    """The lists in a result that later steps took items of, by pointer, and how many each had. One item of several is a
    choice; two, or the only one, may have been a loop. The lines of a text are a list when each of them was used."""
    taken: dict[str, set[str]] = {}
    pieces: dict[str, set[str]] = {}
    for use in uses:
        tokens = tokens_of(use.pointer)
        for place, token in enumerate(tokens):
            pointer = _pointer(tokens[:place])
            if type(_at(output, pointer)) is list:
                taken.setdefault(pointer, set()).add(token)
        if use.line:
            taken.setdefault(use.pointer, set()).add(str(use.line))
        elif use.between is not None:
            pieces.setdefault(use.pointer, set()).add(str(use.recorded))
    counts = {pointer: count_items(output, pointer) or 0 for pointer in (*taken, *pieces)}
    found = {p: counts[p] for p, items in taken.items() if len(items) > 1 or counts[p] == 1}
    for pointer, used in pieces.items():
        text = _at(output, pointer)
        lines = lines_of(text) if isinstance(text, str) else []
        if len(lines) > 1 and all(any(piece in line for piece in used) for line in lines):
            found[pointer] = counts[pointer]
    return found


def count_items(output: Value, pointer: str) -> int | None:
    """How many items a list has, or lines a text; None when neither is there."""
    value = _at(output, pointer)
    if type(value) is list:
        return len(value)
    return len(lines_of(value)) if isinstance(value, str) else None


def _at(value: Value, pointer: str) -> Value:
    for token in tokens_of(pointer):
        if type(value) is dict and token in value:
            value = value[token]
        elif type(value) is list and token.isdigit() and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
    return value


def _pointer(tokens: Iterable[str]) -> str:
    return "".join(f"/{escape(token)}" for token in tokens)
