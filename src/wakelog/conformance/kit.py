"""What a check is, and how checks are run.

A check is a small function over a `Bench`. It has a name, a group, and, as its docstring, the sentence of the protocol
that it checks (the reference page is made from these sentences). If the protocol makes an operation optional, the check
also names the capability that it needs: if a server says that it does not offer it, the check is skipped.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from wakelog.conformance.wire import TIMEOUT_S, NotOffered, ServerFault, WireClient
from wakelog.errors import InvalidInputError, NotAllowedError

if TYPE_CHECKING:
    from wakelog.conformance.bench import Bench

Status = Literal["passed", "failed", "skipped"]

GROUPS = {
    "sessions": "opening and finding",
    "append": "order, expected head, commit ids, atomicity, illegal moves",
    "state": "the state at a point",
    "events": "events, one and many",
    "pages": "pages and cursors",
    "conditional": "ETag",
    "tail": "live events, and going on after a break",
    "moving": "rewind, undo, fork",
    "lifecycle": "pause, close, reopen, archive, delete",
    "leases": "one writer at a time",
    "errors": "problems",
    "namespaces": "what another key must not see",
    "integrity": "verification, anchors, bundles",
    "concurrency": "several writers at once",
}
"""The groups, in the order they are run."""

CAPABILITIES = {
    "list": "the list of sessions",
    "views": "messages in view",
    "tail": "live events of a session",
    "feed": "live events of all sessions",
    "lease": "leases",
    "names": "checkpoints",
    "patch": "patches of a session's own data",
    "verify": "verification and anchors",
    "bundle": "bundles",
    "removal": "deleting",
    "redaction": "redaction",
}
"""What a server may leave out."""


class Check(msgspec.Struct, frozen=True):
    """One thing that a server must do."""

    name: str
    group: str
    rule: str
    """The sentence of the protocol."""
    needs: str
    """A capability; empty if every server must pass."""
    two_keys: bool
    run: Callable[[Bench], None]


class Result(msgspec.Struct, frozen=True):
    """The result of a check."""

    check: str
    group: str
    status: Status
    rule: str
    expected: str = ""
    got: str = ""
    request: str = ""
    why: str = ""
    """Why it was skipped."""
    duration_us: int = 0


CHECKS: list[Check] = []
"""Filled when the files in checks/ are imported."""


def check(
    group: str, *, needs: str = "", two_keys: bool = False
) -> Callable[[Callable[[Bench], None]], Callable[[Bench], None]]:
    """Adds a function to the list of checks, under its name; its docstring is the rule."""
    assert group in GROUPS
    assert not needs or needs in CAPABILITIES

    def add(function: Callable[[Bench], None]) -> Callable[[Bench], None]:
        name = function.__name__.replace("_", "-")
        CHECKS.append(Check(name, group, " ".join((function.__doc__ or "").split()), needs, two_keys, function))
        return function

    return add


_FILES = ("sessions", "append", "reads", "tail", "rewind_and_fork", "lifecycle", "errors", "namespaces", "integrity")


def all_checks() -> list[Check]:
    """Every check, by group."""
    for name in _FILES:
        importlib.import_module(f"wakelog.conformance.checks.{name}")
    order = list(GROUPS)
    return sorted(CHECKS, key=lambda each: order.index(each.group))


def select_checks(only: Iterable[str]) -> list[Check]:
    """The checks of these groups or names; all if none are given."""
    wanted = set(only)
    checks = all_checks()
    known = set(GROUPS) | {each.name for each in checks}
    if unknown := sorted(wanted - known):
        raise InvalidInputError(
            f"there is no group or check {', '.join(unknown)}",
            kind="no-such-check",
            hint=f"groups: {', '.join(GROUPS)}; wakelog conformance --list names the checks",
        )
    return [each for each in checks if not wanted or each.group in wanted or each.name in wanted]


def run(
    url: str, key: str, *, other_key: str = "", only: Iterable[str] = (), timeout_s: float = TIMEOUT_S
) -> Iterator[Result]:
    """Runs checks against a server, one after the other, and yields each result."""
    client = WireClient(url, key, timeout_s)
    other = WireClient(url, other_key, timeout_s) if other_key else None
    checks = select_checks(only)
    for each in filter(None, (client, other)):
        if each.ask("GET", "/v1/info").status == 401:  # otherwise every check would fail for this reason
            which = "the key" if each is client else "the other key"
            raise NotAllowedError(
                f"{url} does not accept {which}", kind="key-refused", hint="pass --key, or WAKELOG_KEY"
            )
    yield from _run_all(checks, client, other)


def _run_all(checks: Iterable[Check], client: WireClient, other: WireClient | None) -> Iterator[Result]:
    from wakelog.conformance.bench import Bench

    for each in checks:
        began = time.perf_counter()
        with Bench(client, other) as bench:
            result = _run_one(each, bench)
        yield msgspec.structs.replace(result, duration_us=int((time.perf_counter() - began) * 1e6))


def _run_one(each: Check, bench: Bench) -> Result:
    def result(status: Status, **more: Any) -> Result:
        return Result(each.name, each.group, status, each.rule, **more)

    if each.two_keys and bench.other is None:
        return result("skipped", why="needs a second key, which sees another namespace only")
    if each.needs == "redaction" and not bench.redacts:
        return result("skipped", why="this server does not say that it redacts")
    try:
        each.run(bench)
    except NotOffered as exc:
        if each.needs or "scope-missing" in exc.got:
            what = CAPABILITIES.get(each.needs, "what this check needs")
            return result("skipped", why=f"this server or key does not offer {what} ({exc.got})")
        return result("failed", expected=exc.expected, got=exc.got, request=exc.request)
    except ServerFault as exc:
        return result("failed", expected=exc.expected, got=exc.got, request=exc.request)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as exc:
        # The answer does not have the shape that the protocol says, which is the server's fault.
        got = f"{type(exc).__name__} {exc}"
        return result("failed", expected="an answer of the form in protocol.schema.json", got=got, request=bench.last)
    return result("passed")
