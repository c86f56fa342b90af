"""A namespace with data of every kind, and a valid request for every route.

`EXAMPLES` has an entry for each route, by the route's name; a test fails if one is missing. An example is made from a
world, and its request is about that world only.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

import wakelog
from tests.http.asking import segment
from wakelog import events as ev
from wakelog.engine import Surgery
from wakelog.engines.remote import wire
from wakelog.http.routes import Route
from wakelog.http.server import RunningServer
from wakelog.log.bundle import export_bundle
from wakelog.log.log import Log
from wakelog.log.seal import SealStep, Tip, seal
from wakelog.maintenance.holds import place_hold
from wakelog.model.records import Commit, EventDraft
from wakelog.session import Session
from wakelog.session.turn import start_turn
from wakelog.state.fold import Fold
from wakelog.store import Store

MARK = "zebra"
"""Contained in everything that is written into a world, together with the world's name."""


class World:
    """One namespace of a server."""

    def __init__(self, running: RunningServer, space: str) -> None:
        self.space = space
        self.mark = f"{MARK}-{space}"
        self.url = f"{running.url}/ns/{space}"
        # Filled directly through the store, because a hundred requests for each world would be slow.
        behind = running.server.spaces.get(space, create=True).store
        work = self._work(behind)
        fork = work.fork(name=f"fork {self.mark}")
        fork.fact("forked", self.mark)
        self.store: Store = wakelog.open(self.url, key=running.key)
        self.session: Session[Any] = self.store.resume(work.id)
        self.fork: Session[Any] = self.store.resume(fork.id)

    def _work(self, store: Store) -> Session[Any]:
        session = store.session(f"work {self.mark}", goal=self.mark, data={"n": 0}, labels={"team": self.mark})
        with session.turn(user=f"go {self.mark}"):
            session.decide(self.mark, because=self.mark, alternatives=["other"])
            session.fact("key", self.mark, source="web:x", trust="untrusted")
            session.files.record(f"{self.mark}.py", added=3)
            session.append(ev.ActionRecorded(action="r", tool=self.mark, effect="read", output=self.mark * 200))
            session.append(ev.ActionRecorded(action="f", tool=self.mark, outcome="failed", error=ev.Failure(self.mark)))
        with session.turn(user=f"try {self.mark}"):
            session.message("assistant", self.mark)
        with session.turn(user=f"try {self.mark}", retry=True):
            session.message("assistant", self.mark)
        session.checkpoint(self.mark)
        session.monitors.flag(self.mark, self.mark)
        session.append(ev.ActionRequested(action="waits", tool=self.mark, approval=True))
        session.append(ev.ActionRequested(action="lost", tool=self.mark), ev.ActionStarted(action="lost"))
        session.append(ev.ActionUncertain(action="lost"))
        return session

    @property
    def payload(self) -> tuple[int, bytes]:
        """A payload: its event and its hash."""
        for commit in self.store.engine.read(self.session.id, payloads=True):
            for digest, _ in commit.payloads:
                return commit.first, digest
        raise AssertionError("this world has no payload")

    def seal(self, *events: ev.Event, log: Log | None = None) -> Commit:
        """A commit on the session's head, as a client would seal it."""
        log = log or self.session.log
        head = log.head()
        doc = log.state()
        tip = Tip(Fold(doc), head.seq, head.hash, head.at)
        return seal(tip, log.id, [SealStep(EventDraft(e)) for e in events], now=head.at).commit

    def bundle(self) -> bytes:
        import io

        out = io.BytesIO()
        export_bundle(self.fork.log, out)
        return out.getvalue()

    def close(self) -> None:
        self.store.close()


class Example(NamedTuple):
    """A request, and the expected status of its answer."""

    path: Mapping[str, str] = {}
    query: Mapping[str, Any] = {}
    body: Any = None
    status: int = 200
    before: Callable[[World], object] | None = None
    """What must happen first."""

    def full_path(self, route: Route) -> str:
        path = route.full_path
        for name, value in self.path.items():
            path = path.replace("{" + name + "}", segment(value))
        return path


