"""`fix-bug`: an agent finds out why users are logged out, in 12 turns."""

from __future__ import annotations

from typing import Any

from wakelog.cli.demo.scene import Scene
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.session import Session

_SESSION_PY = """LIFETIME = 300

def issue(user, now):
    return Token(user, expires=now + LIFETIME)
"""
_SESSION_PY_FIXED = """LIFETIME_S = 7 * 24 * 3600

def issue(user, now):
    # `now` is in seconds; the old value of 300 was meant as minutes.
    return Token(user, expires=now + LIFETIME_S)
"""
_TEST_PY = """def test_token_lives_a_week(clock):
    token = issue("ada", clock.now)
    clock.skip(days=6)
    assert token.is_valid(clock.now)
"""
_TRACE = "FAILED tests/test_auth.py::test_still_logged_in - assert False\n" * 40


def build_fix_bug(scene: Scene) -> None:
    session = scene.session(
        "fix-bug",
        goal="Users get logged out after five minutes: find out why, and fix it",
        agent="demo-agent",
        labels={"repo": "shop", "branch": "main"},
        limits={"usd_micros": 500_000, "tokens": 200_000},
        data={"plan": [], "risk": 0},
    )
    _look(scene, session)
    _find(scene, session)
    _fix(scene, session)
    _ship(scene, session)
    _try_refresh(scene, session)


def _look(scene: Scene, s: Session[Any]) -> None:
    with s.turn("Users get logged out after five minutes, find out why") as t:
        scene.think(s, "I will look at how sessions are issued, then at the tests.", tokens=(2100, 60))
        scene.call(s, "grep", {"pattern": "LIFETIME", "path": "src"}, "src/auth/session.py:1:LIFETIME = 300")
        t.data["plan"] = [{"step": "find the cause", "status": "doing"}, {"step": "fix it", "status": "todo"}]
    scene.wait(40)
    with s.turn("read the failing test"):
        scene.call(s, "read_file", {"path": "tests/test_auth.py"}, "def test_still_logged_in(): …", summary="84 lines")
        scene.call(s, "run_tests", {"select": "auth"}, _TRACE, error="1 of 12 tests failed", took_s=6, effect="pure")
        s.fact("failing_test", "tests/test_auth.py::test_still_logged_in", why="the test run said so")
        scene.think(s, "One test fails: a token is refused after 301 seconds.", tokens=(3900, 70))
    scene.wait(30)
    with s.turn("could it be Redis dropping keys?"):
        scene.call(s, "redis_info", {"section": "memory"}, {"evicted_keys": 0, "maxmemory_policy": "noeviction"})
        s.dead_end("Redis evicts session keys", learned="evicted_keys is 0 and the policy is noeviction")
        scene.think(s, "Redis keeps every key. It is not Redis.", tokens=(3300, 50))


def _find(scene: Scene, s: Session[Any]) -> None:
    scene.wait(50)
    with s.turn("then what is it?") as t:
        read = scene.call(s, "read_file", {"path": "src/auth/session.py"}, _SESSION_PY, summary="4 lines")
        s.fact("lifetime_unit", "seconds", why="issue() adds LIFETIME to a time in seconds")
        s.decide(
            "make the lifetime a week, in seconds",
            because="300 was meant as minutes; the product page promises a week",
            alternatives=["300 minutes", "refresh on every request"],
            evidence=[read],
        )
        t.data["plan"][0]["status"] = "done"
        scene.think(s, "LIFETIME = 300 is added to seconds, but was meant as minutes.", tokens=(4200, 90))
    s.checkpoint("before-fix")
    scene.wait(20)
    with s.turn("fix it") as t:
        scene.write(
            s,
            "src/auth/session.py",
            added=3,
            removed=2,
            before=_SESSION_PY,
            after=_SESSION_PY_FIXED,
            why="a week, in seconds, with the unit in the name",
        )
        t.data["plan"][1]["status"] = "doing"
        scene.think(s, "Changed the lifetime and named its unit.", tokens=(4500, 60))


