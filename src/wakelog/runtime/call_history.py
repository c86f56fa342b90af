"""What the log knows of a call: where it was requested, what settled it, and whether that outcome can be reused.

A call is identified by its action id. A call with a caller's key is found through the id of the commit that requested
it. That needs no search, however old the call is.
"""

from __future__ import annotations

import hashlib

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.calls import BEGIN_KINDS, Call
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.runtime.policy import SAFE
from wakelog.runtime.values import NOT_STORABLE
from wakelog.timeline.points import commit_at


class PastCall(Call):
    """A call that the log already knows."""

    is_answer: bool = False
    """Whether its recorded outcome answers the same call made again. Not if it never ran, or was interrupted and may be
    repeated."""
    has_happened: bool = False
    """Whether its effect certainly happened although it failed: it ran, and its result could not be stored."""

    @property
    def may_run_again(self) -> bool:
        """Whether a failed turn that is continued makes it again."""
        return self.is_failure and not self.has_happened


def add_event(past: PastCall | None, entry: Entry) -> PastCall | None:
    """Returns what is known of a call after one more of its events."""
    event = entry.seq, entry.kind, entry.header, entry.body
    if entry.kind in BEGIN_KINDS:
        past = PastCall.asked(*event)
    elif past is not None:
        past.take(*event)
    if past is not None and past.settled == entry.seq:
        past.is_answer = _is_answer(entry, past.has_begun)
        error = entry.body.get("error")
        past.has_happened = past.effect not in SAFE and type(error) is dict and error.get("type") == NOT_STORABLE
    return past


def _is_answer(entry: Entry, has_begun: bool) -> bool:
    body = entry.body
    if entry.kind == "action.abandoned":
        # If it was abandoned after it began, its effect may have happened: it is not run again.
        return has_begun and not body.get("inherited")
    if entry.kind == "action.reconciled":
        return bool(body.get("outcome") != "never_ran")
    return not is_interrupted(body.get("error"))


def is_interrupted(error: Value) -> bool:
    """Whether a failure only means that the call was interrupted and may be made again."""
    return type(error) is dict and error.get("type") == "interrupted" and bool(error.get("retryable"))


def read_call(log: Log, action: str, since: Seq) -> PastCall:
    """Reads a call that was requested at event `since` or soon after, up to the event that settled it, if any."""
    past, is_pruned = PastCall(action, request=since), False
    for entry in log.entries(after=since - 1):
        is_pruned = is_pruned or not entry.record.body
        if entry.kind.startswith("action.") and entry.body.get("action") == action:
            past = add_event(past, entry) or past
            if past.settled:
                return past
    if is_pruned and action not in log.part("pending_actions"):
        raise gone_error(action, since)
    return past


def find_by_key(log: Log, action: str) -> tuple[PastCall | None, str]:
    """Finds a call with a caller's key. If there is none, returns the commit id to request it with: of two processes
    that use the id at the same time, only one succeeds."""
    number = 1
    while True:
        commit_id = f"call:{action}:{number}"
        at = find_commit(log, commit_id)
        if at is None:
            return None, commit_id
        past = read_call(log, action, commit_at(log, at).first)
        if not past.settled or past.is_answer:
            return past, ""
        number += 1  # that one never ran: it may be requested again


def find_commit(log: Log, commit_id: str) -> Seq | None:
    """Returns the last seq of the commit with that id, in this session or in what it was forked from."""
    for segment in log.segments:
        known = log.engine.known(segment.session, commit_id)
        if known is not None and (segment.last is None or known.head.seq <= segment.last):
            return known.head.seq
    return None


def action_of_key(tool: str, key: str) -> str:
    """Returns the action id of a call with a key."""
    return f"{tool}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def gone_error(action: str, seq: Seq) -> NotFoundError:
    """The outcome was removed. It can neither be reused nor counted as never happened."""
    return NotFoundError(
        f"{action} was called before (event {seq}), and its outcome was erased or pruned",
        kind="result-gone",
        hint="use another key or id, or a new turn",
    )


def check_same(action: str, tool: str, input_hash: str, past: PastCall) -> None:
    """Raises if the caller used the id before for another tool or input: it would be answered with the wrong result."""
    if past.tool and (past.tool, past.input_hash) != (tool, input_hash):
        what = f"a call of {past.tool}" if past.tool != tool else "other input"
        raise InvalidInputError(
            f"the id {action!r} was used before, at event {past.request}, for {what}",
            kind="call-id-reused",
            hint="ids of calls must be unique in a session; put the turn's number in front, or leave the id out",
        )
