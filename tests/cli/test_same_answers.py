"""The same question has the same answer in the library, on the command line, over HTTP and, where it can be asked
there, over MCP. Each surface dresses it in its own way, so what is compared is the substance: which events, which keys,
which values. A verb that records leaves the same events, whichever way it was asked for."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.http.asking import Asker
from wakelog.cli.demo import build
from wakelog.exporters.session_spans import session_document
from wakelog.http.server import serving
from wakelog.http.state import Settings
from wakelog.mcp.lazy_store import LazyStore
from wakelog.mcp.tools import Tools
from wakelog.session import Session
from wakelog.store import Store

NAME = "fix-bug"
AT_US = 1_794_733_200_000_000


@dataclass
class World:
    """One store, to be asked in four ways."""

    store: Store
    cli: Cli
    asker: Asker
    folder: Path

    @property
    def session(self) -> Session[Any]:
        return self.store.resume(NAME)

    def command(self, *args: str) -> Any:
        done = self.cli(*args, "--store", str(self.folder), "--json", "--no-input")
        assert done.code == 0, (args, done.err)
        return done.data

    def printed(self, *args: str) -> Any:
        """A command whose answer is the document itself."""
        done = self.cli(*args, "--store", str(self.folder), "--no-input")
        assert done.code == 0, (args, done.err)
        return json.loads(done.out)

    def get(self, path: str, **query: Any) -> Any:
        reply = self.asker.ask("GET", f"/v1{path}", None, None, **query)
        assert reply.status == 200, reply.content
        return reply.json

    def post(self, path: str, **body: Any) -> Any:
        reply = self.asker.post(f"/v1{path}", body)
        assert reply.status in (200, 201), reply.content
        return reply.json

    def tool(self, name: str, /, **arguments: Any) -> Any:
        said = getattr(Tools(LazyStore.of(self.store)), name)(**arguments)
        return json.loads(said) if said[:1] in "{[" else said


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("same") / "store"
    with wakelog.open(folder) as store:
        build(NAME, store.engine, at_us=AT_US)
    return folder


def _world(folder: Path, cli: Cli) -> Iterator[World]:
    with wakelog.open(folder) as store, serving(Settings(url=str(folder), rate=0)) as running:
        yield World(store, cli, Asker(running.url, running.key), folder)


@pytest.fixture
def world(made: Path, cli: Cli) -> Iterator[World]:
    yield from _world(made, cli)


def _plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def _changes(rows: Any) -> list[Any]:
    return [(r["pointer"], r["how"], r["after"], r["writer"] and r["writer"]["seq"]) for r in rows]


Ways = dict[str, Callable[[World], Any]]
S = f"/sessions/{NAME}"
LOOKS: dict[str, Ways] = {
    "state": {
        "library": lambda w: _plain(w.session.log.state()),
        "command": lambda w: w.command("state", "-s", NAME)["value"],
        "http": lambda w: w.get(f"{S}/state")["value"],
    },
    "state in the past": {
        "library": lambda w: _plain(w.session.log.state(w.session.seq("@4")))["facts"],
        "command": lambda w: w.command("state", "/facts", "--at", f"{NAME}@4")["value"],
        "http": lambda w: w.get(f"{S}/state", at="@4")["value"]["facts"],
        "mcp": lambda w: w.tool("get_state", session_id=NAME, key="/facts", at="@4")["value"],
    },
    "diff": {
        "library": lambda w: _changes(_plain(w.session.diff("@4", "@9").changes)),
        "command": lambda w: _changes(w.command("diff", f"{NAME}@4", f"{NAME}@9")["changes"]),
        "http": lambda w: _changes(w.get(f"{S}/diff", a="@4", b="@9")["changes"]),
    },
    "which keys a diff is about": {
        "library": lambda w: [(c.pointer, c.how) for c in w.session.diff("@4", "@9").changes],
        "mcp": lambda w: [(c["key"], c["how"]) for c in w.tool("diff", session_id=NAME, a="@4", b="@9")["changes"]],
    },
    "what the last turn changed": {
        "library": lambda w: _changes(_plain(w.session.diff().changes)),
        "command": lambda w: _changes(w.command("diff", NAME)["changes"]),
        "http": lambda w: _changes(w.get(f"{S}/diff")["changes"]),
    },
    "blame": {
        "library": lambda w: [(b.pointer, b.writer and b.writer.seq) for b in w.session.history.blame("/data")],
        "command": lambda w: [
            (b["pointer"], b["writer"]["seq"]) for b in w.command("blame", "/data", "-s", NAME)["keys"]
        ],
        "http": lambda w: [(b["pointer"], b["writer"]["seq"]) for b in w.get(f"{S}/blame", pointer="/data")["keys"]],
    },
    "events of a range": {
        "library": lambda w: [(e.seq, e.kind) for e in w.session["@3..@4"]],
        "http": lambda w: [(e["seq"], e["kind"]) for e in w.get(f"{S}/events", place="@3..@4")["events"]],
        "mcp": lambda w: [
            (e["e"], e["kind"]) for e in w.tool("get_events", session_id=NAME, where="@3..@4", limit=200)["events"]
        ],
    },
    "calls": {
        "library": lambda w: _plain(w.session.calls.table("@2..@5")),
        "command": lambda w: w.command("calls", f"{NAME}@2..@5", "--reverse"),
        "http": lambda w: w.get(f"{S}/calls", place="@2..@5")["calls"],
    },
    "spans": {
        "library": lambda w: session_document(w.session, "@2..@5"),
        "command": lambda w: w.printed("otel", "export", f"{NAME}@2..@5"),
        "http": lambda w: w.get(f"{S}/spans", place="@2..@5"),
    },
    "verify": {
        "library": lambda w: (w.session.verify().events, w.session.verify().head_hash, w.session.verify().ok),
        "command": lambda w: next((v["events"], v["head_hash"], v["ok"]) for v in w.command("verify", NAME)),
        "http": lambda w: (
            (v := w.get(f"{S}/verify"))["events"],
            v["head_hash"],
            not (v["integrity"] or v["completeness"]),
        ),
    },
    "anchor": {
        "library": lambda w: (w.session.anchor().seq, _plain(w.session.anchor())["hash"]),
        "command": lambda w: ((a := w.command("anchor", NAME))["seq"], a["hash"]),
        "http": lambda w: ((a := w.get(f"{S}/anchor"))["seq"], a["hash"]),
    },
    "cost": {
        "library": lambda w: [(r.key, r.tokens_in, r.tokens_out) for r in w.session.budget.cost().rows],
        "command": lambda w: [
            (r["key"], r["tokens_in"] or 0, r["tokens_out"] or 0) for r in w.command("cost", NAME)["rows"]
        ],
        "http": lambda w: [(r["key"], r["tokens_in"], r["tokens_out"]) for r in w.get(f"{S}/cost")["rows"]],
    },
    "search": {
        "library": lambda w: [(h.session, h.seq) for h in w.store.index.search("token", limit=10)],
        "command": lambda w: [(h["session"], h["seq"]) for h in w.command("search", "token", "-n", "10")["hits"]],
        "http": lambda w: [(h["session"], h["seq"]) for h in w.get("/search", q="token", limit=10)["rows"]],
        "mcp": lambda w: [(h["session"], h["seq"]) for h in w.tool("search", words="token", limit=10)["found"]],
    },
    "why": {
        "library": lambda w: [(s.seq, s.trust) for s in w.session.why("@2").steps],
        "command": lambda w: [(s["seq"], s["trust"]) for s in w.command("why", f"{NAME}@2")["steps"]],
        "http": lambda w: [(s["seq"], s["trust"]) for s in w.get(f"{S}/why", what="@2")["steps"]],
        "mcp": lambda w: [(s["seq"], s["trust"]) for s in w.tool("why", session_id=NAME, of="@2")["steps"]],
    },
    "attempts": {
        "library": lambda w: [(a.name, a.first, a.last, a.outcome) for a in w.session.history.attempts()],
        "command": lambda w: [
            (a["name"], a["first"], a["last"], a["outcome"]) for a in w.command("attempts", NAME)["attempts"]
        ],
        "http": lambda w: [
            (a["name"], a["first"], a["last"], a["outcome"]) for a in w.get(f"{S}/attempts")["attempts"]
        ],
    },
    "brief": {
        "library": lambda w: str(w.session.brief()),
        "command": lambda w: w.command("brief", NAME)["text"],
        "http": lambda w: w.get(f"{S}/brief")["text"],
        "mcp": lambda w: w.tool("brief", session_id=NAME),
    },
    "insight": {
        "library": lambda w: [(i.kind, i.seq, i.quote) for i in w.session.insight("@2").items],
        "command": lambda w: [
            (i["kind"], i["seq"], i["quote"] or "") for i in w.command("insight", f"{NAME}@2")["items"]
        ],
        "http": lambda w: [(i["kind"], i["seq"], i["quote"]) for i in w.get(f"{S}/insight", where="@2")["items"]],
        "mcp": lambda w: [
            (i["kind"], i["seq"], i.get("quote", "")) for i in w.tool("insight", session_id=NAME, where="@2")["items"]
        ],
    },
    "query": {
        "library": lambda w: w.store.index.query_sql("select kind, count(*) from events group by 1").rows,
        "command": lambda w: w.command("query", "select kind, count(*) from events group by 1")["rows"],
        "http": lambda w: w.post("/query", sql="select kind, count(*) from events group by 1")["rows"],
    },
    "sessions": {
        "library": lambda w: sorted(h.session for h in w.store.sessions()),
        "command": lambda w: sorted(s["id"] for s in w.command("ls")),
        "http": lambda w: sorted(s["id"] for s in w.get("/sessions")["rows"]),
        "mcp": lambda w: sorted(s["session_id"] for s in w.tool("list_sessions")["sessions"]),
    },
    "head": {
        "library": lambda w: (w.session.head.seq, w.session.head.hash.hex(), w.session.head.status),
        "command": lambda w: (
            (s := w.command("status", NAME))["head"]["seq"],
            s["head"]["hash"],
            s["status"],
        ),
        "http": lambda w: ((h := w.get(S)["head"])["seq"], h["hash"], h["status"]),
    },
}


@pytest.mark.parametrize("question", LOOKS)
def test_every_surface_gives_the_same_answer(world: World, question: str) -> None:
    answers = {way: json.loads(json.dumps(ask(world))) for way, ask in LOOKS[question].items()}
    assert answers["library"], "an empty answer shows nothing"
    for way, answer in answers.items():
        assert answer == answers["library"], way


DOES: dict[str, Ways] = {
    "rewind": {
        "library": lambda w: w.session.rewind("@4", why="again"),
        "command": lambda w: w.command("rewind", f"{NAME}@4", "-m", "again", "--yes"),
        "http": lambda w: w.post(f"{S}/rewind", to="@4", why="again"),
        "mcp": lambda w: w.tool("rewind", session_id=NAME, to="@4", why="again"),
    },
    "undo": {
        "library": lambda w: (w.session.rewind("@4"), w.session.undo()),
        "command": lambda w: (w.session.rewind("@4"), w.command("undo", NAME)),
        "http": lambda w: (w.session.rewind("@4"), w.post(f"{S}/undo")),
    },
    "checkpoint": {
        "library": lambda w: w.session.checkpoint("here"),
        "command": lambda w: w.command("checkpoint", "here", "-s", NAME),
        "http": lambda w: w.post(f"{S}/checkpoint", name="here"),
        "mcp": lambda w: w.tool("checkpoint", session_id=NAME, name="here"),
    },
    "note": {
        "library": lambda w: w.session.note("look here"),
        "command": lambda w: w.command("note", "-m", "look here", "-s", NAME),
        "http": lambda w: w.post(f"{S}/note", text="look here"),
    },
    "pause": {
        "library": lambda w: w.session.life.pause(why="lunch"),
        "command": lambda w: w.command("pause", NAME, "-m", "lunch"),
        "http": lambda w: w.post(f"{S}/pause", why="lunch"),
    },
    "close": {
        "library": lambda w: w.session.life.end(),
        "command": lambda w: w.command("close", NAME),
        "http": lambda w: w.post(f"{S}/close"),
        "mcp": lambda w: w.tool("close_session", session_id=NAME),
    },
}


@pytest.mark.parametrize("verb", DOES)
def test_every_surface_records_the_same(made: Path, tmp_path: Path, cli: Cli, verb: str) -> None:
    recorded = {}
    for way, do in DOES[verb].items():
        shutil.copytree(made, tmp_path / way)
        for world in _world(tmp_path / way, cli):
            before = world.session.head.seq
            do(world)
            added = list(world.session.log.entries(after=before))
            recorded[way] = [(e.kind, _plain(e.body)) for e in added], world.session.log.state_hash()
    assert recorded["library"][0], "nothing was recorded"
    for way, found in recorded.items():
        assert found == recorded["library"], way