def _fix(scene: Scene, s: Session[Any]) -> None:
    scene.wait(20)
    try:
        with s.turn("run the tests"):
            scene.call(s, "run_tests", {"select": "auth"}, error="no answer within 120 s", took_s=120, effect="pure")
            raise TimeoutError("the test runner did not answer")
    except TimeoutError:
        scene.wait(5)
    with s.turn("run the tests", retry=True):
        scene.call(s, "run_tests", {"select": "auth", "workers": 1}, "12 passed", took_s=9, effect="pure")
        s.fact("tests", "12 passed", why="the second attempt, with one worker")
    scene.wait(60)
    with s.turn("add a test so that it stays fixed") as t:
        scene.write(s, "tests/test_lifetime.py", "created", added=4, after=_TEST_PY, why="the bug must not come back")
        t.data["plan"].append({"step": "keep it fixed", "status": "done"})
        scene.think(s, "Added a test that skips six days.", tokens=(5200, 80))
    scene.wait(45)
    with s.turn("what do the framework's docs say about long sessions?"):
        scene.call(
            s,
            "fetch",
            {"url": "https://docs.example/sessions"},
            "Long sessions should be revocable: keep an id per session and check it.",
            source="web:docs.example",
            trust="unverified",
        )
        s.context.touch("https://docs.example/sessions")
        scene.think(s, "They advise an id per session, so that one can be revoked.", tokens=(5600, 110))


def _ship(scene: Scene, s: Session[Any]) -> None:
    scene.wait(80)
    with s.turn("make sessions revocable") as t:
        s.decide(
            "a nullable session_id column",
            because="old rows have none, and a backfill would lock the table",
            alternatives=["backfill now", "a second table"],
            assumptions=["fewer than a million rows"],
        )
        scene.write(s, "db/0042_sessions.sql", "created", added=12, why="the nullable column")
        t.data["risk"] = 2
        scene.think(s, "Wrote the migration.", tokens=(6100, 90))
    scene.wait(30)
    with s.turn("apply it on staging"):
        scene.call(
            s,
            "run_sql",
            {"database": "staging", "file": "db/0042_sessions.sql"},
            "ALTER TABLE",
            effect="external",
            summary="1 table altered",
            took_s=2,
            key="staging-0042",
        )
        s.artefact("migration-0042", uri="db://staging/0042", why="applied on staging")
    first, last = s.history.attempts(1)[0].first, s.history.attempts(8)[-1].last
    summary = "Tokens lived 300 s; now a week. Tests pass. Docs advise revocable sessions."
    s.append(EventDraft(ev.HistoryCompacted(first=first, last=last, summary=summary), actor="runtime"))
    failed = next(e.seq for e in s.events(kind="action.failed"))
    s.append(EventDraft(ev.ContextEvicted(key="test output of @2", handle=failed, tokens=658), actor="runtime"))
    scene.wait(15)
    with s.turn("push the branch"):
        input = {"remote": "origin", "branch": "fix-lifetime"}
        scene.call(s, "git_push", input, "3 commits", effect="external", took_s=3, summary="3 commits pushed")
    scene.wait(25)
    with s.turn("summarise") as t:
        t.data["plan"][1]["status"] = "done"
        t.data["risk"] = 1
        scene.think(s, "Fixed: the lifetime is a week. The migration waits for production.", tokens=(6400, 140))
    s.append(
        ev.InputRequested(request="apply-on-production", prompt="Apply 0042 on production?", options=("yes", "no"))
    )


def _try_refresh(scene: Scene, s: Session[Any]) -> None:
    scene.wait(120)
    fork = scene.fork(s, "cp:before-fix", "try-refresh", why="what if every request renews the token?")
    with fork.turn("try refreshing on every request instead"):
        fork.decide("refresh on every request", because="no long-lived tokens at all", alternatives=["a week"])
        scene.write(fork, "src/auth/session.py", added=9, removed=1, why="renew in the middleware")
        scene.think(fork, "Works, but writes to Redis on every request.", tokens=(4400, 90))
