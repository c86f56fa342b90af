"""What the log knows of a call: where it was asked for, what settled it, and whether that can be given again.

A call is known by its action's id. Under a caller's key it is found through the id of the commit that asked for it,
without a search, and however long ago that was.
"""

from __future__ import annotations

import hashlib

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.calls import ASKS, Call
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.timeline.points import commit_at


class PastCall(Call):
    """A call of before."""

    is_answer: bool = False
    """Whether the event that settled it is given again to whoever makes the call again. Not if the call never ran, or
    was cut and may be repeated."""


def follow(past: PastCall | None, entry: Entry) -> PastCall | None:
    """What is known of a call after one more event of it."""
    event = entry.seq, entry.kind, entry.header, entry.body
    if entry.kind in ASKS:
        past = PastCall.asked(*event)
    elif past is not None:
        past.take(*event)
    if past is not None and past.settled == entry.seq:
        past.is_answer = _is_answer(entry, past.has_begun)
    return past


def _is_answer(entry: Entry, has_begun: bool) -> bool:
    body = entry.body
    if entry.kind == "action.abandoned":
        # Given up after it began: nobody knows what became of it, so it is not run again, and its caller is told.
        return has_begun and not body.get("inherited")
    if entry.kind == "action.reconciled":
        return bool(body.get("outcome") != "never_ran")
    return not is_cut(body.get("error"))


def is_cut(error: Value) -> bool:
    """Whether a failure only says that the call was cut off, and may be made again."""
    return type(error) is dict and error.get("type") == "interrupted" and bool(error.get("retryable"))


def asked_at(log: Log, action: str, since: Seq) -> PastCall:
    """A call that was asked for at an event, or soon after, followed to the event that settled it, if there is one."""
    past, is_pruned = PastCall(action, request=since), False
    for entry in log.entries(after=since - 1):
        is_pruned = is_pruned or not entry.record.body
        if entry.kind.startswith("action.") and entry.body.get("action") == action:
            past = follow(past, entry) or past
            if past.settled:
                return past
    if is_pruned and action not in log.part("pending_actions"):
        raise gone_error(action, since)
    return past


def by_key(log: Log, action: str) -> tuple[PastCall | None, str]:
    """What is recorded of a call under a caller's key; and, when it may be asked for, the id of the commit to do it
    with. That id settles who comes first when two processes ask at once."""
    number = 1
    while True:
        commit_id = f"call:{action}:{number}"
        at = known_at(log, commit_id)
        if at is None:
            return None, commit_id
        past = asked_at(log, action, commit_at(log, at).first)
        if not past.settled or past.is_answer:
            return past, ""
        number += 1  # that one never ran: it may be asked for again


def known_at(log: Log, commit_id: str) -> Seq | None:
    """Where a commit of that id ends, in this session or in what it was forked from."""
    for segment in log.segments:
        known = log.engine.known(segment.session, commit_id)
        if known is not None and (segment.last is None or known.head.seq <= segment.last):
            return known.head.seq
    return None


def action_of_key(tool: str, key: str) -> str:
    """The id of a call that has a key."""
    return f"{tool}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def gone_error(action: str, seq: Seq) -> NotFoundError:
    """What came of a call was removed, so it can neither be given again nor be taken not to have happened."""
    return NotFoundError(
        f"{action} was called before (event {seq}), and its outcome was erased or pruned",
        kind="result-gone",
        hint="use another key or id, or a new turn",
    )


def check_same(action: str, tool: str, input_hash: str, past: PastCall) -> None:
    """An id the caller chose stands for one call: another tool or input under it is a mistake, and would be answered
    with the wrong result."""
    if past.tool and (past.tool, past.input_hash) != (tool, input_hash):
        what = f"a call of {past.tool}" if past.tool != tool else "other input"
        raise InvalidInputError(
            f"the id {action!r} was used before, at event {past.request}, for {what}",
            kind="call-id-reused",
            hint="ids of calls must be unique in a session; put the turn's number in front, or leave the id out",
        )
