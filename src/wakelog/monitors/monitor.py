"""A monitor: rules that run over one session's log, and write down what they find.

What is found becomes `flag.raised`, with the event that led to it as its cause, and `session.paused` in the same commit
when the rule asks for it and the monitor may. The commit's id is made from rule, flag and cause. So a finding is
written once, however often it is found: after a restart, by two monitors at the same time, or in a look back over the
whole session. That is why a monitor keeps no place of its own on disk. It reads again from the beginning, and what is
known already comes to nothing.
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
from wakelog.monitors.rules import Found, Given, Rule, RuleFinding, as_findings, fresh
from wakelog.monitors.session_rules import BudgetRule, LeaseTakeover, PendingEvicted, Stall
from wakelog.monitors.session_view import ACTOR, SessionView
from wakelog.monitors.trust_rules import SecretSeen, UntrustedEffect
from wakelog.timeline.messages import content_of

WARM_UP = 2000
"""How many events before the first one judged are read, so that rules know what came before."""

PAUSING = ("budget",)
"""The rules that pause a session unless told otherwise: whoever sets a budget wants it kept."""


def pausing(on_effect: str) -> tuple[str, ...]:
    """The rules that may pause a session, given what an untrusted effect is to lead to."""
    return (*PAUSING, "untrusted-effect") if on_effect == "ask" else PAUSING


class RaisedFinding(msgspec.Struct, frozen=True):
    """A finding, and what became of it. `seq` is the event that was written; 0 when the monitor only looks."""

    session: SessionId
    rule: str
    finding: RuleFinding
    cause: Seq
    seq: Seq = 0
    has_paused: bool = False


class Monitor:
    """Rules over one log. Call `catch_up` when there may be something new; it can be shared by threads."""

    def __init__(
        self,
        log: Log,
        rules: Iterable[Given] | None = None,
        *,
        pause: bool | Collection[str] = PAUSING,
        after: Seq | None = None,
        writes: bool = True,
    ) -> None:
        """`pause` names the rules that may pause the session, or says that all may, or none. Events up to `after` are
        not judged; by default all are that the session holds itself, and not its parent. Without `writes` it only
        looks."""
        self.log = log
        self.rules: list[Rule] = [fresh(rule) for rule in (built_in() if rules is None else rules)]
        self._pause = pause
        self._writes = writes
        self._lock = threading.RLock()
        own = log.segments[-1].first - 1
        self._judges_after = max(own, after or 0)
        self._seen = self._begin(max(0, self._judges_after - WARM_UP))
        self._seen.read = functools.partial(content_of, log)
        self._found: deque[tuple[str, RuleFinding, Seq]] = deque()
        self._is_gone = False
        """The newest events were pruned: the state after them is to be found elsewhere."""

    @property
    def seq(self) -> Seq:
        """How far it has read."""
        return self._seen.seq

    def guard(self) -> None:
        """`catch_up` for those who call it before something new begins: a pause stops that."""
        self.catch_up()

    def catch_up(self) -> list[RaisedFinding]:
        """Shows the rules what is new, and writes what they find. Returns what was not known before."""
        with self._lock:
            self._read()
            return self._write()

    def tick(self, now: int | None = None) -> list[RaisedFinding]:
        """Catches up, and asks the rules that look at the clock."""
        with self._lock:
            self._read()
            seen, time = self._seen, self.log.clock() if now is None else now
            seen.holder = self.log.living_holder
            for rule in list(self.rules):
                if tick := getattr(rule, "tick", None):
                    for finding in self._ask(rule, functools.partial(tick, time, seen)):
                        self._found.append((_name(rule), finding, seen.last))
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
        """Shows the rules what is new. What they find waits to be written, so that no failure on the way loses it."""
        if self.log.head().seq <= self._seen.seq:
            return
        for entry in self.log.entries(after=self._seen.seq):
            if not self._take(entry):
                continue
            for rule in list(self.rules):
                for finding in self._ask(rule, functools.partial(rule.look, entry, self._seen)):
                    if entry.seq > self._judges_after:
                        self._found.append((_name(rule), finding, entry.seq))

    def _take(self, entry: Entry) -> bool:
        """Brings what was seen forward; False when there is nothing for rules to look at."""
        seen = self._seen
        if not entry.record.body:
            seen.seq, self._is_gone = entry.seq, True
            return False
        if self._is_gone:
            before = fold_at(self.log.engine, self.log.segments, entry.seq - 1).fold
            seen.go_on_from(before, entry.seq - 1, entry.header.at)
            self._is_gone = False
        seen.take(entry)
        if entry.kind in ("payload.erased", "range.pruned"):
            # What was removed may be in the state that was folded here.
            seen.go_on_from(fold_at(self.log.engine, self.log.segments, entry.seq).fold, entry.seq, entry.header.at)
        return entry.header.actor != ACTOR

    def _ask(self, rule: Rule, question: Callable[[], Found]) -> tuple[RuleFinding, ...]:
        """What a rule says. One that fails is not asked again; that is flagged too, since nobody looks any more."""
        try:
            return as_findings(question())
        except Exception as exc:  # own rules are foreign code
            return self._retire(rule, exc)

    def _retire(self, rule: Rule, exc: Exception) -> tuple[RuleFinding, ...]:
        self.rules.remove(rule)
        message = f"the rule {_name(rule)} failed and is not asked any more: {type(exc).__name__}: {exc}"
        return (RuleFinding(f"broken-rule:{_name(rule)}", message[:500]),)

    # Writing

    def _write(self) -> list[RaisedFinding]:
        raised: list[RaisedFinding] = []
        while self._found:
            done = self._settle(*self._found[0])
            self._found.popleft()
            if done is not None:
                raised.append(done)
        if self._writes and any(done.rule == "budget" for done in raised):
            budgets.note_reached(self.log, budgets.reached(self.log.part("budget")), actor=ACTOR)
        return raised

    def _settle(self, rule: str, finding: RuleFinding, cause: Seq) -> RaisedFinding | None:
        """Writes a finding; None when that was done before, or there is nothing to clear."""
        log = self.log
        commit_id = _commit_id(rule, finding, cause)
        if log.engine.known(log.id, commit_id) is not None:
            return None
        if finding.is_over and not self._stands(finding.flag, cause):
            return None
        done = RaisedFinding(log.id, rule, finding, cause)
        if not self._writes:
            return done
        draft = EventDraft(_event(rule, finding), actor=ACTOR, cause=cause)
        if finding.pause and self._may_pause(rule) and self._is_present(finding, cause):
            pause = EventDraft(self._paused(finding), actor=ACTOR, cause=cause)
            if head := self._append([draft, pause], commit_id):
                return msgspec.structs.replace(done, seq=self._place(finding, head), has_paused=True)
        head = self._append([draft], commit_id)
        return msgspec.structs.replace(done, seq=self._place(finding, head)) if head else None

    def _append(self, drafts: list[EventDraft], commit_id: str) -> Seq:
        """The new head; 0 when the session takes no such event now, or another monitor wrote this one first."""
        try:
            return self.log.append(*drafts, commit_id=commit_id).seq
        except NotAllowedError:
            return 0
        except InvalidInputError as exc:
            if exc.kind != "commit-id-reused":
                raise
            return 0

    def _place(self, finding: RuleFinding, head: Seq) -> Seq:
        standing = self.log.part("flags").get(finding.flag)
        return standing["seq"] if standing and not finding.is_over else head

    def _stands(self, flag: str, cause: Seq) -> bool:
        """Whether the flag is raised, by something older than what would clear it."""
        standing = self.log.part("flags").get(flag)
        if standing is None:
            # When nothing is written, nothing stands either; what was found and is over is told as that.
            return not self._writes
        return self.log.entry(standing["seq"]).header.cause < cause

    def _may_pause(self, rule: str) -> bool:
        return self._pause if isinstance(self._pause, bool) else rule in self._pause

    def _is_present(self, finding: RuleFinding, cause: Seq) -> bool:
        """Whether what was found still holds, as far as that was read. Nothing is paused for what is over, or for what
        a person has seen and gone on from."""
        if finding.flag.startswith("budget:"):
            return bool(budgets.reached(self.log.part("budget")))
        later = itertools.islice(self._found, 1, None)
        return cause > self._seen.told_to_go_on and not any(f.is_over and f.flag == finding.flag for _, f, _ in later)

    def _paused(self, finding: RuleFinding) -> ev.SessionPaused:
        spent = budgets.reached(self.log.part("budget")) if finding.flag.startswith("budget:") else ()
        if spent:
            return ev.SessionPaused(why=budgets.how_to_go_on(self.log, spent))
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
    """The rules that come with wakelog. An effect with untrusted content leads to `flag`, or to `ask`: a pause."""
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
