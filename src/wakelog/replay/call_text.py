"""Calls in words: short enough for a line, with the place in sight where two of them differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wakelog.model.values import Value
from wakelog.state.patch import equal

SHORT, LINE = 40, 160


def differing(a: Value, b: Value) -> tuple[str, ...]:
    """The names of arguments that are not the same in both."""
    one, two = (value if isinstance(value, Mapping) else {} for value in (a, b))
    return tuple(n for n in dict.fromkeys((*two, *one)) if n not in one or n not in two or not equal(one[n], two[n]))


def call_text(tool: str, given: Value, beside: Value = None) -> str:
    """`search(q='login timeout')`. Arguments that differ from those `beside` come first and are shown where they do."""
    if not isinstance(given, Mapping):
        return f"{tool}(…)"
    other = beside if isinstance(beside, Mapping) else None
    first = differing(given, other) if other is not None else ()
    names = [*(n for n in first if n in given), *(n for n in given if n not in first)]
    # What a model was shown is only a hash, and its name is said already.
    names = [n for n in names if n != "shown" and not (n == "model" and given[n] == tool)]
    shown = [f"{n}={value_text(given[n], other.get(n) if other and n in first else None)}" for n in names]
    kept = len(shown)
    while kept > max(1, len(first)) and sum(len(s) + 2 for s in shown[:kept]) > LINE:
        kept -= 1
    return f"{tool}({', '.join(shown[:kept] + ['…'] * (kept < len(shown)))})"


def value_text(value: Any, other: Any = None) -> str:
    """A value on one line; a text beside another is shown where they part."""
    if isinstance(value, str) and isinstance(other, str):
        return _excerpt(value, other)
    if isinstance(value, str):
        return repr(value) if len(value) <= SHORT else repr(value[:SHORT]) + "…"
    text = repr(value)
    return text if len(text) <= SHORT else text[: SHORT - 1] + "…"


def _excerpt(text: str, other: str) -> str:
    """The part of a long text where it leaves the other."""
    if len(text) <= SHORT:
        return repr(text)
    at = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
    start = max(0, at - SHORT // 2)
    return ("…" if start else "") + repr(text[start : start + SHORT]) + ("…" if start + SHORT < len(text) else "")
