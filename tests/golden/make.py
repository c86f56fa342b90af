"""Writes the golden logs of the present format version: bundles, and what they must always fold to.

    python tests/golden/make.py            adds what is missing
    python tests/golden/make.py --force    writes all of it anew, which only a format that nobody has used yet allows

The files of a version are added to, never edited: every later version must read them, and a failing golden test is a
broken promise, not a stale file. The clock and the randomness are fixed here, so that running this twice gives the same
bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.bundle import export_bundle
from wakelog.log.removal import erase, prune
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.ids import root_id
from wakelog.model.payloads import Payload
from wakelog.model.records import FORMAT_VERSION, EventDraft
from wakelog.testing.builders import START_US, raw_commit, raw_record

FOLDER = Path(__file__).parent / f"v{FORMAT_VERSION}"
LONG = "A text that is longer than what stays in a body, so that it becomes a payload. " * 10


def main() -> None:
    force = "--force" in sys.argv
    FOLDER.mkdir(exist_ok=True)
    for number, (name, build) in enumerate(GOLDEN.items()):
        bundle, told = FOLDER / f"{name}.ndjson", FOLDER / f"{name}.json"
        if bundle.exists() and not force:
            continue
        data, expected = made(number, build)
        bundle.write_bytes(data)
        told.write_text(json.dumps(expected, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"wrote {bundle.name}: {expected['events']} events")


def made(number: int, build: Callable[[Log], Log]) -> tuple[bytes, dict[str, Any]]:
    """One golden log: the bytes of its bundle, and what it must fold to."""
    ticks = count(START_US, 1_000_000)
    real = os.urandom, time.time_ns
    os.urandom, time.time_ns = _fixed_randomness(number), lambda: next(ticks) * 1000
    try:
        session = root_id(START_US, os.urandom(10))
        opened = ev.SessionOpened(name="golden", goal="stay readable", agent="tester", labels={"team": "a/b"})
        log = build(Log.create(MemoryEngine(), session, opened))
    finally:
        os.urandom, time.time_ns = real
    out = io.BytesIO()
    export_bundle(log, out, beyond=True)
    return out.getvalue(), told_by(log)


def told_by(log: Log) -> dict[str, Any]:
    """What a golden log is compared by."""
    report = verify(log)
    assert report.ok, report
    hashes = {}
    for seq in range(1, report.events + 1):
        try:
            hashes[str(seq)] = log.state_hash(seq)
        except NotFoundError:
            hashes[str(seq)] = "pruned"
    return {
        "session": log.id,
        "events": report.events,
        "head_hash": report.head_hash,
        "kinds": sorted({e.kind for e in log.entries()}),
        "scope": report.scope,
        "view": [list(each) for each in log.view()],
        "state": log.state(),
        "state_hash": log.state_hash(),
        "state_hashes": hashes,
    }


def _fixed_randomness(seed: int) -> Callable[[int], bytes]:
    counter = count()
    return lambda size: hashlib.shake_256(f"golden {seed} {next(counter)}".encode()).digest(size)


# The logs


def every_kind(log: Log) -> Log:
    """Every kind that a living session can hold, in one life."""
    cost = ev.Cost(tokens_in=120, tokens_out=30, usd_micros=450, duration_us=1_200_000)
    log.append(ev.GoalSet(goal="find out", why="asked to"), ev.LabelsSet(labels={"team": None, "tier": "gold"}))
    epoch = log.take_lease("worker-1", ttl_s=30)
    log.append(ev.BudgetSet(limits={"tokens": 1000, "usd_micros": 5000}), guard=epoch)
    log.append(ev.TurnStarted(input={"text": "hello", "n": [1, 2.5, None, True]}), guard=epoch)
    log.append(
        ev.MessageAdded(role="user", content=LONG), EventDraft(ev.MessageAdded(role="model", content="hi"), actor="m")
    )
    log.append(
        ev.ActionRequested(action="a1", tool="model", effect="model", params={"model": "m-1", "temperature": 0.2}),
        ev.ActionStarted(action="a1"),
        ev.ActionSucceeded(action="a1", output=LONG, output_summary="said hi", cost=cost, stop_reason="end"),
    )
    log.append(ev.ActionRequested(action="a2", tool="mail", approval=True, key="k-2", input_hash="ab" * 32))
    log.append(ev.ActionApproved(action="a2", by="ann"), ev.ActionStarted(action="a2", attempt=1))
    log.append(ev.ActionFailed(action="a2", error=ev.Failure("io", message="refused", retryable=True), retry=True))
    log.append(ev.ActionStarted(action="a2", attempt=2), ev.ActionUncertain(action="a2"))
    log.append(ev.ActionEvidence(action="a2", outcome="succeeded", output="sent", epoch=epoch))
    log.append(ev.ActionReconciled(action="a2", outcome="succeeded", output_summary="it was sent", by="ann"))
    log.append(ev.ActionRequested(action="a3", tool="shell", approval=True), ev.ActionDenied(action="a3", by="ann"))
    log.append(ev.ActionRequested(action="a4", tool="shell"), ev.ActionTimedOut(action="a4", after_us=5, cost=cost))
    log.append(ev.ActionRequested(action="a5", tool="shell"), ev.ActionAbandoned(action="a5"))
    log.append(ev.ActionRecorded(action="a6", tool="search", effect="read", output={"hits": 3}, cost=cost))
    log.append(ev.InputRequested(request="q1", prompt="sure?", options=("yes", "no")))
    log.append(ev.InputAnswered(request="q1", answer="yes", by="ann"))
    log.append(
        ev.DecisionMade(choice="go", because="it works", alternatives=("stay",), assumptions=("x",), evidence=(7, "u")),
        EventDraft(
            ev.FactRecorded(key="port/web", value={"n": 8080}), source="page", trust="untrusted", derived_from=((6, 7),)
        ),
        ev.FactRecorded(key="ключ \U0001f511", value=[1, 2.5, "é", None, False, {"": {}}]),
        ev.FactRecorded(key="wrong", value=1),
    )
    log.append(ev.FactRetracted(key="wrong"), ev.DeadEndNoted(tried="the front door", learned="it is locked"))
    log.append(
        ev.ArtefactRecorded(name="report", uri="file:report.md", media="text/markdown", content=LONG),
        ev.FileChanged(path="src/a.py", change="created", added=3, after=Payload(b"\x00\x01", "bytes")),
        ev.ResourceTouched(resource="crm", category="app", mode="write"),
    )
    log.append(ev.SubagentSpawned(session="s_01HF7YAT000000000000000000", task="look"))
    log.append(ev.SubagentReturned(session="s_01HF7YAT000000000000000000", output="seen", cost=cost))
    log.append(ev.ContextEvicted(key="old", handle=6, tokens=900), ev.ContextEvicted(key="older", handle=7))
    log.append(ev.ContextRestored(key="older"))
    log.append(ev.StatePatched(patch=[{"op": "add", "path": "/data/todo", "value": [{"t": "a", "done": False}]}]))
    log.append(
        ev.StatePatched(
            patch=[
                {"op": "add", "path": "/data/todo/1", "value": {"t": "b~/", "done": 0.5}},
                {"op": "replace", "path": "/data/todo/0/done", "value": True},
                {"op": "add", "path": "/data/a~1b", "value": {"~0": -1e-7}},
            ]
        )
    )
    log.append(ev.BudgetSpent(cost=cost), ev.BudgetReached(limit="tokens"))
    log.append(ev.TrustEndorsed(targets=(6,), by="ann"), ev.StepInvalidated(targets=(7,), by="ann"))
    log.append(ev.FlagRaised(flag="loop", rule="r1", message="again", severity="error", targets=(6,)))
    log.append(ev.FlagRaised(flag="slow"), ev.FlagCleared(flag="slow"))
    log.append(ev.HistoryCompacted(first=6, last=7, summary="they said hi"))
    log.append(ev.NoteAdded(text="the token was ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"))
    log.append(ev.CheckpointNamed(name="good", at=log.head().seq), ev.CheckpointNamed(name="start", at=1))
    log.append(ev.NoteAdded(text="look here", on=6), ev.GapNoted(missed="two calls", source="proxy"))
    log.append(ev.Foreign(foreign_kind="x.mine.own", data={"any": ["thing", 1]}))
    log.append(ev.TurnEnded(outcome="failed", error=ev.Failure("gave up")), guard=epoch)
    log.rewind(20, why="try again")
    log.append(ev.TurnStarted(retry=True), ev.FactRecorded(key="second", value="try"), ev.TurnEnded())
    log.release_lease(epoch)
    _put(log, "history.adopted", {"session": "s_01HF7YAT000000000000000000.00000000", "at": 3, "hash": "00" * 32})
    log.append(ev.SessionPaused(why="lunch"))
    log.append(ev.SessionResumed(host="box"))
    log.append(ev.SessionClosed(), commit_id="closing")
    log.append(ev.SessionArchived())
    log.append(ev.SessionReopened())
    return log


def _put(log: Log, kind: str, body: dict[str, Any]) -> None:
    """Appends what the log reads but does not write yet."""
    head = log.head()
    record = raw_record(head.seq + 1, kind, body, at=head.at)
    commit = raw_commit(log.id, [record], prev=head.hash, status=head.status, turn=head.turn, epoch=head.epoch)
    log.engine.submit(commit).result()
    log.forget()


def removed(log: Log) -> Log:
    """An erasure that reaches a rewind's copies, and two prunes, the second in the middle of a commit."""
    log.append(
        ev.FactRecorded(key="kept", value="stays"),
        ev.MessageAdded(role="user", content=LONG),
        ev.FactRecorded(key="kept too", value=[1]),
    )
    log.append(ev.FactRecorded(key="secret", value={"name": "Ann", "age": 7}), ev.FileChanged(path="secret.txt"))
    log.append(ev.DecisionMade(choice="tell Ann", because="she asked"))
    log.append(ev.FactRecorded(key="secret", value="over"))
    log.rewind(7)
    log.append(ev.MessageAdded(role="model", content=LONG))
    erase(log, [5, 6, 7], why="asked for", by="ann")
    prune(log, 1)
    log.append(ev.FactRecorded(key="a", value=1), ev.FactRecorded(key="b", value=2), ev.FactRecorded(key="c", value=3))
    prune(log, 3)
    log.append(ev.FactRecorded(key="d", value=4))
    return log


