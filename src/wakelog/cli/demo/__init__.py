"""Sessions to play with: bundled, offline, and the same each time.

Each demo is a short story written with the public verbs, with its own clock and fixed ids. It is built in memory and
stored in one step, so that a store never has half a demo. Examples, screenshots and tests use the same sessions.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable

import msgspec

from wakelog.cli.demo.scene import LABEL, Scene
from wakelog.engine import Engine, all_heads
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import ConflictError, NotAllowedError, NotFoundError
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit, Head
from wakelog.store import Store

DAY_US = 1_794_733_200_000_000
"""The time of the stories: 2026-11-15, 09:00 UTC."""

Progress = Callable[[int], None]


class Demo(msgspec.Struct, frozen=True):
    """One demo: what it shows, and the commands to try on it."""

    name: str
    shows: str
    module: str
    commands: tuple[str, ...]
    first: str = ""
    """The name of its first session, if it differs from the demo's."""
    is_live: bool = False
    """True if it takes place now, not on the fixed day, because it shows live sessions."""
    events: int = 0
    """Roughly how many events it has, if there are many."""


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
            "stories",
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
            "stories",
            ("log crash", "resume crash", "state -s crash /pending_actions"),
        ),
        Demo("tampered", "one altered byte, and the proof", "stories", ("verify tampered", "verify --all")),
        Demo(
            "transcript",
            "a session of Claude Code, imported: what it did and why, with nothing declared",
            "transcript",
            (
                "log claude-5a1e7c02",
                "show claude-5a1e7c02@1",
                "why claude-5a1e7c02 shop/upload.py:7",
                "files -s claude-5a1e7c02",
            ),
            first="claude-5a1e7c02",
        ),
        Demo(
            "learning",
            "a session is warned of yesterday's dead end, uses yesterday's recipe; three refunds become a plan",
            "lessons",
            (
                "show export-today@1",
                "known about src/export.py -A",
                "known failed src/export.py -A",
                "plans show refund",
                "rollup -A --by phase",
            ),
            first="export-today",
        ),
        Demo(
            "fleet",
            "40 sessions: working, waiting, stuck, over budget, paused, done",
            "fleet",
            ("ps", "ls", "store info"),
            first="nightly-01",
            is_live=True,
        ),
        Demo(
            "big",
            "one session of 100,000 events",
            "stories",
            ("log big -n 5", "diff big@10 big@900", "verify big"),
            events=100_000,
        ),
    )
}


class BuiltDemo(msgspec.Struct, frozen=True):
    """What a demo added to a store; `is_new` is False if it was there already."""

    demo: str
    sessions: tuple[str, ...]
    events: int
    is_new: bool


def build(name: str, engine: Engine, *, at_us: int | None = None, progress: Progress | None = None) -> BuiltDemo:
    """Builds a demo into a store, completely or not at all. An existing one is left as it is."""
    demo = DEMOS[name]
    module = importlib.import_module(f"wakelog.cli.demo.{demo.module}")
    memory = MemoryEngine()
    scene = Scene(Store(memory), name, DAY_US if at_us is None else at_us, progress)
    first = demo.first or name
    with contextlib.suppress(NotFoundError):
        return BuiltDemo(name, (first,), engine.head(scene.id_of(first)).seq, False)
    story = name.replace("-", "_")
    getattr(module, f"build_{story}")(scene)
    heads = transfer(memory, engine)
    if after := getattr(module, f"after_{story}", None):
        after(engine, scene)
    events = sum(h.seq - (h.fork.at if h.fork else 0) for h in heads)
    return BuiltDemo(name, tuple(str(h) for h in heads), events, True)


def refuse_own_sessions(store: Store, folder: str) -> None:
    """Raises if a store has sessions that are not of a demo."""
    if not all(LABEL in store.resume(h.session).log.entry(1).body.get("labels", {}) for h in store.sessions()):
        raise NotAllowedError(
            f"{folder} holds your own sessions, and a demo must not be mixed with them",
            kind="not-a-scratch-store",
            hint="choose another folder with --into",
        )


def transfer(memory: MemoryEngine, engine: Engine) -> list[Head]:
    """Stores all sessions of `memory` in one step, with snapshots, names and leases."""
    heads = list(all_heads(memory))  # by id, which puts a root before its forks
    commits = [commit for head in heads for commit in _commits(memory, head)]
    engine.submit(*commits).result()
    for head in heads:
        if head.name:
            engine.claim(head.name, head.session)
        beat = memory.last_beat(head.session)
        if beat is not None:
            with contextlib.suppress(ConflictError):  # the lease has ended, so its heartbeat is not needed
                engine.beat(head.session, beat)
    return heads


def _commits(memory: MemoryEngine, head: Head) -> list[Commit]:
    snapshots = _snapshots(memory, head.session)
    # `late` and no guard: the events are history, so the session's status does not matter, only the chain.
    return [
        msgspec.structs.replace(commit, snapshot=snapshots.get(commit.last), guard=None, late=True)
        for commit in memory.read(head.session, payloads=True)
    ]


def _snapshots(memory: MemoryEngine, session: SessionId) -> dict[int, bytes]:
    out: dict[int, bytes] = {}
    upto = 1 << 62
    while (snapshot := memory.snapshot(session, upto=upto)) is not None:
        out[snapshot.seq] = snapshot.data
        upto = snapshot.seq - 1
    return out
