"""Lines of a file that several attempts of one turn recorded are counted once: those of the attempt in view."""

from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli


class Killed(BaseException):
    pass


def test_diff_counts_the_lines_of_a_continued_turn_once(cli: Cli, tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        session = store.session("s")
        with session.turn("look"):
            session.fact("k", 1)
        for _ in range(2):
            with pytest.raises(Killed), session.turn("fix"):
                session.files.record("a.py", added=4, removed=2)
                raise Killed
        with session.turn("fix") as turn:
            session.files.record("a.py", added=4, removed=2)
        assert (turn.number, turn.attempt) == (2, 3)
    shown = cli("diff", "@1", "@2", "--store", str(tmp_path / "store"))
    assert shown.code == 0
    assert "1 file, +4 −2" in shown.out