def forked(log: Log) -> Log:
    """A fork of a fork that leaves in the middle of a commit, with calls open, over an ancestor that pruned later; and
    records of a version to come."""
    log.append(
        ev.TurnStarted(), ev.ActionRequested(action="open", tool="t"), ev.FactRecorded(key="a", value=LONG[:100])
    )
    log.append(ev.MessageAdded(role="user", content=LONG), ev.FactRecorded(key="b", value=1))
    child = log.fork(3, name="child", why="another way")
    child.append(ev.FactRecorded(key="child", value=True))
    grandchild = child.fork(why="and another")
    prune(log, 2)
    head = grandchild.head()
    future = [
        raw_record(
            head.seq + 1,
            "future.thing",
            b'{ "z": 1.50, "delta":[{"op":"add","path":"/data/new","value":{"deep":[1]}}] }',
            at=head.at,
            mood="curious",
        ),
        raw_record(head.seq + 2, "note.added", {"text": "t", "unknown": {"field": [None]}}, at=head.at),
    ]
    commit = raw_commit(grandchild.id, future, prev=head.hash, status=head.status, turn=head.turn)
    grandchild.engine.submit(commit).result()
    grandchild.forget()
    grandchild.append(ev.FactRecorded(key="last", value=0.1))
    return grandchild


