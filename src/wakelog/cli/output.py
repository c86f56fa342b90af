"""What commands write besides their answer: files (complete or not at all), and progress of long work."""

from __future__ import annotations

import contextlib
import gzip
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import click

from wakelog.atomic_file import atomic_file
from wakelog.cli.context import CommandContext
from wakelog.cli.text import size
from wakelog.engines.object_storage import Objects, is_url, split_url
from wakelog.errors import NotAllowedError, NotFoundError

__all__ = ["STDOUT", "Progress", "is_url", "reading_from", "refuse_existing", "writing", "writing_to"]

STDOUT = "-"
SPOOL_MAX = 8 << 20
FIRST_SHOWN_S = 0.5
SHOWN_EVERY_S = 0.1


def refuse_existing(path: Path, *, force: bool) -> None:
    """Raises NotAllowedError if the path is a folder, or an existing file that may not be replaced."""
    if path.is_dir():
        raise NotAllowedError(f"{path} is a folder", kind="is-a-folder", hint="name a file in it")
    if path.exists() and not force:
        raise NotAllowedError(f"{path} already exists", kind="file-exists", hint="use --force to replace it")


@contextlib.contextmanager
def writing(path: Path, *, force: bool = False, zipped: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to. It gets its name once everything is written and synced, so a crash leaves no partial file."""
    refuse_existing(path, force=force)
    try:
        with atomic_file(path, replace=force) as raw, _zipped(raw) if zipped else contextlib.nullcontext(raw) as out:
            yield out
    except FileExistsError as exc:
        raise NotAllowedError(f"{path} already exists", kind="file-exists", hint="use --force to replace it") from exc
    except OSError as exc:
        raise NotAllowedError(
            f"{path} cannot be written: {exc.strerror or exc}", kind="not-writable", hint="choose another place with -o"
        ) from exc


@contextlib.contextmanager
def writing_to(target: str, *, force: bool = False, zipped: bool = False) -> Iterator[IO[bytes]]:
    """Opens a target: a file as `writing` does; an object for a URL such as s3://bucket/name, which is never replaced;
    or stdout for `-`, unless compressed bytes would go to a terminal."""
    if is_url(target):
        with _putting(target, force=force, zipped=zipped) as out:
            yield out
        return
    if target != STDOUT:
        with writing(Path(target), force=force, zipped=zipped) as out:
            yield out
        return
    if zipped and sys.stdout.isatty():
        raise click.UsageError("compressed output cannot go to a terminal: name a file with -o")
    stdout = sys.stdout.buffer
    with _zipped(stdout) if zipped else contextlib.nullcontext(stdout) as out:
        yield out
    stdout.flush()


@contextlib.contextmanager
def _putting(url: str, *, force: bool, zipped: bool) -> Iterator[IO[bytes]]:
    """Collects an object and stores it when it is complete, unless the name is taken by then."""
    if force:
        raise click.UsageError("an object in a blob store is never replaced: choose another name")
    place, key = split_url(url)
    objects = Objects(place)
    with tempfile.SpooledTemporaryFile(SPOOL_MAX) as spool:
        raw = cast(IO[bytes], spool)
        with _zipped(raw) if zipped else contextlib.nullcontext(raw) as out:
            yield out
        spool.seek(0)
        if not objects.put(key, spool.read()):
            raise NotAllowedError(f"{url} already exists", kind="file-exists", hint="choose another name")


@contextlib.contextmanager
def _zipped(raw: IO[bytes]) -> Iterator[IO[bytes]]:
    # No time in the header, so that equal content gives equal files.
    with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as out:
        yield cast(IO[bytes], out)


def reading_from(source: str) -> IO[bytes]:
    """Opens a file, an object for a URL, or stdin for `-`."""
    if source == STDOUT:
        return sys.stdin.buffer
    if is_url(source):
        return _fetched(source)
    try:
        return Path(source).open("rb")
    except OSError as exc:
        raise NotFoundError(f"{source} cannot be read: {exc.strerror}", kind="file-not-found") from exc


def _fetched(url: str) -> IO[bytes]:
    place, key = split_url(url)
    spool = cast(IO[bytes], tempfile.SpooledTemporaryFile(SPOOL_MAX))  # noqa: SIM115 - closed by who reads it
    try:
        for chunk in Objects(place, create=False).chunks(key):
            spool.write(chunk)
    except FileNotFoundError as exc:
        spool.close()
        raise NotFoundError(f"there is no {url}", kind="file-not-found") from exc
    spool.seek(0)
    return spool


class Progress:
    """Shows a counter on stderr. Nothing is shown in the first half second, or if stderr is no terminal."""

    def __init__(self, ctx: CommandContext, what: str, total: int = 0) -> None:
        self._what, self._total = what, total
        self._is_shown = sys.stderr.isatty() and not ctx.quiet and ctx.is_for_people
        self._count = 0
        self._next = time.monotonic() + FIRST_SHOWN_S
        self._width = 0

    def __call__(self, steps: int = 1) -> None:
        self._count += steps
        if self._is_shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + SHOWN_EVERY_S
            self._show(self._line())

    @property
    def count(self) -> int:
        return self._count

    def reach(self, done: int, total: int) -> None:
        """Sets the count, for work that reports a running total."""
        self._total = total
        self(done - self._count)

    def _line(self) -> str:
        what, comma, unit = self._what.partition(", bytes")
        done, total = (size(self._count), size(self._total)) if comma else (f"{self._count:,}", f"{self._total:,}")
        if not self._total:
            return f"{what} {done}{unit}"
        return f"{what} {done} of {total} ({min(100, 100 * self._count // self._total)}%)"

    def _show(self, line: str) -> None:
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._show("")
            sys.stderr.write("\r")
            sys.stderr.flush()
