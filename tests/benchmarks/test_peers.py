"""Every peer's driver answers as the reference does, where its package is installed."""

import re
from pathlib import Path

import pytest

from benchmarks import suite
from benchmarks.kinds import BASE, KINDS, kind_of
from benchmarks.one_session import Length

ROOT = Path(__file__).resolve().parents[2]
PEERS = [kind.name for kind in KINDS if kind.group == "peer" or kind.on_postgres]
SMALL = suite.Size(
    rounds=1,
    lengths=(Length(7, 60),),
    sessions=(2,),
    together_turns=6,
    together_cap_s=60,
    many=0,
)


@pytest.mark.slow
@pytest.mark.parametrize("name", PEERS)
def test_peer_gives_the_reference_s_answers(name: str, tmp_path: Path) -> None:
    kind = kind_of(name)
    if kind.missing():
        pytest.skip(f"not installed: {', '.join(kind.missing())}")
    found = suite.run(SMALL, [kind_of(BASE), kind], tmp_path, command="small", say=lambda what: None)
    assert [each for each in found.troubles if each.kind != "raised"] == []
    for what in ("one.ratio", "read.load_ms", "read.files_ms"):
        assert found.find(name, what, 7) is not None
    assert next(about for about in found.about if about.name == name).is_full is True


def test_peers_are_pinned_apart_and_the_core_is_pinned_alike() -> None:
    own = _pins(ROOT / "constraints.txt")
    bench = _pins(ROOT / "benchmarks" / "constraints.txt")
    for package in {package for kind in KINDS for package in kind.packages} - {"wakelog-core"}:  # built here
        assert package in bench
    for package in ("apsw", "asyncpg", "msgspec", "rfc8785", "zstandard"):
        assert bench[package] == own[package]


def _pins(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line) for line in lines)
    pairs = [line.split("==") for line in lines]
    return {name.lower().replace("_", "-"): version for name, version in pairs}
