"""What a rule is: it reads events in order and reports what needs attention.

A rule is pure and incremental. It gets each event once, in order, with a view of what came before (session_view.py),
and keeps the little memory it needs in itself. So the same rule runs beside a working agent, over a session that ended
last year, and in a test. monitor.py records its findings as flags in the log.

    class TooManyFiles:
        name = "too-many-files"

        def look(self, entry, seen):
            if entry.kind == "file.changed" and len(seen.state["files_modified"]) == 100:
                return RuleFinding("too-many-files", "a hundred files were changed", pause=True)

A plain function of (entry, seen) is a rule too. A rule that needs the clock also has `tick(now, seen)`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, cast

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.log.reader import Entry
from wakelog.model.described import described
from wakelog.model.events import Severity
from wakelog.model.ids import Seq
from wakelog.model.values import check_text
from wakelog.monitors.session_view import SessionView
from wakelog.user_code import load_attribute


class RuleFinding(msgspec.Struct, frozen=True):
    """Something that needs attention. `flag` is its key: a new finding with the same key replaces the old one.

    `pause` asks for the session to be paused; the monitor decides. With `is_over` the flag is cleared, and `message`
    says why.
    """

    flag: str
    message: str = ""
    severity: Severity = "warning"
    targets: tuple[Seq, ...] = ()
    pause: bool = False
    count: int = 1
    """How often it was found so far; repeats share one flag."""
    is_over: bool = False


Found = RuleFinding | Iterable[RuleFinding] | None


class Rule(Protocol):
    """Anything with a name and a `look` method."""

    name: str

    def look(self, entry: Entry, view: SessionView) -> Found:
        """Gets every event once, in order; returns its findings, if any."""
        ...


Look = Callable[[Entry, SessionView], Found]
Given = Rule | type[Rule] | Look
"""How a rule may be passed: an object, a class without arguments, or a function."""


class FunctionRule:
    """A function as a rule, with the function's name."""

    def __init__(self, function: Look) -> None:
        self.name = str(getattr(function, "__name__", "rule")).replace("_", "-")
        self._function = function

    def look(self, entry: Entry, view: SessionView) -> Found:
        return self._function(entry, view)


def over(flag: str, why: str) -> RuleFinding:
    """A finding that clears a flag."""
    return RuleFinding(flag, why, is_over=True)


def new_rule(given: Given) -> Rule:
    """A new instance of a rule, for one session."""
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
    """What a rule returned, as a tuple; raises if it is something else."""
    if found is None:
        return ()
    findings = (found,) if isinstance(found, RuleFinding) else tuple(found)
    for finding in findings:
        if not isinstance(finding, RuleFinding):
            raise TypeError(f"a rule returns findings, not {type(finding).__name__}")
        msgspec.convert(msgspec.to_builtins(finding), described(RuleFinding))  # structs do not check types when built
        check_text(finding.flag + finding.message, "a finding")
    return findings


def load_rules(place: str) -> list[Given]:
    """The rule or rules that `module:attribute` names. Modules in the working folder are found too."""
    misnamed = InvalidInputError(f"{place!r} does not name a rule", kind="bad-rule", hint="use module:attribute")
    try:
        attribute = load_attribute(place, misnamed)
        rules = list(attribute) if isinstance(attribute, Sequence) else [attribute]
        for rule in rules:
            new_rule(rule)
    except InvalidInputError:
        raise
    except Exception as exc:  # importing runs the user's code
        raise InvalidInputError(
            f"{place!r} cannot be loaded: {type(exc).__name__}: {exc}", kind="bad-rule", hint="check the name"
        ) from exc
    return rules
