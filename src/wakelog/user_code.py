"""Imports code of the user that a setting or an option names: agents, tools, rules.

Importing runs that code, so it may raise anything. Callers decide which of its errors to explain.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from wakelog.errors import InvalidInputError


def import_module(name: str) -> Any:
    """A module that is installed or in the working folder."""
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    return importlib.import_module(name)


def load_attribute(place: str, misnamed: InvalidInputError) -> Any:
    """What `module:attribute` names; the attribute may be a path with dots. Raises `misnamed` if `place` has another
    form."""
    name, _, path = place.partition(":")
    if not name or not path:
        raise misnamed
    found: Any = import_module(name)
    for part in path.split("."):
        found = getattr(found, part)
    return found
