"""Places for archives: a folder, and a bucket of a real S3 server."""

from pathlib import Path

import pytest

from tests.engines.test_blobs import s3  # noqa: F401 - a fixture

PLACES = ["folder", pytest.param("s3", marks=pytest.mark.slow)]


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
