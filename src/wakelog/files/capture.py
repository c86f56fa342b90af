"""Capturing: two pictures around a call become the changes it made, with contents before and after.

    picture = capture.before()
    …                                   # a tool runs, or a shell
    events = capture.changes(picture, action="shell-1")

What counts is what lies on disk, so it does not matter how a call changed it. What somebody else changed between two
calls is in the picture before the second, and not counted as its work; what somebody changes while a call runs is. When
calls overlap, a change belongs to the one that ended first, and is told once.
"""

from __future__ import annotations

import os
import stat
import threading
import time
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from wakelog.errors import NotFoundError
from wakelog.files.contents import Contents
from wakelog.files.file_stamps import is_settled
from wakelog.files.line_diff import counts
from wakelog.files.manifest import MAX_FILE_BYTES, OVER_LIMIT, ManifestEntry, Root, Scanner, covered_by
from wakelog.model import events as ev
from wakelog.model.values import Value

MAX_TOTAL_BYTES = 256_000_000
BAD_NAME = "its name is not UTF-8"

_decode_seen = msgspec.msgpack.Decoder(dict[str, ManifestEntry]).decode
_decode_picture = msgspec.msgpack.Decoder(tuple[int, dict[str, ManifestEntry]]).decode


class Picture(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """The roots at one moment. Each entry goes by its path in the log."""

    seen: dict[str, ManifestEntry]
    tick: int
    at_ns: int


class Capture:
    """Watches named roots. One may be shared by threads.

    Paths are recorded as they are from `folder` on, which is the project's (see `project_folder`); a root outside it is
    recorded by its whole path. Files above `max_file_bytes` are named, not read. `cache` is a file to keep contents in
    when the picture before a call and the one after it are taken by different processes.
    """

    def __init__(
        self,
        roots: Iterable[str | os.PathLike[str]] = (".",),
        *,
        folder: str | os.PathLike[str] | None = None,
        max_file_bytes: int = MAX_FILE_BYTES,
        max_total_bytes: int = MAX_TOTAL_BYTES,
        exclude: Iterable[str | os.PathLike[str]] = (),
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        self.folder = os.path.realpath(project_folder() if folder is None else folder)
        start = os.getcwd() if folder is None else self.folder
        found = _roots([os.path.join(start, os.fspath(root)) for root in roots], self.folder)
        self.roots = tuple(root.path for root in found)
        left_out = [os.path.abspath(os.fspath(path)) for path in exclude]
        if cache is not None:
            left_out.append(os.path.abspath(os.fspath(cache)))
        self._contents = Contents(Path(cache) if cache is not None else None, max_bytes=max_total_bytes)
        self._scanner = Scanner(found, self._contents, max_file_bytes=max_file_bytes, exclude=left_out)
        self._lock = threading.RLock()
        self._last: dict[str, ManifestEntry] = {}
        self._tick = 0
        self._live: weakref.WeakSet[Picture] = weakref.WeakSet()
        self._told: dict[str, tuple[int, ManifestEntry | None]] = {}
        self._is_loaded = cache is None

    @property
    def size_bytes(self) -> int:
        """How much is kept of what the files hold, compressed."""
        return self._contents.size_bytes

    def before(self) -> Picture:
        """The roots as they are now, with all contents kept, to be compared with what a call leaves."""
        with self._lock:
            began = time.time_ns()
            picture = Picture(self._scan(), self._tick, began)
            self._live.add(picture)
            return picture

    def changes(self, picture: Picture, action: str = "") -> list[ev.FileChanged]:
        """What has changed since a picture, and was not told yet."""
        with self._lock:
            now = self._scan()
            out = []
            for path in self._candidates(picture, now):
                old, new = self._uncovered(picture, path, self._known_before(picture, path), now)
                if old is new or (old is not None and new is not None and not old.differs(new)):
                    continue
                out.append(self._event(path, old, new, action))
                self._told[path] = (self._tick, new)
            return out

    def keep(self, key: str, picture: Picture) -> None:
        """Keeps a picture in the cache, for the process that will ask for the changes."""
        with self._lock:
            self._contents.save(f"picture {key}", msgspec.msgpack.encode((picture.at_ns, picture.seen)))

    def kept(self, key: str) -> Picture | None:
        """The picture another process kept under this key, once; None when there is none."""
        with self._lock:
            data = self._contents.load(f"picture {key}")
            if data is None:
                return None
            self._contents.forget(f"picture {key}")
            at_ns, seen = _decode_picture(data)
            picture = Picture(seen, self._tick, at_ns)
            self._live.add(picture)
            return picture

    def close(self) -> None:
        with self._lock:
            self._contents.close()

    # Pictures

    def _scan(self) -> dict[str, ManifestEntry]:
        if not self._is_loaded:
            self._is_loaded = True
            if (data := self._contents.load("last")) is not None:
                self._last = _decode_seen(data)
        seen = self._scanner.scan(self._last)
        if self._contents.path is not None and seen != self._last:
            self._contents.save("last", msgspec.msgpack.encode(seen))
        self._last = seen
        self._tick += 1
        if not self._live:
            self._told.clear()
        self._let_go()
        return seen

    def _let_go(self) -> None:
        """Drops contents that no picture needs, when half of what may be kept is used."""
        if self._contents.size_bytes * 2 < self._contents.max_bytes:
            return
        pictures = [self._last, *(picture.seen for picture in self._live)]
        for key in self._contents.kept_keys():
            if key.startswith("picture ") and (data := self._contents.load(key)) is not None:
                pictures.append(_decode_picture(data)[1])
        self._contents.drop_except({seen.hash for picture in pictures for seen in picture.values()})

    def _candidates(self, picture: Picture, now: dict[str, ManifestEntry]) -> list[str]:
        before = picture.seen
        paths = {path for path, seen in now.items() if before.get(path) is not seen}
        paths.update(path for path in before if path not in now)
        paths.update(path for path, (tick, _) in self._told.items() if tick > picture.tick)
        return sorted(paths)

    def _known_before(self, picture: Picture, path: str) -> ManifestEntry | None:
        """What the log says a file was: what a call that ended meanwhile told, else what the picture shows."""
        told = self._told.get(path)
        return told[1] if told is not None and told[0] > picture.tick else picture.seen.get(path)

    def _uncovered(
        self, picture: Picture, path: str, old: ManifestEntry | None, now: dict[str, ManifestEntry]
    ) -> tuple[ManifestEntry | None, ManifestEntry | None]:
        """Both sides of what may be a change. When ignore rules changed, files that were there all the time come into
        sight, and others go out of it: they are neither made nor deleted."""
        new = now.get(path)
        is_hidden, was_hidden = _is_hidden(now, path, new), _is_hidden(picture.seen, path, old)
        if was_hidden == is_hidden:
            return old, new
        if path.endswith("/") and any(other.startswith(path) for other in (now if was_hidden else picture.seen)):
            return old, old  # the folder itself; what is in it speaks for itself
        if was_hidden:
            if new is not None and is_settled(new.stamp, picture.at_ns):
                return new, new
            return covered_by(picture.seen, path) or old, new
        if old is not None and old.stamp == self._scanner.stamp(path):
            return old, old
        return old, covered_by(now, path) or new

    # Events

    def _event(self, path: str, old: ManifestEntry | None, new: ManifestEntry | None, action: str) -> ev.FileChanged:
        change: Literal["created", "modified", "deleted"] = (
            "created" if old is None else "deleted" if new is None else "modified"
        )
        name, is_sound = printable(path)
        before, after = self._content(old), self._content(new)
        missing = {
            side: BAD_NAME if not is_sound else (seen.missing or OVER_LIMIT)
            for side, seen, content in (("before", old, before), ("after", new, after))
            if seen is not None and (content is None or not is_sound)
        }
        added, removed = line_counts(before, after)
        return ev.FileChanged(
            path=name,
            change=change,
            added=added,
            removed=removed,
            before=as_value(before) if is_sound else None,
            after=as_value(after) if is_sound else None,
            action=action,
            before_hash=_hash_of(old),
            after_hash=_hash_of(new),
            before_mode=mode_text(old.mode) if old is not None and old.mode else "",
            after_mode=mode_text(new.mode) if new is not None and new.mode else "",
            missing=missing,
            folder="" if name.startswith("/") else printable(self.folder)[0],
        )

    def _content(self, seen: ManifestEntry | None) -> bytes | None:
        return self._contents.get(seen.hash) if seen is not None and not seen.missing else None


def project_folder(start: str | os.PathLike[str] | None = None) -> str:
    """The nearest folder from here upward that holds `.git` or `.wakelog`, else this one. Paths in the log begin there,
    so that a command run in a folder below means the same files."""
    here = os.path.realpath(os.getcwd() if start is None else start)
    folder = here
    while True:
        if any(os.path.lexists(os.path.join(folder, mark)) for mark in (".git", ".wakelog")):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return here
        folder = above


def as_value(content: bytes | None) -> Value:
    """A content as events hold it: text as text, anything else as bytes."""
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def line_counts(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """Lines added and removed between two texts; nothing for what is not text."""
    a, b = as_value(before or b""), as_value(after or b"")
    return counts(a, b) if isinstance(a, str) and isinstance(b, str) and "\0" not in a + b else (0, 0)


def mode_text(mode: int) -> str:
    """Type and permissions, as the log has them. A link has no permissions of its own."""
    return f"{stat.S_IFMT(mode) | (0 if stat.S_ISLNK(mode) else stat.S_IMODE(mode)):o}"


def printable(path: str) -> tuple[str, bool]:
    """A path as text, and whether that is its true name."""
    try:
        path.encode()
        return path, True
    except UnicodeEncodeError:
        return os.fsencode(path).decode("utf-8", "backslashreplace"), False


def _is_hidden(picture: dict[str, ManifestEntry], path: str, seen: ManifestEntry | None) -> bool:
    """Whether a picture cannot show a path: because of an ignore rule, or a folder that is closed."""
    return seen.kind == "ignored" if seen is not None else covered_by(picture, path) is not None


def _hash_of(seen: ManifestEntry | None) -> str:
    return seen.hash if seen is not None and seen.kind in ("file", "link") else ""


def _roots(paths: list[str], folder: str) -> list[Root]:
    """The roots in order, without those that lie inside another."""
    real: list[str] = []
    for path in paths:
        if not os.path.lexists(path):
            raise NotFoundError(
                f"there is nothing at {path} to capture", kind="root-not-found", hint="name folders that exist"
            )
        real.append(os.path.realpath(path))
    outer = [p for p in dict.fromkeys(real) if not any(is_below(p, other) for other in real if other != p)]
    return [Root(path, _prefix(path, folder)) for path in outer]


def _prefix(path: str, folder: str) -> str:
    if path == folder:
        return ""
    return (path[len(folder.rstrip("/")) + 1 :] if is_below(path, folder) else path).rstrip("/") + "/"


def is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")
