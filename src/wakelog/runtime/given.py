"""A call on its way: what was asked for, what is running, and how a try of it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from wakelog.model.events import Failure
from wakelog.model.values import Value
from wakelog.runtime.ambient import Call, Mark
from wakelog.runtime.flow import Ranges
from wakelog.runtime.tools import Late, Tool


class Given(msgspec.Struct):
    """What somebody asks for: a tool, its arguments by name, and how to run it."""

    tool: Tool
    arguments: dict[str, Any]
    run: Callable[[], Any]
    action: str = ""
    """The caller's own id of this call, such as a model's tool-call id: the same id is the same call."""
    stored: dict[str, Value] | None = None
    """What to store as the input, where that is not the arguments."""
    params: dict[str, Value] = {}
    context_hash: str = ""
    derived_from: Ranges = ()
    exposure: Mark | None = None
    why: str = ""


class Running(msgspec.Struct):
    """A call between its intent and its outcome."""

    call: Call
    given: Given
    input: dict[str, Value]
    input_hash: str
    mark: Mark
    is_open: bool = True
    """Whether its intent is recorded; a pure call is recorded when it is over."""


class Waits(msgspec.Struct):
    """A call that somebody must approve first."""

    running: Running


class End(msgspec.Struct):
    """How one try of a call ended."""

    how: Literal["succeeded", "failed", "timed_out", "interrupted"]
    result: Any = None
    error: Failure | None = None
    exception: BaseException | None = None
    took_us: int = 0
    late: Late | None = None
    picture: Any = None
    """The files as they were before."""
