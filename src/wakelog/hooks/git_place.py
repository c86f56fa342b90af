"""Where in git an agent works, for the hooks that tell of a beginning. Loads next to nothing, like spool.py."""

from __future__ import annotations

import json
import os

from wakelog.files.git_head import git_labels

BEGINNINGS = ("SessionStart", "UserPromptSubmit", "BeforeAgent")
EVENT = "git.seen"


def place_of(text: bytes) -> bytes:
    """Repository, branch and commit of the folder that a record names, as the text of a record. Empty when it tells of
    no beginning, or the folder is not in git."""
    said = json.loads(text)
    folder = said.get("cwd")
    if said.get("hook_event_name") not in BEGINNINGS or not isinstance(folder, str) or not os.path.isabs(folder):
        return b""
    labels = git_labels(folder)
    if not labels:
        return b""
    about = {"session_id": said.get("session_id"), "cwd": folder, "hook_event_name": EVENT, **labels}
    return json.dumps(about).encode()
