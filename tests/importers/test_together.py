"""Two imports of one transcript at the same time: each record comes in once."""

import json
from pathlib import Path

import pytest

import wakelog
from wakelog.cli.demo import DAY_US
from wakelog.cli.demo.transcript import NAME, SESSION, lines
from wakelog.importers.transcript_import import import_transcript
from wakelog.model.calls import BEGIN_KINDS
from wakelog.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / f"{SESSION}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines(DAY_US)))
    return file


def _store() -> Store:
    """A store at the time of the session: nobody has left it yet."""
    return wakelog.open("memory:", clock=lambda: DAY_US + 780_000_000)


def _said(store: Store) -> tuple[int, list[str], list[str], object]:
    session = store.resume(NAME)
    tools = [e.body["action"] for e in session.log.entries() if e.kind in BEGIN_KINDS]
    return session.log.part("turn")["number"], [m.text for m in session.messages()], tools, session.log.part("budget")


@pytest.mark.parametrize("at", [1, 5, 25])
def test_who_comes_second_takes_in_what_the_first_left(path: Path, at: int) -> None:
    alone, together = _store(), _store()
    import_transcript(alone, path)
    seen = 0

    def meanwhile(_: int) -> None:
        nonlocal seen
        seen += 1
        if seen == at:
            import_transcript(Store(together.engine, clock=together.clock), path)

    import_transcript(together, path, on_progress=meanwhile)
    assert seen >= at
    assert _said(together) == _said(alone)


def test_who_finds_a_part_imported_meanwhile_goes_on_from_there(path: Path) -> None:
    whole = path.read_text().splitlines(keepends=True)
    alone, together = _store(), _store()
    import_transcript(alone, path)
    path.write_text("".join(whole[:9]))
    import_transcript(together, path)
    path.write_text("".join(whole))
    seen = 0

    def meanwhile(_: int) -> None:
        nonlocal seen
        seen += 1
        if seen == 12:
            import_transcript(Store(together.engine, clock=together.clock), path)

    import_transcript(together, path, on_progress=meanwhile)
    assert _said(together) == _said(alone)
