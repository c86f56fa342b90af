"""The command line. It composes and starts the rest; nobody imports it."""

from __future__ import annotations


def main() -> None:
    from wakelog.cli.app import run

    raise SystemExit(run())