def _of(world: World, **more: Any) -> Any:
    return Example(path={"session": world.session.name, **more.pop("path", {})}, **more)


def _json(value: Any) -> Any:
    """A struct as JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _rewind(world: World) -> None:
    world.session.rewind("@1")


def _undo(world: World) -> None:
    world.session.rewind("@1")
    world.session.undo()


def _compact(world: World) -> None:
    world.session.context.compact("@1", "@1", "short")


def _compacted(world: World) -> int:
    """A compaction that is in effect."""
    return next((each.seq for each in world.session.context.compactions()), 0) or world.session.context.compact(
        "@1", "@1", "short"
    )


def _close(world: World) -> None:
    world.session.life.end()


def _question(world: World) -> None:
    world.session.append(ev.InputRequested(request="which", prompt="which?", options=("a", "b")))


def _lease(world: World) -> None:
    world.session.log.take_lease("someone")


def _retried(world: World) -> None:
    world.session.context.evict("e3")


_session: Callable[..., Callable[[World], Example]] = lambda **more: lambda world: _of(world, **more)  # noqa: E731

EXAMPLES: dict[str, Callable[[World], Example]] = {
    "list_sessions": lambda w: Example(query={"limit": 10}),
    "open_session": lambda w: Example(body={"name": f"new {w.mark}", "goal": w.mark}),
    "get_session": _session(),
    "head": _session(),
    "append": lambda w: _of(w, body={"events": [{"kind": "note.added", "body": {"text": w.mark}}], "commit_id": "i"}),
    "erase": _session(body={"events": [3]}),
    "prune": lambda w: Example(path={"session": w.fork.name}, body={"upto": w.fork.head.seq}),
    "delete": lambda w: Example(path={"session": w.fork.name}),
    "state": _session(query={"at": "@1", "pointer": "/facts"}),
    "events": _session(query={"place": "@1", "payloads": 100}),
    "event": _session(path={"place": "e2"}),
    "payload": lambda w: _of(w, path={"seq": str(w.payload[0]), "hash": w.payload[1].hex()}),
    "messages": _session(query={"limit": 1, "before": 1000}),
    "diff": lambda w: _of(w, query={"other": w.fork.name}),
    "blame": _session(query={"pointer": "/facts"}),
    "changed_files": _session(query={"last": 2}),
    "preview": _session(query={"to": "@1"}),
    "anchor": _session(),
    "verify": _session(),
    "verify_against": lambda w: _of(w, body={"seq": 1, "hash": w.session.log.entry(1).hash.hex()}),
    "start_turn": _session(body={"user": "go on"}),
    "end_turn": _session(body={}, before=lambda w: start_turn(w.session)),
    "checkpoint": _session(body={"name": "here"}),
    "note": _session(body={"text": "remark", "on": "e2"}),
    "patch": _session(body={"patch": [{"op": "replace", "path": "/data/n", "value": 1}]}),
    "rewind": _session(body={"to": "@1"}),
    "undo": _session(before=_rewind),
    "redo": _session(before=_undo),
    "fork": lambda w: _of(w, body={"at": "@1", "name": f"fresh {w.mark}"}, status=201),
    "pause": _session(body={}),
    "resume": _session(body={}, before=lambda w: w.session.life.pause()),
    "close": _session(body={}),
    "reopen": _session(body={}, before=_close),
    "archive": _session(body={}, before=_close),
    "attempts": _session(query={"turn": 2}),
    "compare": lambda w: Example(query={"side": [f"{w.session.name}@2.1", "@2.2", w.fork.name]}),
    "file_diff": _session(),
    "adopt": lambda w: _of(w, body={"fork": w.fork.name}),
    "why": _session(query={"what": "/facts/key"}),
    "picture": _session(query={"what": "/facts/key"}),
    "taint": _session(query={"source": "web:*"}),
    "taint_across": _session(query={"source": "web:*"}),
    "taint_everywhere": lambda w: Example(query={"source": "web:*"}),
    "why_across": _session(query={"what": "/facts/key"}),
    "endorse": _session(body={"targets": ["e4"]}),
    "invalidate": _session(body={"targets": ["e4"]}),
    "brief": _session(),
    "insight": _session(query={"where": "@1"}),
    "accept": lambda w: _of(w, body={"item": w.session.insight("@2").of("goal")[0].id, "kind": "goal"}),
    "context": _session(query={"budget": 1000}),
    "make_context": _session(body={"budget": 1000}),
    "evict": _session(body={"key": "e3"}),
    "restore": _session(body={"key": "e3"}, before=_retried),
    "pin": _session(body={"key": "e3"}),
    "compactions": _session(before=_compact),
    "compact": _session(body={"first": "@1", "last": "@1", "summary": "short"}),
    "expand": lambda w: _of(w, body={"compaction": _compacted(w)}),
    "flags": _session(),
    "flag": _session(body={"name": "look", "message": "here"}),
    "clear_flag": lambda w: _of(w, body={"name": w.mark}),
    "set_budget": _session(body={"usd": "5.00", "tokens": 1000, "seconds": None}),
    "cost": _session(query={"by": "tool"}),
    "rollup": lambda w: Example(query={"by": "turn", "session": [w.session.name]}),
    "rollup_picture": lambda w: Example(query={"by": "phase", "session": [w.session.name], "measure": "took"}),
    "cost_of_all": lambda w: Example(query={"session": [w.session.name]}),
    "live": lambda w: Example(query={"needs": ["waiting", "uncertain"]}),
    "audit": _session(),
    "audit_report": _session(),
    "spans": _session(),
    "calls": _session(),
    "webhooks": lambda w: Example(),
    "skip_webhook": lambda w: Example(path={"name": "ops"}, body={"session": w.session.name}, status=404),
    "cancel": _session(body={"why": "it must stop"}),
    "holds": lambda w: Example(before=lambda w: place_hold(w.session, w.mark)),
    "store_info": lambda w: Example(),
    "store_check": lambda w: Example(),
    "approve": _session(body={"action": "waits"}),
    "deny": _session(body={"action": "waits"}),
    "reconcile": _session(body={"action": "lost", "outcome": "succeeded"}),
    "answer": _session(body={"request": "which", "answer": "a"}, before=_question),
    "abandon": _session(body={"action": "lost"}),
    "evidence": _session(path={"action": "lost"}),
    "recover": _session(body={}),
    "take_lease": _session(body={"holder": "me"}),
    "beat_lease": _session(body={"epoch": 1, "holder": "someone"}, before=_lease),
    "release_lease": _session(body={"epoch": 1}, before=_lease),
    "search": lambda w: Example(query={"q": MARK}),
    "session_counts": lambda w: Example(query={"live": "true"}),
    "query": lambda w: Example(body={"sql": "select * from sessions join events on true limit 100"}),
    "find_commit": lambda w: Example(path={"commit": w.session.head.commit_id}),
    "turns": _session(),
    "files": lambda w: Example(query={"session": w.session.name}),
    "decisions": lambda w: Example(),
    "errors": lambda w: Example(query={"since": "1d"}),
    "tools": lambda w: Example(),
    "bundle": _session(),
    "take_bundle": lambda w: Example(body=w.bundle(), status=201),
    "tail": _session(query={"after": 0}),
    "tail_all": lambda w: Example(query={"after": ""}),
    "info": lambda w: Example(),
    "make_namespace": lambda w: Example(),
    "health": lambda w: Example(),
    "ready": lambda w: Example(),
    "namespaces": lambda w: Example(),
    "metrics": lambda w: Example(),
    "openapi": lambda w: Example(),
    "submit": lambda w: Example(body=_json(wire.Submit(((w.seal(ev.NoteAdded(text=w.mark)),),)))),
    "read": lambda w: Example(body={"session": w.session.id, "payloads": True}),
    "engine_head": lambda w: Example(body={"session": w.session.id}),
    "known": lambda w: Example(body={"session": w.session.id, "commit_id": "i"}),
    "engine_sessions": lambda w: Example(body={}),
    "children": lambda w: Example(body={"session": w.session.id}),
    "changes": lambda w: Example(body={}),
    "engine_payload": lambda w: Example(
        body={"session": w.session.id, "seq": w.payload[0], "digest": _b64(w.payload[1])}
    ),
    "snapshot": lambda w: Example(body={"session": w.session.id, "upto": 100}),
    "drop_snapshots": lambda w: Example(body={"session": w.session.id}),
    "claim": lambda w: Example(body={"name": w.session.name, "session": w.session.id}),
    "find": lambda w: Example(body={"name": w.session.name}),
    "beat": lambda w: Example(
        body={"session": w.session.id, "beat": {"epoch": 1, "holder": "someone", "until": 1}}, before=_lease
    ),
    "last_beat": lambda w: Example(body={"session": w.session.id}),
    "heard": lambda w: Example(body={"since": 0}),
    "operate": lambda w: Example(
        body=_json(wire.Operate(Surgery((w.seal(ev.NoteAdded(text="x")),), (), stale_from={})))
    ),
    "mark": lambda w: Example(body={"name": "scrub"}),
    "set_mark": lambda w: Example(body={"name": "scrub", "value": w.mark}),
    "rewrite": lambda w: Example(body={"most": 1000}),
    "engine_delete": lambda w: Example(body=_json(wire.Delete(w.seal(ev.SessionDeleted(), log=w.fork.log)))),
    "wait": lambda w: Example(body={"session": w.session.id, "after": 0}),
    "ask_files_modified": lambda w: Example(body={"session": w.session.id}),
    "ask_decisions": lambda w: Example(body={}),
    "ask_errors": lambda w: Example(body={}),
    "ask_tools": lambda w: Example(body={}),
    "ask_turns": lambda w: Example(body={"session": w.session.id}),
    "ask_events": lambda w: Example(body={"session": w.session.id, "kinds": ["turn"]}),
    "recall": _session(body={"goal": MARK}),
    "preferences": lambda w: Example(query={"project": "/code"}),
    "add_preference": lambda w: Example(body={"text": "use tabs"}),
    "possible_preferences": lambda w: Example(),
    "accept_preference": lambda w: Example(body={"session": w.session.id, "item": "e1"}, status=404),
    "remove_preference": lambda w: Example(path={"id": "none"}, status=404),
    "plans": lambda w: Example(),
    "plan": lambda w: Example(path={"name": "none"}, status=404),
    "promote": lambda w: Example(body={"pattern": "c00000000", "name": "none"}, status=404),
    "endorse_plan": lambda w: Example(path={"name": "none"}, body={"by": "ann"}, status=404),
    "remove_plan": lambda w: Example(path={"name": "none"}, status=404),
    "ask_instances": lambda w: Example(body={"id": "c00000000"}, status=404),
    "ask_plan_runs": lambda w: Example(body={"plans": ["p00000000"]}),
    "ask_patterns": lambda w: Example(body={}),
    "ask_pattern": lambda w: Example(body={"id": "c00000000"}, status=404),
    "ask_map": lambda w: Example(body={}),
    "ask_cohorts": lambda w: Example(body={"a": {}, "b": {"where": {"team": "b"}}}),
    "ask_known": lambda w: Example(body={"subject": "src/a.py"}),
    "ask_facts": lambda w: Example(body={}),
    "ask_connections": lambda w: Example(body={"a": "x", "b": "y"}),
    "ask_recall": lambda w: Example(body={"goal": MARK}),
    "ask_like": lambda w: Example(body={"text": MARK}),
    "ask_sessions": lambda w: Example(body={}),
    "ask_resting": lambda w: Example(body={"busy": []}),
    "ask_session_counts": lambda w: Example(body={"live": True}),
    "ask_rollup": lambda w: Example(body={"by": "day", "sessions": [w.session.id]}),
    "ask_totals": lambda w: Example(body={"session": w.session.id}),
    "ask_costs": lambda w: Example(body={"sessions": [w.session.id]}),
    "ask_search": lambda w: Example(body={"text": MARK}),
}
