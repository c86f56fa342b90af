"""Rules about the session: a budget running out, a stall, a lease taken over, an eviction of something still needed."""

from __future__ import annotations

from wakelog.log.reader import Entry
from wakelog.monitors.budgets import uses
from wakelog.monitors.rules import Found, RuleFinding, over
from wakelog.monitors.session_view import SessionView

_SECOND = 1_000_000


class BudgetRule:
    """A limit is nearly reached (80 %), or reached."""

    name = "budget"

    def look(self, entry: Entry, view: SessionView) -> Found:
        before, after = view.before.budget, view.state["budget"]
        is_fork = entry.kind == "session.forked"
        if before == after and not is_fork:
            return None
        was = {use.unit: use.level for use in uses(before)}
        if is_fork:  # a fork inherits what was spent, and the flags raised before it
            was = {unit: level for unit, level in was.items() if f"{self.name}:{unit}" in view.state["flags"]}
        results = []
        for use in uses(after):
            level, flag = use.level, f"{self.name}:{use.unit}"
            if level == was.get(use.unit, 0):
                continue
            if level == 0:
                results.append(over(flag, "the limit was lifted" if use.limit is None else use.words))
            elif level == 1:
                results.append(RuleFinding(flag, f"nearly reached: {use.words}", "warning", (entry.seq,)))
            else:
                results.append(RuleFinding(flag, f"reached: {use.words}", "error", (entry.seq,), pause=True))
        return results


class Stall:
    """A turn or a call is open, and nothing has happened for much longer than usual.

    That is: longer than `times` the usual gap in this session, twice the longest duration of the open call's tool, and
    `least_s`; six times as long while the writer still sends heartbeats. It needs the clock, so only `tick` finds it.
    """

    name = "stall"
    flag = "stall"

    def __init__(self, times: int = 10, least_s: float = 300) -> None:
        self.times = times
        self.least_s = least_s
        self._reported_at = 0

    def look(self, entry: Entry, view: SessionView) -> Found:
        if view.last == entry.seq and (self._reported_at or self.flag in view.state["flags"]):
            self._reported_at = 0
            return over(self.flag, "something happened again")
        return None

    def tick(self, now: int, view: SessionView) -> Found:
        if not view.is_busy or self._reported_at == view.last:
            return None
        silent = now - view.at
        patience = max(int(self.least_s * _SECOND), self.times * view.usual_gap())
        for call in view.open.values():
            patience = max(patience, 2 * view.longest.get(call.tool, 0))
        if silent <= patience or (silent <= 6 * patience and view.holder()):
            return None
        self._reported_at = view.last
        waits = [f"{call.tool} (e{call.request})" for call in list(view.open.values())[:3]]
        what = f"waiting for {', '.join(waits)}" if waits else f"turn @{view.state['turn']['number']} is open"
        targets = tuple(call.request for call in view.open.values())[:8] or (view.last,)
        return RuleFinding(self.flag, f"nothing happened for {_span(silent)}, {what}", "warning", targets)


def _span(us: int) -> str:
    minutes = us // (60 * _SECOND)
    return f"{minutes} minutes" if minutes < 120 else f"{minutes // 60} hours"


class LeaseTakeover:
    """A writer took the lease of another one that had not released it."""

    name = "lease-takeover"

    def look(self, entry: Entry, view: SessionView) -> Found:
        if entry.kind != "lease.taken":
            return None
        former, holder = view.before.lease.get("holder", ""), entry.body.get("holder", "")
        if not former or former == holder:
            return None
        epoch = entry.body.get("epoch", 0)
        message = f"{holder} took over from {former} (epoch {epoch}); what {former} still does is refused"
        return RuleFinding(self.name, message, "warning", (entry.seq,))


class PendingEvicted:
    """An event about an open call or question was evicted: does the model still know that it is pending?"""

    name = "pending-evicted"

    def __init__(self) -> None:
        self._flagged: dict[str, str] = {}
        """Evicted key → pending action."""

    def look(self, entry: Entry, view: SessionView) -> Found:
        kind, body = entry.kind, entry.body
        if kind == "context.evicted":
            key, handle = str(body.get("key", "")), body.get("handle", 0)
            call = next((call for call in view.open.values() if handle in call.seqs), None)
            if call is None:
                return None
            self._flagged[key] = call.action
            message = f"{call.tool} is pending, and e{handle} about it left the window as {key!r}"
            return RuleFinding(f"{self.name}:{key}", message, "warning", (handle, call.request))
        if not self._flagged:
            return None
        if kind == "context.restored":
            gone = {key: "it is back in the window" for key in self._flagged if key == body.get("key")}
        else:
            gone = {key: "it is no longer pending" for key, action in self._flagged.items() if action not in view.open}
        for key in gone:
            del self._flagged[key]
        return [over(f"{self.name}:{key}", why) for key, why in gone.items()]
