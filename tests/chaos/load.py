"""Client processes that load a store, and the verdict on what they saw."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

import wakelog
from tests.chaos.history import Operation, Verdict, check
from tests.seeds import SEED

HUNG_S = 180.0
EFFECTS_MORE = 3
"""How many more effects `go_on` waits for."""


def impatient(urls: Sequence[str]) -> list[str]:
    """The URLs, of which the last gives up after two seconds, so that there are appends without an answer."""
    return [*urls[:-1], urls[-1].replace("patience=60", "patience=2")]


class Load:
    """Some clients at work."""

    def __init__(self, urls: Sequence[str], folder: Path, tasks: int = 128) -> None:
        """Each client has so many tasks beside its threads."""
        self.folder, self._tasks = folder, tasks
        self.began = time.monotonic()
        self.marks: list[tuple[float, str]] = []
        """When something was done to the servers."""
        self.effects: list[str] = []
        """What the clients' calls did, once they are finished."""
        self._read: dict[Path, tuple[int, list[dict[str, Any]]]] = {}
        """Up to where each file was read, and what it had."""
        self._files = [folder / f"c{i}.ndjson" for i in range(len(urls))]
        self._clients = [self._client(i, url) for i, url in enumerate(urls)]

    def _client(self, number: int, url: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.chaos.client", url, f"c{number}", str(self._files[number])]
        with (self.folder / f"c{number}.err").open("wb") as errors:
            return subprocess.Popen(
                [*command, str(SEED + number), str(self._tasks)],
                stdin=subprocess.PIPE,
                stderr=errors,
                cwd=Path(__file__).parents[2],
            )

    def mark(self, what: str) -> None:
        self.marks.append((time.monotonic(), what))

    def set_clock(self, client: int, wrong_s: int) -> None:
        """Makes the clock of one client wrong by so much, from now on."""
        path = self._files[client].with_suffix(".clock")
        path.with_suffix(".new").write_text(str(wrong_s))
        path.with_suffix(".new").replace(path)

    def go_on(self, more: int) -> None:
        """Waits until every client has had so many more appends answered, which began after this, of its threads and of
        its tasks; and some effects."""
        since, effects = time.monotonic(), self._count_effects() + EFFECTS_MORE

        def is_there() -> bool:
            return self._count_effects() >= effects and all(
                self._count_appends(file, since) >= more for file in self._files
            )

        self._until(is_there, f"{more} more appends")

    def _until(self, is_there: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + HUNG_S
        while not is_there():
            for i, client in enumerate(self._clients):
                assert client.poll() is None, (self.folder / f"c{i}.err").read_text()
            assert time.monotonic() < deadline, f"the clients did not get to {what}"
            time.sleep(0.1)

    def _count_effects(self) -> int:
        return sum("effect" in record for file in self._files for record in self._records(file))

    def _records(self, file: Path) -> list[dict[str, Any]]:
        at, records = self._read.setdefault(file, (0, []))
        if file.exists():
            with file.open("rb") as source:
                source.seek(at)
                whole, newline, _ = source.read().rpartition(b"\n")
            records += map(msgspec.json.decode, whole.splitlines())
            self._read[file] = at + len(whole) + len(newline), records
        return records

    def _operations(self, file: Path) -> list[Operation]:
        return [msgspec.convert(r, Operation) for r in self._records(file) if "verb" in r]

    def _count_appends(self, file: Path, since: float) -> int:
        """How many appends were answered that began after a moment, of the threads or of the tasks, whichever are
        fewer."""
        found = [r for r in self._records(file) if r.get("verb") == "append" and r["seq"] and r["began"] > since]
        of_tasks = sum(r["client"].endswith("/tasks") for r in found)
        return min(of_tasks, len(found) - of_tasks)

    def finish(self) -> list[Operation]:
        """Stops the clients; what they did."""
        for client in self._clients:
            assert client.stdin is not None
            client.stdin.write(b"\n")
            client.stdin.close()
        for i, client in enumerate(self._clients):
            assert client.wait(HUNG_S) == 0, (self.folder / f"c{i}.err").read_text()
        records = [r for file in self._files for r in self._records(file)]
        assert [r["error"] for r in records if "error" in r] == []
        self.effects = [r["effect"] for r in records if "effect" in r]
        return [o for file in self._files for o in self._operations(file)]

    def kill(self) -> None:
        """No child outlives its test, however that ends."""
        for client in self._clients:
            if client.stdin is not None:
                client.stdin.close()
            if client.poll() is None:
                client.kill()
                client.wait()


def judge_store(url: str, history: Sequence[Operation], effects: Sequence[str] = ()) -> Verdict:
    """Reads everything that the store has, verifies it, and holds the history and the effects against it."""
    logs: dict[str, list[tuple[int, str]]] = {}
    broken: list[str] = []
    with wakelog.open(url, create=False) as store:
        for head in store.sessions():
            session = store.resume(head.session)
            if not session.verify().ok:
                broken.append(f"{head.session} does not verify")
                continue
            after = head.fork.at if head.fork is not None else 0
            found = session.log.entries(after=after)
            logs[head.session] = [(e.seq, str(e.body["key"])) for e in found if e.kind == "fact.recorded"]
    verdict = check(history, logs)
    verdict.faults += broken
    verdict.effects = len(effects)
    verdict.faults += [f"{what} was done {times} times" for what, times in Counter(effects).items() if times > 1]
    return verdict
