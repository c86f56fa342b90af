"""Moving: rewind, undo, fork."""

from __future__ import annotations

from wakelog.conformance.bench import Bench, fact, message, want
from wakelog.conformance.kit import check


@check("moving")
def rewind_appends(bench: Bench) -> None:
    """A rewind appends one event, `history.rewound`, and removes none; facts and `data` return to what they were."""
    session = bench.open()
    session.add(fact("n", 1))
    session.add(fact("n", 2))
    before = session.events()
    head = session.post("rewind", {"to": "e2", "why": "conformance"}).ok()
    want(4, head["seq"], "seq", bench.last)
    events = session.events()
    want(before, events[:-1], "the events before", bench.last)
    want("history.rewound", events[-1]["kind"], "kind", bench.last)
    state = session.state()
    want((1, {"rewound": 4, "to": 2}), (state["facts"]["n"]["value"], state["view"]), "fact and view", bench.last)
    want(2, session.state(at="e3")["facts"]["n"]["value"], "fact at event 3", bench.last)


@check("moving")
def undo_takes_back(bench: Bench) -> None:
    """Undo reverts the newest rewind by appending an event; if there is none, it is 404 `nothing-to-undo`."""
    session = bench.open()
    session.add(fact("n", 1))
    session.add(fact("n", 2))
    session.post("rewind", {"to": "e2"}).ok()
    answer = session.post("undo").ok()
    want((4, 5), (answer["operation"], answer["head"]["seq"]), "operation and head", bench.last)
    want(2, session.state()["facts"]["n"]["value"], "fact", bench.last)
    session.post("undo").refused(404, "nothing-to-undo")


@check("moving", needs="views")
def rewind_moves_the_view(bench: Bench) -> None:
    """Messages after the point of a rewind are not in view; undoing the rewind shows them again."""
    session = bench.open()
    session.add(message("a"))
    session.add(message("b"))

    def view() -> list[str]:
        return [each["content"] for each in session.get("messages").ok()["messages"]]

    session.post("rewind", {"to": "e2"}).ok()
    want(["a"], view(), "messages", bench.last)
    session.add(message("c"))
    want(["a", "c"], view(), "messages", bench.last)
    session.post("undo").ok()
    want(["a", "b"], view()[:2], "messages", bench.last)


@check("moving")
def fork_shares_history(bench: Bench) -> None:
    """A fork at n shares events 1 to n with their hashes; its own first event is n + 1, `session.forked`, and its head
    names its `parent`."""
    session = bench.open()
    session.add(fact("n", 1))
    head = session.add(fact("n", 2))
    child = bench.fork(session, "e2", bench.name())
    want({"session": session.id, "at": 2}, child.opened["parent"], "parent", bench.last)
    theirs, ours = child.events(), session.events()
    want([each["hash"] for each in ours[:2]], [each["hash"] for each in theirs[:2]], "shared hashes", bench.last)
    want([(3, "session.forked")], [(each["seq"], each["kind"]) for each in theirs[2:]], "own events", bench.last)
    want(1, child.state()["facts"]["n"]["value"], "fact", bench.last)
    want(head["hash"], session.head()["hash"], "the parent's head", bench.last)


@check("moving")
def fork_is_apart(bench: Bench) -> None:
    """Events appended to a fork are not in its parent, and the other way round."""
    session = bench.open()
    child = bench.fork(session)
    session.add(message("parent"))
    child.add(message("child"))
    for each, own, other in ((session, b'"parent"', b'"child"'), (child, b'"child"', b'"parent"')):
        reply = each.get("events", after=1, kind="message")
        want((True, False), (own in reply.content, other in reply.content), "own and other's", reply.request)
