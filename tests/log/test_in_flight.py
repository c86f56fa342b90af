"""Several commits of one process are in flight, and their answers are heard in another order than they were given."""

from wakelog.engine import Engine
from wakelog.log import Log
from wakelog.model import events as ev


def test_a_landed_commit_is_not_undone_below_one_that_was_heard_of_first(log: Log, engine: Engine) -> None:
    """The thread of the last commit learns that it was a repetition, before that of the first one has heard anything.
    Undoing the first one alone would leave the state of the second one in its place."""
    given = log.append(ev.ActionRequested(action="a", tool="t"), commit_id="mine")
    first = log.put_in_line(ev.NoteAdded(text="b"), expect=given.seq)
    second = log.put_in_line(ev.ActionSucceeded(action="a"), expect=given.seq + 1)
    repeated = log.put_in_line(ev.ActionRequested(action="a", tool="t"), expect=given.seq + 2, commit_id="mine")
    assert log.land(second).seq == given.seq + 2
    assert log.land(repeated) == given
    assert log.append(ev.NoteAdded(text="c")).seq == given.seq + 3
    assert log.land(first).seq == given.seq + 1
    assert log.state() == Log(engine, log.id).state()
