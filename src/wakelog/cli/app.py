"""The commands."""

from __future__ import annotations

import click

import wakelog


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(wakelog.__version__, prog_name="wakelog")
def app() -> None:
    """Session state for AI agents: what happened, what changed, why, and was it altered."""
