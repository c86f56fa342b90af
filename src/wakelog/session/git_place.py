"""Where in git a session works: labels at its beginning, and what changed of them when a turn begins.

`repo` is the repository's main work tree, `project` the folder that paths begin from, `branch` what is checked out. All
three are told again when they change. `commit` is where the session began, and stays.
"""

from __future__ import annotations

from collections.abc import Mapping

FOLLOWED = ("repo", "project", "branch")


class GitPlace:
    """The folder of a session. An empty one is nowhere."""

    def __init__(self, folder: str = "") -> None:
        self.folder = folder

    def labels(self) -> dict[str, str]:
        """What is true now; nothing outside of git. Reads a few small files."""
        if not self.folder:
            return {}
        from wakelog.files.capture import project_folder
        from wakelog.files.git_head import git_labels

        found = git_labels(self.folder)
        return {"project": project_folder(self.folder), **found} if found else {}

    def changes(self, labels: Mapping[str, str]) -> dict[str, str | None]:
        """What is no longer as these labels say. A session that was not begun in git stays as it is."""
        if "repo" not in labels or not (now := self.labels()):
            return {}
        return {name: now.get(name) for name in FOLLOWED if now.get(name) != labels.get(name)}
