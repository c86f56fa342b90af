"""Signals reach a child process, whatever the main thread is doing."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

PARENT = """
    import signal, subprocess, sys
    from wakelog.child_process import SignalForwarding, end_like

    with SignalForwarding() as signals:
        child = signals.start([sys.executable, "-c", "import time; print('on', flush=True); time.sleep(600)"])
        # No signal interrupts this thread, just as one that arrived a moment before it blocks.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        code = child.wait()
    print(code, flush=True)
"""


def test_a_signal_reaches_the_child_while_the_main_thread_is_blocked() -> None:
    command = [sys.executable, "-c", textwrap.dedent(PARENT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        try:
            assert parent.stdout.readline() == "on\n"
            parent.send_signal(signal.SIGTERM)
            said, _ = parent.communicate(timeout=120)
        finally:
            parent.kill()
    assert (said, parent.returncode) == (f"{-signal.SIGTERM}\n", 0)


def test_signals_are_as_before_when_the_child_has_ended() -> None:
    script = """
        import signal, sys
        from wakelog.child_process import SignalForwarding

        before = signal.getsignal(signal.SIGTERM), signal.set_wakeup_fd(-1)
        with SignalForwarding() as signals:
            assert signals.start([sys.executable, "-c", ""]).wait() == 0
        assert (signal.getsignal(signal.SIGTERM), signal.set_wakeup_fd(-1)) == before
        signal.raise_signal(signal.SIGTERM)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=120, check=False)
    assert ended.returncode == -signal.SIGTERM
