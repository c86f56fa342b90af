"""Where in git an agent works, for hooks that report a start. Imports next to nothing, like spool.py."""

from __future__ import annotations

import json
import os

from wakelog.files.git_head import git_labels

STARTS = ("SessionStart", "UserPromptSubmit", "BeforeAgent")
EVENT = "git.seen"


def git_record(text: bytes) -> bytes:
    """A record with the repository, branch and commit of the folder that the input names. Empty if the input reports no
    start, or the folder is not in git."""
    hook_input = json.loads(text)
    folder = hook_input.get("cwd")
    if hook_input.get("hook_event_name") not in STARTS or not isinstance(folder, str) or not os.path.isabs(folder):
        return b""
    labels = git_labels(folder)
    if not labels:
        return b""
    about = {"session_id": hook_input.get("session_id"), "cwd": folder, "hook_event_name": EVENT, **labels}
    return json.dumps(about).encode()
