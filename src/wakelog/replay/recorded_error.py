"""The exception that a recorded failure was: the record has its class's name and its message.

The class is looked for where the tool would have found it, then among the builtins, then among all exceptions that are
loaded, where the name must be the only one of its kind.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from typing import Any

from wakelog.errors import UncertainError
from wakelog.model.events import Failure


def exception_of(
    failure: Failure, function: Callable[..., Any], raises: tuple[type[BaseException], ...] = ()
) -> Exception | None:
    """An exception like the one that was raised; None when its class is not known here."""
    found = _find(failure.type, function, raises)
    if found is None:
        return None
    text = _message(found, failure.message)
    try:
        return found(text)
    except Exception:
        # Its constructor wants more than was recorded. An exception with the right class and text is still the best.
        error = found.__new__(found)
        error.args = (text,)
        return error


def _find(name: str, function: Callable[..., Any], raises: tuple[type[BaseException], ...]) -> type[Exception] | None:
    near = getattr(function, "__globals__", {}).get(name)
    for candidate in (*(c for c in raises if c.__name__ == name), near, getattr(builtins, name, None), UncertainError):
        if isinstance(candidate, type) and issubclass(candidate, Exception) and candidate.__name__ == name:
            return candidate
    loaded = {c for c in _below(Exception) if c.__name__ == name}
    return loaded.pop() if len(loaded) == 1 else None


def _below(cls: type[Exception]) -> Iterator[type[Exception]]:
    for child in cls.__subclasses__():
        yield child
        yield from _below(child)


def _message(cls: type[Exception], text: str) -> Any:
    if not issubclass(cls, KeyError):
        return text
    try:
        return ast.literal_eval(text)  # a KeyError's text is the repr of its key
    except (ValueError, SyntaxError):
        return text