def resumed(log: Log) -> Log:
    """A compaction taken back, and a recorded result used again."""
    log.append(
        ev.TurnStarted(), ev.MessageAdded(role="user", content="hi"), ev.MessageAdded(role="model", content="ho")
    )
    log.append(ev.ActionRecorded(action="a", tool="t", effect="read", output={"n": 1}, cost=ev.Cost(tokens_in=3)))
    log.append(ev.ActionRecorded(action="b", tool="t", effect="read", output={"n": 1}, reused=5))
    log.append(ev.HistoryCompacted(first=3, last=4, summary="they said hi"))
    log.append(ev.HistoryExpanded(compacted=7))
    log.append(ev.TurnEnded())
    return log


def files(log: Log) -> Log:
    """Changes of files with what was before and after: text, bytes, a link, a mode alone, something too large, a secret
    that was redacted; and files brought back, undone and done again."""
    old, new = hashlib.sha256(LONG.encode()).hexdigest(), hashlib.sha256(b"new\n").hexdigest()
    log.append(ev.TurnStarted(), ev.ActionRequested(action="a", tool="shell", policy={"captures": True}))
    log.append(
        ev.ActionSucceeded(action="a"),
        ev.FileChanged(
            path="a.txt", before=LONG, after="new\n", before_hash=old, after_hash=new, added=1, removed=1, action="a"
        ),
        ev.FileChanged(path="icon", change="created", after=b"\x00\xff", after_mode="100644", action="a"),
        ev.FileChanged(path="link", change="deleted", before="a.txt", before_mode="120000", action="a"),
        ev.FileChanged(path="run", before_mode="100644", after_mode="100755", before="", after="", action="a"),
        ev.FileChanged(path="dump", missing={"before": "too large, 9.0 MB", "after": "too large, 9.1 MB"}, action="a"),
        ev.FileChanged(
            path="conf", before="t = ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8", before_hash=old, after="", action="a"
        ),
        ev.TurnEnded(),
    )
    back = ev.FileChanged(path="a.txt", before="new\n", after=LONG, before_hash=new, after_hash=old, added=1, removed=1)
    forth = ev.FileChanged(path="a.txt", before=LONG, after="new\n", before_hash=old, after_hash=new)
    log.rewind(1, restored=[EventDraft(back, actor="user")], files=1, why="start again")
    log.rewind(12, mode="undo", restored=[EventDraft(forth, actor="user")], files=12)
    log.rewind(14, mode="redo", restored=[EventDraft(back, actor="user")], files=14)
    log.append(ev.FactRecorded(key="still", value="writable"))
    return log


