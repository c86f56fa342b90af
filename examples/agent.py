"""A small agent that keeps its session in wakelog: no framework, no model, no network.

It fixes a setting and tells the team. Its tools are plain functions with `@session.tool` above them. Its progress is in
the session, not in this process: kill it at any moment and run it again, and it continues where it was.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import wakelog


def main(folder: Path, answer_after_s: float = 0) -> None:
    with wakelog.open(folder / "store") as store:
        session = store.session("fix-login", goal="users stay logged in for a week", data={"done": []})

        @session.tool(effect="read")
        def read_file(path: str) -> str:
            print(f"  read_file {path}", flush=True)
            return (folder / path).read_text(encoding="utf-8").strip()

        @session.tool(effect="read")
        def grep(word: str, path: str) -> str:
            print(f"  grep {word} {path}", flush=True)
            lines = (folder / path).read_text(encoding="utf-8").splitlines()
            return next(line for line in lines if word in line)

        @session.tool(effect="write")
        def edit_file(path: str, old: str, new: str) -> str:
            print(f"  edit_file {path}", flush=True)
            text = (folder / path).read_text(encoding="utf-8")
            (folder / path).write_text(text.replace(old, new), encoding="utf-8")
            return new

        @session.tool(effect="read")
        def run_tests() -> str:
            print("  run_tests", flush=True)
            is_week = "SESSION_TTL = 604800" in (folder / "settings.py").read_text(encoding="utf-8")
            return "1 passed" if is_week else "1 failed"

        @session.tool(effect="external")
        def post(message: str) -> str:
            """The team's channel is a file here. A post cannot be taken back."""
            print(f"  post {message!r}", flush=True)
            with (folder / "channel.txt").open("a", encoding="utf-8") as channel:
                channel.write(message + "\n")
                channel.flush()
                os.fsync(channel.fileno())
            time.sleep(answer_after_s)  # posted, but the answer has not arrived
            return "posted"

        def find_out() -> None:
            read_file("test_login.py")
            lines = grep("SESSION_TTL", "settings.py")
            session.fact("session ttl", "300 seconds", why=f"grep found {lines}")

        def fix() -> None:
            session.decide(
                "raise SESSION_TTL to 604800",
                because="the test says a week",
                alternatives=["refresh the session on each request"],
            )
            edit_file("settings.py", "SESSION_TTL = 300", "SESSION_TTL = 604800")
            session.files.record("settings.py", added=1, removed=1, why="the limit was five minutes")
            result = run_tests()
            post(f"fixed the login: {result}")

        for request, work in (("why are users logged out?", find_out), ("fix it and tell the team", fix)):
            if request in session.data["done"]:
                continue
            with session.turn(request) as turn:
                print(f"turn @{turn.number}, attempt {turn.attempt}: {request}", flush=True)
                work()
                turn.data["done"].append(request)
        print("done.", flush=True)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), *map(float, sys.argv[2:]))
    except wakelog.NotAllowedError as stop:
        print(f"stopped: {stop}\n{stop.hint}", flush=True)
        raise SystemExit(1) from None
