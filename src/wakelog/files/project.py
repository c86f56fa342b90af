"""The folder of a project. In a file of its own: the start of every session needs it, and nothing else of this room."""

from __future__ import annotations

import os


def project_folder(start: str | os.PathLike[str] | None = None) -> str:
    """The nearest folder, from `start` upward, that contains `.git` or `.wakelog`, else `start`. Recorded paths are
    relative to it, so a command run in a subfolder means the same files."""
    here = os.path.realpath(os.getcwd() if start is None else start)
    folder = here
    while True:
        if any(os.path.lexists(os.path.join(folder, mark)) for mark in (".git", ".wakelog")):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return here
        folder = above
