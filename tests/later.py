"""A library that is imported when it is first used.

Every worker lists all tests, but only some of them run those that need a client library which takes a second to load.
"""

import importlib
from typing import Any


class Later:
    """Stands for a module until something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)
