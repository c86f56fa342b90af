"""Writes files atomically below a root, and nowhere else.

Recorded paths are not trusted: a log can come from anywhere. Each folder in a path is opened relative to its parent and
never through a symbolic link, so nothing outside the root can be reached, even if somebody swaps folders meanwhile. A
file is written to a temporary name, synced, and renamed in one step; a process that dies leaves the old content or the
new one. Right before that step the disk is checked again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from wakelog.errors import ConflictError
from wakelog.files.git import ALWAYS
from wakelog.files.manifest import PART_PREFIX, read_whole
from wakelog.redaction.plausible import MARKER

Parts = tuple[str, ...]
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Characters that some file systems drop from names, so that `.g‌it` would be `.git` to them.
_UNSEEN = dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF])


class ChangedError(Exception):
    """The disk changed since it was checked, or cannot be written."""


class FilePlace(msgspec.Struct, frozen=True):
    """A file below a root, by the names that lead to it."""

    root: str
    parts: Parts


class DiskEntry(msgspec.Struct, frozen=True):
    """What is at a place. A folder counts as `none`; `blocked` is the path of a symbolic link in the way."""

    kind: Literal["file", "link", "other", "none"]
    hash: str = ""
    mode: int = 0
    missing: str = ""
    blocked: Parts = ()

    @property
    def exists(self) -> bool:
        return self.kind != "none"


NOTHING = DiskEntry("none")


def locate(path: str, folder: str, roots: Iterable[str]) -> FilePlace | str:
    """The place that a recorded path means, or why it cannot be used."""
    if not path or "\0" in path:
        return "it is not a path"
    if MARKER in path:
        return "its name was redacted"
    names = path.split("/")
    if any(name in ("", ".", "..") for name in names[path.startswith("/") :]):
        return "its path contains empty names, . or .."
    if reserved := next((name for name in names if _is_reserved(name)), ""):
        return f"{reserved} is never written to"
    whole = path if path.startswith("/") else f"{folder.rstrip('/')}/{path}"
    root = next((root for root in roots if whole == root or whole.startswith(root.rstrip("/") + "/")), None)
    if root is None:
        return f"it is outside {', '.join(roots)}"
    # Start at the project folder if possible: a root below it may have been deleted and is created again.
    start = folder if whole.startswith(folder.rstrip("/") + "/") else root
    if not os.path.isdir(start) or start == whole:
        return f"there is no folder {start}"
    return FilePlace(start, tuple(whole[len(start.rstrip("/")) + 1 :].split("/")))


def _is_reserved(name: str) -> bool:
    return name.translate(_UNSEEN).casefold().rstrip(" .") in ALWAYS or name.casefold() == "git~1"


class OpenRoot:
    """One root, held open. Use it in a `with`."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> OpenRoot:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._fd)

    # Looking

    def look(self, parts: Parts) -> DiskEntry:
        try:
            with self._parent(parts) as parent:
                return _look(parent, parts[-1])
        except _LinkError as exc:
            return DiskEntry("none", blocked=parts[: exc.depth])
        except (FileNotFoundError, NotADirectoryError):
            return NOTHING
        except OSError as exc:
            return DiskEntry("other", missing=exc.strerror or str(exc))

    def read(self, parts: Parts, limit: int) -> bytes | None:
        """The content of a file or the target of a link; None if it is too large or cannot be read."""
        try:
            with self._parent(parts) as parent:
                found = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
                if stat.S_ISLNK(found.st_mode):
                    return os.fsencode(os.readlink(parts[-1], dir_fd=parent))
                return read_whole(parts[-1], dir_fd=parent)[0] if found.st_size <= limit else None
        except (OSError, _LinkError):
            return None

    # Writing

    def write(self, parts: Parts, content: bytes, mode: int, expect: DiskEntry) -> None:
        """Writes a file, if what is there now equals `expect`."""

        def make(parent: int, part: str) -> None:
            handle = os.open(part, _NEW, 0o600, dir_fd=parent)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fchmod(handle, mode)
                os.fsync(handle)

        self._put(parts, expect, make)

    def link(self, parts: Parts, target: str, expect: DiskEntry) -> None:
        self._put(parts, expect, lambda parent, part: os.symlink(target, part, dir_fd=parent))

    def delete(self, parts: Parts, expect: DiskEntry) -> None:
        """Deletes a file, and the folders that are empty without it, as git does."""
        with self._translate_errors(), self._parent(parts) as parent:
            _check(parent, parts[-1], expect)
            os.unlink(parts[-1], dir_fd=parent)
            os.fsync(parent)
        for depth in range(len(parts) - 1, 0, -1):
            try:
                with self._parent(parts[:depth]) as parent:
                    os.rmdir(parts[depth - 1], dir_fd=parent)
            except (OSError, _LinkError):
                return

    def save(self, parts: Parts, into: OpenRoot, name: Parts) -> None:
        """Links or copies a file to another name, also in another tree. Never replaces anything."""
        with self._translate_errors(), self._parent(parts) as parent, into._parent(name, make=0o700) as other:
            try:
                os.link(parts[-1], name[-1], src_dir_fd=parent, dst_dir_fd=other, follow_symlinks=False)
                return
            except OSError as exc:
                if exc.errno not in (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK):
                    raise
            source = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            target = os.open(name[-1], _NEW, 0o600, dir_fd=other)
            with os.fdopen(source, "rb") as file, os.fdopen(target, "wb") as copy:
                while chunk := file.read(1 << 20):
                    copy.write(chunk)
                copy.flush()
                os.fsync(target)

    def below(self, parts: Parts) -> Iterator[Parts]:
        """Every file and link below a folder; nothing if there is no such folder."""
        with contextlib.suppress(OSError, _LinkError), self._parent(parts) as parent:
            for place, folders, names, fd in os.fwalk(parts[-1], dir_fd=parent):
                inner = (*parts[:-1], *place.split("/"))
                yield from ((*inner, name) for name in [*names, *(f for f in folders if _is_link(f, fd))])

    def clean(self, parts: Parts) -> None:
        """Removes temporary files that a killed process left in the folder of a place."""
        with contextlib.suppress(OSError, _LinkError), self._parent(parts) as parent:
            for name in os.listdir(parent):
                if name.startswith(PART_PREFIX):
                    os.unlink(name, dir_fd=parent)

    def _put(self, parts: Parts, expect: DiskEntry, make: Callable[[int, str], None]) -> None:
        with self._translate_errors(), self._parent(parts, make=0o777) as parent:
            part = f"{PART_PREFIX}{secrets.token_hex(6)}"
            try:
                make(parent, part)
                _check(parent, parts[-1], expect)
                if not expect.exists:
                    _remove_empty_folder(parent, parts[-1])
                _swap(parent, part, parts[-1], is_new=not expect.exists)
                os.fsync(parent)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=parent)

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except _LinkError as exc:
            raise ChangedError("a folder in its path is a symbolic link") from exc
        except OSError as exc:
            raise ChangedError(exc.strerror or str(exc)) from exc

    @contextlib.contextmanager
    def _parent(self, parts: Parts, *, make: int = 0) -> Iterator[int]:
        """Opens the folder of a place, name by name. With `make`, missing folders are created with that mode."""
        fd = os.dup(self._fd)
        try:
            for depth, name in enumerate(parts[:-1], start=1):
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, make, dir_fd=fd)
                try:
                    inner = os.open(name, _FOLDER, dir_fd=fd)
                except OSError as exc:
                    if _is_link(name, fd):
                        raise _LinkError(depth) from exc
                    raise
                os.close(fd)
                fd = inner
            yield fd
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Allows one restore at a time. The lock is on the folder itself, so no lock file is left behind."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            raise ConflictError(
                f"files below {self.root} are being restored by another process",
                kind="restore-under-way",
                hint="wait for it and look again",
            ) from exc
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)


