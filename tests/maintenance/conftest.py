"""A clock that moves by itself, and places for archives: a folder, and a bucket of a real S3 server."""

from pathlib import Path

import pytest

from tests.engines.test_blobs import s3  # noqa: F401 - a fixture
from wakelog.engines.memory import MemoryEngine
from wakelog.store import Store

PLACES = ["folder", pytest.param("s3", marks=pytest.mark.slow)]


class Clock:
    now = 1_790_000_000_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Store:
    return Store(MemoryEngine(), clock=clock)


@pytest.fixture
def bucket(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue("s3"))
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return f"s3://wakelog/{tmp_path.name}"


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        return str(request.getfixturevalue("bucket"))
    return str(tmp_path / "it's an archive")
