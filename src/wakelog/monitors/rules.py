"""What a rule is: something that looks at events in order, and says so when one of them should be seen by somebody.

A rule is pure and incremental. It is given each event once, in order, with what was seen before it (seen.py), and keeps
whatever small memory it needs in itself. So the same rule runs beside a working agent, over a session that ended last
year, and in a test. What it finds becomes a flag in the log; monitor.py writes it.

    class TooManyFiles:
        name = "too-many-files"

        def look(self, entry, seen):
            if entry.kind == "file.changed" and len(seen.state["files_modified"]) == 100:
                return Finding("too-many-files", "a hundred files were changed", pause=True)

A plain function of (entry, seen) is a rule too. One that needs a clock has `tick(now, seen)` besides.
"""

from __future__ import annotations

import copy
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, cast

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.log.reader import Entry
from wakelog.model.described import described
from wakelog.model.events import Severity
from wakelog.model.ids import Seq
from wakelog.model.values import check_text
from wakelog.monitors.session_view import SessionView


class RuleFinding(msgspec.Struct, frozen=True):
    """Something to point at. `flag` is its key: one that is found again under the same key takes the old one's place.

    `pause` asks for the session to be paused; whether it is, its monitor decides. With `is_over` the flag is cleared,
    and `message` says why.
    """

    flag: str
    message: str = ""
    severity: Severity = "warning"
    targets: tuple[Seq, ...] = ()
    pause: bool = False
    count: int = 1
    """How often it was found so far: repeats are one flag."""
    is_over: bool = False


Found = RuleFinding | Iterable[RuleFinding] | None


class Rule(Protocol):
    """What looks at events. Anything of this shape will do."""

    name: str

    def look(self, entry: Entry, seen: SessionView) -> Found:
        """Is given every event once, in order; says what it found, if anything."""
        ...


Look = Callable[[Entry, SessionView], Found]
Given = Rule | type[Rule] | Look
"""How a rule may be given: an object, a class that makes one without arguments, or a function."""


class FunctionRule:
    """A function as a rule, under its own name."""

    def __init__(self, function: Look) -> None:
        self.name = str(getattr(function, "__name__", "rule")).replace("_", "-")
        self._function = function

    def look(self, entry: Entry, seen: SessionView) -> Found:
        return self._function(entry, seen)


def over(flag: str, why: str) -> RuleFinding:
    """What was flagged no longer holds."""
    return RuleFinding(flag, why, is_over=True)


def fresh(given: Given) -> Rule:
    """A rule with a memory of its own, for one session."""
    if isinstance(given, type):
        return cast(Rule, given())
    if hasattr(given, "look"):
        return copy.deepcopy(cast(Rule, given))
    if callable(given):
        return FunctionRule(given)
    raise InvalidInputError(
        f"{given!r} is not a rule",
        kind="bad-rule",
        hint="a rule is a function of (entry, seen), or an object with a name and look(entry, seen)",
    )


def as_findings(found: Found) -> tuple[RuleFinding, ...]:
    """What a rule returned, as a tuple; raises when it is something else."""
    if found is None:
        return ()
    findings = (found,) if isinstance(found, RuleFinding) else tuple(found)
    for each in findings:
        if not isinstance(each, RuleFinding):
            raise TypeError(f"a rule returns findings, not {type(each).__name__}")
        msgspec.convert(msgspec.to_builtins(each), described(RuleFinding))  # a struct does not check what it is made of
        check_text(each.flag + each.message, "a finding")
    return findings


def load_rules(place: str) -> list[Given]:
    """The rule or rules that `module:attribute` names; modules of the working folder are found too."""
    name, _, attribute = place.partition(":")
    if not name or not attribute:
        raise InvalidInputError(f"{place!r} does not name a rule", kind="bad-rule", hint="use module:attribute")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(name)
        for part in attribute.split("."):
            found = getattr(found, part)
        given = list(found) if isinstance(found, Sequence) else [found]
        for each in given:
            fresh(each)
    except InvalidInputError:
        raise
    except Exception as exc:  # it is the module's own code that runs here
        raise InvalidInputError(
            f"{place!r} cannot be loaded: {type(exc).__name__}: {exc}", kind="bad-rule", hint="check the name"
        ) from exc
    return given
