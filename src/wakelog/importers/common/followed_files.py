"""Files of a transcript whose contents are known from it, because the agent wrote them whole."""

from __future__ import annotations

FOLLOWED_MAX = 16 << 20
"""So many characters are followed; the contents of further files count as not known."""


class FollowedFiles:
    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._size = 0

    def text(self, path: str) -> str | None:
        return self._texts.get(path)

    def follow(self, path: str, text: str | None) -> None:
        """From here on a file is this; None when that is no longer known, or there is no file."""
        self._size -= len(self._texts.pop(path, ""))
        if text is not None and self._size + len(text) <= FOLLOWED_MAX:
            self._texts[path] = text
            self._size += len(text)