class _LinkError(Exception):
    """A symbolic link is where a folder should be."""

    def __init__(self, depth: int) -> None:
        self.depth = depth


def _is_link(name: str, fd: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _look(parent: int, name: str) -> DiskEntry:
    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    mode = found.st_mode
    if stat.S_ISLNK(mode):
        target = os.fsencode(os.readlink(name, dir_fd=parent))
        return DiskEntry("link", hashlib.sha256(target).hexdigest(), mode)
    if stat.S_ISDIR(mode):
        return NOTHING
    if not stat.S_ISREG(mode):
        return DiskEntry("other", mode=mode, missing="not a file")
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    with os.fdopen(handle, "rb") as file:
        return DiskEntry("file", hashlib.file_digest(file, "sha256").hexdigest(), os.fstat(handle).st_mode)


def _check(parent: int, name: str, expect: DiskEntry) -> None:
    try:
        now = _look(parent, name)
    except FileNotFoundError:
        now = NOTHING
    if (now.kind, now.hash) != (expect.kind, expect.hash):
        raise ChangedError("it changed at the same moment")


def _remove_empty_folder(parent: int, name: str) -> None:
    """Removes a folder that contains only folders, as git does. It was never recorded, because it has no file."""
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            return
        for _, folders, names, fd in os.fwalk(name, dir_fd=parent):
            if names or any(_is_link(folder, fd) for folder in folders):
                return
        for _, folders, _, fd in os.fwalk(name, topdown=False, dir_fd=parent):
            for folder in folders:
                os.rmdir(folder, dir_fd=fd)
        os.rmdir(name, dir_fd=parent)


def _swap(parent: int, part: str, name: str, *, is_new: bool) -> None:
    """Gives the written file its name. A new file never replaces one, even if that appeared a moment ago."""
    if is_new:
        try:
            os.link(part, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
            return
        except FileExistsError as exc:
            raise ChangedError("something is already there") from exc
        except OSError as exc:
            if exc.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
                raise
    os.rename(part, name, src_dir_fd=parent, dst_dir_fd=parent)
