"""Short texts for one line: a text cut to a length, and a number with its noun."""

from __future__ import annotations


def cut(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis: `most` characters in all."""
    return text if len(text) <= most else text[: most - 1] + "…"


def one_line(text: str, most: int = 300) -> str:
    """The beginning of a text on one line. Only four times `most` characters are read."""
    return cut(" ".join(text[: most * 4].split()), most)


def pluralize(number: int, noun: str) -> str:
    """A number of things: 1 turn, 2 turns."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
