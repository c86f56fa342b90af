"""`learning`: sessions learn from earlier ones, and what three sessions did alike becomes a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wakelog.cli.demo.scene import Scene
from wakelog.model import events as ev
from wakelog.model.events import Effect
from wakelog.model.records import EventDraft
from wakelog.runtime.outcome import Outcome
from wakelog.session import Session
from wakelog.store.plans import SESSION as PLANS

REPO = {"repo": "/code/shop", "project": "/code/shop"}
MISSING = "ModuleNotFoundError: No module named 'yaml'"
FILE = "src/export.py"
TESTS = {"command": "pytest tests/test_export.py"}


def build_learning(scene: Scene) -> None:
    """Two days of exports, three refunds, and then today."""
    for order in ("order-4711", "order-4712", "order-4713"):
        _refund(scene, order)
        scene.wait(600)
    _export(scene, "export-monday", "the export of Monday's invoices")
    scene.wait(86_000)
    s = _export(scene, "export-yesterday", "the export of yesterday's invoices")
    with s.turn("Two exports ran at once. Make it safe."):
        scene.think(s, "I will put a lock around the export.", tokens=(2100, 60))
        scene.write(s, FILE, added=9)
        scene.call(s, "Bash", TESTS, error="Timeout: the test did not end", effect="external", took_s=60)
        s.dead_end(f"a lock around the export in {FILE}", learned="it deadlocks with the nightly job")
        s.fact("export.job", "writes its own file, then renames it")
        scene.write(s, FILE, added=4, removed=9)
        scene.call(s, "Bash", TESTS, "2 passed", effect="external", took_s=3)
    s.life.end("completed")
    scene.wait(80_000)
    _today(scene)
    _plan(scene)


def _export(scene: Scene, name: str, goal: str) -> Session[Any]:
    """The tests fail because a module is missing, and pass once it is installed."""
    s = scene.session(name, goal=goal, agent="demo-agent", labels=REPO)
    with s.turn(f"Run {goal}"):
        scene.call(s, "Read", {"file_path": f"/code/shop/{FILE}"}, "def export(): …")
        scene.call(s, "Bash", TESTS, error=MISSING, effect="external", took_s=2)
        scene.call(s, "Bash", {"command": "pip install pyyaml"}, "installed", effect="external", took_s=6)
        scene.call(s, "Bash", TESTS, "2 passed", effect="external", took_s=3)
    return s


def _today(scene: Scene) -> None:
    """A new session recalls what the others found out; the recall is recorded."""
    known = scene.store.known
    s = scene.session("export-today", goal="make the export of invoices safe", agent="demo-agent", labels=REPO)
    with s.turn("Make the export safe when two run at once."):
        lines = known.recall(files=[FILE], goal="make the export of invoices safe", session=s)
        s.append(EventDraft(ev.MessageAdded(role="system", content=known.as_markdown(lines)), actor="runtime"))
        scene.think(s, "A lock was tried yesterday and deadlocks. I will rename a finished file instead.")
        s.decide("rename a finished file", because="a lock deadlocked yesterday", alternatives=["a lock"])
        scene.write(s, FILE, added=3, removed=1)
        scene.call(s, "Bash", TESTS, error=MISSING, effect="external", took_s=2)
        recipe = known.recall(error=MISSING, session=s)
        s.append(EventDraft(ev.MessageAdded(role="system", content=known.as_markdown(recipe)), actor="runtime"))
        scene.think(s, "This error ended twice after pip install. I will do that.", tokens=(3300, 40))
        scene.call(s, "Bash", {"command": "pip install pyyaml"}, "installed", effect="external", took_s=6)
        scene.call(s, "Bash", TESTS, "2 passed", effect="external", took_s=3)
    s.life.end("completed")


class _DemoSession:
    """A session that really calls its tools, but with the clock and the ids of the scene, so it is always the same."""

    def __init__(self, scene: Scene, session: Session[Any]) -> None:
        self._scene, self._session = scene, session
        self._runtime = session._runtime
        self.turn, self.append = session.turn, session.append

    def call(self, tool: Callable[..., Any], input: dict[str, Any]) -> Outcome:
        result = tool(**input)
        effect: Effect = "read" if tool.__name__ == "find_order" else "external"
        seq = self._scene.call(self._session, tool.__name__, input, result, effect=effect)
        return Outcome(tool.__name__, tool.__name__, "succeeded", result=result, seq=seq)


def _refund(scene: Scene, order: str) -> None:
    ticket = {"ticket": f"ticket-9{order[-3:]}"}
    s = scene.session(f"refund-{order[-4:]}", goal=f"refund {order}", agent="demo-agent", labels=REPO)
    with s.turn({"order": order}):
        scene.call(s, "find_order", {"order": order, "shop": "main"}, ticket)
        input = {"ticket": ticket["ticket"], "note": f"refund of {order}"}
        scene.call(s, "refund", input, "done", effect="external")
        scene.call(s, "notify", {"ticket": ticket["ticket"], "template": "refunded"}, "sent", effect="external")
    s.life.end("completed")


def _plan(scene: Scene) -> None:
    """Promotes what three sessions did alike to a plan, endorses it, and runs it on a new order."""
    store = scene.store
    scene.session(PLANS, goal="Plans that were promoted from what sessions do")
    chains = store.patterns.find(kinds=("chain",)).patterns
    chain = next(pattern for pattern in chains if pattern.steps == ("find_order", "refund", "notify"))
    store.plans.promote(chain.id, "refund", why="the same three calls each time")
    store.plans.endorse("refund", by="ann", why="read it, step by step")
    scene.wait(300)
    s = scene.session("refund-5000", goal="refund order-5000", agent="demo-agent", labels=REPO)

    def find_order(order: str, shop: str) -> dict[str, str]:
        return {"ticket": f"ticket-9{order[-3:]}"}

    def refund(ticket: str, note: str) -> str:
        return "done"

    def notify(ticket: str, template: str) -> str:
        return "sent"

    on_stage: Any = _DemoSession(scene, s)
    progress = store.plans.run("refund", on_stage, {"order": "order-5000"}, tools=[find_order, refund, notify])
    assert progress.ok, progress
    s.life.end("completed")
