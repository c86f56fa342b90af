"""The command line. It composes and starts the rest; nobody imports it."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:2] == ["hook"] and sys.argv[2:3] and not sys.argv[2].startswith("-"):
        # Agents run this around every call they make: it comes before everything that takes time to load.
        from wakelog.hooks.spool import run_hook

        run_hook(sys.argv[2:])
        raise SystemExit(0)
    from wakelog.cli.app import run

    raise SystemExit(run())
