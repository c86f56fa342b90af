"""A small store that is the same byte for byte each time: fixed times, fixed randomness, a few realistic sessions."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wakelog
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.store import Store

START_US = 1_794_762_000_000_000  # 2026-11-15 17:00:00 UTC
NOW_US = START_US + 3 * 3600 * 1_000_000

ESC = "\x1b[31mred\x1b[0m"
OSC = "\x1b]0;owned\x07"
LINK = "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\"
C1 = "\u009b31m"
BIDI = "\u202eexe.txt\u202c"
ZERO = "pass\u200bword\u2060"
TAGS = "hi\U000e0041\U000e0042"
HOSTILE = f"{ESC} {OSC} {LINK} {C1} {BIDI} {ZERO} {TAGS} \r\x08\x7f end"
HOSTILE_NAME = f"evil-{ESC}-{BIDI}"


class Clock:
    """Time that passes only when it is told to, and one millisecond per look."""

    def __init__(self, at_us: int = START_US) -> None:
        self.now = at_us

    def __call__(self) -> int:
        self.now += 1000
        return self.now

    def skip(self, seconds: float) -> None:
        self.now += int(seconds * 1e6)


def fixed_bytes() -> Callable[[int], bytes]:
    """Random bytes that are not. Each size counts by itself, so that ids do not depend on how salts are drawn."""
    counts: Counter[int] = Counter()

    def draw(size: int) -> bytes:
        counts[size] += 1
        return hashlib.shake_128(f"{size} {counts[size]}".encode()).digest(size)

    return draw


def build(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes all sessions of the world into a new store."""
    with monkeypatch.context() as patched:
        patched.setattr(os, "urandom", fixed_bytes())
        clock = Clock()
        with wakelog.open(path, clock=clock) as store:
            fix = _fix_auth(store, clock)
            _try_redis(store, fix, clock)
            _nightly(store, clock)
            _hello(store, clock)
            _deploy(store, clock)
            _hostile(store, clock)
            clock.now = NOW_US - 600_000_000
            fix.note("look at this again before the release", on="@2")


def call(
    session: Session[Any],
    clock: Clock,
    tool: str,
    given: Any,
    output: Any = None,
    *,
    effect: Any = "read",
    seconds: float = 1.5,
    error: ev.Failure | None = None,
    source: str = "",
    cost: ev.Cost | None = None,
    params: dict[str, Any] | None = None,
) -> str:
    action = f"a{session.head.seq + 1}"
    requested = ev.ActionRequested(
        action=action,
        tool=tool,
        effect=effect,
        input=given,
        input_hash=hashlib.sha256(repr(given).encode()).hexdigest(),
        params=params or {},
    )
    session.append(requested, ev.ActionStarted(action=action))
    clock.skip(seconds)
    spent = cost or ev.Cost(duration_us=int(seconds * 1e6))
    if error:
        session.append(ev.ActionFailed(action=action, error=error, cost=spent))
        return action
    done = ev.ActionSucceeded(
        action=action,
        output=output,
        output_summary=str(output)[:80] if output is not None else "",
        cost=spent,
        stop_reason="end_turn" if effect == "model" else "",
    )
    session.append(EventDraft(done, source=source, trust="untrusted" if source else "trusted"))
    return action


def think(session: Session[Any], clock: Clock, text: str, *, tokens: int, usd_micros: int) -> None:
    cost = ev.Cost(tokens_in=tokens * 4, tokens_out=tokens, usd_micros=usd_micros, duration_us=2_000_000)
    call(
        session, clock, "claude-opus", None, text, effect="model", seconds=2, cost=cost, params={"model": "claude-opus"}
    )


def _fix_auth(store: Store, clock: Clock) -> Session[Any]:
    s = store.session(
        "fix-auth",
        goal="Find out why users get logged out after five minutes, and fix it",
        agent="claude-code 2.1.236",
        labels={"repo": "shop", "branch": "main"},
        limits={"usd_micros": 5_000_000, "tokens": 200_000},
        data={"plan": [{"step": "reproduce", "status": "todo"}, {"step": "fix", "status": "todo"}], "risk": 0.2},
    )
    with s.turn(user="users get logged out after 5 min, find out why"):
        think(s, clock, "I will look at the session code first.", tokens=512, usd_micros=50_000)
        call(s, clock, "read_file", {"path": "src/session.py"}, "TTL = 300\n" * 40)
        s.fact("session.ttl", 300, why="src/session.py line 1")
    clock.skip(120)
    with s.turn(user="read the failing test"):
        call(s, clock, "read_file", {"path": "tests/test_session.py"}, "def test_ttl(): assert TTL == 3600")
        call(s, clock, "bash", {"cmd": "pytest -q tests/test_session.py"}, "1 failed", effect="external", seconds=8)
        s.dead_end("raising the cookie lifetime", learned="the server forgets the session first")
        think(s, clock, "The test expects an hour.", tokens=900, usd_micros=50_000)
    s.checkpoint("before-fix")
    clock.skip(600)
    with s.turn(user="plan the migration") as turn:
        think(s, clock, "Two steps: change the default, then migrate.", tokens=2200, usd_micros=120_000)
        s.decide(
            "a database migration",
            because="the setting is stored per session row",
            alternatives=["a config default", "asking the user"],
            assumptions=["rows are rewritten nightly"],
        )
        turn.data["plan"][0]["status"] = "done"
    clock.skip(900)
    try:
        with s.turn(user="apply the migration"):
            _migrate(s, clock, fails=True)
    except RuntimeError:
        pass
    clock.skip(30)
    with s.turn(user="apply the migration", retry=True) as turn:
        _migrate(s, clock, fails=False)
        turn.data["plan"][1]["status"] = "doing"
        turn.data["risk"] = 0.6
    clock.skip(240)
    with s.turn(user="also rename the table"):
        call(s, clock, "bash", {"cmd": "sed -i s/session/sess/ db/schema.sql"}, "", effect="write")
        s.files.record("db/schema.sql", "modified", added=3, removed=3)
    s.rewind("@4", why="the rename broke the reports")
    clock.skip(200)
    with s.turn(user="run tests again") as turn:
        call(s, clock, "bash", {"cmd": "pytest -q"}, "214 passed", effect="external", seconds=41)
        think(s, clock, "All green.", tokens=1100, usd_micros=90_000)
        turn.data["plan"][1]["status"] = "done"
    return s


