"""`make demo`: an agent is killed while its message is on the way, runs again, and does not send it twice.

Everything happens in a scratch folder and nothing leaves this machine.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AGENT = Path(__file__).with_name("agent.py")
LONG_S = "600"
ENOUGH_S = 60.0


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="wakelog-demo-") as name:
        folder = Path(name)
        (folder / "settings.py").write_text("SESSION_TTL = 300\n", encoding="utf-8")
        (folder / "test_login.py").write_text("assert SESSION_TTL == 7 * 24 * 3600\n", encoding="utf-8")

        title("an agent works, and is killed (kill -9) inside its last call")
        run_and_kill(folder)
        title("run the same script again: finished calls are not repeated, and wakelog does not guess the cut one")
        agent(folder, expect=1)
        wakelog(folder, "pending")
        title("somebody checks the channel: the message is there, so record that")
        print(read_channel(folder), end="", flush=True)
        wakelog(folder, "reconcile", "fix-login", uncertain_call(folder), "--succeeded", "-m", "it is in the channel")
        title("run the script once more: it finishes")
        agent(folder, expect=0)
        sent = len(read_channel(folder).splitlines())
        print(f"messages in the channel: {sent}", flush=True)

        wakelog(folder, "log", why="what happened, turn by turn")
        wakelog(folder, "diff", "@1", "@2", why="what the second turn changed, by which call, and why")
        wakelog(folder, "brief", why="what the next run should know")
        wakelog(folder, "verify", why="was it altered?")
        imported(folder / "imported")
    return 0 if sent == 1 else 1


def imported(folder: Path) -> None:
    """A session of a coding agent, as `wakelog import` brings it in: nothing in it was declared for wakelog."""
    title("a transcript of Claude Code (made for this demo), imported")
    run("demo", "transcript", "--into", str(folder))
    for command in (["log"], ["show", "@1"], ["why", "shop/upload.py:7"]):
        title(f"wakelog {shlex.join(command)}")
        run(command[0], "--store", str(folder), *command[1:])


def run(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "wakelog", *words], check=True)


def run_and_kill(folder: Path) -> None:
    """Kills the agent when its message has arrived and its answer has not."""
    with subprocess.Popen([sys.executable, str(AGENT), str(folder), LONG_S]) as process:
        deadline = time.monotonic() + ENOUGH_S
        while not read_channel(folder):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise SystemExit("the agent did not come to its last call")
            time.sleep(0.01)
        process.kill()
    print("killed.", flush=True)


def agent(folder: Path, *, expect: int) -> None:
    code = subprocess.run([sys.executable, str(AGENT), str(folder)], check=False).returncode
    if code != expect:
        raise SystemExit(f"the agent ended with {code}, not {expect}")


def read_channel(folder: Path) -> str:
    channel = folder / "channel.txt"
    return channel.read_text(encoding="utf-8") if channel.exists() else ""


def uncertain_call(folder: Path) -> str:
    """The id of the one call that is pending, as a program would ask for it."""
    words = ["pending", "--store", str(folder / "store"), "--json"]
    out = subprocess.run([sys.executable, "-m", "wakelog", *words], check=True, capture_output=True).stdout
    (call,) = json.loads(out)["data"]
    return str(call["action"])


def wakelog(folder: Path, command: str, *words: str, why: str = "") -> None:
    shown = f"wakelog {shlex.join([command, *words])}"
    title(f"{shown}    # {why}") if why else print(f"\n$ {shown}", flush=True)
    subprocess.run([sys.executable, "-m", "wakelog", command, "--store", str(folder / "store"), *words], check=True)


def title(text: str) -> None:
    print(f"\n── {text}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