def elsewhere(log: Log) -> Log:
    """What other programs know of the session: records of a transcript, commits in git; and labels that change."""
    log.append(ev.TurnStarted(input="fix it"), ev.FileChanged(path="a.py", after_hash="0" * 64))
    log.append(
        ev.LabelsSet(labels={"model": "b"}, before={"model": "a"}),
        ev.ActionRequested(action="m", tool="b", effect="model", params={"model": "b"}, prompt_hash="1" * 64),
        ev.ActionSucceeded(action="m", output="done"),
        ev.TurnEnded(),
        ev.RecordsImported(format="x", source="s.jsonl", ids=("1", "2"), counts=(2, 4), rest=LONG, size=9, changed=1),
    )
    log.append(ev.SessionPaused())
    link = ev.GitCommitLinked(commit="c" * 40, turn=1, on=3, known="matched", subject="fix it", repo="/shop")
    log.append(EventDraft(link, actor="runtime"), ev.SessionResumed())
    return log


def recalled(log: Log) -> Log:
    """Lines of an earlier session were shown, and what that led to."""
    log.append(ev.TurnStarted(input="go on as yesterday"))
    log.append(ev.KnowledgeRecalled(sources=(f"{log.id}@1",), lines=("fact",), occasion="start"))
    log.append(ev.FactRecorded(key="db", value="postgres"), ev.TurnEnded())
    return log


def kept(log: Log) -> Log:
    """Items of a framework's own history, told by the events after them in their commit."""
    rest = '{"role":"user","content":{"$in":[0,"content"]}}\n{"role":"assistant","content":{"$in":[0,"content"]}}'
    log.append(
        ev.ItemsKept(format="messages", counts=(1, 1), rest=rest, ids=("m1", "m2")),
        ev.MessageAdded(role="user", content="what is left?"),
        ev.MessageAdded(role="assistant", content="nothing"),
    )
    return log


def totals(log: Log) -> Log:
    """Turns that were pruned, twice, and left what they came to."""
    cost = ev.Cost(tokens_in=120, tokens_out=30, usd_micros=450, duration_us=1_200_000)
    for turn in ("first", "second"):
        log.append(
            ev.TurnStarted(input=turn),
            ev.ActionRecorded(action=f"m-{turn}", tool="model", effect="model", cost=cost),
            ev.ActionRecorded(action=f"r-{turn}", tool="Read", effect="read", input={"file_path": "a.py"}, cost=cost),
            ev.ActionRecorded(action=f"t-{turn}", tool="Bash", input={"command": "pytest"}, outcome="failed"),
            ev.FileChanged(path="a.py", added=3, removed=1),
            ev.TurnEnded(),
        )
        prune(log, log.head().seq - 2)
    log.append(ev.FactRecorded(key="still", value="here"))
    return log


GOLDEN: dict[str, Callable[[Log], Log]] = {
    "every-kind": every_kind,
    "removed": removed,
    "forked": forked,
    "resumed": resumed,
    "files": files,
    "elsewhere": elsewhere,
    "recalled": recalled,
    "kept": kept,
    "totals": totals,
}

if __name__ == "__main__":
    main()
