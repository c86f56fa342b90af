"""The command line. It composes and starts the rest; no room imports it."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    # Most objects of a command live until it ends, and collecting garbage among them took a fifth of the run time.
    # So collect rarely while the command runs, and not at all at exit.
    gc.set_threshold(50_000, 20, 20)
    try:
        _run()
    except KeyboardInterrupt:  # while modules are being imported
        raise SystemExit(130) from None
    finally:
        if "duckdb" not in sys.modules:  # it would print every object that is not collected
            gc.freeze()


def _run() -> None:
    if sys.argv[1:2] == ["hook"] and sys.argv[2:3] and not sys.argv[2].startswith("-"):
        # Agents run this around every call they make, so it runs before anything slow is imported.
        from wakelog.hooks.spool import run_hook

        run_hook(sys.argv[2:])
        raise SystemExit(0)
    if "_WAKELOG_COMPLETE" in os.environ and _complete_quickly():
        return
    from wakelog.cli.app import run

    raise SystemExit(run())


def _complete_quickly() -> bool:
    """Answers a shell that completes a word. False if the case is not simple: then click answers."""
    from wakelog.cli.quick_completion import quick_answer

    try:
        text = quick_answer(os.environ)
    except Exception:  # completion never fails
        return False
    if text is not None:
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.flush()
    return text is not None
