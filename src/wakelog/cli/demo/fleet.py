"""`fleet`: 40 sessions in the middle of a night: most are fine, some need attention."""

from __future__ import annotations

from typing import Any

from wakelog.cli.demo.scene import Scene
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.session import Session

COUNT = 40
_TASKS = ("triage the new issues", "update the dependencies", "answer the forum", "check the backups", "tidy the wiki")
_HOUR = 3600


def build_fleet(scene: Scene) -> None:
    end = scene.start
    for number in range(1, COUNT + 1):
        scene.now = end - (2 * _HOUR + (number * 7 % 41) * 60) * 1_000_000
        task = _TASKS[number % len(_TASKS)]
        s = scene.session(
            f"nightly-{number:02}",
            goal=task.capitalize(),
            agent=f"worker-{number % 6 + 1}",
            labels={"team": ("web", "data", "ops")[number % 3]},
            limits={"usd_micros": 200_000},
        )
        for step in range(1, number % 4 + 2):
            _step(scene, s, task, step)
        _ending_of(number)(scene, s, end)
        scene.progress(1)


def _step(scene: Scene, s: Session[Any], task: str, step: int) -> None:
    with s.turn(f"{task}, part {step}") as t:
        scene.think(s, f"Part {step}: looking.", tokens=(1500, 60))
        scene.call(s, "search", {"q": f"{task} {step}"}, f"{step * 3} results")
        t.data["done"] = step
    scene.wait(120)


def _ending_of(number: int) -> Any:
    """How each of the 40 sessions ends: nine are special, the others work or are done."""
    special = {
        7: _paused,
        11: _waiting,
        13: _stuck,
        17: _over_budget,
        19: _paused,
        23: _failed,
        29: _waiting,
        31: _loop,
        37: _stuck,
    }
    return special.get(number) or (_working, _closed, _closed, _archived)[number % 4]


def _working(scene: Scene, s: Session[Any], end: int) -> None:
    scene.now = end - 40_000_000
    s.life.take_lease(s.log.entry(1).body.get("agent", "worker"), ttl_s=24 * _HOUR)
    s.append(ev.TurnStarted(input="the next part"))
    scene.request(s, "search", {"q": "the next part"}, effect="read")


def _closed(scene: Scene, s: Session[Any], end: int) -> None:
    s.life.end()


def _archived(scene: Scene, s: Session[Any], end: int) -> None:
    s.life.end()
    s.life.archive(why="reviewed")


def _paused(scene: Scene, s: Session[Any], end: int) -> None:
    s.life.pause(why="maintenance window")


def _waiting(scene: Scene, s: Session[Any], end: int) -> None:
    s.append(ev.InputRequested(request="merge", prompt="Merge 14 pull requests?", options=("yes", "no")))


def _stuck(scene: Scene, s: Session[Any], end: int) -> None:
    """A lease that is not renewed, and a call without an answer."""
    s.life.take_lease("worker-9", ttl_s=30)
    s.append(ev.TurnStarted(input="deploy"))
    scene.request(s, "deploy", {"to": "staging"}, effect="external")


def _over_budget(scene: Scene, s: Session[Any], end: int) -> None:
    s.append(
        EventDraft(ev.BudgetSpent(cost=ev.Cost(usd_micros=214_000, tokens_in=61_000)), actor="runtime"),
        EventDraft(ev.BudgetReached(limit="usd_micros"), actor="runtime"),
    )
    s.life.pause(why="the budget is spent")


def _failed(scene: Scene, s: Session[Any], end: int) -> None:
    try:
        with s.turn("publish"):
            scene.call(s, "publish", {}, effect="external", error="403 from the registry")
            raise PermissionError("publishing is not allowed for this token")
    except PermissionError:
        pass


def _loop(scene: Scene, s: Session[Any], end: int) -> None:
    scene.now = end - 600_000_000
    s.append(ev.TurnStarted(input="find the owner"))
    for _ in range(14):
        scene.call(s, "search", {"q": "owner of billing"}, "0 results")
        scene.wait(20)
    s.append(
        EventDraft(
            ev.FlagRaised(flag="loop", rule="same-call", message="search was called 14 times with the same input"),
            actor="runtime",
        )
    )
