"""Which store the sessions of an agent go to.

One that was named when hooks were enabled; else the one that somebody chose for the folder the agent works in; else the
user's own, in their data folder. Nothing is made in a project because an agent ran there.
"""

from __future__ import annotations

from pathlib import Path

from wakelog.hooks.installation import Receipt
from wakelog.store.url import chosen_url, user_store


def store_for(agent: str, folder: str, enabled: list[Receipt]) -> str:
    """The store for a session of an agent that works in a folder."""
    named = [each for each in enabled if each.agent == agent and each.store]
    here = Path(folder) if folder and Path(folder).is_absolute() else None
    for each in sorted(named, key=lambda receipt: receipt.scope == "user"):
        if each.scope == "user" or (here is not None and here.is_relative_to(_project_of(each))):
            return each.store
    return (chosen_url(here) if here is not None else "") or user_store()


def _project_of(receipt: Receipt) -> Path:
    return Path(receipt.file).parent.parent
