"""A session that was made from hooks alone, whose transcript is found later.

Hooks tell prompts, calls and last words; the transcript tells the same and more. So what hooks told is set aside by a
rewind to before its first turn, and the transcript is written in its place. Nothing is twice in the view, and nothing
is gone from the log. Calls are matched by their ids: those that the transcript does not have are named in a note.
"""

from __future__ import annotations

import msgspec

from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.calls import ASKS
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft

CAPTURE = "capture"
"""The label of a session that has no transcript: it is made from `hooks` alone, or from `notify`."""
NAMED_MAX = 20


class HookedCalls(msgspec.Struct):
    """Calls that hooks told of, by id: the event and the tool."""

    calls: dict[str, tuple[Seq, str]] = {}

    def seen(self, id: str) -> None:
        """The transcript has this call too."""
        self.calls.pop(id, None)

    def note(self) -> str:
        """What only hooks told of; empty when there is nothing."""
        if not self.calls:
            return ""
        named = ", ".join(f"e{seq} {tool}" for seq, tool in [*self.calls.values()][:NAMED_MAX])
        more = f" and {len(self.calls) - NAMED_MAX} more" if len(self.calls) > NAMED_MAX else ""
        return f"Only the hooks told of {named}{more}: the transcript does not have them."


def set_aside(log: Log, expect: Seq, agent: str) -> HookedCalls:
    """Moves the view of a session to before what hooks told of it."""
    told, first = HookedCalls(), 0
    for entry in log.entries():
        if entry.kind == "turn.started":
            first = first or entry.seq
        elif entry.kind in ASKS and first:
            told.calls[str(entry.body.get("action", ""))] = (entry.seq, str(entry.body.get("tool", "")))
    why = f"the transcript of {agent} tells it in full"
    ends: list[ev.Event] = [ev.ActionAbandoned(action=each, why=why) for each in log.part("pending_actions")]
    if log.part("turn")["status"] == "open":
        ends.append(ev.TurnEnded(outcome="interrupted", why=why))
    if log.head().status in ("closed", "archived"):
        ends.insert(0, ev.SessionReopened(why=why))
    if ends:
        expect = log.append(*(EventDraft(each, actor="runtime") for each in ends), expect=expect).seq
    unlabelled = EventDraft(ev.LabelsSet(labels={CAPTURE: None}), actor="runtime")
    if first:
        log.rewind(first - 1, why=why, expect=expect, then=[unlabelled])
    else:
        log.append(unlabelled, expect=expect)
    return told
