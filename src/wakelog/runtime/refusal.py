"""Calls that cannot be made: a model asked for a tool that does not exist, or with arguments it does not take.

They are calls all the same: recorded as failed, with the reason, so that the model can be told and the log shows what
it tried. Nothing runs, and so they have no effect to declare.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Iterable
from typing import Any, NoReturn

from wakelog.errors import InvalidInputError
from wakelog.runtime.call_values import Given
from wakelog.runtime.policy import Policy
from wakelog.runtime.tools import Tool

REFUSED = Policy(effect="pure")


def refused(tool: str, input: Any, id: str, error: InvalidInputError) -> Given:
    """A call that fails with this error."""
    try:
        arguments = {str(name): value for name, value in dict(input or {}).items()}
    except (TypeError, ValueError):
        arguments = {"input": input}
    run = functools.partial(_fail, error)
    return Given(Tool(run, REFUSED, tool or "unnamed"), arguments, run, action=id)


def _fail(error: InvalidInputError) -> NoReturn:
    raise error


def unknown_tool(name: str, tools: Iterable[str]) -> InvalidInputError:
    known = sorted(tools)
    near = difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return InvalidInputError(
        f"there is no tool {name!r} here{meant} (there is: {', '.join(known) or 'none yet'})",
        kind="unknown-tool",
        hint="decorate the function with @session.tool, or pass the function itself",
    )


def bad_arguments(tool: Tool, problem: Exception) -> InvalidInputError:
    try:
        takes = str(inspect.signature(tool.function))
    except (TypeError, ValueError):
        takes = "(…)"
    return InvalidInputError(
        f"{tool.name} was not called: {problem}", kind="bad-arguments", hint=f"it is {tool.name}{takes}"
    )
