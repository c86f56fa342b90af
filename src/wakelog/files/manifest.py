"""A picture of named roots: every file that git does not ignore, with its stat, its mode and its hash.

A file is read if it is new or its stat has changed; an unchanged tree costs a walk and one stat per file. Symbolic
links are recorded as links and never followed. What cannot be captured is still listed, with the reason: a file that is
too large or unreadable, a socket, an unreadable folder. Ignored entries are not read: their stat, and for a folder the
stat of its entries up to a limit, shows that something changed, but not what.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from wakelog.files.contents import Contents
from wakelog.files.file_stamps import Stamp, is_settled, stamp_of
from wakelog.files.git import ALWAYS, Chain, Reader, Repository, is_ignored, repository_of, tracked_though_ignored

MAX_FILE_BYTES = 5_000_000
HASHED_TIMES = 10
"""Files up to this many times the limit are still hashed, so that edits to them are noticed."""
IGNORED_LOOK = 1000
"""How many entries of an ignored folder to stat to find out whether it changed."""
UNNAMED = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"})
"""Caches that almost every call touches. If git ignores them, they are not reported at all."""
PART_PREFIX = ".wakelog-part-"
"""The temporary files of a running restore (tree_writer.py)."""

IGNORED = "ignored by git"
UNSTABLE = "written to while it was read"
OVER_LIMIT = "the limit for contents was reached"
_SPECIAL = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ManifestEntry(msgspec.Struct, frozen=True, gc=False):
    """One entry of a picture. `hash` is the hash of its content; for an ignored entry, of its stats."""

    kind: Literal["file", "link", "other", "ignored"]
    stamp: Stamp
    hash: str = ""
    missing: str = ""
    """Why its content is not kept; empty when it is."""
    settled: bool = True

    @property
    def mode(self) -> int:
        return self.stamp[4]

    def differs(self, other: ManifestEntry) -> bool:
        """Whether a person would say that the file changed."""
        if self.kind != other.kind or stat.S_IMODE(self.mode) != stat.S_IMODE(other.mode):
            return True
        if self.hash and other.hash:
            return self.hash != other.hash
        return self.stamp[:4] != other.stamp[:4] or self.missing != other.missing


_UNNAMED = ManifestEntry("ignored", (0, 0, 0, 0, 0), "unnamed", IGNORED)
"""The entry of every ignored cache, so that it never counts as changed."""


def hiding_entry(seen: Mapping[str, ManifestEntry], path: str) -> ManifestEntry | None:
    """The entry that hides a path: its own if it is ignored, or that of an ignored or unreadable folder above it."""
    own = seen.get(path)
    if own is not None:
        return own if own.kind == "ignored" else None
    at = path.find("/")
    while at >= 0:
        above = seen.get(path[: at + 1])
        if above is not None:
            return above
        at = path.find("/", at + 1)
    return None


class Root(msgspec.Struct, frozen=True):
    """A folder or file to capture, and the prefix of its paths in the log: `src/`, or empty for the project folder."""

    path: str
    prefix: str


class Scanner:
    """Takes pictures. Caches the results of ignore rules as long as the rules do not change."""

    def __init__(
        self,
        roots: Iterable[Root],
        contents: Contents,
        *,
        max_file_bytes: int = MAX_FILE_BYTES,
        exclude: Iterable[str] = (),
    ) -> None:
        self.roots = tuple(roots)
        self._contents = contents
        self._max_file_bytes = max_file_bytes
        self._exclude = tuple(exclude)
        self._exclude_in = {os.path.dirname(path) for path in self._exclude}
        self._rules = Reader()
        self._judged: dict[str, tuple[Chain, dict[str, bool]]] = {}
        self._tracked: dict[str, tuple[object, frozenset[str]]] = {}

    def scan(self, known: Mapping[str, ManifestEntry]) -> dict[str, ManifestEntry]:
        """The roots as they are now. Files in `known` with the same stat are not read again."""
        out: dict[str, ManifestEntry] = {}
        with self._contents.at_once():
            for root in self.roots:
                self._scan_root(root, known, out)
        return out

    def stamp(self, path: str) -> Stamp | None:
        """The current stamp of a recorded path; None if nothing is there."""
        for root in self.roots:
            if path.startswith(root.prefix):
                try:
                    return stamp_of(os.lstat(os.path.join(root.path, path[len(root.prefix) :])))
                except OSError:
                    return None
        return None

    def _scan_root(self, root: Root, known: Mapping[str, ManifestEntry], out: dict[str, ManifestEntry]) -> None:
        if not os.path.isdir(root.path):
            self._add_path(root.path, root.prefix.rstrip("/"), known, out)
            return
        repository = repository_of(root.path)
        tracked = self._tracked_in(repository) if repository is not None else frozenset()
        stack = [(root.path, root.prefix, self._rules.start(root.path))]
        while stack:
            folder, prefix, chain = stack.pop()
            try:
                with os.scandir(folder) as found:
                    entries = [entry for entry in found if entry.name[0] != "." or not _is_ours(entry.name)]
            except OSError as exc:
                out[prefix or "./"] = _unreadable(exc)
                continue
            has_git = os.path.lexists(f"{folder}/.git")
            if has_git or any(entry.name == ".gitignore" for entry in entries):
                chain = self._rules.enter(chain, folder, has_git=has_git)
            if folder in self._exclude_in:
                entries = [entry for entry in entries if not entry.path.startswith(self._exclude)]
            judged = self._judgements(folder, chain)
            for entry in self._add_unchanged(entries, judged, prefix, known, out):
                name, is_folder = entry.name, entry.is_dir(follow_symlinks=False)
                key = name + "/" if is_folder else name
                if key not in judged:
                    judged[key] = is_ignored(chain, entry.path, is_folder)
                if judged[key] and entry.path not in tracked:
                    out[prefix + key] = _summarize_ignored(entry) if name not in UNNAMED else _UNNAMED
                elif is_folder:
                    stack.append((entry.path, prefix + key, chain))
                else:
                    self._add_path(entry.path, prefix + name, known, out)
        self._add_tracked(root, tracked, known, out)

    def _add_unchanged(
        self,
        entries: list[os.DirEntry[str]],
        judged: dict[str, bool],
        prefix: str,
        known: Mapping[str, ManifestEntry],
        out: dict[str, ManifestEntry],
    ) -> Iterator[os.DirEntry[str]]:
        """Adds unchanged files to the picture and yields the other entries. A scan spends nearly all its time here, so
        the code avoids function calls."""
        is_shared = self._contents.path is not None
        for entry in entries:
            path = prefix + entry.name
            old = known.get(path)
            if old is not None and old.settled and judged.get(entry.name) is False:
                try:
                    now = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # gone again
                if old.stamp == (now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino, now.st_mode) and (
                    not is_shared or old.missing or old.hash in self._contents
                ):
                    out[path] = old
                    continue
            yield entry

    def _judgements(self, folder: str, chain: Chain) -> dict[str, bool]:
        """The cached results of the rules for a folder's entries. Names of folders end with a slash."""
        known = self._judged.get(folder)
        if known is None or known[0] is not chain:
            known = self._judged[folder] = (chain, {})
        return known[1]

    def _tracked_in(self, repository: Repository) -> frozenset[str]:
        """Files that git tracks although an ignore rule matches them."""
        try:
            now: object = (stamp_of(os.stat(repository.index)), self._rules.generation)
        except OSError:
            return frozenset()
        known = self._tracked.get(repository.top)
        if known is None or known[0] != now:
            names = tracked_though_ignored(repository)
            known = (now, frozenset(os.path.join(repository.top, name) for name in names))
            self._tracked[repository.top] = known
        return known[1]

    def _add_tracked(
        self, root: Root, tracked: frozenset[str], known: Mapping[str, ManifestEntry], out: dict[str, ManifestEntry]
    ) -> None:
        """Adds tracked files inside ignored folders, which the walk did not enter."""
        for path in sorted(tracked):
            name = root.prefix + path[len(root.path) + 1 :]
            if path.startswith(root.path + "/") and name not in out and _is_direct(path):
                self._add_path(path, name, known, out)

    def _add_path(
        self, path: str, name: str, known: Mapping[str, ManifestEntry], out: dict[str, ManifestEntry]
    ) -> None:
        """Adds one file, if it exists."""
        try:
            found = os.lstat(path)
        except OSError:
            return
        stamp = stamp_of(found)
        old = known.get(name)
        if old is not None and old.stamp == stamp and old.settled and (old.missing or old.hash in self._contents):
            out[name] = old
        elif stat.S_ISREG(found.st_mode):
            entry = self._read(path, stamp)
            if entry is not None:
                out[name] = entry
        elif stat.S_ISLNK(found.st_mode):
            out[name] = self._link(path, stamp)
        else:
            what = _SPECIAL.get(stat.S_IFMT(found.st_mode), "not a file")
            out[name] = ManifestEntry("other", stamp, missing=what)

    def _read(self, path: str, stamp: Stamp) -> ManifestEntry | None:
        """Reads a file and keeps its content; None if the file is gone again."""
        for _ in range(3):
            is_large = stamp[0] > self._max_file_bytes
            too_large = f"too large, {megabytes(stamp[0])}" if is_large else ""
            if stamp[0] > self._max_file_bytes * HASHED_TIMES:
                return ManifestEntry("file", stamp, missing=too_large)
            began = time.time_ns()
            try:
                content, before, after = read_whole(path)
            except FileNotFoundError:
                return None
            except OSError as exc:
                return ManifestEntry("file", stamp, missing=f"unreadable, {exc.strerror or exc}", settled=False)
            stamp = after
            if before == after:
                digest = hashlib.sha256(content).hexdigest()
                missing = too_large or ("" if self._contents.put(digest, content) else OVER_LIMIT)
                return ManifestEntry("file", stamp, digest, missing, is_settled(stamp, began))
        return ManifestEntry("file", stamp, missing=UNSTABLE, settled=False)

    def _link(self, path: str, stamp: Stamp) -> ManifestEntry:
        try:
            target = os.fsencode(os.readlink(path))
        except OSError as exc:
            return ManifestEntry("link", stamp, missing=f"unreadable, {exc.strerror or exc}", settled=False)
        digest = hashlib.sha256(target).hexdigest()
        return ManifestEntry("link", stamp, digest, "" if self._contents.put(digest, target) else OVER_LIMIT)


