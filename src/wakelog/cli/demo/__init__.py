"""Sessions to play with: bundled, offline, and the same each time.

Each demo is a short story written through the public verbs, with its own clock and fixed ids. It is built in memory and
stored in one piece, so that there is never half a demo. The same sessions serve examples, screenshots and tests.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

import msgspec

from wakelog.cli.demo.scene import LABEL, Scene
from wakelog.cli.demo.transfer import transfer
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotFoundError
from wakelog.model.ids import SessionId
from wakelog.store import Store

DAY_US = 1_794_733_200_000_000
"""When the stories take place: 2026-11-15, 09:00 UTC."""

Progress = Callable[[int], None]


class Demo(msgspec.Struct, frozen=True):
    """One demo: what it shows, and the commands to try on it."""

    name: str
    shows: str
    module: str
    commands: tuple[str, ...]
    is_live: bool = False
    """Whether it takes place now rather than on the fixed day: its point is what is going on."""
    events: int = 0
    """About how many events it has, where that is many."""


DEMOS: dict[str, Demo] = {
    d.name: d
    for d in (
        Demo(
            "fix-bug",
            "a bug hunt in 12 turns: two attempts, files, decisions, a dead end, a fork, a budget",
            "fix_bug",
            ("log fix-bug", "diff fix-bug@4 fix-bug@9", "blame /data/plan -s fix-bug", "rewind fix-bug@4 --dry-run"),
        ),
        Demo(
            "injection",
            "a web page with hidden text becomes an action, and is flagged",
            "injection",
            (
                "log injection --events",
                "why injection@e14",
                "taint web:blog.example --sinks -s injection",
                "verify injection",
            ),
        ),
        Demo(
            "crash",
            "killed twice in the middle of a call, resumed; no effect is repeated",
            "crash",
            ("log crash", "resume crash", "state -s crash /pending_actions"),
        ),
        Demo("tampered", "one altered byte, and the proof", "tampered", ("verify tampered", "verify --all")),
        Demo(
            "fleet",
            "40 sessions: working, waiting, stuck, over budget, paused, done",
            "fleet",
            ("ps", "ls", "store info"),
            is_live=True,
        ),
        Demo(
            "big",
            "one session of 100,000 events",
            "big",
            ("log big -n 5", "diff big@10 big@900", "verify big"),
            events=100_000,
        ),
    )
}


class Built(msgspec.Struct, frozen=True):
    """What a demo brought into a store; `is_new` is False when it was there already."""

    demo: str
    sessions: tuple[str, ...]
    events: int
    is_new: bool


def build(name: str, engine: Engine, *, at_us: int | None = None, progress: Progress | None = None) -> Built:
    """Builds a demo into a store, all of it or nothing. One that is there already is left as it is."""
    demo = DEMOS[name]
    module = importlib.import_module(f"wakelog.cli.demo.{demo.module}")
    memory = MemoryEngine()
    scene = Scene(Store(memory), name, DAY_US if at_us is None else at_us, progress)
    first = scene.id_of(module.FIRST)
    if _has(engine, first):
        return Built(name, (module.FIRST,), engine.head(first).seq, False)
    module.build(scene)
    heads = transfer(memory, engine)
    if hasattr(module, "afterwards"):
        module.afterwards(engine, scene)
    events = sum(h.seq - (h.fork.at if h.fork else 0) for h in heads)
    return Built(name, tuple(h.name or h.session for h in heads), events, True)


def is_demo_store(store: Store) -> bool:
    """Whether everything in a store came from here; an empty one counts."""
    return all(LABEL in store.resume(h.session).log.entry(1).body.get("labels", {}) for h in store.sessions())


def _has(engine: Engine, session: SessionId) -> bool:
    try:
        engine.head(session)
    except NotFoundError:
        return False
    return True
