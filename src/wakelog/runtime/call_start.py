"""The beginning of a call: made before? Then its recorded outcome is given again. Else its intent becomes durable.

A call is made before if the caller's key or id says so, or if the attempt that this turn continues made it. What was
open then goes on by its policy: it is sent again, asked about, or left to a person. Whatever starts is recorded as
started first, and refused when another process has taken the turn over.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from wakelog.codec.canonical import hash_value
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, WakelogError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.monitors.budgets import check_budget
from wakelog.runtime.ambient import TRUSTED, Call, Mark, inside, mark_here
from wakelog.runtime.call_end import status_of
from wakelog.runtime.call_history import action_of_key, asked_at, by_key, check_same, gone_error
from wakelog.runtime.call_values import Given, Next, Running
from wakelog.runtime.flow import Flow
from wakelog.runtime.operator import decide_approval, reconcile
from wakelog.runtime.outcome import Outcome, approval_error, running_error, uncertain_error
from wakelog.runtime.policy import SAFE, Found
from wakelog.runtime.recorded_stream import answered_again
from wakelog.runtime.recovery import OpenTurn
from wakelog.runtime.tools import Do, Steps, Tool, Wait
from wakelog.runtime.turn_record import TurnRecord, done_error
from wakelog.runtime.values import without

if TYPE_CHECKING:
    from wakelog.files.capture import Capture

Approver = Callable[[Call, dict[str, Any]], bool | None]
"""Asked when a call needs approval: True, False, or None when it cannot say now."""


class Beginning:
    """What a runtime knows, and how its calls begin."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.tools: dict[str, Tool] = {}
        self.flow = Flow(log)
        self.turn: OpenTurn | None = None
        """The turn that is open in this process."""
        self.at_work: list[str] = []
        """The actions that this process is working on now."""
        self.guards: list[Callable[[], None]] = []
        """Asked before each call with effects, and after each outcome; one may raise, or pause the session."""
        self.approver: Approver | None = None
        self.asks_untrusted = False
        """Whether an effect that rests on untrusted input needs approval, whatever its policy says."""
        self.approval_wait_s = 0.0
        """How long a call waits for an approval that is given elsewhere, before it stops the turn."""
        self.capture: Capture | None = None
        self.guard: int | None = None
        """The epoch of the lease this process holds, if it took one."""

    def prepare(self, given: Given) -> Running:
        """What can be said of a call before the log is asked: its input, its hash, its id."""
        tool, policy = given.tool, given.tool.policy
        stored = without(given.arguments, policy.redact) if given.stored is None else given.stored
        digest = hash_value(stored)
        key = given.action or (str(policy.key(**given.arguments)) if policy.key is not None else "")
        if key:
            action = given.action or action_of_key(tool.name, key)
        elif self.turn is not None:
            action = self.turn.action_of(tool.name, digest, inside())
        else:
            action = f"{tool.name}-{secrets.token_hex(6)}"
        call = Call(action, tool.name, key or f"{self.log.id}/{action}")
        return Running(call, given, stored, digest, given.exposure or TRUSTED, has_key=bool(key))

    def begun(self, running: Running) -> Steps[Outcome | None]:
        """To the point where the function runs; or the outcome, when it need not."""
        try:
            begun = yield Do(functools.partial(self._begin, running))
            if begun is Next.WAIT:
                begun = yield from self._approved(running)
            if isinstance(begun, Outcome):
                return begun
            if self.capture is not None and self._captures(running.given):
                running.picture = yield Do(self.capture.before)
            return None
        except BaseException as exc:
            if running.is_started:
                yield Do(functools.partial(self.take_back, running, exc))
            raise

    def _begin(self, running: Running) -> Outcome | Next:
        """Finds out whether this call was made before, and records its intent if not."""
        if self.turn is not None and self.turn.record is not None and self.turn.is_done:
            return self._from_record(running, self.turn.record)
        if running.has_key:
            while True:
                begun = self._begin_by_key(running)
                if begun is not Next.ASK:
                    return begun
        past = self.turn.past(running.call.action) if self.turn is not None else None
        if past is not None and past.is_answer:
            return self._repeat(running, self.log.entry(past.settled))
        begun = self._go_on(running, past.request) if past is not None and not past.settled else Next.ASK
        return self._request(running) if begun is Next.ASK else begun

    def _begin_by_key(self, running: Running) -> Outcome | Next:
        """The same under a key. ASK: another process was quicker, and what it did is to be looked at."""
        call = running.call
        past, commit_id = by_key(self.log, call.action)
        if past is not None:
            if running.given.action:
                check_same(call.action, call.tool, running.input_hash, past)
            if past.is_answer:
                return self._repeat(running, self.log.entry(past.settled))
            return self._go_on(running, past.request)
        try:
            return self._request(running, commit_id)
        except (InvalidInputError, NotAllowedError) as exc:
            if exc.kind not in ("commit-id-reused", "action-machine"):
                raise
            return Next.ASK

    def _captures(self, given: Given) -> dict[str, bool]:
        """Said in the request, so that a call without changes of files is known to have made none."""
        return {"captures": True} if self.capture is not None and has_effects(given) else {}

    def _request(self, running: Running, commit_id: str = "") -> Next:
        """Records the intent of a new call."""
        given, policy, call = running.given, running.given.tool.policy, running.call
        self._ask_guards(given)
        approval = bool(policy.approval(**given.arguments)) if callable(policy.approval) else policy.approval
        approval = approval or (self.asks_untrusted and has_effects(given) and self._is_untrusted(running))
        if policy.effect == "pure" and not (policy.retry or approval or commit_id):
            running.is_open = False
            running.mark = self.flow.mark_of_agent(running.mark)
            return Next.RUN
        if not policy.is_safe:
            self._refuse_if_uncertain(running)
        request = ev.ActionRequested(
            action=call.action,
            tool=call.tool,
            effect=policy.effect,
            input=running.input,
            input_hash=running.input_hash,
            key=call.key,
            approval=approval,
            # The runner makes the content this caller's own: two that ask under one commit id are told apart.
            policy={**policy.stored(), **self._captures(given), "runner": f"{os.getpid()}-{secrets.token_hex(4)}"},
            params=given.params,
            context_hash=given.context_hash,
            inside=inside(),
            why=given.why,
        )
        draft = self.flow.draft(request, mark=running.mark, derived_from=given.derived_from)
        running.mark = Mark(draft.trust, draft.source)
        if approval:
            running.asked = self.log.append(self.placed(draft), commit_id=commit_id, guard=self.guard).seq
            return Next.WAIT
        self.start(running, draft, commit_id=commit_id)
        return Next.RUN

    def _is_untrusted(self, running: Running) -> bool:
        """Whether the call would be made on the word of something nobody trusts."""
        return self.flow.mark_of_agent(running.mark).lowered(mark_here()).trust == "untrusted"

    def _refuse_if_uncertain(self, running: Running) -> None:
        """The same effect is not tried again while nobody knows what became of it the last time."""
        call = running.call
        for action, pending in self.log.part("pending_actions").items():
            is_same = (pending["tool"], pending.get("input_hash")) == (call.tool, running.input_hash)
            if is_same and pending["status"] == "uncertain":
                raise uncertain_error(self.name, action, call.tool)

    def start(self, running: Running, *before: EventDraft, commit_id: str = "") -> None:
        """Records that a call starts."""
        started = EventDraft(
            ev.ActionStarted(action=running.call.action, attempt=running.call.attempt), actor="runtime"
        )
        running.is_started = True
        try:
            self.log.append(*map(self.placed, (*before, started)), commit_id=commit_id, guard=self.guard)
        except (NotAllowedError, ConflictError, InvalidInputError):
            running.is_started = False  # nothing was written
            raise

    def placed(self, draft: EventDraft) -> EventDraft:
        """A draft that is refused once another process has taken over the turn that is open in this one."""
        return draft if self.turn is None else msgspec.structs.replace(draft, within=self.turn.within)

    def take_back(self, running: Running, why: BaseException) -> None:
        """A call was stopped between its intent and its start: that it did not happen is known, and noted."""
        with contextlib.suppress(WakelogError):
            pending = self.log.part("pending_actions").get(running.call.action)
            if pending is not None and pending["status"] in ("requested", "running"):
                cut = ev.Failure("interrupted", f"{type(why).__name__} before it began", retryable=True)
                # In a turn it can still be continued, and an approval that was given for it holds.
                failed = ev.ActionFailed(action=running.call.action, error=cut, retry=self.turn is not None)
                self.log.append(EventDraft(failed, actor="runtime"), guard=self.guard)

    # What is open since before

    def _go_on(self, running: Running, since: Seq) -> Outcome | Next:
        """A call that was asked for at `since` or later, and not settled when it was last looked at."""
        call, policy = running.call, running.given.tool.policy
        pending = self.log.part("pending_actions").get(call.action)
        if pending is None:
            return self._settled(running, since)
        call.attempt, call.key = pending.get("attempt", 0) + 1, pending.get("key") or call.key
        if pending["status"] == "waiting":
            running.asked = since
            return Next.WAIT
        if pending["status"] == "running":
            raise running_error(self.name, call.action, call.tool)
        if pending["status"] == "uncertain":
            if policy.probe is not None:
                return self._probe(running)
            if not policy.is_safe:
                raise uncertain_error(self.name, call.action, call.tool)
            cut = ev.Failure("interrupted", "its outcome is unknown; sent again under the same key", retryable=True)
            failed = ev.ActionFailed(action=call.action, error=cut, retry=True)
            self.log.append(self.placed(EventDraft(failed, actor="runtime")), guard=self.guard)
        self._ask_guards(running.given)
        self.start(running)
        return Next.RUN

    def _settled(self, running: Running, since: Seq) -> Outcome | Next:
        """What became of a call that is no longer pending. The event may be on its way still."""
        action = running.call.action
        while True:
            past = asked_at(self.log, action, since)
            if past.settled:
                return self._repeat(running, self.log.entry(past.settled)) if past.is_answer else Next.ASK
            if action in self.log.part("pending_actions"):
                raise running_error(self.name, action, running.call.tool)  # what was on its way did not arrive
            time.sleep(0.001)

    def _probe(self, running: Running) -> Outcome | Next:
        """Asks the other side what became of a call."""
        call, policy = running.call, running.given.tool.policy
        assert policy.probe is not None
        found = policy.probe(call.key, **running.given.arguments)
        if found is None:
            raise uncertain_error(self.name, call.action, call.tool)
        if not isinstance(found, Found):
            raise InvalidInputError(
                f"the probe of {call.tool} returned {type(found).__name__}",
                kind="bad-probe",
                hint="return wakelog.Found(outcome, output), or None when it cannot be told",
            )
        mark = policy.mark(call.tool)
        by = f"probe of {call.tool}"
        seq = reconcile(self.log, call.action, found.outcome, output=found.output, by=by, why=found.why, mark=mark)
        if found.outcome != "never_ran":
            return self._repeat(running, self.log.entry(seq))
        call.attempt = 1
        return Next.ASK

    # Approval

    def _approved(self, running: Running) -> Steps[Outcome | Next]:
        """Waits for an approval as long as it may; then the call runs, is denied, or stops the turn."""
        call = running.call
        if self.approver is not None:
            yield Do(functools.partial(self._ask_approver, running, self.approver))
        deadline = time.monotonic() + self.approval_wait_s
        while True:
            decided = yield Do(functools.partial(self._decided, running))
            if decided is not Next.WAIT:
                return decided  # type: ignore[no-any-return]
            left = deadline - time.monotonic()
            if left <= 0:
                raise approval_error(self.name, call.action, call.tool)
            wait = functools.partial(self.log.engine.wait, self.log.id, after=running.seen, timeout_s=min(left, 1.0))
            yield Wait(wait)

    def _ask_approver(self, running: Running, approver: Approver) -> None:
        answer = approver(running.call, running.given.arguments)
        if answer is not None:
            decide_approval(self.log, running.call.action, answer, by="approver")

    def _decided(self, running: Running) -> Outcome | Next:
        """What was decided on a call that waits."""
        call, running.seen = running.call, self.log.head().seq
        pending = self.log.part("pending_actions").get(call.action)
        if pending is None:
            settled = self._settled(running, running.asked)
            if settled is Next.ASK:
                raise approval_error(self.name, call.action, call.tool)
            return settled
        if pending["status"] == "waiting":
            return Next.WAIT
        self._ask_guards(running.given)
        self.start(running)
        return Next.RUN

    # Given again

    def _repeat(self, running: Running, entry: Entry) -> Outcome:
        """A recorded outcome, given again. One that a cut attempt made is noted in this one, so that its view is
        whole."""
        call, given, body = running.call, running.given, entry.body
        if not entry.is_intact:
            raise gone_error(call.action, entry.seq)
        status, error = status_of(entry)
        output = self.log.value(entry, body.get("output"))
        mark, seq = Mark(entry.header.trust, entry.header.source), entry.seq
        past = self.turn.past(call.action) if self.turn is not None else None
        if past is not None and self.turn is not None and not self.turn.is_done:
            event = ev.ActionRecorded(
                action=call.action,
                tool=call.tool,
                effect=given.tool.policy.effect,
                outcome=status if status in ("succeeded", "timed_out") else "failed",
                input=running.input,
                input_hash=running.input_hash,
                output=output,
                output_summary=str(body.get("output_summary", "")),
                error=error,
                params=given.params,
                stream=body.get("stream") or {},
                reused=body.get("reused") or entry.seq,
                inside=inside(),
            )
            draft = self.flow.draft(event, mark=mark, derived_from=((entry.seq, entry.seq),))
            seq = self.log.record(self.placed(draft), *map(self._changed_again, past.files), guard=self.guard)
        self.flow.result(call.action, seq, mark)
        if given.tool.policy.effect == "model":
            self.flow.answered(seq, mark)
        return answered_again(
            given.tool, Outcome(call.action, call.tool, status, None, error, entry.seq, reused=True), output, body
        )

    def _from_record(self, running: Running, record: TurnRecord) -> Outcome:
        """The outcome of a call of a turn that is completed. What is not on record is not run."""
        call = running.call
        past = record.calls.get(call.action) or (by_key(self.log, call.action)[0] if running.has_key else None)
        if past is None:
            raise done_error(record.id, call.tool)
        if not past.settled and call.action not in self.log.part("pending_actions"):
            past = asked_at(self.log, call.action, past.request)
        if past.settled:
            return self._repeat(running, self.log.entry(past.settled))
        unknown = ev.Failure("uncertain", "nobody has said what became of it")
        return Outcome(call.action, call.tool, "uncertain", error=unknown, seq=past.request, reused=True)

    def _changed_again(self, seq: Seq) -> EventDraft:
        """A change of a file that a cut attempt made: it still stands on disk, and so in view."""
        entry = self.log.entry(seq)
        assert isinstance(entry.event, ev.FileChanged)
        sides = {side: self.log.value(entry, entry.body.get(side)) for side in ("before", "after")}
        return EventDraft(msgspec.structs.replace(entry.event, **sides), actor="tool")

    def _ask_guards(self, given: Given) -> None:
        """Lets the budget and the monitors object before something new begins."""
        check_budget(self.log)
        if given.check is not None:
            given.check()
        if has_effects(given):
            for guard in self.guards:
                guard()

    @property
    def name(self) -> str:
        return self.log.head().name or self.log.id


def has_effects(given: Given) -> bool:
    return given.tool.policy.effect not in SAFE
