"""Regular expressions that are compiled when they are first used.

Most processes store no secret, so most expressions of the table never run. Compiling all of them takes 30 ms, which
every process that appends would pay, also a hook that stores one event.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import AnyStr, Generic

from wakelog.model.late_value import LateValue


class LateExpression(Generic[AnyStr]):
    """An expression with the methods of a compiled one that are used here."""

    def __init__(self, text: AnyStr, flags: int = 0) -> None:
        self._text: AnyStr = text
        self._flags = flags

    @LateValue
    def _compiled(self) -> re.Pattern[AnyStr]:
        return re.compile(self._text, self._flags)

    # Compiled methods themselves, so that only the first use costs more.

    @LateValue
    def search(self) -> Callable[..., re.Match[AnyStr] | None]:
        return self._compiled.search

    @LateValue
    def match(self) -> Callable[..., re.Match[AnyStr] | None]:
        return self._compiled.match

    @LateValue
    def fullmatch(self) -> Callable[..., re.Match[AnyStr] | None]:
        return self._compiled.fullmatch

    @LateValue
    def finditer(self) -> Callable[..., Iterator[re.Match[AnyStr]]]:
        return self._compiled.finditer

    @LateValue
    def findall(self) -> Callable[..., list[AnyStr]]:
        return self._compiled.findall
