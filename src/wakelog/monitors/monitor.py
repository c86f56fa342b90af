"""A monitor: runs rules over one session's log and records what they find.

A finding becomes a `flag.raised` event, with the event that led to it as its cause. If the rule asks for it and the
monitor may, `session.paused` is in the same commit. The commit id is made from rule, flag and cause, so a finding is
recorded once, however often it is found: after a restart, by two monitors at the same time, or when the whole session
is read again. Therefore a monitor stores no position: it reads from the start and skips what is recorded already.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable

import msgspec

from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry, fold_at
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import EventDraft
from wakelog.monitors import budgets
from wakelog.monitors.repetition_rules import Loop, RepeatedFailure, RetryDivergence
from wakelog.monitors.rules import Found, Given, Rule, RuleFinding, as_findings, new_rule
from wakelog.monitors.session_rules import BudgetRule, LeaseTakeover, PendingEvicted, Stall
from wakelog.monitors.session_view import ACTOR, SessionView
from wakelog.monitors.trust_rules import SecretSeen, UntrustedEffect
from wakelog.timeline.messages import content_of

WARM_UP = 2000
"""How many earlier events to read before the first one that is judged, so that rules know the context."""

PAUSING = ("budget",)
"""The rules that pause a session by default: a budget is meant to be a limit."""


def pausing_rules(on_effect: str) -> tuple[str, ...]:
    """The rules that may pause a session. `on_effect` is what to do about an untrusted effect: `flag` or `ask`."""
    return (*PAUSING, "untrusted-effect") if on_effect == "ask" else PAUSING


class RaisedFinding(msgspec.Struct, frozen=True):
    """A finding that is new. `seq` is the event that records it; 0 if the monitor does not write."""

    session: SessionId
    rule: str
    finding: RuleFinding
    cause: Seq
    seq: Seq = 0
    has_paused: bool = False


class Monitor:
    """Rules over one log. Call `catch_up` when there may be new events. Threads may share a monitor."""

    def __init__(
        self,
        log: Log,
        rules: Iterable[Given] | None = None,
        *,
        pause: bool | Collection[str] = PAUSING,
        after: Seq | None = None,
        writes: bool = True,
    ) -> None:
        """`pause` names the rules that may pause the session; True means all, False none. Events up to `after` are not
        judged; by default, all events of the session are, but not those of its parent. Without `writes`, findings are
        returned but not recorded."""
        self.log = log
        self.rules: list[Rule] = [new_rule(rule) for rule in (built_in() if rules is None else rules)]
        self._pause = pause
        self._writes = writes
        self._lock = threading.RLock()
        own = log.segments[-1].first - 1
        self._judges_after = max(own, after or 0)
        self._seen = self._begin(max(0, self._judges_after - WARM_UP))
        self._seen.read = functools.partial(content_of, log)
        self._queue: deque[tuple[str, RuleFinding, Seq]] = deque()
        self._is_stale = False
        """Whether the newest events read were pruned, so that the state has to be folded again."""

    @property
    def seq(self) -> Seq:
        """The last event it has read."""
        return self._seen.seq

    def guard(self) -> None:
        """Catches up before something new begins, so that a pause can stop it."""
        self.catch_up()

    def catch_up(self) -> list[RaisedFinding]:
        """Passes new events to the rules and records what they find. Returns the new findings."""
        with self._lock:
            self._read()
            return self._write()

    def tick(self, now: int | None = None) -> list[RaisedFinding]:
        """Catches up, and runs the rules that need the clock."""
        with self._lock:
            self._read()
            view, time = self._seen, self.log.clock() if now is None else now
            view.holder = self.log.living_holder
            for rule in list(self.rules):
                if tick := getattr(rule, "tick", None):
                    for finding in self._run(rule, functools.partial(tick, time, view)):
                        self._queue.append((_name(rule), finding, view.last))
            return self._write()

    # Reading

    def _begin(self, start: Seq) -> SessionView:
        if start:
            try:
                return SessionView(fold_at(self.log.engine, self.log.segments, start).fold, start, self._time_of(start))
            except NotFoundError as exc:
                if exc.kind != "pruned":
                    raise
        return SessionView()

    def _time_of(self, seq: Seq) -> int:
        return self.log.entry(seq).header.at

    def _read(self) -> None:
        """Passes new events to the rules. Findings are queued before they are recorded, so that no error loses one."""
        if self.log.head().seq <= self._seen.seq:
            return
        for entry in self.log.entries(after=self._seen.seq):
            if not self._take(entry):
                continue
            for rule in list(self.rules):
                for finding in self._run(rule, functools.partial(rule.look, entry, self._seen)):
                    if entry.seq > self._judges_after:
                        self._queue.append((_name(rule), finding, entry.seq))

    def _take(self, entry: Entry) -> bool:
        """Updates the session view; False if rules should not see this event."""
        view = self._seen
        if not entry.record.body:
            view.seq, self._is_stale = entry.seq, True
            return False
        if self._is_stale:
            before = fold_at(self.log.engine, self.log.segments, entry.seq - 1).fold
            view.restart_from(before, entry.seq - 1, entry.header.at)
            self._is_stale = False
        view.take(entry)
        if entry.kind in ev.REMOVAL_KINDS:
            # The state folded here may contain what was removed.
            view.restart_from(fold_at(self.log.engine, self.log.segments, entry.seq).fold, entry.seq, entry.header.at)
        return entry.header.actor != ACTOR

    def _run(self, rule: Rule, look: Callable[[], Found]) -> tuple[RuleFinding, ...]:
        """The findings of a rule. A rule that fails is removed, and a flag says so."""
        try:
            return as_findings(look())
        except Exception as exc:  # a user's rule may raise anything
            self.rules.remove(rule)
            message = f"the rule {_name(rule)} failed and was switched off: {type(exc).__name__}: {exc}"
            return (RuleFinding(f"broken-rule:{_name(rule)}", message[:500]),)

    # Writing

    def _write(self) -> list[RaisedFinding]:
        raised: list[RaisedFinding] = []
        while self._queue:
            finding = self._record(*self._queue[0])
            self._queue.popleft()
            if finding is not None:
                raised.append(finding)
        if self._writes and any(finding.rule == "budget" for finding in raised):
            budgets.note_reached(self.log, budgets.reached_limits(self.log.part("budget")), actor=ACTOR)
        return raised

    def _record(self, rule: str, finding: RuleFinding, cause: Seq) -> RaisedFinding | None:
        """Records a finding; None if it is recorded already or there is no flag to clear."""
        log = self.log
        commit_id = _commit_id(rule, finding, cause)
        if log.engine.known(log.id, commit_id) is not None:
            return None
        if finding.is_over and not self._is_raised(finding.flag, cause):
            return None
        done = RaisedFinding(log.id, rule, finding, cause)
        if not self._writes:
            return done
        draft = EventDraft(_event(rule, finding), actor=ACTOR, cause=cause)
        if finding.pause and self._may_pause(rule) and self._still_holds(finding, cause):
            pause = EventDraft(self._pause_event(finding), actor=ACTOR, cause=cause)
            if head := self._append([draft, pause], commit_id):
                return msgspec.structs.replace(done, seq=self._flag_seq(finding, head), has_paused=True)
        head = self._append([draft], commit_id)
        return msgspec.structs.replace(done, seq=self._flag_seq(finding, head)) if head else None

    def _append(self, drafts: list[EventDraft], commit_id: str) -> Seq:
        """The new head; 0 if the session does not accept the event now, or another monitor recorded it first."""
        try:
            return self.log.append(*drafts, commit_id=commit_id).seq
        except NotAllowedError:
            return 0
        except InvalidInputError as exc:
            if exc.kind != "commit-id-reused":
                raise
            return 0

    def _flag_seq(self, finding: RuleFinding, head: Seq) -> Seq:
        raised = self.log.part("flags").get(finding.flag)
        return raised["seq"] if raised and not finding.is_over else head

    def _is_raised(self, flag: str, cause: Seq) -> bool:
        """Whether the flag was raised by something older than what would clear it."""
        raised = self.log.part("flags").get(flag)
        if raised is None:
            # Without writing, no flag is ever raised; then every clearing is returned.
            return not self._writes
        return self.log.entry(raised["seq"]).header.cause < cause

    def _may_pause(self, rule: str) -> bool:
        return self._pause if isinstance(self._pause, bool) else rule in self._pause

    def _still_holds(self, finding: RuleFinding, cause: Seq) -> bool:
        """Whether a finding still holds after everything that was read. The session is not paused for something that is
        over, or after which a person continued."""
        if finding.flag.startswith("budget:"):
            return bool(budgets.reached_limits(self.log.part("budget")))
        later = itertools.islice(self._queue, 1, None)
        return cause > self._seen.told_to_go_on and not any(f.is_over and f.flag == finding.flag for _, f, _ in later)

    def _pause_event(self, finding: RuleFinding) -> ev.SessionPaused:
        spent = budgets.reached_limits(self.log.part("budget")) if finding.flag.startswith("budget:") else ()
        if spent:
            return ev.SessionPaused(why=budgets.budget_hint(self.log, spent))
        return ev.SessionPaused(why=f"{finding.flag}: {finding.message}")


def _event(rule: str, finding: RuleFinding) -> ev.Event:
    if finding.is_over:
        return ev.FlagCleared(flag=finding.flag, why=finding.message)
    return ev.FlagRaised(
        flag=finding.flag,
        rule=rule,
        message=finding.message,
        severity=finding.severity,
        targets=finding.targets,
        count=finding.count,
    )


def _commit_id(rule: str, finding: RuleFinding, cause: Seq) -> str:
    parts = "\0".join((rule, finding.flag, str(cause), str(finding.is_over)))
    return f"flag:{hashlib.sha256(parts.encode()).hexdigest()[:32]}"


def _name(rule: Rule) -> str:
    return str(getattr(rule, "name", "") or type(rule).__name__)


def built_in(*, on_effect: str = "flag") -> list[Rule]:
    """The rules that come with wakelog. With `on_effect="ask"`, an untrusted effect pauses the session."""
    return [
        RepeatedFailure(),
        Loop(),
        UntrustedEffect(pause=on_effect == "ask"),
        RetryDivergence(),
        BudgetRule(),
        Stall(),
        LeaseTakeover(),
        PendingEvicted(),
        SecretSeen(),
    ]
