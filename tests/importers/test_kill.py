"""An import that is killed in the middle, and begun again: nothing is lost and nothing comes twice."""

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

import wakelog
from benchmarks.transcripts import make_tree
from tests.crash.processes import child, finish
from tests.importers.claude import NAME, SESSION, START, Lines, call, text, told_of
from tests.importers.corpus import records_of
from wakelog.importers.transcript_import import import_transcript
from wakelog.store import Store


def import_until_killed(store: str, file: str, say_after: int, stop_after: int) -> None:
    """The child: says when so many bytes were taken in, goes on for a while, and never reaches the end."""
    taken = 0

    def told(weight: int) -> None:
        nonlocal taken
        is_said = taken >= say_after
        taken += weight
        if taken >= say_after and not is_said:
            os.write(1, b"in the middle\n")
        if taken >= stop_after:
            signal.pause()

    import_transcript(wakelog.open(store, clock=lambda: START), Path(file), on_progress=told)
    os.write(1, b"at the end\n")


def check_killed(folder: Path, file: Path, name: str, *, say_after: int, stop_after: int) -> None:
    lines = file.read_bytes().count(b"\n")
    place = folder / "store"
    with child(
        "import_until_killed",
        module="tests.importers.test_kill",
        store=str(place),
        file=str(file),
        say_after=say_after,
        stop_after=stop_after,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in the middle\n"
        os.kill(process.pid, signal.SIGKILL)
        assert finish(process, killed=True) == []
    with wakelog.open(place, clock=lambda: START) as store:
        session = store.resume(name)
        commits = {e.commit_id for e in session.log.entries() if e.kind == "records.imported"}
        stored = len(records_of(session))
        assert len(commits) > 1
        assert 0 < stored < lines
        report = import_transcript(store, file)
        assert report.new_records == lines - stored
        assert import_transcript(store, file).new_records == 0
        _check_whole(store, name, lines)
        with wakelog.open(folder / "once", clock=lambda: START) as once:
            import_transcript(once, file)
            assert told_of(store) == told_of(once)


def _check_whole(store: Store, name: str, lines: int) -> None:
    session = store.resume(name)
    ids = Counter(id for id, _, _ in records_of(session))
    assert len(ids) == lines
    assert set(ids.values()) == {1}
    assert session.verify().ok


def test_an_import_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    lines = Lines()
    for number in range(300):
        lines.prompt(f"Number {number}.")
        lines.reply(f"m{number}", text("I'll look."), call(f"t{number}", "Bash", command="make"))
        lines.result(f"t{number}", "made")
        lines.reply(f"n{number}", text("Done."))
    file = lines.write(tmp_path / f"{SESSION}.jsonl")
    size = file.stat().st_size
    check_killed(tmp_path, file, NAME, say_after=size * 2 // 3, stop_after=size * 5 // 6)


@pytest.mark.slow
def test_a_large_import_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    size = 50_000_000
    (file,) = make_tree(tmp_path, size, each=size)
    assert file.stat().st_size >= size
    check_killed(tmp_path, file, f"claude-{file.stem[:8]}", say_after=20 << 20, stop_after=24 << 20)


if __name__ == "__main__":
    import_until_killed(**json.loads(sys.argv[2]))
