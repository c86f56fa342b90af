"""Calls as text: short enough for one line, and showing where two of them differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wakelog.model.short_text import cut
from wakelog.model.values import Value
from wakelog.state.patch import equal

VALUE_MAX, LINE_MAX = 40, 160


def differing_names(a: Value, b: Value) -> tuple[str, ...]:
    """The names of arguments that differ."""
    one, two = (value if isinstance(value, Mapping) else {} for value in (a, b))
    return tuple(n for n in dict.fromkeys((*two, *one)) if n not in one or n not in two or not equal(one[n], two[n]))


def call_text(tool: str, input: Value, beside: Value = None) -> str:
    """`search(q='login timeout')`. Arguments that differ from those in `beside` come first, with an excerpt of where
    they differ."""
    if not isinstance(input, Mapping):
        return f"{tool}(…)"
    other = beside if isinstance(beside, Mapping) else None
    first = differing_names(input, other) if other is not None else ()
    names = [*(n for n in first if n in input), *(n for n in input if n not in first)]
    # `shown` is only a hash, and the model's name may be the tool's.
    names = [n for n in names if n != "shown" and not (n == "model" and input[n] == tool)]
    shown = [f"{n}={value_text(input[n], other.get(n) if other and n in first else None)}" for n in names]
    kept = len(shown)
    while kept > max(1, len(first)) and sum(len(s) + 2 for s in shown[:kept]) > LINE_MAX:
        kept -= 1
    return f"{tool}({', '.join(shown[:kept] + ['…'] * (kept < len(shown)))})"


def value_text(value: Any, other: Any = None) -> str:
    """A value on one line. Of two texts, the part where they differ is shown."""
    if isinstance(value, str) and isinstance(other, str):
        return _excerpt(value, other)
    if isinstance(value, str):
        return repr(value) if len(value) <= VALUE_MAX else repr(value[:VALUE_MAX]) + "…"
    return cut(repr(value), VALUE_MAX)


def _excerpt(text: str, other: str) -> str:
    """The part of a long text where it starts to differ from the other."""
    if len(text) <= VALUE_MAX:
        return repr(text)
    at = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
    start = max(0, at - VALUE_MAX // 2)
    end = start + VALUE_MAX
    return ("…" if start else "") + repr(text[start:end]) + ("…" if end < len(text) else "")
