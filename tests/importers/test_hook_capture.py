"""A session that hooks recorded before its transcript was found: it gives way to the transcript."""

from wakelog.engines.memory import MemoryEngine
from wakelog.importers.writer.hook_capture import CAPTURE, rewind_hook_events
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.testing.builders import new_session


def test_an_ended_session_with_a_call_of_unknown_outcome_gives_way_too() -> None:
    log = Log.create(MemoryEngine(), new_session(), ev.SessionOpened(labels={CAPTURE: "hooks"}))
    log.append(ev.TurnStarted(), ev.ActionRequested(action="a", tool="t"), ev.ActionStarted(action="a"))
    head = log.append(ev.ActionUncertain(action="a"), ev.TurnEnded(), ev.SessionClosed())
    hooked = rewind_hook_events(log, head.seq, "Claude Code")
    assert hooked.calls == {"a": (3, "t")}
    assert (log.part("labels"), log.part("pending_actions"), log.head().status) == ({}, {}, "active")
