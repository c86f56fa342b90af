"""`make demo`: an agent is killed in the middle of a tool call, runs again, and goes on. Then its session is read.

Everything happens in a scratch folder and nothing leaves this machine.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

AGENT = Path(__file__).with_name("agent.py")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="wakelog-demo-") as folder:
        store = str(Path(folder) / "store")
        title("an agent starts work, and is killed (kill -9) inside its third turn")
        run_and_kill(store)
        title("the same script is simply run again")
        subprocess.run([sys.executable, str(AGENT), store], check=True)
        for words, why in (
            (["log"], "what happened, turn by turn (the killed turn is there, interrupted)"),
            (["diff", "@2", "@4"], "what changed between turn 2 and turn 4, by whom and why"),
            (["state", "/facts"], "what the agent knows"),
            (["blame", "/data"], "who wrote it"),
            (["verify"], "was it altered?"),
        ):
            title(f"wakelog {' '.join(words)}    # {why}")
            subprocess.run([sys.executable, "-m", "wakelog", words[0], "--store", store, *words[1:]], check=True)
    return 0


def run_and_kill(store: str) -> None:
    """Starts the agent, waits until it is inside turn 3, and kills it without warning."""
    with subprocess.Popen([sys.executable, str(AGENT), store, "3"], stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        for line in agent.stdout:
            print(line, end="")
            if line.startswith("turn @3"):
                wait_for_intent(store)
                agent.send_signal(signal.SIGKILL)
                print("killed.")
                break


def wait_for_intent(store: str) -> None:
    """Until the call is recorded as running: the point of the demo is a crash inside a call."""
    import wakelog

    with wakelog.open(store) as opened:
        session = opened.resume("fix-login")
        while not session.state().pending_actions:
            for _ in session.follow(timeout_s=1.0):
                break


def title(text: str) -> None:
    print(f"\n── {text}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
