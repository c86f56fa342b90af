"""Budgets: limits in money, tokens and seconds on what a session spends.

The amount spent is part of the folded state, and no rewind, resume or fork reduces it. So a budget cannot be reset by
starting again; a limit can only be raised, by an event that says who did it. Reaching a limit pauses the session and
says how to continue. The runtime calls `check_budget` before each call.

Seconds are the reported durations of calls, not wall-clock time.
"""

from __future__ import annotations

import contextlib
import decimal
import threading
import weakref
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from wakelog.errors import CorruptLogError, InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId
from wakelog.model.names import unquoted_name
from wakelog.model.records import EventDraft
from wakelog.model.values import INT_MAX, Value

WARN_PERCENT = 80
KEYS: Final = {"usd": "usd_micros", "tokens": "tokens", "seconds": "duration_us"}
"""Units that people use → keys in the state."""

_MICRO = 1_000_000
Amount = str | int | float | decimal.Decimal | None
"""An amount as people write it: "1.00", 300; None for no limit."""


class LimitUse(msgspec.Struct, frozen=True):
    """What was spent of one limit. `unit` is usd, tokens or seconds; amounts are in the state's units (micros)."""

    unit: str
    spent: int
    limit: int | None

    @property
    def is_reached(self) -> bool:
        return self.limit is not None and self.spent >= self.limit

    @property
    def level(self) -> int:
        """0: enough is left, 1: nearly reached, 2: reached."""
        if self.limit is None:
            return 0
        return 2 if self.is_reached else 1 if self.spent * 100 >= self.limit * WARN_PERCENT else 0

    @property
    def left(self) -> int | None:
        return None if self.limit is None else max(0, self.limit - self.spent)

    @property
    def percent(self) -> int | None:
        """How much of the limit is spent, rounded down; None without a limit."""
        return None if self.limit is None else self.spent * 100 // self.limit if self.limit else 100

    def show(self, amount: int) -> str:
        return show(self.unit, amount)

    @property
    def words(self) -> str:
        """`$4.10 of $5.00 (82 %)`, `9 of 10 s (90 %)`."""
        if self.limit is None:
            return show(self.unit, self.spent)
        spent = show(self.unit, self.spent).removesuffix(" tokens").removesuffix(" s")
        return f"{spent} of {show(self.unit, self.limit)} ({self.percent} %)"


def uses(budget: Mapping[str, Value]) -> tuple[LimitUse, ...]:
    """The use of each unit, from a state's budget."""
    limits, spent = budget["limits"], budget["spent"]
    return tuple(LimitUse(unit, spent.get(key, 0), limits.get(key)) for unit, key in KEYS.items())


def reached_limits(budget: Mapping[str, Value]) -> tuple[LimitUse, ...]:
    """The limits that are reached."""
    return tuple(use for use in uses(budget) if use.is_reached)


def show(unit: str, amount: int) -> str:
    """An amount in words: `$1.00`, `50,000 tokens`, `300 s`."""
    if unit == "tokens":
        return f"{amount:,} tokens"
    whole, rest = divmod(amount, _MICRO)
    digits = f"{rest:06}".rstrip("0")
    if unit == "usd":
        return f"${whole:,}.{digits.ljust(2, '0')}"
    return f"{whole:,}{f'.{digits}' if digits else ''} s"


def plain(unit: str, amount: int) -> str:
    """An amount in the form that `limits_of` accepts: `1.00`, `50000`, `300`."""
    return show(unit, amount).lstrip("$").removesuffix(" tokens").removesuffix(" s").replace(",", "")


def limits_of(amounts: Mapping[str, Amount]) -> dict[str, int | None]:
    """Converts limits as people write them (`usd`, `tokens`, `seconds`; None removes one) to the state's units. The
    state's own names (`usd_micros`, `duration_us`) are accepted too."""
    out: dict[str, int | None] = {}
    if not isinstance(amounts, Mapping):
        raise InvalidInputError(
            f"limits are a dict of units and amounts, not {amounts!r}"[:200],
            kind="bad-budget",
            hint='such as {"usd": "1.00", "tokens": 50_000}',
        )
    for name, value in amounts.items():
        if name not in KEYS and name not in KEYS.values():
            raise InvalidInputError(
                f"{name!r} is not a unit for a limit", kind="bad-budget", hint="use usd, tokens or seconds"
            )
        is_micro = name in ("usd", "seconds")
        out[KEYS.get(name, name)] = None if value is None else _amount(name, value, _MICRO if is_micro else 1)
    return out


def first_limits(amounts: Mapping[str, Amount]) -> dict[str, int]:
    """The limits of a new session."""
    return {key: limit for key, limit in limits_of(amounts).items() if limit is not None}


def left_of(log: Log) -> dict[str, int] | None:
    """What a session has left of each limit; None if it has no limits."""
    budget = log.part("budget")
    if not budget["limits"]:
        return None
    spent = _with_subagents(log, budget["spent"])
    return {key: max(0, limit - spent.get(key, 0)) for key, limit in budget["limits"].items()}


def _amount(name: str, value: Any, factor: int) -> int:
    try:
        # A float counts as it is written: 1.1 is one dollar and ten cents.
        amount = decimal.Decimal(str(value).lstrip("$").replace(",", "").replace("_", "")) * factor
        whole = int(amount)
    except (decimal.InvalidOperation, ValueError, OverflowError):
        whole, amount = -1, decimal.Decimal(0)
    if isinstance(value, bool) or not 0 <= whole <= INT_MAX or whole != amount:
        example = '"1.50" or so; six decimal places at most' if factor > 1 else "200000 or so, a whole number"
        raise InvalidInputError(
            f"{name}={value!r} is not an amount",
            kind="bad-budget",
            hint=f"use {name}={example}",
        )
    return whole


