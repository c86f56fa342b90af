"""Replaces what hooks recorded of a session once its transcript is found.

Hooks record prompts, calls and last words. The transcript has the same and more. So the view is rewound to before the
first turn that came from hooks, and the transcript is written in its place. Nothing is in the view twice, and nothing
is lost from the log. Calls are matched by id; a note names those that the transcript does not have.
"""

from __future__ import annotations

import msgspec

from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft

CAPTURE = "capture"
"""The label of a session without a transcript: it comes from `hooks` alone, or from `notify`."""
NAMED_MAX = 20


class HookedCalls(msgspec.Struct):
    """Calls that hooks recorded, by id, each with its event and tool."""

    calls: dict[str, tuple[Seq, str]] = {}

    def drop(self, id: str) -> None:
        """Drops a call that the transcript has too."""
        self.calls.pop(id, None)

    def note(self) -> str:
        """Names the calls that only hooks recorded. Empty if there are none."""
        if not self.calls:
            return ""
        named = ", ".join(f"e{seq} {tool}" for seq, tool in [*self.calls.values()][:NAMED_MAX])
        more = f" and {len(self.calls) - NAMED_MAX} more" if len(self.calls) > NAMED_MAX else ""
        return f"Only hooks recorded {named}{more}: the transcript does not have them."


def rewind_hook_events(log: Log, expect: Seq, agent: str) -> HookedCalls:
    """Rewinds the view to before what hooks recorded, and returns their calls."""
    hooked, first = HookedCalls(), 0
    for entry in log.entries():
        if entry.kind == "turn.started":
            first = first or entry.seq
        elif entry.kind in BEGIN_KINDS and first:
            hooked.calls[str(entry.body.get("action", ""))] = (entry.seq, str(entry.body.get("tool", "")))
    why = f"the transcript of {agent} has it in full"
    ends: list[ev.Event] = [ev.ActionAbandoned(action=each, why=why) for each in log.part("pending_actions")]
    if log.part("turn")["status"] == "open":
        ends.append(ev.TurnEnded(outcome="interrupted", why=why))
    if log.head().status in ("closed", "archived"):
        # While a session is closed, nothing else is accepted in its commit.
        expect = log.append(EventDraft(ev.SessionReopened(why=why), actor="runtime"), expect=expect).seq
    if ends:
        expect = log.append(*(EventDraft(each, actor="runtime") for each in ends), expect=expect).seq
    unlabelled = EventDraft(ev.LabelsSet(labels={CAPTURE: None}), actor="runtime")
    if first:
        log.rewind(first - 1, why=why, expect=expect, then=[unlabelled])
    else:
        log.append(unlabelled, expect=expect)
    return hooked
