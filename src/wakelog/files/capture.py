"""Capturing: two pictures around a call become the changes it made, with contents before and after.

    picture = capture.before()
    …                                   # a tool runs, or a shell
    events = capture.changes(picture, action="shell-1")

Only the disk counts, so it does not matter how a call changed a file. What somebody else changed between two calls is
in the picture before the second call and not attributed to it. What somebody changes while a call runs is attributed to
the call. When calls overlap, a change belongs to the one that ended first and is reported once.
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
from wakelog.files.manifest import MAX_FILE_BYTES, OVER_LIMIT, ManifestEntry, Root, Scanner, hiding_entry
from wakelog.files.project import project_folder
from wakelog.model import events as ev
from wakelog.model.values import Value

MAX_TOTAL_BYTES = 256_000_000
BAD_NAME = "its name is not UTF-8"

_decode_seen = msgspec.msgpack.Decoder(dict[str, ManifestEntry]).decode
_decode_picture = msgspec.msgpack.Decoder(tuple[int, dict[str, ManifestEntry]]).decode


class Picture(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """The roots at one moment, by the paths that the log uses."""

    seen: dict[str, ManifestEntry]
    tick: int
    at_ns: int


class Capture:
    """Watches named roots. One may be shared by threads.

    Paths are recorded relative to `folder`, by default the project's (see `project_folder`); roots outside it are
    recorded by absolute path. Files above `max_file_bytes` are listed but not read. `cache` is a file that keeps the
    contents, for when the pictures before and after a call are taken by different processes.
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
        results = _roots([os.path.join(start, os.fspath(root)) for root in roots], self.folder)
        self.roots = tuple(root.path for root in results)
        excluded = [os.path.abspath(path) for path in (*exclude, *([cache] if cache is not None else []))]
        self._contents = Contents(Path(cache) if cache is not None else None, max_bytes=max_total_bytes)
        self._scanner = Scanner(results, self._contents, max_file_bytes=max_file_bytes, exclude=excluded)
        self._lock = threading.RLock()
        self._last: dict[str, ManifestEntry] = {}
        self._tick = 0
        self._live: weakref.WeakSet[Picture] = weakref.WeakSet()
        self._reported: dict[str, tuple[int, ManifestEntry | None]] = {}
        """The last reported change of each path: at which scan, and what the file was then."""
        self._is_loaded = cache is None

    @property
    def size_bytes(self) -> int:
        """The size of the kept contents, compressed."""
        return self._contents.size_bytes

    def before(self) -> Picture:
        """The roots as they are now, with all contents kept. Take it before a call and pass it to `changes` after."""
        with self._lock:
            began = time.time_ns()
            picture = Picture(self._scan(), self._tick, began)
            self._live.add(picture)
            return picture

    def changes(self, picture: Picture, action: str = "") -> list[ev.FileChanged]:
        """What has changed since a picture and was not reported yet."""
        with self._lock:
            now = self._scan()
            out = []
            for path in self._candidates(picture, now):
                old, new = self._both_sides(picture, path, self._known_before(picture, path), now)
                if old is new or (old is not None and new is not None and not old.differs(new)):
                    continue
                out.append(self._event(path, old, new, action))
                self._reported[path] = (self._tick, new)
            return out

    def keep(self, key: str, picture: Picture) -> None:
        """Keeps a picture in the cache, for the process that will call `changes`."""
        with self._lock:
            self._contents.save(f"picture {key}", msgspec.msgpack.encode((picture.at_ns, picture.seen)))

    def kept(self, key: str) -> Picture | None:
        """Takes the picture that another process kept under this key; None if there is none."""
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
            self._reported.clear()
        self._evict_contents()
        return seen

    def _evict_contents(self) -> None:
        """Drops contents that no picture needs, once half of the limit is used."""
        if self._contents.size_bytes * 2 < self._contents.max_bytes:
            return
        pictures = [self._last, *(picture.seen for picture in self._live)]
        for key in self._contents.kept_keys():
            if key.startswith("picture ") and (data := self._contents.load(key)) is not None:
                pictures.append(_decode_picture(data)[1])
        self._contents.drop_except({entry.hash for picture in pictures for entry in picture.values()})

    def _candidates(self, picture: Picture, now: dict[str, ManifestEntry]) -> list[str]:
        before = picture.seen
        paths = {path for path, entry in now.items() if before.get(path) is not entry}
        paths.update(path for path in before if path not in now)
        paths.update(path for path, (tick, _) in self._reported.items() if tick > picture.tick)
        return sorted(paths)

    def _known_before(self, picture: Picture, path: str) -> ManifestEntry | None:
        """What the log says a file was: as reported by a call that ended meanwhile, else as in the picture."""
        reported = self._reported.get(path)
        return reported[1] if reported is not None and reported[0] > picture.tick else picture.seen.get(path)

    def _both_sides(
        self, picture: Picture, path: str, old: ManifestEntry | None, now: dict[str, ManifestEntry]
    ) -> tuple[ManifestEntry | None, ManifestEntry | None]:
        """The file before and after. When ignore rules change, existing files become visible and others hidden; these
        were neither created nor deleted."""
        new = now.get(path)
        is_hidden, was_hidden = _is_hidden(now, path, new), _is_hidden(picture.seen, path, old)
        if was_hidden == is_hidden:
            return old, new
        if path.endswith("/") and any(other.startswith(path) for other in (now if was_hidden else picture.seen)):
            return old, old  # the folder itself; its files are compared one by one
        if was_hidden:
            if new is not None and is_settled(new.stamp, picture.at_ns):
                return new, new
            return hiding_entry(picture.seen, path) or old, new
        if old is not None and old.stamp == self._scanner.stamp(path):
            return old, old
        return old, hiding_entry(now, path) or new

    # Events

    def _event(self, path: str, old: ManifestEntry | None, new: ManifestEntry | None, action: str) -> ev.FileChanged:
        change: Literal["created", "modified", "deleted"] = (
            "created" if old is None else "deleted" if new is None else "modified"
        )
        name, is_sound = printable(path)
        before, after = self._content(old), self._content(new)
        missing = {
            side: BAD_NAME if not is_sound else (entry.missing or OVER_LIMIT)
            for side, entry, content in (("before", old, before), ("after", new, after))
            if entry is not None and (content is None or not is_sound)
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

    def _content(self, entry: ManifestEntry | None) -> bytes | None:
        return self._contents.get(entry.hash) if entry is not None and not entry.missing else None


def as_value(content: bytes | None) -> Value:
    """A content as events store it: UTF-8 as text, anything else as bytes."""
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def line_counts(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """Lines added and removed between two texts; (0, 0) if one is not text."""
    a, b = as_value(before or b""), as_value(after or b"")
    return counts(a, b) if isinstance(a, str) and isinstance(b, str) and "\0" not in a + b else (0, 0)


def mode_text(mode: int) -> str:
    """Type and permissions in octal, as the log has them. A link has no permissions."""
    return f"{stat.S_IFMT(mode) | (0 if stat.S_ISLNK(mode) else stat.S_IMODE(mode)):o}"


def printable(path: str) -> tuple[str, bool]:
    """A path as text, and whether that is its true name."""
    try:
        path.encode()
        return path, True
    except UnicodeEncodeError:
        return os.fsencode(path).decode("utf-8", "backslashreplace"), False


def _is_hidden(picture: dict[str, ManifestEntry], path: str, entry: ManifestEntry | None) -> bool:
    """Whether a picture does not show a path, because of an ignore rule or an unreadable folder."""
    return entry.kind == "ignored" if entry is not None else hiding_entry(picture, path) is not None


def _hash_of(entry: ManifestEntry | None) -> str:
    return entry.hash if entry is not None and entry.kind in ("file", "link") else ""


def _roots(paths: list[str], folder: str) -> list[Root]:
    """The roots in order, without those inside another root."""
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
