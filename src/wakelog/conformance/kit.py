"""What a check is, and how checks are run.

A check is a small function over a `Bench`. It has a name, a group, the sentence of the protocol that it holds (the
reference page is made from these sentences), and, where the protocol leaves an operation to the server, the capability
it needs: a server that says it does not offer that is not at fault, and the check is skipped.
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
    """A capability; empty: every server must."""
    two_keys: bool
    run: Callable[[Bench], None]


class Result(msgspec.Struct, frozen=True):
    """What became of a check."""

    check: str
    group: str
    status: Status
    rule: str
    expected: str = ""
    got: str = ""
    request: str = ""
    why: str = ""
    """Of one that was skipped."""
    duration_us: int = 0


CHECKS: list[Check] = []
"""Filled when the files in checks/ are imported."""


def check(
    group: str, rule: str, *, needs: str = "", two_keys: bool = False
) -> Callable[[Callable[[Bench], None]], Callable[[Bench], None]]:
    """Enters a function into the list of checks, under its name."""
    assert group in GROUPS
    assert not needs or needs in CAPABILITIES

    def enter(function: Callable[[Bench], None]) -> Callable[[Bench], None]:
        name = function.__name__.replace("_", "-")
        CHECKS.append(Check(name, group, " ".join(rule.split()), needs, two_keys, function))
        return function

    return enter


_FILES = (
    "sessions", "append", "reads", "tail", "rewind_and_fork", "lifecycle", "errors", "namespaces",
    "integrity",
)  # fmt: skip


def all_checks() -> list[Check]:
    """Every check, by group."""
    for name in _FILES:
        importlib.import_module(f"wakelog.conformance.checks.{name}")
    order = list(GROUPS)
    return sorted(CHECKS, key=lambda each: order.index(each.group))


def chosen(only: Iterable[str]) -> list[Check]:
    """The checks of these groups or names; all when nothing is named."""
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
    """Runs checks against a server, one after the other, and gives each result as it comes."""
    client = WireClient(url, key, timeout_s)
    other = WireClient(url, other_key, timeout_s) if other_key else None
    checks = chosen(only)
    for each in filter(None, (client, other)):
        if each.ask("GET", "/v1/info").status == 401:  # else every check would fail for the same reason
            which = "the key" if each is client else "the other key"
            raise NotAllowedError(
                f"{url} does not accept {which}", kind="key-refused", hint="pass --key, or WAKELOG_KEY"
            )
    yield from _results(checks, client, other)


def _results(checks: Iterable[Check], client: WireClient, other: WireClient | None) -> Iterator[Result]:
    from wakelog.conformance.bench import Bench

    for each in checks:
        began = time.perf_counter()
        with Bench(client, other) as bench:
            result = _result(each, bench)
        yield msgspec.structs.replace(result, duration_us=int((time.perf_counter() - began) * 1e6))


def _result(each: Check, bench: Bench) -> Result:
    def told(status: Status, **more: Any) -> Result:
        return Result(each.name, each.group, status, each.rule, **more)

    if each.two_keys and bench.other is None:
        return told("skipped", why="needs a second key, which sees another namespace only")
    if each.needs == "redaction" and not bench.redacts:
        return told("skipped", why="this server does not say that it redacts")
    try:
        each.run(bench)
    except NotOffered as exc:
        if each.needs or "scope-missing" in exc.got:
            what = CAPABILITIES.get(each.needs, "what this check needs")
            return told("skipped", why=f"this server or key does not offer {what} ({exc.got})")
        return told("failed", expected=exc.expected, got=exc.got, request=exc.request)
    except ServerFault as exc:
        return told("failed", expected=exc.expected, got=exc.got, request=exc.request)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as exc:
        # An answer of another shape than the protocol says: that is the server's fault, and here is where.
        last = bench.last
        missing = f"{type(exc).__name__} {exc}"
        return told("failed", expected="an answer of the form in protocol.schema.json", got=missing, request=last)
    return told("passed")
