"""A small agent that keeps its session in wakelog: no framework, no model, no network.

It works through a list of steps, one turn each. What it has done is in the session, not in this process: kill it at any
moment, run it again, and it goes on where it was.
"""

from __future__ import annotations

import sys
import time

import wakelog

STEPS = [
    ("read the failing test", "read_file", "tests/test_login.py", "the test expects 7 days, the code says 5 minutes"),
    ("find the setting", "grep", "src/settings.py", "SESSION_TTL = 300"),
    ("change it", "edit_file", "src/settings.py", "SESSION_TTL = 604800"),
    ("run the tests", "run_tests", "tests/", "14 passed"),
]


def main(store_url: str, pause_in_turn: int = 0) -> None:
    with wakelog.open(store_url) as store:
        session = store.session("fix-login", goal="users stay logged in for a week", data={"done": []})
        if session.head.turn:
            print(f"resumed fix-login at turn @{session.head.turn}: {len(session.data['done'])} steps done", flush=True)
        for step, tool, target, result in STEPS:
            if step in session.data["done"]:
                continue
            with session.turn(user=step) as turn:
                print(f"turn @{turn.number}: {step}", flush=True)
                call = record_call(session, tool, target)
                if turn.number == pause_in_turn:
                    time.sleep(60)  # long enough to be killed inside the call
                session.append(wakelog.events.ActionSucceeded(action=call, output=result, output_summary=result))
                learn(session, step, target, result)
                turn.data["done"].append(step)
        session.close()


def record_call(session: wakelog.Session, tool: str, target: str) -> str:
    """The intent is durable before the call starts, so that a crash inside it is seen."""
    effect = "write" if tool == "edit_file" else "read"
    action = f"{tool}-{session.head.seq}"
    session.append(
        wakelog.events.ActionRequested(action=action, tool=tool, effect=effect, input={"path": target}),
        wakelog.events.ActionStarted(action=action),
    )
    return action


def learn(session: wakelog.Session, step: str, target: str, result: str) -> None:
    if step == "find the setting":
        session.fact("session ttl", "300 seconds", why=f"grep found {result}")
    if step == "change it":
        session.decide(
            "raise SESSION_TTL to 604800",
            because="the test and the product page both say a week",
            alternatives=["refresh the session on each request"],
        )
        session.file(target, added=1, removed=1, why="the limit was five minutes")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