def _migrate(s: Session[Any], clock: Clock, *, fails: bool) -> None:
    page = "To change a column, make it nullable first. " * 400
    call(s, clock, "web_fetch", {"url": "https://blog.example/fix"}, page, source="web")
    s.context.touch("https://blog.example/fix")
    think(s, clock, "The article says the column must be nullable.", tokens=2000, usd_micros=155_000)
    if fails:
        failure = ev.Failure("IntegrityError", 'column "sid" is not null')
        call(s, clock, "run_sql", {"sql": "ALTER TABLE session ..."}, effect="write", error=failure)
        raise RuntimeError("the migration did not apply")
    s.decide("run_sql", because="the article says the column must be nullable", alternatives=["ask_user"])
    call(s, clock, "run_sql", {"sql": "ALTER TABLE session ALTER sid DROP NOT NULL"}, "ok", effect="write")
    s.files.record("db/0042_sessions.sql", "created", added=80, why="the migration itself")
    s.files.record("src/session.py", "modified", added=8, removed=2)


def _try_redis(store: Store, fix: Session[Any], clock: Clock) -> None:
    clock.skip(60)
    s = fix.fork("@3", name="try-redis", why="maybe sessions should not be in the database at all")
    with s.turn(user="try redis instead") as turn:
        s.decide("redis", because="expiry is built in", alternatives=["a database migration"])
        turn.data["risk"] = 0.4
        s.files.record("src/session.py", "modified", added=41, removed=17)
    waiting = ev.ActionRequested(action="w1", tool="deploy", effect="external", input={"to": "staging"}, approval=True)
    s.append(waiting)


def _nightly(store: Store, clock: Clock) -> None:
    clock.skip(100)
    s = store.session("nightly-report", goal="Write the nightly report", agent="cron")
    with s.turn(user="write the report"):
        call(s, clock, "sql", {"q": "select count(*) from orders"}, [{"count": 1204}])
        s.artefact("report.md", uri="file:report.md", media="text/markdown")
        think(s, clock, "Done.", tokens=300, usd_micros=11_000)
    s.life.end(why="done for today")


def _hello(store: Store, clock: Clock) -> None:
    s = store.session("hello")
    s.append(wakelog.UserMessage("What is 6 x 7?"), wakelog.ModelMessage("42"))
    clock.skip(5)


def _deploy(store: Store, clock: Clock) -> None:
    s = store.session("deploy-bot", goal="Deploy 2.4 to production", labels={"team": "ops"})
    epoch = s.life.take_lease("worker-7:5123")
    with s.turn(user="deploy 2.4"):
        s.append(ev.ActionRequested(action="d1", tool="kubectl", effect="external", input=["apply"], key="deploy-2.4"))
        s.append(ev.ActionStarted(action="d1"))
        s.append(ev.ActionUncertain(action="d1", why="the worker lost its connection"))
        s.append(ev.InputRequested(request="q1", prompt="Roll back or wait?", options=("roll back", "wait")))
        s.append(ev.FlagRaised(flag="loop", rule="same-call", message="the same call five times", severity="error"))
    s.life.release_lease(epoch)
    s.life.pause(why="waiting for ops")


def _hostile(store: Store, clock: Clock) -> None:
    s = store.session(HOSTILE_NAME, goal=HOSTILE, labels={f"k{ESC}": HOSTILE}, agent=HOSTILE, data={HOSTILE: HOSTILE})
    try:
        with s.turn(user=HOSTILE, source=HOSTILE, trust="untrusted"):
            s.message("assistant", HOSTILE)
            call(s, clock, f"tool{ESC}{BIDI}", {HOSTILE: HOSTILE}, HOSTILE, source=f"web{OSC}")
            s.decide(HOSTILE, because=HOSTILE, alternatives=[HOSTILE])
            s.fact(f"key{ESC}", HOSTILE, why=HOSTILE)
            s.files.record(f"/tmp/{BIDI}{ESC}", added=1, why=HOSTILE)
            s.append(ev.FlagRaised(flag=f"flag{ESC}", rule=HOSTILE, message=HOSTILE))
            s.append(ev.InputRequested(request=f"q{ESC}", prompt=HOSTILE))
            s.checkpoint(f"cp{ESC}")
            s.note(HOSTILE)
            raise RuntimeError(HOSTILE)
    except RuntimeError:
        pass
