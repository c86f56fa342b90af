"""`big`: one session of 100,000 events, for the claims about size."""

from __future__ import annotations

from wakelog.cli.demo.scene import Scene
from wakelog.model import events as ev
from wakelog.model.records import EventDraft

FIRST = "big"
TURNS = 1000
PER_TURN = 100


def build(scene: Scene) -> None:
    s = scene.session(FIRST, goal="Read every file of a large repository", agent="demo-agent", data={"files": 0})
    for turn in range(1, TURNS + 1):
        # The session's first event makes the first turn one shorter, so that the sum is round.
        s.append(*_turn(turn, PER_TURN - (turn == 1)))
        scene.wait(30)
        scene.progress(PER_TURN)


def _turn(turn: int, size: int) -> list[ev.Event | EventDraft]:
    ask = f"go on with part {turn}"
    out: list[ev.Event | EventDraft] = [
        ev.TurnStarted(input=ask),
        EventDraft(ev.MessageAdded(role="user", content=ask), actor="user"),
    ]
    number = 0
    while len(out) < size - 4:
        number += 1
        path = f"src/part{turn % 50:02}/file{number:02}.py"
        cost = ev.Cost(tokens_in=400 + number, tokens_out=40, usd_micros=1800 + number, duration_us=250_000)
        out += [
            ev.ActionRecorded(
                action=f"r{turn}-{number}",
                tool="read_file",
                effect="read",
                input={"path": path},
                output_summary=f"{turn * number % 400} lines",
                cost=cost,
            ),
            ev.ResourceTouched(resource=path, category="file"),
        ]
    out.append(ev.FactRecorded(key=f"part{turn % 50:02}", value=f"{number} files read", why=f"turn {turn}"))
    patch = [{"op": "replace", "path": "/data/files", "value": turn * number}]
    out.append(ev.StatePatched(patch=patch))
    while len(out) < size - 1:
        out.append(ev.MessageAdded(role="assistant", content=f"Part {turn}: {number} files read."))
    out.append(EventDraft(ev.TurnEnded(), actor="runtime"))
    return out
