"""`crash`: the process is killed in the middle of a call, twice. Once it can be found out what happened; once nobody
knows, and the call stays open as uncertain."""

from __future__ import annotations

from wakelog.cli.demo.scene import Scene
from wakelog.model import events as ev
from wakelog.model.records import EventDraft

FIRST = "crash"


def build(scene: Scene) -> None:
    s = scene.session(FIRST, goal="Bill order 4711 and tell the customer", agent="demo-agent")
    scene.ask(s, "Bill order 4711")
    scene.think(s, "I will charge the card.", tokens=(900, 20))
    given = {"order": 4711, "amount_cents": 4200}
    charge = scene.request(s, "charge_card", given, effect="external", key="order-4711")
    scene.wait(35)  # here the process was killed

    s.append(EventDraft(ev.SessionResumed(host="worker-2", why="worker-1 stopped answering"), actor="runtime"))
    s.append(
        EventDraft(ev.ActionUncertain(action=charge, why="its process ended before the answer came"), actor="runtime")
    )
    with s.turn("go on") as t:  # first ends the turn that was left open, as interrupted
        t.data["order"] = 4711
        found = {"key": "order-4711", "status": "charged", "charge": "ch_9"}
        scene.call(s, "find_charge", {"key": "order-4711"}, found, summary="charged once")
        s.append(
            EventDraft(
                ev.ActionReconciled(
                    action=charge, outcome="succeeded", output=found, by="find_charge", why="found under the same key"
                ),
                actor="runtime",
            )
        )
        s.fact("charged", "ch_9", why="found under the idempotency key; not charged again")
        scene.think(s, "The card was charged once. I will not charge it again.", tokens=(1300, 30))
    scene.wait(10)
    scene.ask(s, "send the receipt")
    mail = scene.request(s, "send_email", {"to": "ada@example.com", "template": "receipt"}, effect="external")
    scene.wait(50)  # killed again

    s.append(EventDraft(ev.SessionResumed(host="worker-3", why="worker-2 stopped answering"), actor="runtime"))
    s.append(
        EventDraft(ev.ActionUncertain(action=mail, why="no key, and the mail server keeps no record"), actor="runtime"),
        EventDraft(ev.TurnEnded(outcome="interrupted", why="the process ended inside it"), actor="runtime"),
    )