def _is_ours(name: str) -> bool:
    return name in ALWAYS or name.startswith(PART_PREFIX)


def read_whole(path: str, *, dir_fd: int | None = None) -> tuple[bytes, Stamp, Stamp]:
    """The content of a regular file, with its stamps before and after reading. They differ if somebody wrote to it
    meanwhile."""
    handle = os.open(path, _FLAGS, dir_fd=dir_fd)
    with os.fdopen(handle, "rb", buffering=0) as file:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            raise OSError(None, "not a file any more")
        content = file.readall()
        return content, stamp_of(before), stamp_of(os.fstat(handle))


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _unreadable(exc: OSError) -> ManifestEntry:
    return ManifestEntry(
        "other", (0, 0, 0, 0, stat.S_IFDIR), missing=f"unreadable, {exc.strerror or exc}", settled=False
    )


def _is_direct(path: str) -> bool:
    """Whether no folder in the path is a symbolic link."""
    folder = os.path.dirname(path)
    return os.path.realpath(folder) == folder


def _summarize_ignored(entry: os.DirEntry[str]) -> ManifestEntry:
    """An ignored entry, with a hash of its stats instead of its content."""
    stamps = hashlib.sha256()
    first: Stamp = (0, 0, 0, 0, 0)
    for name, stamp in _stat_ignored(entry):
        first = first if any(first) else stamp
        stamps.update(f"{stamp}{name!r}".encode())
    return ManifestEntry("ignored", (0, 0, 0, 0, first[4]), stamps.hexdigest(), IGNORED, settled=False)


def _stat_ignored(entry: os.DirEntry[str]) -> Iterator[tuple[str, Stamp]]:
    """The stamps of the entry and, for a folder, of its entries, breadth first, up to a limit."""
    try:
        yield "", stamp_of(entry.stat(follow_symlinks=False))
    except OSError:
        return
    folders = deque([entry.path] if entry.is_dir(follow_symlinks=False) else [])
    left = IGNORED_LOOK
    while folders and left > 0:
        try:
            with os.scandir(folders.popleft()) as found:
                for inner in found:
                    yield inner.path, stamp_of(inner.stat(follow_symlinks=False))
                    if inner.is_dir(follow_symlinks=False):
                        folders.append(inner.path)
                    left -= 1
                    if left <= 0:
                        return
        except OSError:
            continue