def check_budget(log: Log) -> None:
    """NotAllowedError, kind `budget-reached`, if a limit is reached: of the session, or of a `with
    session.budget.limit(…)` around this call. A session's own limit also pauses it. What running sub-agents have spent
    counts."""
    for scope in _open_scopes(log):
        scope.check()
    budget = log.part("budget")
    if not budget["limits"]:
        return
    spent = reached_limits({"limits": budget["limits"], "spent": _with_subagents(log, budget["spent"])})
    if not spent:
        return
    note_reached(log, spent)
    why = budget_hint(log, spent)
    # Refused if the session is paused or over already.
    with contextlib.suppress(NotAllowedError):
        log.append(EventDraft(ev.SessionPaused(why=why), actor="runtime"))
    raise NotAllowedError(why, kind="budget-reached", hint=_raise_command(log, spent), legal=("budget.set",))


def limits_money(log: Log) -> bool:
    """Whether the session, or a `with session.budget.limit(…)` around this call, has a limit in money."""
    key = KEYS["usd"]
    return key in log.part("budget")["limits"] or any(key in scope.limits for scope in _open_scopes(log))


def note_reached(log: Log, spent: tuple[LimitUse, ...], *, actor: str = "runtime") -> None:
    """Records that limits were reached, once for each limit that was set."""
    for use in spent:
        # The commit id makes it idempotent: the runtime, a monitor and a watcher in another process may all record it.
        commit_id = f"budget-reached:{KEYS[use.unit]}:{use.limit}"
        event = ev.BudgetReached(limit=KEYS[use.unit], why=use.words)
        if log.engine.known(log.id, commit_id) is None:
            # Refused if the session is over, or if it was recorded meanwhile with another message.
            with contextlib.suppress(NotAllowedError, InvalidInputError):
                log.append(EventDraft(event, actor=actor), commit_id=commit_id)


def budget_hint(log: Log, spent: tuple[LimitUse, ...]) -> str:
    """Why the session stops here, and the command to continue."""
    words = " and ".join(use.words for use in spent)
    return f"the budget is reached: {words}; {_raise_command(log, spent)} && wakelog resume {_handle(log)} goes on"


def _raise_command(log: Log, spent: tuple[LimitUse, ...]) -> str:
    options = " ".join(f"--{use.unit} {plain(use.unit, 2 * max(use.limit or 0, use.spent, 1))}" for use in spent)
    return f"wakelog budget {_handle(log)} {options}"


def _handle(log: Log) -> str:
    """The session's name if it needs no quotes in a shell, else its id."""
    return unquoted_name(log.head().name) or log.id


def spent_so_far(log: Log) -> dict[str, int]:
    """What the session and its running sub-agents have spent."""
    return _with_subagents(log, log.part("budget")["spent"])


def _with_subagents(log: Log, spent: Mapping[str, int], above: frozenset[SessionId] = frozenset()) -> dict[str, int]:
    total = {key: spent.get(key, 0) for key in KEYS.values()}
    for session, entry in log.part("subagents").items():
        if entry.get("status") != "running" or session in above:
            continue
        with contextlib.suppress(NotFoundError, CorruptLogError):  # it may be in another store
            child = Log(log.engine, SessionId(session))
            spent_there = _with_subagents(child, child.part("budget")["spent"], above | {log.id})
            total = {key: total[key] + spent_there[key] for key in total}
    return total


class BudgetScope:
    """A limit on what is spent inside a `with`. Reaching it refuses the next call but does not pause the session."""

    def __init__(self, log: Log, limits: Mapping[str, int | None]) -> None:
        self._log = log
        self.limits = {key: limit for key, limit in limits.items() if limit is not None}
        self._start: dict[str, int] = {}

    @property
    def uses(self) -> tuple[LimitUse, ...]:
        """What was spent of each limit since the `with` began."""
        now = spent_so_far(self._log)
        spent = {key: now[key] - self._start.get(key, 0) for key in now}
        return tuple(use for use in uses({"limits": self.limits, "spent": spent}) if use.limit is not None)

    def check(self) -> None:
        """NotAllowedError if a limit is reached."""
        over = [use for use in self.uses if use.is_reached]
        if over:
            words = " and ".join(use.words for use in over)
            raise NotAllowedError(
                f"the limit for this part of the work is reached: {words}",
                kind="budget-reached",
                hint="catch this error where the part ends, or raise the limit in session.budget.limit(…)",
            )

    def __enter__(self) -> BudgetScope:
        self._start = spent_so_far(self._log)
        with _lock:
            _scopes.setdefault(self._log, []).append(self)
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            _scopes[self._log].remove(self)

    async def __aenter__(self) -> BudgetScope:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


_scopes: weakref.WeakKeyDictionary[Log, list[BudgetScope]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def _open_scopes(log: Log) -> list[BudgetScope]:
    with _lock:
        return list(_scopes.get(log, ()))


def set_limits(log: Log, limits: Mapping[str, int | None], *, why: str = "") -> Seq:
    """Records limits, and clears the flags of those that are no longer reached."""
    budget, flags = log.part("budget"), log.part("flags")
    kept = {key: limit for key, limit in {**budget["limits"], **limits}.items() if limit is not None}
    before, after = uses(budget), uses({"limits": kept, "spent": budget["spent"]})
    seq = log.record(EventDraft(ev.BudgetSet(limits=dict(limits), why=why), actor="user"))
    for old, new in zip(before, after, strict=True):
        if new.level < old.level and (flag := f"budget:{new.unit}") in flags:
            log.append(EventDraft(ev.FlagCleared(flag=flag, why="the limit was changed"), actor="user", cause=seq))
    return seq
