"""A call on its way: what was asked for, what is running, and how a try of it ended."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from wakelog.model.events import Failure
from wakelog.model.ids import Seq
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
    check: Callable[[], None] | None = None
    """Asked before something new begins, after the budget; it may refuse."""


class Next(enum.Enum):
    """What to do with a call whose outcome is not known yet."""

    RUN = "its intent is recorded: run it"
    WAIT = "somebody must approve it first"
    ASK = "nothing is known of it: ask for it"


class Running(msgspec.Struct):
    """A call between its intent and its outcome."""

    call: Call
    given: Given
    input: dict[str, Value]
    input_hash: str
    mark: Mark
    has_key: bool = False
    """Whether the caller says what makes it the same call: a key, or an id."""
    is_open: bool = True
    """Whether its intent is recorded; a pure call is recorded when it is over."""
    is_started: bool = False
    """Whether the log may say that it runs."""
    picture: Any = None
    """The files as they were before."""
    asked: Seq = 0
    """Where it was asked for, when it waits for an approval."""
    seen: Seq = 0
    """How far the log was read for one."""


class End(msgspec.Struct):
    """How one try of a call ended."""

    how: Literal["succeeded", "failed", "timed_out", "interrupted"]
    result: Any = None
    error: Failure | None = None
    exception: BaseException | None = None
    took_us: int = 0
    late: Late | None = None
    output: Value = None
    """What is stored of the result, or of as much of a stream as came."""
    stream: dict[str, Value] = {}
    """How a stream came; empty for any other call."""
    is_open: bool = False
    """Whether what the tool raised says nothing about its effect."""

    @property
    def is_known(self) -> bool:
        """Whether it is known what became of the effect."""
        return self.how == "succeeded" or (self.how == "failed" and not self.is_open)
