"""Lets a person settle pending calls: approve, deny, reconcile, answer, abandon. None of it runs a tool."""

from __future__ import annotations

from typing import Any

from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log import Log
from wakelog.log.holder import end_of_holder, refuse_if_held
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.machines import ACTION, legal_for_action
from wakelog.model.records import EventDraft
from wakelog.runtime.ambient import TrustMark
from wakelog.runtime.values import storable, summarise

OUTCOMES = ("succeeded", "failed", "never_ran")


def decide_approval(log: Log, action: str, is_approved: bool, *, by: str = "", why: str = "") -> Seq:
    """Approves or denies a call that waits for approval."""
    pending = _pending(log, action)
    if _is_question(pending):
        raise NotAllowedError(
            f"{action} is a question, not a call that waits for approval",
            kind="action-machine",
            hint=f"wakelog answer {action} TEXT, or wakelog abandon {action}",
        )
    kind = ev.ActionApproved if is_approved else ev.ActionDenied
    if pending["status"] not in ACTION[kind.kind][0]:
        raise NotAllowedError(
            f"{action} does not wait for approval: it is {pending['status']}",
            kind="action-machine",
            hint="wakelog pending",
            legal=legal_for_action(pending["status"]),
        )
    return log.record(EventDraft(kind(action=action, by=by, why=why), actor="user"))


def reconcile(
    log: Log,
    action: str,
    outcome: str = "",
    *,
    output: Any = None,
    by: str = "",
    why: str = "",
    mark: TrustMark | None = None,
) -> Seq:
    """Records what happened to a call whose outcome was unknown. Without an outcome, the newest evidence decides.

    A call that is still listed as running, by a dead process, becomes uncertain first. `mark` is set if a probe found
    the outcome, not a person.
    """
    pending = _pending(log, action)
    if pending["status"] == "waiting":
        raise NotAllowedError(
            f"{action} waits for approval, and has not started",
            kind="action-machine",
            hint="approve or deny it",
            legal=legal_for_action("waiting"),
        )
    if pending["status"] == "running" and pending["turn"] == log.part("turn")["number"]:
        refuse_if_held(log)  # its process is alive and will record the outcome itself
    if not outcome:
        entries = evidence(log, action)
        if not entries:
            raise InvalidInputError(
                f"no worker has reported an outcome of {action}",
                kind="no-evidence",
                hint="find out what happened, and pass succeeded, failed or never_ran",
            )
        newest = entries[-1].body
        outcome, output = str(newest.get("outcome", "")), log.value(entries[-1], newest.get("output"))
        outcome = "failed" if outcome == "timed_out" else outcome
        by, why = by or "evidence", why or f"event {entries[-1].seq} says so"
    if outcome not in OUTCOMES:
        raise InvalidInputError(
            f"{outcome!r} is not an outcome of a call", kind="bad-outcome", hint=f"one of {', '.join(OUTCOMES)}"
        )
    value = storable(output, "the output")
    event = ev.ActionReconciled(
        action=action,
        outcome=outcome,  # type: ignore[arg-type]
        output=value,
        output_summary=summarise(value),
        by=by,
        why=why,
    )
    actor = "user" if mark is None else "runtime"
    found_by = mark or TrustMark()
    settled = EventDraft(event, actor=actor, source=found_by.source, trust=found_by.trust)
    if pending["status"] == "uncertain":
        return log.record(settled)
    unknown = ev.ActionUncertain(action=action, why=end_of_holder(log))
    return log.record(EventDraft(unknown, actor=actor), settled) + 1


def answer(log: Log, request: str, given: Any, *, by: str = "", why: str = "") -> Seq:
    """Answers a question of the agent."""
    pending = _pending(log, request)
    if not _is_question(pending):
        raise NotAllowedError(
            f"{request} is a call, not a question", kind="input-machine", hint="wakelog pending tells how to settle it"
        )
    options = log.entry(pending["seq"]).body.get("options", ())
    if options and given not in options:
        raise InvalidInputError(
            f"{given!r} is not one of the answers to {request}", kind="bad-answer", hint=f"one of {', '.join(options)}"
        )
    return log.record(
        EventDraft(
            ev.InputAnswered(request=request, answer=storable(given, "the answer"), by=by, why=why), actor="user"
        )
    )


def abandon(log: Log, action: str, *, why: str = "") -> Seq:
    """Abandons a pending call: its outcome no longer matters."""
    _pending(log, action)
    return log.record(EventDraft(ev.ActionAbandoned(action=action, why=why), actor="user"))


def evidence(log: Log, action: str) -> list[Entry]:
    """Returns what late or fenced workers reported about a call, oldest first."""
    since = _pending(log, action)["seq"]
    return [e for e in log.entries(after=since) if e.kind == "action.evidence" and e.body.get("action") == action]


def _is_question(pending: dict[str, Any]) -> bool:
    """True for a question to a person. Only these have a prompt; a tool may be called `input` as well."""
    return "prompt" in pending


def _pending(log: Log, action: str) -> dict[str, Any]:
    pending = log.part("pending_actions")
    if action in pending:
        return pending[action]  # type: ignore[no-any-return]
    known = ", ".join(sorted(pending)) or "nothing is"
    raise NotFoundError(
        f"{action!r} is not pending in {log} (pending: {known})",
        kind="action-not-pending",
        hint="wakelog pending",
    )
