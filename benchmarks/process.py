"""Starting contenders' processes and asking them, and the places they write to."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.kinds import Kind
from benchmarks.results import Results

if TYPE_CHECKING:
    from tests.engines.postgres_server import Server

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 120.0
"""How long an answer may take beyond what its request allows."""


class Failed(Exception):
    """A contender's process broke, raised, or did not answer."""


class Process:
    """One contender's process. It ends with the `with`."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", msgspec.json.encode(kind).decode()],
            cwd=ROOT,
            env={**os.environ, **kind.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        self._rest = b""

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Sends a request and waits for its answer."""
        self.send(do, **request)
        return self.receive(PATIENCE_S + float(request.get("cap_s", 0)))

    def send(self, do: str, **request: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode({"do": do, **request}) + b"\n")
        except BrokenPipeError:
            raise Failed(f"its process ended before {do}") from None

    def receive(self, within_s: float = PATIENCE_S) -> dict[str, Any]:
        assert self._process.stdout is not None
        until = time.monotonic() + within_s
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                self._process.kill()
                raise Failed(f"no answer within {within_s:.0f} s")
            data = os.read(self._process.stdout.fileno(), 1 << 20)
            if not data:
                raise Failed(f"its process ended with {self._process.wait()}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = msgspec.json.decode(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer


class Places:
    """Where contenders write: an empty folder or an empty database each, gone afterwards."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: Server | None = None
        self._number = 0

    @contextlib.contextmanager
    def place(self, kind: Kind) -> Iterator[str]:
        if kind.on_postgres:
            with self.database(kind.slug) as url:
                yield url
        else:
            self._number += 1
            folder = self._folder / f"b{self._number}_{kind.slug}"
            folder.mkdir(parents=True)
            try:
                yield str(folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def database(self, slug: str = "") -> Iterator[str]:
        """The url of an empty database."""
        self._number += 1
        name = f"b{self._number}_{slug}"
        server = self._postgres()
        server.sql(f'create database "{name}"')
        try:
            yield server.url.removesuffix("/postgres") + f"/{name}"
        finally:
            server.sql(f'drop database "{name}" with (force)')

    def size(self, kind: Kind, place: str) -> int:
        """Bytes on disk: tables with their indexes, or files with what is really allotted to them."""
        if kind.on_postgres:
            return self._table_bytes(place)
        files = [path.stat() for path in Path(place).rglob("*") if path.is_file()]
        return sum(min(file.st_size, file.st_blocks * 512) for file in files)

    def _table_bytes(self, place: str) -> int:
        import asyncio

        import asyncpg

        async def ask() -> int:
            db = await asyncpg.connect(place)
            found = await db.fetchval(
                "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c"
                " join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r'"
                " and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')"
            )
            await db.close()
            return int(found)

        return asyncio.run(ask())

    def _postgres(self) -> Server:
        """One server for all, with its default durability, on the same disk as the files."""
        if self._server is None:
            from tests.engines.postgres_server import Server

            # As root the server runs as nobody, who has to get there; else its own temporary folder is the place.
            is_open = os.getuid() != 0 or _is_open_to_all(self._folder)
            self._server = Server(self._folder / "postgres" if is_open else None).create().start()
        return self._server

    def close(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None


def _is_open_to_all(folder: Path) -> bool:
    return all(each.stat().st_mode & stat.S_IXOTH for each in (folder.resolve(), *folder.resolve().parents))


class Round(msgspec.Struct):
    """One round of a run: where contenders write, and where its findings go."""

    number: int
    places: Places
    results: Results
    tell: Callable[[str], None]
    """Told who is at work, for people who wait."""

    def note(self, contender: str, what: str, size: int, value: float) -> None:
        self.results.note(contender, what, size, self.number, value)
